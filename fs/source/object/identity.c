/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/identity.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"

bool identity_is_strong(const struct pin *pin)
{
	return (*pin->etag && !pin->etag_is_weak) || *pin->version ||
	       pin->generation;
}

/* Names that begin so sign a URL of S3 or Google. */
static const char *const signing_prefixes[] = { "X-Amz-", "X-Goog-" };

/*
 * If a query has the parameter `mark`, these sign it, too: S3's and Google's
 * older form and CloudFront's, and the SAS of Azure.
 */
static const struct signing {
	const char *mark;
	const char *names;
} signings[] = {
	{ "Signature", " Signature Expires AWSAccessKeyId GoogleAccessId"
		       " Key-Pair-Id Policy " },
	{ "sig", " sig sv ss srt sr sp st se sip spr skoid sktid skt ske sks"
		 " skv saoid suoid scid " },
};

/* The name of the parameter at p, and the end of the parameter. */
static size_t name_size(const char *p, size_t *size)
{
	*size = strcspn(p, "&");
	return min_u64(strcspn(p, "="), *size);
}

static bool has_parameter(const char *query, const char *name)
{
	size_t n, size;

	for (const char *p = query; *p; p += size + (p[size] == '&')) {
		n = name_size(p, &size);
		if (n == strlen(name) && !strncmp(p, name, n))
			return true;
	}
	return false;
}

static bool is_in(const char *names, const char *name, size_t n)
{
	for (const char *at = names + 1; *at; at += strcspn(at, " ") + 1)
		if (strcspn(at, " ") == n && !strncmp(at, name, n))
			return true;
	return false;
}

static bool only_signs(const char *query, const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(signing_prefixes); i++) {
		size_t k = strlen(signing_prefixes[i]);

		if (n > k && !strncasecmp(name, signing_prefixes[i], k))
			return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(signings); i++)
		if (is_in(signings[i].names, name, n) &&
		    has_parameter(query, signings[i].mark))
			return true;
	return false;
}

/* Each part ends in NUL, so that no two lists of parts are one text. */
static void add(struct sha256 *hash, const char *text, size_t size)
{
	sha256_add(hash, text, size);
	sha256_add(hash, "", 1);
}

static void add_query(struct sha256 *hash, const char *query)
{
	size_t n, size;

	for (const char *p = query; *p; p += size + (p[size] == '&')) {
		n = name_size(p, &size);
		if (!only_signs(query, p, n))
			add(hash, p, size);
	}
}

/* Without the password, because the text is stored. */
static void hash_place(const struct url *url, const struct url_request *request,
		       char out[SHA256_HEX_SIZE])
{
	const char *user = url->userinfo ? url->userinfo : "";
	uint8_t sum[SHA256_SIZE];
	struct sha256 hash;

	sha256_init(&hash);
	add(&hash, request->tls ? "tls" : "", request->tls ? 3 : 0);
	add(&hash, request->host, strlen(request->host));
	add(&hash, request->path, strlen(request->path));
	add(&hash, user, strcspn(user, ":"));
	if (request->query)
		add_query(&hash, request->query);
	sha256_end(&hash, sum);
	sha256_text(sum, out);
}

/* getrandom() fails only before the system has any entropy. */
static void draw(char out[SHA256_HEX_SIZE])
{
	struct {
		uint64_t drawn[4];
		struct timespec now;
		pid_t process;
	} seed = { .process = getpid() };

	clock_gettime(CLOCK_REALTIME, &seed.now);
	if (getrandom(seed.drawn, sizeof(seed.drawn), GRND_NONBLOCK) < 0)
		seed.drawn[0] = 0;
	sha256_hex(&seed, sizeof(seed), out);
}

void identity_make(const struct pin *pin, const struct url *url,
		   const struct url_request *request, char out[IDENTITY_SIZE])
{
	char name[PIN_LINE_SIZE], place[SHA256_HEX_SIZE];
	char drawn[SHA256_HEX_SIZE] = "";

	hash_place(url, request, place);
	if (!identity_is_strong(pin))
		draw(drawn);
	snprintf(out, IDENTITY_SIZE, "%s %s %s%s",
		 pin_name(pin->etag, pin->has_modified, pin->modified, name),
		 pin->version, place, drawn);
}
