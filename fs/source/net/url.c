/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/net/url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/source/net/secret.h"

enum { BUCKET_MAX = 255, REGION_MAX = 64, LABEL_MAX = 63 };

static const char hex_digits[] = "0123456789ABCDEF";
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define LETTERS LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define UNRESERVED LETTERS "0123456789-._~"

/* Schemes whose names are kept out of struct url: one row per scheme. */
struct scheme {
	const char *name;
	enum url_scheme is;
	/* Bytes in the first part of a literal URL. */
	const char *bucket;
	/* The parameter that makes the text after the last "?" a query. */
	const char *version;
};

static const struct scheme schemes[] = {
	{ "http", URL_HTTP, NULL, NULL },
	{ "https", URL_HTTPS, NULL, NULL },
	{ "s3", URL_S3, LETTERS "0123456789-._", "versionId" },
	{ "gs", URL_GS, LETTERS "0123456789-._", "generation" },
	{ "az", URL_AZ, LOWER "0123456789-$", NULL },
};

static int refuse(char why[URL_WHY_SIZE], const char *reason)
{
	snprintf(why, URL_WHY_SIZE, "%s", reason);
	return -EINVAL;
}

/* The scheme of a text, and the text after "://". */
static const struct scheme *find_scheme(const char *text, const char **rest)
{
	size_t size;

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size = strlen(schemes[i].name);
		if (!strncasecmp(text, schemes[i].name, size) &&
		    !strncmp(text + size, "://", 3)) {
			*rest = text + size + 3;
			return &schemes[i];
		}
	}
	return NULL;
}

bool url_is(const char *path)
{
	const char *rest;

	return find_scheme(path, &rest);
}

/* --- percent-encoding --- */

static int hex_value(char c)
{
	const char *at = c ? strchr(hex_digits, c & ~0x20) : NULL;

	if (c >= '0' && c <= '9')
		return c - '0';
	return at && at - hex_digits >= 10 ? (int)(at - hex_digits) : -1;
}

static bool is_escape(const char *p)
{
	return p[0] == '%' && hex_value(p[1]) >= 0 && hex_value(p[2]) >= 0;
}

/* Encodes the bytes that are not in `keep`. With `escapes` a text that is
   encoded already stays as it is. */
static int encode(const char *text, size_t size, const char *keep, bool escapes,
		  char **out)
{
	char *p = malloc(3 * size + 1);
	unsigned char c;

	*out = p;
	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++) {
		c = (unsigned char)text[i];
		if ((c && strchr(keep, c)) ||
		    (escapes && size - i > 2 && is_escape(text + i))) {
			*p++ = (char)c;
			continue;
		}
		*p++ = '%';
		*p++ = hex_digits[c >> 4];
		*p++ = hex_digits[c & 15];
	}
	*p = '\0';
	return 0;
}

int url_encode(const char *text, bool slashes, char **out)
{
	const char *keep = slashes ? UNRESERVED : UNRESERVED "/";

	return encode(text, strlen(text), keep, false, out);
}

/* Decodes in place. Returns false for an encoded NUL. */
static bool decode(char *text)
{
	char *out = text;

	for (const char *p = text; *p; p++) {
		if (!is_escape(p)) {
			*out++ = *p;
			continue;
		}
		*out = (char)(hex_value(p[1]) << 4 | hex_value(p[2]));
		if (!*out++)
			return false;
		p += 2;
	}
	*out = '\0';
	return true;
}

static int copy(const char *text, size_t size, char **out)
{
	*out = strndup(text, size);
	return *out ? 0 : -ENOMEM;
}

/* --- hosts and ports --- */

static int parse_port(const char *text, unsigned *out, char why[URL_WHY_SIZE])
{
	unsigned port = 0;

	if (!*text) /* "host:" has the default port */
		return 0;
	for (const char *p = text; *p; p++) {
		if (*p < '0' || *p > '9' || port > 65535)
			return refuse(why, "the port is no number");
		port = port * 10 + (unsigned)(*p - '0');
	}
	if (!port || port > 65535)
		return refuse(why, "the port is not between 1 and 65535");
	*out = port;
	return 0;
}

