/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/net/sign.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/source/net/secret.h"

#define ALGORITHM "AWS4-HMAC-SHA256"

enum { STAMP_SIZE = 17, DATE_SIZE = 8 }; /* 20130524T000000Z, 20130524 */

/* A text in canonical form: a parameter of the query, or a header. */
struct pair {
	char *name;
	char *value;
	size_t position; /* keeps the order of equal names */
};

static void free_pairs(struct pair *pairs, size_t num)
{
	for (size_t i = 0; i < num; i++) {
		free(pairs[i].name);
		secret_free(&pairs[i].value);
	}
}

/* --- the query --- */

static int compare_parameters(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : strcmp(x->value, y->value);
}

/* Splits NAME=VALUE; struct url_request has both encoded. */
static int take_parameter(const char *text, size_t size, struct pair *out)
{
	const char *equals = memchr(text, '=', size);
	size_t name = equals ? (size_t)(equals - text) : size;

	out->name = strndup(text, name);
	out->value =
		strndup(equals ? equals + 1 : "", equals ? size - name - 1 : 0);
	return out->name && out->value ? 0 : -ENOMEM;
}

static int print_query(FILE *out, const char *query)
{
	cleanup_free struct pair *pairs = NULL;
	size_t num = 0, max = 1, size;
	int r = 0;

	for (const char *p = query; *p; p++)
		max += *p == '&';
	pairs = calloc(max, sizeof(*pairs));
	if (!pairs)
		return -ENOMEM;
	for (const char *p = query; *p && !r; p += size + (p[size] == '&')) {
		size = strcspn(p, "&");
		if (size)
			r = take_parameter(p, size, &pairs[num++]);
	}
	if (!r)
		qsort(pairs, num, sizeof(*pairs), compare_parameters);
	for (size_t i = 0; i < num && !r; i++)
		fprintf(out, "%s%s=%s", i ? "&" : "", pairs[i].name,
			pairs[i].value);
	free_pairs(pairs, num);
	return r;
}

/* --- headers --- */

struct headers {
	struct pair at[SIGN_HEADERS_MAX];
	size_t num;
};

static int compare_headers(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->position > y->position) * 2 - 1;
}

static void lower(char *text)
{
	for (; *text; text++) {
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text + 'a' - 'A');
	}
}

/* Removes spaces around a text, and all but one between its words. */
static void squeeze(char *text)
{
	char *out = text;

	for (const char *p = text; *p; p++) {
		if (*p != ' ' && *p != '\t')
			*out++ = *p;
		else if (out != text && out[-1] != ' ')
			*out++ = ' ';
	}
	if (out != text && out[-1] == ' ')
		out--;
	*out = '\0';
}

static int add_header(struct headers *headers, const char *name,
		      size_t name_size, const char *value)
{
	struct pair *h = &headers->at[headers->num];

	if (headers->num == SIGN_HEADERS_MAX)
		return -E2BIG;
	if (strpbrk(value, "\r\n"))
		return -EINVAL;
	h->position = headers->num++;
	h->name = strndup(name, name_size);
	h->value = strdup(value);
	if (!h->name || !h->value)
		return -ENOMEM;
	lower(h->name);
	squeeze(h->value);
	return 0;
}

static int add_line(struct headers *headers, const char *line)
{
	const char *colon = strchr(line, ':');

	if (!colon)
		return -EINVAL;
	return add_header(headers, line, (size_t)(colon - line), colon + 1);
}

static bool begins_name(const struct headers *headers, size_t i)
{
	return !i || strcmp(headers->at[i - 1].name, headers->at[i].name);
}

/* The names, each once. */
static void print_names(FILE *out, const struct headers *headers)
{
	for (size_t i = 0; i < headers->num; i++) {
		if (begins_name(headers, i))
			fprintf(out, "%s%s", i ? ";" : "", headers->at[i].name);
	}
}

static void print_headers(FILE *out, const struct headers *headers)
{
	for (size_t i = 0; i < headers->num; i++) {
		if (!begins_name(headers, i))
			fprintf(out, ",%s", headers->at[i].value);
		else
			fprintf(out, "%s%s:%s", i ? "\n" : "",
				headers->at[i].name, headers->at[i].value);
	}
	fputc('\n', out);
}

/* --- the signature --- */

/* Everything that the signature is made of. */
struct signing {
	const struct sign_keys *keys;
	const struct sign_request *request;
	char stamp[STAMP_SIZE];
	char payload[SHA256_HEX_SIZE];
	struct headers headers;
	char *names;
	char *scope; /* DATE/REGION/SERVICE/aws4_request */
	char signature[SHA256_HEX_SIZE];
};

static int set_time(struct signing *s)
{
	struct tm tm;

	if (!gmtime_r(&s->request->now, &tm) ||
	    strftime(s->stamp, sizeof(s->stamp), "%Y%m%dT%H%M%SZ", &tm) !=
		    STAMP_SIZE - 1)
		return -EINVAL;
	return text_print(&s->scope, "%.*s/%s/%s/aws4_request", DATE_SIZE,
			  s->stamp, s->request->region, s->request->service);
}

