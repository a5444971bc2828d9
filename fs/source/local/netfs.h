/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of network file systems: the kinds of file system, how many reads they
 * need in flight, and failures that pass. Files of local disks have none of
 * this. Thread-safe.
 */
#ifndef FS_SOURCE_LOCAL_NETFS_H
#define FS_SOURCE_LOCAL_NETFS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fs/base/util/rng.h"
#include "fs/source/local/options.h"
#include "fs/source/pacing/depth.h"
#include "fs/source/pacing/outage.h"

/* Reads in flight and threads of one file, at most. */
enum { NETFS_THREADS_MAX = 128 };

struct netfs {
	const char *kind;	/* "NFS", ...; NULL: a local file system */
	atomic_bool is_failing; /* the last read failed */
	pthread_mutex_t lock;	/* guards the members below */
	struct depth depth;
	struct outage outage;
	uint64_t retry_ms;
	bool has_given_up; /* until a read succeeds */
	struct rng rng;
};

/* Returns the kind of the file system, or NULL if it is local. */
const char *netfs_kind(int fd);

/* Makes a local file. `name` and `log` are for messages; they must outlive
   it. */
void netfs_init(struct netfs *n, const char *name, struct log *log);
void netfs_fini(struct netfs *n);

/* Sets the kind and the time for retries. Call it before the first read. */
void netfs_set(struct netfs *n, const char *kind,
	       const struct source_options *options);

/* Return the threads that should read, and the requests that should be
   unfinished, of which some wait. */
unsigned netfs_threads(struct netfs *n);
unsigned netfs_depth(struct netfs *n);

/* Report a read that begins, a read that has ended, and reads that wait because
   all threads are busy. */
void netfs_begin(struct netfs *n, uint64_t size);
void netfs_done(struct netfs *n, uint64_t bytes, int64_t ns);
void netfs_full(struct netfs *n);

/* A request that failed so often, since this time. */
struct netfs_failures {
	unsigned n;
	int64_t since_ns;
};

/*
 * Records that a read failed. Returns the nanoseconds until the next attempt,
 * or -1 if the failure is final: it does not pass, or has lasted too long. Then
 * it is logged.
 */
int64_t netfs_fails(struct netfs *n, struct netfs_failures *failures, int error,
		    uint64_t off, uint64_t size);

/* Reports a read without failure. */
void netfs_succeeds(struct netfs *n);

#endif
