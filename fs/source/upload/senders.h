/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that send the parts of a multipart upload, and the queue before
 * them. All calls are of the upload's owner.
 */
#ifndef FS_SOURCE_UPLOAD_SENDERS_H
#define FS_SOURCE_UPLOAD_SENDERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "fs/base/util/log.h"
#include "fs/source/upload/store.h"

enum {
	SENDERS_MAX = 8,
	SENDERS_CHECKSUM_SIZE = 9, /* base64 of 4 bytes */
};

/* A part that is complete at the server, if `etag` is not NULL. */
struct senders_part {
	char *etag;
	uint32_t crc;
};

/* Bytes on their way. */
struct senders_job {
	unsigned number; /* 0: none */
	bool taken;	 /* by a sender */
	const uint8_t *bytes;
	uint64_t size;
	uint8_t *owned; /* the same bytes, if they are to be freed */
};

struct senders {
	struct store *store;
	struct log *log;
	store_poll *poll; /* ends the waits of the owner; or NULL */
	void *arg;
	const char *id_query; /* of the upload; set before the first part */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* The lock guards the members below. */
	struct senders_part *parts; /* PARTS_MAX of them */
	struct senders_job jobs[SENDERS_MAX];
	unsigned num_jobs;
	int error; /* the first failure */
	bool ends; /* the senders end */

	pthread_t threads[SENDERS_MAX];
	unsigned num_threads;
};

/* Sets the members above `id_query` before. -ENOMEM. Needs senders_fini() even
   if it fails. */
int senders_init(struct senders *s);
/* Ends the threads, with an error if parts that wait are not to be sent. */
void senders_end(struct senders *s, int error);
/* The threads have ended. */
void senders_fini(struct senders *s);

/* Queues a part as soon as there is room. Takes `owned`, also on failure. */
int senders_push(struct senders *s, unsigned number, const uint8_t *bytes,
		 uint64_t size, uint8_t *owned);
/* Waits until at most `most` parts are on their way. */
int senders_wait(struct senders *s, unsigned most);

/* Writes a CRC-32C as S3 wants it: base64 of the bytes in network order. */
void senders_checksum(uint32_t crc, char out[SENDERS_CHECKSUM_SIZE]);

#endif
