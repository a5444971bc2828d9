/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A URL in parts, the place of a service, and the request that both give. All
 * that differs between schemes is a member of struct url_scheme. URLs have one
 * of two forms, HOST/PATH (host_path.h) and BUCKET/KEY (bucket_key.h).
 */
#ifndef FS_SOURCE_URL_PARTS_H
#define FS_SOURCE_URL_PARTS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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

struct url_scheme;

struct url {
	const struct url_scheme *scheme;
	bool tls;
	/* HOST/PATH */
	char *userinfo; /* "USER:PASSWORD", decoded: a secret; NULL: none */
	char *host;	/* in lower case; IPv6 addresses in brackets */
	unsigned port;	/* 0: the default of the scheme */
	char *path;	/* encoded; begins with a slash */
	/* BUCKET/KEY */
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

/* Where the keys of requests come from. */
enum url_keys {
	URL_KEYS_NONE,	 /* a user and a password in the URL */
	URL_KEYS_AZURE,	 /* a query: a shared access signature (SAS) */
	URL_KEYS_AWS,	 /* configuration of AWS; they sign each request */
	URL_KEYS_GOOGLE, /* the same for HMAC keys of Google */
};

struct url_scheme {
	const char *name;
	bool tls;
	enum url_keys keys;

	/* Parses the text after "://". -EINVAL: `why` has the reason. */
	int (*parse)(struct url *url, const char *rest, char why[URL_WHY_SIZE]);
	/* Sets tls, host and path of a request. */
	int (*request)(const struct url *url, const struct url_place *place,
		       struct url_request *out, char why[URL_WHY_SIZE]);

	/* The bytes of a bucket's name; NULL: the URL is HOST/PATH, and all
	   members below are unused. */
	const char *bucket;
	const char *refused; /* the end of names that are not supported */
	/* Sets *host to the host of the service. NULL: see request(). */
	int (*host)(const struct url *url, const struct url_place *place,
		    char **host, char why[URL_WHY_SIZE]);
	const char *region;   /* default; NULL: the service has none */
	enum url_style style; /* AUTO: virtual at the service's own host; PATH:
				 always; VIRTUAL: if the user asks for it */
	/* The parameter that makes the text after the last "?" a query. NULL:
	   the first "?" begins a query. */
	const char *version;
	bool keeps_versions; /* an answer names the version to ask for */
	bool has_account;    /* the bucket may be CONTAINER@ACCOUNT */
	bool has_parts;	     /* uploads are multipart uploads of S3 */
	const char *put;     /* header line of objects sent as a whole */
};

/* Header line by which Azure accepts an object as a whole. */
#define URL_PUT_AZURE "x-ms-blob-type: BlockBlob"

static inline int url_refuse(char why[URL_WHY_SIZE], const char *reason)
{
	snprintf(why, URL_WHY_SIZE, "%s", reason);
	return -EINVAL;
}

static inline int url_copy(const char *text, size_t size, char **out)
{
	*out = strndup(text, size);
	return *out ? 0 : -ENOMEM;
}

#endif
