/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the object of a URL that change it, or that are small: signed,
 * repeated while they fail for reasons that pass, and waited for. Reads of
 * ranges are fs/source/object/url's. Any thread.
 */
#ifndef FS_SOURCE_UPLOAD_STORE_H
#define FS_SOURCE_UPLOAD_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/base/util/log.h"
#include "fs/source/net/http.h"
#include "fs/source/net/net.h"

struct store;

/* Zero-initialized options are the defaults. */
struct store_options {
	struct net *net;      /* NULL: one of its own */
	uint64_t retry_ms;    /* before a request fails; 0: STORE_RETRY_MS */
	const char *header;   /* file of HTTP headers; NULL: none */
	const char *profile;  /* of the AWS files; NULL: $AWS_PROFILE */
	const char *region;   /* NULL: $AWS_REGION and the like */
	const char *endpoint; /* URL; NULL: $AWS_ENDPOINT_URL_S3 and the like */
	bool no_sign;	      /* send no credentials */
};

enum {
	STORE_RETRY_MS = 300 * 1000,
	STORE_ANSWER_MAX = 64 << 10, /* of the body of an answer */
	STORE_WHY_MAX = 512,
	STORE_LINES_MAX = 8,
	STORE_FIELD_MAX = 128,
};

/* Failures are logged, here and below. -EINVAL: not such a URL. */
int store_open(const char *url, const struct store_options *options,
	       struct log *log, struct store **out);
/* Takes NULL. */
void store_close(struct store *s);

/* The URL without secrets, for messages. */
const char *store_name(const struct store *s);

/* Returns whether the store has multipart uploads as S3 has them. */
bool store_has_parts(const struct store *s);
/* Returns whether all parts of an upload must have one size. */
bool store_has_equal_parts(const struct store *s);
/* Returns whether the server checks a CRC-32C of each part. */
bool store_has_checksums(const struct store *s);

/* A header line that the server wants with an object in one request, or NULL.
 */
const char *store_whole_header(const struct store *s);

/* Called about every 100 ms while a request waits. A result other than 0 ends
   the request, and becomes its result. */
typedef int store_poll(void *arg);

struct store_request {
	enum net_method method;
	const char *query; /* encoded: "uploads"; NULL: none */
	/* Besides those of the signature: "name: value", lower case. */
	const char *headers[STORE_LINES_MAX];
	const void *body;
	size_t body_size;
	store_poll *poll; /* or NULL */
	void *arg;
	uint64_t retry_ms; /* 0: that of the store */
	unsigned stall_ms; /* without any byte; 0: STORE_STALL_MS */
	bool begins;	   /* the beginning of a large body is enough */
	/* A field of the answer's head, whose value comes to `value`. */
	const char *field;

	/* The outcome of the last attempt. */
	struct http_answer answer;
	unsigned attempts;
	bool was_ended;	  /* by `poll` */
	bool may_be_done; /* an attempt may have had its effect without an
			     answer */
	char value[STORE_FIELD_MAX]; /* "": no such field */
	char *text; /* the body, with a NUL; the caller frees it */
	size_t text_size;
	char code[64];		 /* of an XML body with an error; "": none */
	char why[STORE_WHY_MAX]; /* of a failure */
};

/*
 * Sends a request until it succeeds or fails for good. 0: the status is 2xx,
 * and the body is not an error. -errno otherwise, without a message: of the
 * connection, or -EACCES (401, 403), -ENOENT (404), -ESTALE (409, 412),
 * -EFBIG (413), -ENOTSUP (405, 501), -ENOSPC (507), -EINVAL (other 4xx), -EIO.
 */
int store_send(struct store *s, struct store_request *r);

/* Logs why a request failed: "URL: WHAT: why", unless `poll` ended it. Returns
   `error`. */
int store_failed(struct store *s, const struct store_request *r,
		 const char *what, int error);

/* Frees the text of the answer. */
void store_request_fini(struct store_request *r);

/* The number of attempts beyond the first ones. */
uint64_t store_repeated(const struct store *s);

#endif
