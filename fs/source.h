/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the bytes of a dataset come from: asynchronous reads of ranges. A local
 * file for now, read by pread (never mapped: a file that shrinks under a
 * mapping kills its reader). What is behind it is a row of source_ops.
 */
#ifndef FS_SOURCE_H
#define FS_SOURCE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "fs/log.h"

struct source;
struct source_request;

/*
 * Called once per submitted request, from any thread, possibly before
 * source_submit() returns. `result` is 0 when all of the bytes are there,
 * -ECANCELED, or another -errno (-EIO: the range reaches past the end).
 */
typedef void source_done(struct source_request *request, int result);

/* The caller's memory, which stays until `done` is called. */
struct source_request {
	void *buf;
	uint64_t off;
	size_t size;
	source_done *done;
	void *arg;
};

struct source_ops {
	const char *name;
	void (*submit)(struct source *source, struct source_request *request);
	/* Asks for an early -ECANCELED; a no-op where reads cannot wait. */
	void (*cancel)(struct source *source, struct source_request *request);
	void (*close)(struct source *source);
};

/* What every source begins with. Thread-safe. */
struct source {
	const struct source_ops *ops;
	char *path;
	struct log *log;
	struct stat stat; /* when it was opened */
};

/*
 * Opens a regular file; anything else is refused without blocking. Failures are
 * logged with the path. The log must outlive the source.
 */
int source_open(const char *path, struct log *log, struct source **out);
void source_close(struct source *source);

void source_submit(struct source *source, struct source_request *request);
void source_cancel(struct source *source, struct source_request *request);

/* Submits one read and waits for it. */
int source_read(struct source *source, void *buf, size_t size, uint64_t off);

/* Counts requests that are under way, for waiting until none is. */
struct source_wait {
	pthread_mutex_t lock;
	pthread_cond_t idle;
	unsigned pending; /* guarded by lock */
};

void source_wait_init(struct source_wait *wait);
void source_wait_add(struct source_wait *wait);
void source_wait_done(struct source_wait *wait);
void source_wait_idle(struct source_wait *wait);
void source_wait_fini(struct source_wait *wait);

#endif
