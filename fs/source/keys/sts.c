/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/sts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/source/net/secret.h"
#include "fs/source/net/sign.h"
#include "fs/source/net/xml.h"
#include "fs/source/url/percent.h"
#include "fs/source/url/service.h"
#include "fs/source/url/url.h"

enum {
	ANSWER_MAX = 65536,
	TOKEN_MAX = 16384,
	VALUE_MAX = 256,
	TIMEOUT_MS = 10000,
};

#define FORM "Content-Type: application/x-www-form-urlencoded"

/* --- the request --- */

/* Prints "&NAME=VALUE"; NULL value: nothing. */
static int print_value(FILE *out, const char *name, const char *value)
{
	cleanup_secret char *encoded = NULL;
	int r;

	if (!value)
		return 0;
	r = url_encode(value, true, &encoded);
	if (!r)
		fprintf(out, "&%s=%s", name, encoded);
	return r;
}

static int print_values(FILE *out, struct search *search,
			const struct sts_role *role, const char *token)
{
	const char *name = role->session_name;
	char made[40];
	int r;

	snprintf(made, sizeof(made), "betonfs-%lld",
		 (long long)search->outside->now(search->outside->arg));
	fprintf(out, "Action=AssumeRole%s&Version=2011-06-15",
		token ? "WithWebIdentity" : "");
	r = print_value(out, "RoleArn", role->arn);
	r = r ? r : print_value(out, "RoleSessionName", name ? name : made);
	r = r ? r : print_value(out, "DurationSeconds", role->duration);
	r = r ? r : print_value(out, "ExternalId", role->external_id);
	return r ? r : print_value(out, "WebIdentityToken", token);
}

/* Makes the body of the request. */
static int make_body(struct search *search, const struct sts_role *role,
		     const char *token, char **out)
{
	size_t size;
	FILE *file = open_memstream(out, &size);
	int r;

	if (!file)
		return -ENOMEM;
	r = print_values(file, search, role, token);
	return fclose(file) && !r ? -ENOMEM : r;
}

static int find_endpoint(struct search *search, const struct sts_role *role,
			 struct url_request *out)
{
	cleanup_free char *host = NULL, *made = NULL;
	char why[URL_WHY_SIZE] = "";
	struct url url = { 0 };
	int r = 0;

	*out = (struct url_request){ 0 };
	if (!role->endpoint && role->region)
		r = url_aws_host("sts", role->region, &host);
	if (r == -EINVAL)
		return search_fails(search, -EACCES, "STS: the region is none");
	if (!r)
		r = text_print(&made, "https://%s",
			       host ? host : "sts.amazonaws.com");
	r = r ? r
	      : url_parse(role->endpoint ? role->endpoint : made, &url, why);
	if (!r && url.scheme->bucket)
		return search_fails(search, -EACCES,
				    "STS: the endpoint is neither http:// nor "
				    "https://");
	r = r ? r : url_request(&url, NULL, out, why);
	url_fini(&url);
	return r == -EINVAL ? search_fails(search, -EACCES,
					   "STS: the endpoint: %s", why)
			    : r;
}

/* --- the answer --- */

static const char *const passing[] = {
	"Throttling",
	"ThrottlingException",
	"IDPCommunicationError",
	"InternalFailure",
	"RequestTimeout",
	"ServiceUnavailable",
	/* The program that writes the token may be late. */
	"ExpiredTokenException",
};

static int refused(struct search *search, const struct outside_fetch *fetch)
{
	char code[64], message[VALUE_MAX];
	int r = -EACCES;

	if (!xml_text(fetch->buf, fetch->got, "Code", code, sizeof(code)))
		snprintf(code, sizeof(code), "HTTP status %d", fetch->status);
	if (!xml_text(fetch->buf, fetch->got, "Message", message,
		      sizeof(message)))
		*message = '\0';
	for (size_t i = 0; i < ARRAY_LEN(passing); i++) {
		if (!strcmp(code, passing[i]))
			r = -EAGAIN;
	}
	if (fetch->status >= 500 || fetch->status == 429)
		r = -EAGAIN;
	return search_fails(search, r, "STS: %s%s%s", code,
			    *message ? ": " : "", message);
}

