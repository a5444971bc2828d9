/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the bytes of a dataset come from: asynchronous reads of ranges. A local
 * file for now, read by pread (never mapped: a file that shrinks under a
 * mapping kills its reader). What is behind it is a row of source_ops.
 *
 * What is in the page cache is read before source_submit() returns. What is
 * not, and what goes past it, is read by threads that are started as requests
 * wait, so that a device has many reads to work on.
 */
#ifndef FS_DATASET_SOURCE_H
#define FS_DATASET_SOURCE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "fs/metrics/counters.h"
#include "fs/util/log.h"

struct source;
struct source_request;

/*
 * Called once per submitted request, from any thread, possibly before
 * source_submit() returns. `result` is 0 when all of the bytes are there,
 * -ECANCELED, or another -errno (-EIO: the range reaches past the end).
 */
typedef void source_done(struct source_request *request, int result);

/* Of offsets, sizes and memory of direct requests. */
enum { SOURCE_ALIGN = 4096 };

/* The caller's memory, which stays until `done` is called. */
struct source_request {
	void *buf; /* NULL: iov, which has `size` bytes in all */
	const struct iovec *iov;
	unsigned iovcnt;
	uint64_t off;
	size_t size;
	/* So many bytes must come, the others may lie past the end; 0: all. */
	size_t need;
	/*
	 * Past the page cache where that works, which source_is_direct() tells;
	 * elsewhere by way of it, leaving nothing there.
	 */
	bool direct;
	source_done *done;
	void *arg;

	/* The source's own. */
	struct source_request *prev, *next;
	size_t got;
	uint64_t since_ns; /* that it waits for a thread */
	bool queued;
};

struct source_ops {
	const char *name;
	void (*submit)(struct source *source, struct source_request *request);
	/* Asks for an early -ECANCELED; nothing for what is being read. */
	void (*cancel)(struct source *source, struct source_request *request);
	int (*read)(struct source *source, void *buf, size_t size,
		    uint64_t off);
	bool (*is_direct)(const struct source *source);
	void (*close)(struct source *source);
};

/* What every source begins with. Thread-safe. */
struct source {
	const struct source_ops *ops;
	char *path;
	struct log *log;
	struct stat stat; /* when it was opened */
	/* Requests for the device, not those that the kernel had in memory;
	   room_wait_ns: for one of the threads that read. */
	struct tally reads;
};

/*
 * Opens a regular file; anything else is refused without blocking. Failures are
 * logged with the path. The log must outlive the source.
 */
int source_open(const char *path, struct log *log, struct source **out);
/* Cancels what still waits. Takes NULL. */
void source_close(struct source *source);

void source_submit(struct source *source, struct source_request *request);
/* Of a request that was submitted and whose memory is still there. */
void source_cancel(struct source *source, struct source_request *request);

/* Reads all of a range, on the caller's thread. */
int source_read(struct source *source, void *buf, size_t size, uint64_t off);

/* Whether direct requests go past the page cache. Tries to, the first time. */
bool source_is_direct(const struct source *source);

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
