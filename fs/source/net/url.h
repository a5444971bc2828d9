/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs of datasets: what a user writes, the URL of a request, and the form for
 * messages. Pure functions that open nothing.
 *
 *	http://HOST/PATH, https://HOST/PATH	bytes that a URL cannot contain
 *						are encoded, all others are kept
 *	s3://BUCKET/KEY, gs://BUCKET/KEY	the key is literal: it may
 *contain any byte but control characters az://CONTAINER/BLOB
 *literal, too; the query is a SAS az://CONTAINER@ACCOUNT/BLOB
 *
 * If the text after the last "?" of an S3 URL has the parameter versionId, or
 * generation for gs, or if it is empty, it is a query. A key that would be
 * mistaken for one is written with a "?" at its end.
 */
#ifndef FS_SOURCE_NET_URL_H
#define FS_SOURCE_NET_URL_H

#include <stdbool.h>
#include <stddef.h>

enum url_scheme { URL_HTTP, URL_HTTPS, URL_S3, URL_GS, URL_AZ };

/* The bucket is the first part of the path, or of the host name. */
enum url_style {
	/* Virtual for AWS if a certificate covers the name, otherwise path. */
	URL_STYLE_AUTO,
	URL_STYLE_PATH,
	URL_STYLE_VIRTUAL,
};

enum {
	URL_WHY_SIZE = 200,
	URL_SIZE_MAX = 16384, /* presigned URLs have tokens of some KB */
	URL_KEY_MAX = 1024,   /* of S3 */
};

struct url {
	enum url_scheme scheme;
	/* http, https */
	char *userinfo; /* "USER:PASSWORD", decoded: a secret; NULL: none */
	char *host;	/* in lower case; IPv6 addresses in brackets */
	unsigned port;	/* 0: the default of the scheme */
	char *path;	/* encoded; begins with a slash */
	/* s3, gs, az */
	char *bucket;
	char *key;     /* not encoded */
	char *account; /* az; NULL: that of struct url_place */
	/* All schemes. */
	char *query;   /* encoded, without "?"; may be a secret; NULL: none */
	char *visible; /* for messages: neither userinfo nor query */
};

/* Where the buckets of a service are. */
struct url_place {
	const char *region;   /* s3; NULL: us-east-1 */
	const char *endpoint; /* URL without a query; NULL: the service's own */
	enum url_style style;
	const char *account; /* az */
	const char *sas;     /* az: query if the URL has none; NULL: none */
};

/* A URL of a request. curl needs CURLOPT_PATH_AS_IS, because keys may contain
   "..". */
struct url_request {
	char *url;   /* may contain a secret query */
	char *host;  /* as in the header Host */
	char *path;  /* encoded; begins with a slash */
	char *query; /* encoded, without "?"; NULL: none */
	bool tls;
};

/* Returns whether a path is a URL of a scheme above. */
bool url_is(const char *path);

/*
 * Sets *path to the path of a file: URL, or to NULL if the text is not one. The
 * caller frees it. -EINVAL: the URL names another machine, or no path.
 */
int url_file_path(const char *text, char **path);

/* Parses a URL. The caller calls url_fini() in any case. -EINVAL: `why` has the
   reason, without secrets. -ENOMEM. */
int url_parse(const char *text, struct url *out, char why[URL_WHY_SIZE]);
void url_fini(struct url *url);

/* Makes the URL of a request; NULL place: the defaults. The caller calls
   url_request_fini() in any case. Errors as url_parse(). */
int url_request(const struct url *url, const struct url_place *place,
		struct url_request *out, char why[URL_WHY_SIZE]);
void url_request_fini(struct url_request *request);

/* Returns a URL for messages, without userinfo and query, even if url_parse()
   refuses it, for example because of its scheme. Other paths stay as they are.
   NULL: no memory. The caller frees it. */
char *url_visible(const char *text);

/*
 * Returns the URL of the file whose name is that of `text` and a suffix, as
 * ".sums". It keeps the query, except for a version, because that belongs to
 * one file. Other paths become path and suffix. NULL: no memory, or a bad URL.
 * The caller frees it.
 */
char *url_sibling(const char *text, const char *suffix);

/* Sets *out to the host of a service of AWS: "s3", "sts". The caller frees it.
   -EINVAL: the region has characters that names cannot have. */
int url_aws_host(const char *service, const char *region, char **out);

/* Sets *out to a text whose bytes other than letters, digits and "-._~" are
   percent-encoded; with `slashes`, slashes, too. The caller frees it. */
int url_encode(const char *text, bool slashes, char **out);

#endif
