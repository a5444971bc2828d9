/* SPDX-License-Identifier: Apache-2.0 */
/* AWS Signature Version 4 in headers, by the rules of S3: a path is signed as
   it is sent, without normalization and without a second encoding. */
#ifndef FS_SOURCE_NET_SIGN_H
#define FS_SOURCE_NET_SIGN_H

#include <stddef.h>
#include <time.h>

#include "fs/source/net/sha256.h"

/* The payload of a request whose body is not signed. Only for TLS. */
#define SIGN_UNSIGNED "UNSIGNED-PAYLOAD"

enum {
	SIGN_HEADERS_MAX = 32, /* with those that signing adds */
	SIGN_LINES_MAX = 4,
};

struct sign_keys {
	const char *id;
	const char *secret;
	const char *token; /* of a session; NULL: none */
};

struct sign_request {
	const char *method;
	const char *host; /* these three as in struct url_request */
	const char *path;
	const char *query; /* NULL: none */
	/* Other header lines to sign, "Name: value". */
	const char *const *lines;
	size_t num_lines;
	/* sha256_hex() of the body, or SIGN_UNSIGNED. NULL: no body. */
	const char *payload;
	const char *region;
	const char *service; /* "s3", "sts" */
	time_t now;
};

/* Header lines to send with the request, "Name: value", besides Host and those
   of sign_request.lines. They are secrets. */
struct sign_lines {
	char *at[SIGN_LINES_MAX];
	size_t num;
};

/* Signs a request. The caller calls sign_lines_fini() in any case. -EINVAL: a
   value has a line break, -E2BIG: over SIGN_HEADERS_MAX lines, -ENOMEM. */
int sign_request(const struct sign_keys *keys,
		 const struct sign_request *request, struct sign_lines *out);
void sign_lines_fini(struct sign_lines *lines);

#endif