static int check_address(const char *text, size_t size, char why[URL_WHY_SIZE])
{
	char address[INET6_ADDRSTRLEN];
	struct in6_addr bytes;

	if (size < sizeof(address)) {
		memcpy(address, text, size);
		address[size] = '\0';
		if (inet_pton(AF_INET6, address, &bytes) == 1)
			return 0;
	}
	return refuse(why, "the text in brackets is no IPv6 address");
}

static int check_name(const char *text, char why[URL_WHY_SIZE])
{
	if (!*text)
		return refuse(why, "there is no host");
	if (strlen(text) > 253)
		return refuse(why, "the host name is longer than 253 bytes");
	for (const char *p = text; *p; p++) {
		if (*p & 0x80)
			return refuse(why, "the host name is not ASCII; write "
					   "it in its xn-- form");
	}
	if (text[strspn(text, UNRESERVED)] || *text == '.')
		return refuse(why, "the host name has a character that names "
				   "cannot have");
	return 0;
}

static void lower(char *text)
{
	for (; *text; text++) {
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text + 'a' - 'A');
	}
}

/* Splits HOST:PORT, and cuts the port off. */
static int parse_host(struct url *url, char why[URL_WHY_SIZE])
{
	char *host = url->host, *colon = strchr(host, ':'), *end;
	int r;

	if (*host == '[') {
		end = strchr(host, ']');
		if (!end || (end[1] && end[1] != ':'))
			return refuse(why, "a bracket of the IPv6 address is "
					   "missing");
		r = check_address(host + 1, (size_t)(end - host - 1), why);
		if (r)
			return r;
		colon = end[1] ? end + 1 : NULL;
	}
	if (colon) {
		r = parse_port(colon + 1, &url->port, why);
		if (r)
			return r;
		*colon = '\0';
	}
	lower(host);
	if (url->port == (url->scheme == URL_HTTPS ? 443 : 80))
		url->port = 0;
	return *host == '[' ? 0 : check_name(host, why);
}

/* --- http and https --- */

static int parse_userinfo(struct url *url, const char *text, size_t size,
			  char why[URL_WHY_SIZE])
{
	int r = copy(text, size, &url->userinfo);

	if (r)
		return r;
	if (!decode(url->userinfo) || strpbrk(url->userinfo, "\r\n"))
		return refuse(why, "the user or the password has a control "
				   "character");
	return 0;
}

#define KEEP_PATH UNRESERVED "!$&'()*+,;=:@/"
#define KEEP_QUERY KEEP_PATH "?"

static int parse_http(struct url *url, const char *rest, char why[URL_WHY_SIZE])
{
	size_t end = strcspn(rest, "/?#"), path, query;
	const char *at = memrchr(rest, '@', end);
	int r = 0;

	if (at) {
		r = parse_userinfo(url, rest, (size_t)(at - rest), why);
		end -= (size_t)(at + 1 - rest);
		rest = at + 1;
	}
	r = r ? r : copy(rest, end, &url->host);
	r = r ? r : parse_host(url, why);
	if (r)
		return r;
	rest += end;
	path = strcspn(rest, "?#");
	r = path ? encode(rest, path, KEEP_PATH, true, &url->path)
		 : copy("/", 1, &url->path);
	rest += path;
	if (r || *rest != '?')
		return r;
	query = strcspn(++rest, "#");
	return encode(rest, query, KEEP_QUERY, true, &url->query);
}

/* --- literal URLs: BUCKET/KEY --- */

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

/* Returns the "?" before the query of a key, or NULL. */
static const char *find_query(const struct scheme *scheme, const char *key)
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
	if (!decode(raw) || !decode(value))
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
		refuse(why, "the query has a control character");
	return r;
}

static int check_bucket(const struct scheme *scheme, struct url *url,
			char why[URL_WHY_SIZE])
{
	const char *name = url->bucket;
	size_t size = strlen(name);

	if (!size)
		return refuse(why, "there is no bucket");
	if (size > BUCKET_MAX || name[strspn(name, scheme->bucket)] ||
	    strchr("-.", *name))
		return refuse(why, "the bucket's name has a character that "
				   "names cannot have, or is too long");
	if (scheme->is == URL_S3 && size > 6 &&
	    !strcmp(name + size - 6, "--x-s3"))
		return refuse(why, "directory buckets (S3 Express) are not "
				   "supported");
	return 0;
}

