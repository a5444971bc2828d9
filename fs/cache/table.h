/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks that a page cache has, or that are on their way to it, by file and
 * index: finding them, holding them, and waiting until they are read. A hash
 * table in shards, each with a lock of its own.
 *
 * Thread-safe. A chunk with references stays where it is; the caller who drops
 * the last one of a chunk that has left the table frees it. Private to
 * fs/cache.
 */
#ifndef FS_CACHE_TABLE_H
#define FS_CACHE_TABLE_H

#include <pthread.h>

#include "fs/cache/chunk.h"
#include "fs/cache/counts.h"

enum { TABLE_SHARDS = 16 };

struct table_shard {
	pthread_mutex_t lock;
	pthread_cond_t settled;
	struct chunk **buckets;
	struct chunk *touched; /* used or read since they got their key */
};

struct table {
	size_t mask; /* of buckets in a shard */
	struct table_shard shards[TABLE_SHARDS];
	struct counts *counts;
};

/* For a cache of `limit` bytes. After -ENOMEM, the caller calls table_close().
 */
int table_open(struct table *table, uint64_t limit, struct counts *counts);
/* Frees the chunks that are there, but not their memory in the arena. Takes
   zeros. */
void table_close(struct table *table);

bool table_has(struct table *table, const struct cache_file *file,
	       uint64_t index);

/* A chunk that is there or on its way, with a reference; NULL: none. */
struct chunk *table_pin(struct table *table, const struct cache_file *file,
			uint64_t index);

/* Drops a reference. True: it was the last one, and the caller frees the
   chunk, which is not in the table any more. */
bool table_unpin(struct table *table, struct chunk *g);

/* A chunk becomes READY, FAILED or GONE, and its waiters go on. Drops the
   reference of the read, as table_unpin(). */
bool table_settle(struct table *table, struct chunk *g, enum chunk_state state);

/* Waits until a chunk is read, and counts what its reader met; false: it could
   not be read. */
bool table_wait(struct table *table, struct chunk *g,
		struct payload_tally *tally);

/* Its next use is another one: a chunk that is READY gets a new key. */
void table_touch(struct table *table, const struct cache_file *file,
		 uint64_t index);

/* --- under a shard's lock --- */

struct table_shard *table_shard_of(struct table *table,
				   const struct cache_file *file,
				   uint64_t index);

/* Where the pointer to a chunk is, or would be. */
struct chunk **table_find(struct table *table, const struct cache_file *file,
			  uint64_t index);

void table_unlink(struct table *table, struct chunk *g);

/* For the next time that room is made. */
void table_mark_touched(struct table_shard *s, struct chunk *g);

#endif
