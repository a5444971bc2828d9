/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of an object that a disk tier holds: found and checked by any
 * thread, written by one.
 *
 * A page's bytes are written before its checksum, and its checksum is cleared
 * before its space is freed. Readers compare each page each time, so neither a
 * kill nor a power failure nor another process can make them return a wrong
 * byte. Nothing waits for the disk to write: after a power failure the
 * checksums find what is missing.
 *
 * The subset that is present stays: if the tier is smaller than the object, it
 * is filled and then left alone, because evicting the least recently used
 * pages of a scan evicts what comes next. The file system keeps 5 % free: below
 * that nothing is written, and below 4 % pages are removed.
 */
#ifndef FS_SOURCE_TIER_STORE_H
#define FS_SOURCE_TIER_STORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fs/source/tier/files.h"

/* Why nothing is written. */
enum tier_off {
	TIER_ON,
	TIER_READER, /* another process is the writer */
	TIER_FULL,   /* the object does not fit, and no more pages do */
	TIER_SPACE,  /* less than 5 % of the file system is free */
	TIER_BROKEN, /* the disk refused to read or write */
	TIER_OFFS,
};

struct tier_store {
	struct tier_files files;
	struct tier_index index;
	struct tier_identity identity; /* with texts of its own */
	struct log *log;
	atomic_int
		off; /* enum tier_off; set by the writing thread, or BROKEN */
	atomic_uint_fast64_t present; /* pages; correct once `counted` */
	atomic_uint_fast64_t dropped; /* pages whose checksum was wrong */
	atomic_bool is_usable;	      /* the files fit the object */
	pthread_mutex_t lock;	      /* innermost; while a page is dropped */

	atomic_uint_fast64_t allowed; /* pages; set by the writing thread */

	/* The members below belong to the writing thread. */
	uint64_t unchecked; /* bytes written since the last look at the space */
	int64_t looked_ms;
	int64_t tried_ms; /* to become the writer */
	uint64_t counted; /* pages below this one have been counted */
	uint64_t sum;	  /* of them that are present */
	int64_t counted_ms;
};

/* As tier_files_open(). */
int tier_store_open(struct tier_store *store, const char *dir, uint64_t limit,
		    const struct tier_identity *identity, struct log *log);
void tier_store_close(struct tier_store *store);

/* Returns whether pages that are read now should be stored. */
bool tier_store_wants(const struct tier_store *store);
/* Returns a reason for people. */
const char *tier_off_text(enum tier_off off);

/* Reads the checksums of pages; 0: absent. */
void tier_store_find(const struct tier_store *store, uint64_t first, size_t n,
		     uint32_t *sums);

/* The checksum of a page was `sum`, and its bytes have another one. Drops the
   page and logs that, unless it has changed meanwhile. */
void tier_store_drop(struct tier_store *store, uint64_t page, uint32_t sum);
/* The disk failed to read pages: drops them, and writes no more. */
void tier_store_failed(struct tier_store *store, uint64_t first, uint64_t end,
		       int error);

/* --- the writing thread --- */

/* Does what is due: counts pages, looks at the free space, tries to become the
   writer. Returns whether it has to be called again at once. */
bool tier_store_tick(struct tier_store *store);
/* Stores pages, whose bytes are in up to two pieces of whole pages. Pages that
   are present are left as they are. */
struct tier_piece {
	const uint8_t *bytes;
	size_t size;
};
void tier_store_put(struct tier_store *store, uint64_t first,
		    const struct tier_piece pieces[2]);
/* Finds a run of absent pages from `from` on, of at most `most` pages. Returns
   false if there is none up to the end. */
bool tier_store_absent(const struct tier_store *store, uint64_t from,
		       uint64_t most, uint64_t *first, uint64_t *end);

#endif