/* Cuts "@ACCOUNT" off a container. */
static int parse_account(const struct scheme *scheme, struct url *url,
			 char why[URL_WHY_SIZE])
{
	char *at = strchr(url->bucket, '@');

	if (!at)
		return 0;
	if (scheme->is != URL_AZ) {
		secret_free(&url->bucket);
		return refuse(why, "a URL of this scheme has no user; set the "
				   "keys in the environment");
	}
	*at++ = '\0';
	if (!*at || at[strspn(at, LOWER "0123456789")])
		return refuse(why, "the account has other characters than "
				   "lower-case letters and digits");
	return copy(at, strlen(at), &url->account);
}

static int parse_literal(const struct scheme *scheme, struct url *url,
			 const char *rest, char why[URL_WHY_SIZE])
{
	size_t bucket = strcspn(rest, "/");
	const char *key = rest + bucket + (rest[bucket] == '/'), *query;
	int r = copy(rest, bucket, &url->bucket);

	r = r ? r : parse_account(scheme, url, why);
	r = r ? r : check_bucket(scheme, url, why);
	if (r)
		return r;
	query = find_query(scheme, key);
	r = copy(key, query ? (size_t)(query - key) : strlen(key), &url->key);
	if (r)
		return r;
	if (!*url->key)
		return refuse(why, "the URL names no object: write "
				   "SCHEME://BUCKET/KEY");
	if (strlen(url->key) > URL_KEY_MAX)
		return refuse(why, "the key is longer than 1024 bytes");
	if (!query || !query[1])
		return 0;
	if (scheme->version)
		return parse_parameters(query + 1, &url->query, why);
	return encode(query + 1, strlen(query + 1), KEEP_QUERY, true,
		      &url->query);
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
static char *make_visible(const struct scheme *scheme, const char *text,
			  const char *rest)
{
	size_t host = strcspn(rest, "/?#"), before = (size_t)(rest - text);
	char *out = malloc(strlen(text) + 1), *p = out;
	const char *end;

	if (!out)
		return NULL;
	/* "az://CONTAINER@ACCOUNT" has no secret. */
	if (scheme->is != URL_AZ || memchr(rest, ':', host))
		rest = after_user(rest, host);
	if (scheme->version) {
		end = strchr(rest, '/');
		end = end ? find_query(scheme, end + 1) : NULL;
		end = end ? end : rest + strlen(rest);
	} else {
		end = rest + strcspn(rest, scheme->is == URL_AZ ? "?" : "?#");
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
static const struct scheme *find_any_scheme(const char *text, const char **rest)
{
	static const struct scheme unknown = { .is = URL_HTTP };
	const struct scheme *scheme = find_scheme(text, rest);
	const char *mark = strstr(text, "://");

	if (scheme || !mark || !strncasecmp(text, "file:", 5))
		return scheme;
	*rest = mark + 3;
	return &unknown;
}

char *url_visible(const char *text)
{
	const char *rest;
	const struct scheme *scheme = find_any_scheme(text, &rest);

	return scheme ? make_visible(scheme, text, rest) : strdup(text);
}

static int check_text(const char *text, char why[URL_WHY_SIZE])
{
	if (strnlen(text, URL_SIZE_MAX + 1) > URL_SIZE_MAX)
		return refuse(why, "the URL is longer than 16384 bytes");
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return refuse(why, "the URL has a control character");
	}
	return 0;
}

int url_parse(const char *text, struct url *out, char why[URL_WHY_SIZE])
{
	const struct scheme *scheme;
	const char *rest;
	int r = check_text(text, why);

	*out = (struct url){ 0 };
	if (r)
		return r;
	scheme = find_scheme(text, &rest);
	if (!scheme)
		return refuse(why, "the scheme is none of http, https, s3, gs "
				   "and az");
	out->scheme = scheme->is;
	out->visible = make_visible(scheme, text, rest);
	if (!out->visible)
		return -ENOMEM;
	return scheme->bucket ? parse_literal(scheme, out, rest, why)
			      : parse_http(out, rest, why);
}

void url_fini(struct url *url)
{
	secret_free(&url->userinfo);
	secret_free(&url->query);
	free(url->host);
	free(url->path);
	free(url->bucket);
	free(url->key);
	free(url->account);
	free(url->visible);
	*url = (struct url){ 0 };
}

/* --- requests --- */

/* The part of a URL in front of the key. */
struct base {
	bool tls;
	bool is_own; /* the service's own endpoint */
	char *host;  /* with the port */
	char *path;  /* without a slash at its end */
};

static void base_fini(struct base *base)
{
	free(base->host);
	free(base->path);
}

static int print_host(const struct url *url, char **out)
{
	int n = url->port ? asprintf(out, "%s:%u", url->host, url->port)
			  : asprintf(out, "%s", url->host);

	if (n >= 0)
		return 0;
	*out = NULL;
	return -ENOMEM;
}

static int parse_endpoint(const char *text, struct base *base,
			  char why[URL_WHY_SIZE])
{
	struct url url;
	char reason[URL_WHY_SIZE];
	size_t size;
	int r = url_parse(text, &url, reason);

	if (r == -EINVAL && url_is(text))
		snprintf(why, URL_WHY_SIZE, "endpoint: %.180s", reason);
	else if (r == -EINVAL)
		r = refuse(why, "endpoint: expected http://HOST or "
				"https://HOST");
	else if (!r && (url.scheme > URL_HTTPS || url.query || url.userinfo))
		r = refuse(why, "endpoint: expected http:// or https:// with "
				"neither user nor query");
	r = r ? r : print_host(&url, &base->host);
	if (!r) {
		base->tls = url.scheme == URL_HTTPS;
		size = strlen(url.path);
		while (size && url.path[size - 1] == '/')
			size--;
		r = copy(url.path, size, &base->path);
	}
	url_fini(&url);
	return r;
}

/* Domains of the partitions of AWS; the last row is all other regions. */
static const struct {
	const char *prefix;
	const char *domain;
} partitions[] = {
	{ "cn-", "amazonaws.com.cn" },	  { "us-iso-", "c2s.ic.gov" },
	{ "us-isob-", "sc2s.sgov.gov" },  { "us-isof-", "csp.hci.ic.gov" },
	{ "eu-isoe-", "cloud.adc-e.uk" }, { "eusc-", "amazonaws.eu" },
	{ "", "amazonaws.com" },
};

int url_aws_host(const char *service, const char *region, char **out)
{
	size_t size = strlen(region), i = 0;

	*out = NULL;
	if (!size || size > REGION_MAX ||
	    region[strspn(region, LOWER "0123456789-")])
		return -EINVAL;
	while (strncmp(region, partitions[i].prefix,
		       strlen(partitions[i].prefix)) != 0)
		i++;
	if (asprintf(out, "%s.%s.%s", service, region, partitions[i].domain) <
	    0) {
		*out = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int own_s3(const char *region, struct base *base, char why[URL_WHY_SIZE])
{
	int r = url_aws_host("s3", region ? region : "us-east-1", &base->host);

	if (r == -EINVAL)
		return refuse(why, "the region has other characters than "
				   "lower-case letters, digits and -");
	return r;
}

static int own_az(const struct url *url, const struct url_place *place,
		  struct base *base, char why[URL_WHY_SIZE])
{
	const char *account = url->account ? url->account : place->account;

	if (!account || !*account)
		return refuse(why, "the account is not known; set "
				   "AZURE_STORAGE_ACCOUNT");
	if (strlen(account) > LABEL_MAX ||
	    account[strspn(account, LOWER "0123456789")])
		return refuse(why, "the account has other characters than "
				   "lower-case letters and digits");
	if (asprintf(&base->host, "%s.blob.core.windows.net", account) < 0) {
		base->host = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int find_base(const struct url *url, const struct url_place *place,
		     struct base *base, char why[URL_WHY_SIZE])
{
	int r;

	if (place->endpoint && *place->endpoint)
		return parse_endpoint(place->endpoint, base, why);
	base->tls = true;
	base->is_own = true;
	if (url->scheme == URL_S3)
		r = own_s3(place->region, base, why);
	else if (url->scheme == URL_GS)
		r = copy("storage.googleapis.com", 22, &base->host);
	else
		r = own_az(url, place, base, why);
	return r ? r : copy("", 0, &base->path);
}

/* Whether the bucket can be the first label of a host name. A certificate of
 *.s3.REGION.amazonaws.com covers no dot. */
static bool is_label(const char *bucket, bool tls)
{
	const char *allowed = tls ? LOWER "0123456789-" : LOWER "0123456789-.";
	size_t size = strlen(bucket);

	return size >= 3 && size <= LABEL_MAX &&
	       !bucket[strspn(bucket, allowed)] && bucket[size - 1] != '-' &&
	       bucket[size - 1] != '.' && !strstr(bucket, "..");
}

static bool is_address(const char *host)
{
	return *host == '[' || !host[strspn(host, "0123456789.:")];
}

static int choose_style(const struct url *url, const struct url_place *place,
			const struct base *base, bool *is_virtual,
			char why[URL_WHY_SIZE])
{
	*is_virtual = false;
	if (url->scheme == URL_AZ || place->style == URL_STYLE_PATH)
		return 0;
	if (place->style == URL_STYLE_AUTO) {
		*is_virtual = base->is_own && url->scheme == URL_S3 &&
			      is_label(url->bucket, base->tls);
		return 0;
	}
	if (is_address(base->host))
		return refuse(why, "addressing style virtual: the endpoint is "
				   "an address, which cannot carry a bucket");
	if (!is_label(url->bucket, false))
		return refuse(why,
			      "addressing style virtual: the bucket's name "
			      "cannot be part of a host name");
	*is_virtual = true;
	return 0;
}

/* Joins base, bucket and key. */
static int place_key(const struct url *url, const struct base *base,
		     bool is_virtual, struct url_request *out)
{
	cleanup_free char *key = NULL, *bucket = NULL;
	int r = url_encode(url->key, false, &key);

	r = r ? r : url_encode(url->bucket, true, &bucket);
	if (r)
		return r;
	if (asprintf(&out->host, "%s%s%s", is_virtual ? url->bucket : "",
		     is_virtual ? "." : "", base->host) < 0) {
		out->host = NULL;
		return -ENOMEM;
	}
	if (asprintf(&out->path, "%s/%s%s%s", base->path,
		     is_virtual ? "" : bucket, is_virtual ? "" : "/",
		     key) < 0) {
		out->path = NULL;
		return -ENOMEM;
	}
	out->tls = base->tls;
	return 0;
}

static int request_literal(const struct url *url, const struct url_place *place,
			   struct url_request *out, char why[URL_WHY_SIZE])
{
	struct base base = { 0 };
	bool is_virtual = false;
	int r = find_base(url, place, &base, why);

	r = r ? r : choose_style(url, place, &base, &is_virtual, why);
	r = r ? r : place_key(url, &base, is_virtual, out);
	base_fini(&base);
	return r;
}

static int request_query(const struct url *url, const struct url_place *place,
			 struct url_request *out)
{
	const char *sas = place->sas;

	if (url->query)
		return copy(url->query, strlen(url->query), &out->query);
	if (url->scheme != URL_AZ || !sas)
		return 0;
	sas += *sas == '?';
	return *sas ? encode(sas, strlen(sas), KEEP_QUERY, true, &out->query)
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
	if (url->scheme > URL_HTTPS) {
		r = request_literal(url, place, out, why);
	} else {
		out->tls = url->scheme == URL_HTTPS;
		r = print_host(url, &out->host);
		r = r ? r : copy(url->path, strlen(url->path), &out->path);
	}
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
static char *no_query(const struct scheme *scheme, char *text)
{
	const char *key = strchr(strstr(text, "://") + 3, '/');
	char *out;

	if (!find_query(scheme, key + 1))
		return text;
	if (asprintf(&out, "%s?", text) < 0)
		out = NULL;
	free(text);
	return out;
}

char *url_sibling(const char *text, const char *suffix)
{
	const char *rest, *end = text + strlen(text), *after = "", *slash;
	const struct scheme *scheme = find_scheme(text, &rest);
	char *out;

	slash = scheme ? strchr(rest, '/') : NULL;
	if (scheme && scheme->version) {
		if (!slash)
			return NULL;
		end = find_query(scheme, slash + 1);
		end = end ? end : text + strlen(text);
	} else if (scheme) {
		end = text + strcspn(text, scheme->is == URL_AZ ? "?" : "?#");
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
	if (decode(*path))
		return 0;
	free(steal(*path));
	return -EINVAL;
}
