/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/url/url.h"

#include <stdlib.h>
#include <strings.h>

#include "fs/base/util/cleanup.h"
#include "fs/source/net/secret.h"
#include "fs/source/url/bucket_key.h"
#include "fs/source/url/host_path.h"
#include "fs/source/url/percent.h"
#include "fs/source/url/scheme.h"

bool url_is(const char *path)
{
	const char *rest;

	return url_scheme_of(path, &rest) != NULL;
}

/* --- all URLs --- */

/* Returns the text after a user and a password, which ends before `host` bytes
   by the rules. If what is there is no port, it may be a password with a slash,
   and the last "@" ends it. */
static const char *after_user(const char *rest, size_t host)
{
	const char *at = memrchr(rest, '@', host), *name = at ? at + 1 : rest;
	const char *end = rest + host, *colon;

	colon = *name == '[' ? NULL : memchr(name, ':', (size_t)(end - name));
	if (colon && colon + 1 + strspn(colon + 1, "0123456789") != end) {
		at = strrchr(name, '@');
		return at ? at + 1 : name;
	}
	return name;
}

/* The text without userinfo and query; control characters become "?". */
static char *make_visible(const struct url_scheme *scheme, const char *text,
			  const char *rest)
{
	size_t host = strcspn(rest, "/?#"), before = (size_t)(rest - text);
	char *out = malloc(strlen(text) + 1), *p = out;
	const char *end;

	if (!out)
		return NULL;
	/* "az://CONTAINER@ACCOUNT" has no secret. */
	if (!scheme->has_account || memchr(rest, ':', host))
		rest = after_user(rest, host);
	if (scheme->version) {
		end = strchr(rest, '/');
		end = end ? url_bucket_query(scheme, end + 1) : NULL;
		end = end ? end : rest + strlen(rest);
	} else {
		end = rest + strcspn(rest, scheme->bucket ? "?" : "?#");
	}
	p = mempcpy(p, text, before);
	for (; rest < end; rest++)
		*p++ = (unsigned char)*rest < ' ' || *rest == 0x7f ? '?'
								   : *rest;
	*p = '\0';
	return out;
}

/* Finds the scheme of a URL, also one with a typing error. A file: URL is a
   path. */
static const struct url_scheme *find_any_scheme(const char *text,
						const char **rest)
{
	static const struct url_scheme unknown;
	const struct url_scheme *scheme = url_scheme_of(text, rest);
	const char *mark = strstr(text, "://");

	if (scheme || !mark || !strncasecmp(text, "file:", 5))
		return scheme;
	*rest = mark + 3;
	return &unknown;
}

char *url_visible(const char *text)
{
	const char *rest;
	const struct url_scheme *scheme = find_any_scheme(text, &rest);

	return scheme ? make_visible(scheme, text, rest) : strdup(text);
}

static int refuse_scheme(char why[URL_WHY_SIZE])
{
	char names[URL_SCHEMES_SIZE];

	snprintf(why, URL_WHY_SIZE, "the scheme is none of %s",
		 url_scheme_names(names));
	return -EINVAL;
}

int url_parse(const char *text, struct url *out, char why[URL_WHY_SIZE])
{
	const struct url_scheme *scheme;
	const char *rest;
	int r = url_http_check(text, why);

	*out = (struct url){ 0 };
	if (r)
		return r;
	scheme = url_scheme_of(text, &rest);
	if (!scheme)
		return refuse_scheme(why);
	out->scheme = scheme;
	out->tls = scheme->tls;
	out->visible = make_visible(scheme, text, rest);
	if (!out->visible)
		return -ENOMEM;
	return scheme->parse(out, rest, why);
}

void url_fini(struct url *url)
{
	url_http_fini(url);
	free(url->bucket);
	free(url->key);
	free(url->account);
	free(url->visible);
	*url = (struct url){ 0 };
}

/* --- requests --- */

static int request_query(const struct url *url, const struct url_place *place,
			 struct url_request *out)
{
	const char *sas = place->sas;

	if (url->query)
		return url_copy(url->query, strlen(url->query), &out->query);
	if (url->scheme->keys != URL_KEYS_AZURE || !sas)
		return 0;
	sas += *sas == '?';
	return *sas ? percent_encode(sas, strlen(sas), URL_KEEP_QUERY, true,
				     &out->query)
		    : 0;
}

int url_request(const struct url *url, const struct url_place *place,
		struct url_request *out, char why[URL_WHY_SIZE])
{
	static const struct url_place defaults;
	int r;

	*out = (struct url_request){ 0 };
	if (!place)
		place = &defaults;
	r = url->scheme->request(url, place, out, why);
	r = r ? r : request_query(url, place, out);
	if (r)
		return r;
	if (asprintf(&out->url, "http%s://%s%s%s%s", out->tls ? "s" : "",
		     out->host, out->path, out->query ? "?" : "",
		     out->query ? out->query : "") < 0) {
		out->url = NULL;
		return -ENOMEM;
	}
	return 0;
}

void url_request_fini(struct url_request *request)
{
	secret_free(&request->url);
	secret_free(&request->query);
	free(request->host);
	free(request->path);
	*request = (struct url_request){ 0 };
}

/* --- other texts --- */

/* Adds the "?" that keeps the end of a key from being a query. Frees `text`. */
static char *no_query(const struct url_scheme *scheme, char *text)
{
	const char *key = strchr(strstr(text, "://") + 3, '/');
	char *out;

	if (!url_bucket_query(scheme, key + 1))
		return text;
	if (asprintf(&out, "%s?", text) < 0)
		out = NULL;
	free(text);
	return out;
}

char *url_sibling(const char *text, const char *suffix)
{
	const char *rest, *end = text + strlen(text), *after = "", *slash;
	const struct url_scheme *scheme = url_scheme_of(text, &rest);
	char *out;

	slash = scheme ? strchr(rest, '/') : NULL;
	if (scheme && scheme->version) {
		if (!slash)
			return NULL;
		end = url_bucket_query(scheme, slash + 1);
		end = end ? end : text + strlen(text);
	} else if (scheme) {
		end = text + strcspn(text, scheme->bucket ? "?" : "?#");
		after = end;
	}
	/* The path of "http://host" is a slash. */
	slash = scheme && (!slash || slash >= end) ? "/" : "";
	if (asprintf(&out, "%.*s%s%s%s", (int)(end - text), text, slash, suffix,
		     after) < 0)
		return NULL;
	return scheme && scheme->version ? no_query(scheme, out) : out;
}

int url_file_path(const char *text, char **path)
{
	const char *rest = text + 5;

	*path = NULL;
	if (strncasecmp(text, "file:", 5))
		return 0;
	if (!strncasecmp(rest, "//localhost/", 12))
		rest += 11;
	else if (!strncmp(rest, "///", 3))
		rest += 2;
	if (*rest != '/' || rest[1] == '/')
		return -EINVAL;
	*path = strdup(rest);
	if (!*path)
		return -ENOMEM;
	if (percent_decode(*path))
		return 0;
	free(steal(*path));
	return -EINVAL;
}
