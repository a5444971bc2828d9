/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads an object whose size is not known before its last byte, without a
 * copy of it on the disk: by a multipart upload of S3. The object has a front,
 * which the caller completes last, and then the appended bytes. These go to the
 * server in parts while more are appended; each part stays in memory until the
 * server has acknowledged it. The front, and the first bytes behind it, go
 * last.
 *
 * Nothing appears under the name of the object before multipart_finish(). An
 * upload that fails is aborted, and its parts are removed. Only the end of the
 * process or of the network leaves them on the server.
 *
 * A small object is stored by one request. The owner's calls are of one thread;
 * a few threads of the upload send the parts.
 */
#ifndef FS_SOURCE_UPLOAD_MULTIPART_H
#define FS_SOURCE_UPLOAD_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/base/util/log.h"
#include "fs/source/net/http.h"
#include "fs/source/upload/store.h"

struct multipart;

struct multipart_setup {
	struct store *store;
	struct log *log;
	uint64_t front;	  /* bytes at most */
	store_poll *poll; /* ends the waits of the owner's calls; or NULL */
	void *arg;
	bool equal; /* all bytes come as the front, in one request if the
		       server has no parts, or in parts of equal sizes */
};

struct multipart_result {
	uint64_t size;
	unsigned parts;		 /* 0: one request */
	uint64_t repeated;	 /* requests */
	char etag[HTTP_TAG_MAX]; /* "": the server named none */
};

/* Sends nothing. -ENOMEM, logged; failures below are logged as well. */
int multipart_open(const struct multipart_setup *setup, struct multipart **out);

/* Appends bytes; NULL: zeros. Waits while enough parts are on their way. Not
   with `equal`. */
int multipart_append(struct multipart *u, const void *bytes, uint64_t size);

/* Sets what the name must have at the end, if the server can check it: no
   object, or the object of an ETag. NULL: anything. */
int multipart_expect(struct multipart *u, bool is_new, const char *etag);

/*
 * Completes the object: the first `front` bytes of the open file `fd`, then all
 * appended bytes. The file is written to behind the front. -EEXIST, -ESTALE:
 * the name has another object than expected.
 */
int multipart_finish(struct multipart *u, int fd, uint64_t front,
		     struct multipart_result *result);

/* Aborts an upload that is not complete, and frees. Takes NULL. */
void multipart_close(struct multipart *u);

#endif