/* Adds a header that is signed, and a line that is sent. */
static int add_both(struct signing *s, struct sign_lines *out, const char *name,
		    const char *value)
{
	int r = add_header(&s->headers, name, strlen(name), value);

	if (r)
		return r;
	if (text_print(&out->at[out->num], "%s: %s", name, value))
		return -ENOMEM;
	out->num++;
	return 0;
}

static int collect_headers(struct signing *s, struct sign_lines *out)
{
	const struct sign_request *q = s->request;
	int r = add_header(&s->headers, "host", 4, q->host);

	for (size_t i = 0; i < q->num_lines && !r; i++)
		r = add_line(&s->headers, q->lines[i]);
	r = r ? r : add_both(s, out, "x-amz-date", s->stamp);
	if (!r && (q->payload || !strcmp(q->service, "s3")))
		r = add_both(s, out, "x-amz-content-sha256", s->payload);
	if (!r && s->keys->token && *s->keys->token)
		r = add_both(s, out, "x-amz-security-token", s->keys->token);
	if (!r)
		qsort(s->headers.at, s->headers.num, sizeof(*s->headers.at),
		      compare_headers);
	return r;
}

static int print_names_text(struct signing *s)
{
	size_t size;
	FILE *file = open_memstream(&s->names, &size);

	if (!file)
		return -ENOMEM;
	print_names(file, &s->headers);
	return fclose(file) ? -ENOMEM : 0;
}

/* Hashes the request in its canonical form. */
static int hash_request(const struct signing *s, char out[SHA256_HEX_SIZE])
{
	const struct sign_request *q = s->request;
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	int r;

	if (!file)
		return -ENOMEM;
	fprintf(file, "%s\n%s\n", q->method, q->path);
	r = print_query(file, q->query ? q->query : "");
	fputc('\n', file);
	print_headers(file, &s->headers);
	fprintf(file, "\n%s\n%s", s->names, s->payload);
	if (fclose(file) && !r)
		r = -ENOMEM;
	if (!r)
		sha256_hex(text, size, out);
	secret_free(&text);
	return r;
}

static void derive_key(const struct signing *s, const char *secret,
		       uint8_t key[SHA256_SIZE])
{
	const struct sign_request *q = s->request;

	hmac_sha256(secret, strlen(secret), s->stamp, DATE_SIZE, key);
	hmac_sha256(key, SHA256_SIZE, q->region, strlen(q->region), key);
	hmac_sha256(key, SHA256_SIZE, q->service, strlen(q->service), key);
	hmac_sha256(key, SHA256_SIZE, "aws4_request", 12, key);
}

static int compute_signature(struct signing *s)
{
	char hash[SHA256_HEX_SIZE], *secret;
	cleanup_free char *text = NULL;
	uint8_t key[SHA256_SIZE];
	int r = hash_request(s, hash);

	if (r)
		return r;
	if (text_print(&text, ALGORITHM "\n%s\n%s\n%s", s->stamp, s->scope,
		       hash))
		return -ENOMEM;
	if (text_print(&secret, "AWS4%s", s->keys->secret))
		return -ENOMEM;
	derive_key(s, secret, key);
	hmac_sha256(key, sizeof(key), text, strlen(text), key);
	sha256_text(key, s->signature);
	explicit_bzero(key, sizeof(key));
	secret_free(&secret);
	return 0;
}

static int authorize(const struct signing *s, struct sign_lines *out)
{
	if (text_print(&out->at[out->num],
		       "Authorization: " ALGORITHM " Credential=%s/%s, "
		       "SignedHeaders=%s, Signature=%s",
		       s->keys->id, s->scope, s->names, s->signature))
		return -ENOMEM;
	out->num++;
	return 0;
}

int sign_request(const struct sign_keys *keys,
		 const struct sign_request *request, struct sign_lines *out)
{
	struct signing s = { .keys = keys, .request = request };
	int r;

	*out = (struct sign_lines){ 0 };
	if (strpbrk(keys->id, "\r\n"))
		return -EINVAL;
	if (request->payload)
		snprintf(s.payload, sizeof(s.payload), "%s", request->payload);
	else
		sha256_hex("", 0, s.payload);
	r = set_time(&s);
	r = r ? r : collect_headers(&s, out);
	r = r ? r : print_names_text(&s);
	r = r ? r : compute_signature(&s);
	r = r ? r : authorize(&s, out);
	free_pairs(s.headers.at, s.headers.num);
	free(s.names);
	free(s.scope);
	return r;
}

void sign_lines_fini(struct sign_lines *lines)
{
	for (size_t i = 0; i < lines->num; i++)
		secret_free(&lines->at[i]);
	*lines = (struct sign_lines){ 0 };
}
