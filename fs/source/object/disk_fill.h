/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that fills a disk tier. It writes the copies of pages that were
 * read anyway. While no reader waits for the server, it also reads missing
 * pages in runs of up to DISK_FILL_MOST, if the whole object fits into the
 * tier.
 */
#ifndef FS_SOURCE_OBJECT_DISK_FILL_H
#define FS_SOURCE_OBJECT_DISK_FILL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/source/local/source.h"
#include "fs/source/tier/queue.h"
#include "fs/source/tier/store.h"

enum {
	DISK_FILL_LEAST = 1 << 20,
	DISK_FILL_MOST = 8 << 20,
	/* Copies that wait for the disk: one that pauses for a third of a
	   second at 100 MB/s. */
	DISK_RING_LEAST = 4 << 20,
	DISK_RING_MOST = 32 << 20,
};

struct disk_fill {
	struct tier_store *store;
	struct source *inner;
	atomic_uint waiting;	 /* requests of readers at the inner source */
	atomic_llong busy_ms;	 /* when the last one began or ended */
	atomic_bool is_reading;	 /* a run that no reader requested */
	atomic_bool is_unwanted; /* a reader came meanwhile */
	atomic_uint_fast64_t filled;  /* bytes that no reader requested */
	atomic_uint_fast64_t skipped; /* bytes for which there was no room */
	pthread_mutex_t lock;	      /* guards the members below */
	pthread_cond_t changed;
	struct tier_queue queue;
	bool stopping;
	bool has_run; /* the run has been read */
	int result;   /* of reading it */
	bool has_thread;
	pthread_t thread;

	/* The members below belong to the thread. */
	struct source_request request;
	uint8_t *buffer;
	size_t most; /* bytes of the buffer */
	uint64_t at; /* pages below this one were looked at */
	size_t size; /* of the next run */
	bool is_cancelled;
	int64_t pause_until_ms;
};

/* Takes about 5/8 of `memory`, within limits, once it is used. -ENOMEM. */
int disk_fill_init(struct disk_fill *fill, struct tier_store *store,
		   struct source *inner, uint64_t memory);
/* Writes what is queued, and ends the thread. A run that no reader requested
   may still be read: close the inner source next. */
void disk_fill_stop(struct disk_fill *fill);
/* The same, but disk_fill_start() may start the thread again. No other thread
   may call functions of `fill` meanwhile. */
void disk_fill_pause(struct disk_fill *fill);
/* The inner source has been closed. */
void disk_fill_fini(struct disk_fill *fill);

/* Starts the thread, unless it runs. Before that, nothing is written. */
void disk_fill_start(struct disk_fill *fill);

/* A reader's request goes to the inner source, or has come back. */
void disk_fill_busy(struct disk_fill *fill);
void disk_fill_idle(struct disk_fill *fill);

/* Queues a copy of pages that lie in scattered memory, from byte `skip` of iov
   on; `size` bytes. */
void disk_fill_put(struct disk_fill *fill, uint64_t first,
		   const struct iovec *iov, size_t skip, size_t size);

/* Returns the bytes that it takes at most. */
uint64_t disk_fill_memory(const struct disk_fill *fill);
/* Returns the bytes that wait to be written. */
uint64_t disk_fill_waiting(struct disk_fill *fill);

#endif
