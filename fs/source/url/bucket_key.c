/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/url/bucket_key.h"

#include <stdlib.h>

#include "fs/base/util/cleanup.h"
#include "fs/source/net/secret.h"
#include "fs/source/url/percent.h"

enum { BUCKET_MAX = 255 };

/* Whether a query has the parameter. */
static bool has_parameter(const char *query, const char *name)
{
	size_t size = strlen(name);

	for (const char *p = query; p; p = strchr(p, '&')) {
		p += *p == '&';
		if (!strncmp(p, name, size) && p[size] == '=')
			return true;
	}
	return false;
}

const char *url_bucket_query(const struct url_scheme *scheme, const char *key)
{
	const char *mark = strrchr(key, '?');

	if (!scheme->version)
		return strchr(key, '?');
	if (!mark || !mark[1] || has_parameter(mark + 1, scheme->version))
		return mark;
	return NULL;
}

/* Prints NAME=VALUE of [p, end) in canonical form. */
static int print_parameter(FILE *out, const char *p, const char *end)
{
	cleanup_free char *raw = strndup(p, (size_t)(end - p)), *name = NULL;
	cleanup_free char *value = NULL;
	char *equals;
	int r;

	if (!raw)
		return -ENOMEM;
	equals = strchrnul(raw, '=');
	value = strdup(*equals ? equals + 1 : "");
	*equals = '\0';
	if (!value)
		return -ENOMEM;
	if (!percent_decode(raw) || !percent_decode(value))
		return -EINVAL;
	r = url_encode(raw, true, &name);
	if (r)
		return r;
	fprintf(out, "%s=", name);
	free(steal(name));
	r = url_encode(value, true, &name);
	if (!r)
		fputs(name, out);
	return r;
}

/* The query in the form of which signatures are made, except for the order. */
static int parse_parameters(const char *text, char **out,
			    char why[URL_WHY_SIZE])
{
	size_t size;
	FILE *file = open_memstream(out, &size);
	const char *end;
	int r = 0;

	if (!file)
		return -ENOMEM;
	for (const char *p = text; !r; p = end + 1) {
		end = strchrnul(p, '&');
		if (p != text)
			fputc('&', file);
		r = print_parameter(file, p, end);
		if (!*end)
			break;
	}
	if (fclose(file) && !r)
		r = -ENOMEM;
	if (r == -EINVAL)
		url_refuse(why, "the query has a control character");
	return r;
}

static bool ends_in(const char *name, size_t size, const char *end)
{
	size_t n = end ? strlen(end) : 0;

	return n && size > n && !strcmp(name + size - n, end);
}

static int check_bucket(const struct url *url, char why[URL_WHY_SIZE])
{
	const char *name = url->bucket;
	size_t size = strlen(name);

	if (!size)
		return url_refuse(why, "there is no bucket");
	if (size > BUCKET_MAX || name[strspn(name, url->scheme->bucket)] ||
	    strchr("-.", *name))
		return url_refuse(why, "the bucket's name has a character that "
				       "names cannot have, or is too long");
	if (ends_in(name, size, url->scheme->refused))
		return url_refuse(why, "directory buckets (S3 Express) are not "
				       "supported");
	return 0;
}

/* Cuts "@ACCOUNT" off a container. */
static int parse_account(struct url *url, char why[URL_WHY_SIZE])
{
	char *at = strchr(url->bucket, '@');

	if (!at)
		return 0;
	if (!url->scheme->has_account) {
		secret_free(&url->bucket);
		return url_refuse(why,
				  "a URL of this scheme has no user; set the "
				  "keys in the environment");
	}
	*at++ = '\0';
	if (!*at || at[strspn(at, URL_LOWER URL_DIGITS)])
		return url_refuse(why, "the account has other characters than "
				       "lower-case letters and digits");
	return url_copy(at, strlen(at), &url->account);
}

int url_bucket_parse(struct url *url, const char *rest, char why[URL_WHY_SIZE])
{
	const struct url_scheme *scheme = url->scheme;
	size_t bucket = strcspn(rest, "/");
	const char *key = rest + bucket + (rest[bucket] == '/'), *query;
	int r = url_copy(rest, bucket, &url->bucket);

	r = r ? r : parse_account(url, why);
	r = r ? r : check_bucket(url, why);
	if (r)
		return r;
	query = url_bucket_query(scheme, key);
	r = url_copy(key, query ? (size_t)(query - key) : strlen(key),
		     &url->key);
	if (r)
		return r;
	if (!*url->key)
		return url_refuse(why, "the URL names no object: write "
				       "SCHEME://BUCKET/KEY");
	if (strlen(url->key) > URL_KEY_MAX)
		return url_refuse(why, "the key is longer than 1024 bytes");
	if (!query || !query[1])
		return 0;
	if (scheme->version)
		return parse_parameters(query + 1, &url->query, why);
	return percent_encode(query + 1, strlen(query + 1), URL_KEEP_QUERY,
			      true, &url->query);
}
