/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a dataset, read in ranges, asynchronously. It is a
 * local file, or several of them, read by pread(). They are never mapped,
 * because a file that shrinks under a mapping kills its reader. Each kind of
 * source is a row of source_ops; the one of verify.h reads another source.
 * source_submit() itself reads what is in the page cache. Threads read the
 * rest, and everything that bypasses the page cache. They are started while
 * requests wait, so that a device has many reads at once.
 */
#ifndef FS_SOURCE_LOCAL_SOURCE_H
#define FS_SOURCE_LOCAL_SOURCE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "fs/base/metrics/counters.h"
#include "fs/base/util/log.h"

struct source;
struct source_net_stats;
struct source_request;

/*
 * Called once per submitted request, from any thread, possibly before
 * source_submit() returns. `result` is 0 if all bytes were read, -ECANCELED, or
 * another -errno (-EIO: the range reaches past the end).
 */
typedef void source_done(struct source_request *request, int result);

/* Alignment of the offset, the size and the memory of a direct request. */
enum { SOURCE_ALIGN = 4096 };

/* A request. The caller owns it and keeps it until `done` is called. */
struct source_request {
	void *buf; /* NULL: read into iov, which has `size` bytes in all */
	const struct iovec *iov;
	unsigned iovcnt;
	uint64_t off;
	size_t size;
	/* Bytes that must be read; the others may lie past the end. 0: all. */
	size_t need;
	/* Bypass the page cache if source_is_direct(). Otherwise read through
	   it and drop the pages afterwards. */
	bool direct;
	/* A thread waits for it: a remote source reads it first. */
	bool must;
	source_done *done;
	void *arg;

	/* The members below belong to the source. */
	struct source_request *prev, *next;
	size_t got;
	uint64_t since_ns; /* when it began to wait for a thread */
	bool queued;
	void *fetch; /* of a remote source */
};

/* Bytes [off, off + size). */
struct source_range {
	uint64_t off;
	uint64_t size;
};

enum {
	/* Concurrent reads that saturate a solid-state disk. */
	SOURCE_DEPTH = 32,
	/* Larger reads gain nothing on current devices, and the kernel takes
	   1024 pieces of memory for one read. */
	SOURCE_BEST_READ = 1 << 20,
};

struct source_ops {
	const char *name;
	void (*submit)(struct source *source, struct source_request *request);
	/* Ends a waiting request with -ECANCELED. If the request is being read,
	   it completes normally. */
	void (*cancel)(struct source *source, struct source_request *request);
	int (*read)(struct source *source, void *buf, size_t size,
		    uint64_t off);
	/* NULL: every read may wait. */
	int (*read_cached)(struct source *source, void *buf, size_t size,
			   uint64_t off);
	bool (*is_direct)(const struct source *source);
	/* NULL: SOURCE_DEPTH and SOURCE_BEST_READ. They are called with locks
	   held, so they must not wait for a thread that calls `done`. */
	unsigned (*depth)(const struct source *source);
	size_t (*best_read)(const struct source *source);
	/* NULL: nothing is gained. */
	void (*prefetch)(struct source *source, uint64_t off, uint64_t size);
	void (*note_tables)(struct source *source,
			    const struct source_range *tables, size_t n);
	/* NULL: no part of the source is a file of this machine. */
	int (*descriptor)(const struct source *source, uint64_t off,
			  uint64_t *at, uint64_t *left);
	/* NULL: it has no threads at the moment, or they may stay. */
	void (*pause)(struct source *source);
	/* NULL: it starts no programs. */
	bool (*needs_program)(const struct source *source);
	/* NULL: its requests end soon. */
	void (*halt)(struct source *source);
	/* NULL: not over a network (net_stats.h). */
	void (*net_stats)(const struct source *source,
			  struct source_net_stats *out);
	void (*close)(struct source *source);
};

/* The first member of every source. Thread-safe. */
struct source {
	const struct source_ops *ops;
	char *path;
	struct log *log;
	struct stat stat; /* when it was opened; the mode is acl_mode() */
	/* Requests that went to the device, not to the page cache. Here
	   room_wait_ns is the time that requests waited for a thread. */
	struct counters reads;
	struct source *inner; /* NULL, or the source that this one reads */
};

/* Cancels all requests that wait. Takes NULL. */
void source_close(struct source *source);

void source_submit(struct source *source, struct source_request *request);
/* The request was submitted, and its memory is still valid. */
void source_cancel(struct source *source, struct source_request *request);

/* Reads a whole range on the caller's thread. */
int source_read(struct source *source, void *buf, size_t size, uint64_t off);

/* Like source_read(), for callers that must not wait. -EAGAIN: source_read()
   may have to wait, or fails. */
int source_read_cached(struct source *source, void *buf, size_t size,
		       uint64_t off);

/*
 * Returns the descriptor of the file that contains the byte at `off`, for
 * copy_file_range(); -1: there is none, read instead. *at is the byte's offset
 * in that file, and *left the number of bytes to where another file begins.
 */
int source_descriptor(const struct source *source, uint64_t off, uint64_t *at,
		      uint64_t *left);

/* Returns the number of requests that should be unfinished at any time while
   there is more to read. It changes with the latency of the source. */
unsigned source_depth(const struct source *source);
/* Returns the bytes that one request should have if adjacent bytes are needed;
   a multiple of SOURCE_ALIGN. */
size_t source_best_read(const struct source *source);

/* Starts to read bytes that source_read() is about to need, into memory of the
   source. A hint: local files ignore it. */
void source_prefetch(struct source *source, uint64_t off, uint64_t size);
/* Returns whether source_prefetch() has an effect. */
bool source_prefetches(const struct source *source);
/* Names the ranges of tables, out of which source_read() will read many small
   pieces. A hint, as above. */
void source_note_tables(struct source *source,
			const struct source_range *tables, size_t n);

/* Returns whether direct requests bypass the page cache. The first call tries
   it. */
bool source_is_direct(const struct source *source);

/* Returns the counters of the source that reads the files. */
const struct counters *source_reads(const struct source *source);

/* Ends the threads of a remote source, which start again when they are needed,
   so that a process can enter a sandbox. No other thread uses the source. */
void source_pause(struct source *source);

/* Whether a source of the stack has to start programs later, as a renewal of
   credentials does. */
bool source_needs_program(const struct source *source);

/* Ends all requests to servers with -ECANCELED, those on their way and those to
   come, because the reader is about to close the source. Any thread. */
void source_halt(struct source *source);

/* Fills in the figures of net_stats.h. Returns false if no source of the stack
   reads over a network. Any thread. */
bool source_net_stats(const struct source *source,
		      struct source_net_stats *out);

/* Counts unfinished requests, and waits until there are none. */
struct source_wait {
	pthread_mutex_t lock;
	pthread_cond_t idle;
	unsigned pending; /* guarded by lock */
};

void source_wait_init(struct source_wait *wait);
void source_wait_add(struct source_wait *wait);
void source_wait_done(struct source_wait *wait);
void source_wait_idle(struct source_wait *wait);
/* Waits for so long at most. Returns whether there are none. */
bool source_wait_some(struct source_wait *wait, int64_t ms);
void source_wait_fini(struct source_wait *wait);

#endif