static int take_session(struct search *search,
			const struct outside_fetch *fetch, struct session *out)
{
	char id[VALUE_MAX], secret[VALUE_MAX], time[VALUE_MAX];
	char *token = malloc(TOKEN_MAX);
	const char *xml = fetch->buf;
	size_t size = fetch->got;
	int r = token ? 0 : -ENOMEM;

	if (!r &&
	    (!xml_text(xml, size, "AccessKeyId", id, sizeof(id)) ||
	     !xml_text(xml, size, "SecretAccessKey", secret, sizeof(secret)) ||
	     !xml_text(xml, size, "SessionToken", token, TOKEN_MAX) ||
	     !xml_text(xml, size, "Expiration", time, sizeof(time))))
		r = -EINVAL;
	r = r ? r : session_set(out, id, secret, token);
	if (!r && !session_parse_time(time, &out->expires))
		r = -EINVAL;
	explicit_bzero(secret, sizeof(secret));
	secret_free_bytes(token, TOKEN_MAX);
	return r == -EINVAL ? search_fails(search, -EAGAIN,
					   "STS: the answer has no session")
			    : r;
}

/* Sends the request, and takes the session of the answer. */
static int call(struct search *search, const char *url,
		const struct sign_lines *signature, const char *body,
		struct session *out)
{
	const char *lines[SIGN_LINES_MAX + 1] = { FORM };
	struct outside_fetch fetch = {
		.method = "POST",
		.url = url,
		.lines = lines,
		.num_lines = 1,
		.body = body,
		.body_size = strlen(body),
		.timeout_ms = TIMEOUT_MS,
		.buf = malloc(ANSWER_MAX),
		.size = ANSWER_MAX,
	};
	int r = fetch.buf ? 0 : -ENOMEM;

	for (size_t i = 0; i < signature->num; i++)
		lines[fetch.num_lines++] = signature->at[i];
	if (!r) {
		r = search->outside->fetch(search->outside->fetch_arg, &fetch);
		if (r && r != -ENOMEM && r != -ECANCELED)
			r = search_fails(search, -EAGAIN, "STS: %.200s",
					 fetch.why[0] ? fetch.why
						      : strerror(-r));
		else if (!r)
			r = fetch.status == 200
				    ? take_session(search, &fetch, out)
				    : refused(search, &fetch);
	}
	secret_free_bytes(fetch.buf, ANSWER_MAX);
	return r;
}

static int sign_call(struct search *search, const struct sts_role *role,
		     const struct session *keys,
		     const struct url_request *target, const char *body,
		     struct sign_lines *out)
{
	static const char *const lines[] = { FORM };
	char hash[SHA256_HEX_SIZE];
	const struct sign_keys with = { keys->id, keys->secret, keys->token };
	const struct sign_request request = {
		.method = "POST",
		.host = target->host,
		.path = target->path,
		.query = target->query,
		.lines = lines,
		.num_lines = ARRAY_LEN(lines),
		.payload = hash,
		.region = role->region ? role->region : "us-east-1",
		.service = "sts",
		.now = search->outside->now(search->outside->arg),
	};

	sha256_hex(body, strlen(body), hash);
	return sign_request(&with, &request, out);
}

/* Asks with keys, or with a token. */
static int assume(struct search *search, const struct sts_role *role,
		  const struct session *keys, const char *token,
		  struct session *out)
{
	cleanup_secret char *body = NULL;
	struct sign_lines signature = { 0 };
	struct url_request target;
	int r;

	*out = (struct session){ 0 };
	if (!search->outside->fetch)
		return search_fails(search, -EACCES,
				    "STS: there is no network");
	r = find_endpoint(search, role, &target);
	r = r ? r : make_body(search, role, token, &body);
	if (!r && keys)
		r = sign_call(search, role, keys, &target, body, &signature);
	r = r ? r : call(search, target.url, &signature, body, out);
	sign_lines_fini(&signature);
	url_request_fini(&target);
	return r;
}

int sts_assume(struct search *search, const struct sts_role *role,
	       const struct session *keys, struct session *out)
{
	return assume(search, role, keys, NULL, out);
}

int sts_web_identity(struct search *search, const struct sts_role *role,
		     const char *token_file, struct session *out)
{
	cleanup_secret char *token = NULL;
	size_t size;
	int r = outside_read(search->outside, token_file, &token, &size);

	if (r == -ENOMEM)
		return r;
	if (r)
		return search_fails(search, -EAGAIN, "%.300s: %s", token_file,
				    outside_why(r));
	while (size && strchr(" \t\r\n", token[size - 1]))
		token[--size] = '\0';
	if (!size)
		return search_fails(search, -EAGAIN, "%.300s: empty",
				    token_file);
	return assume(search, role, NULL, token, out);
}
