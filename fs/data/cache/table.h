/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks that are in a page cache or being read, by file and index: a hash
 * table in shards, each with a lock of its own. Callers find chunks, hold them,
 * and wait until they are read. Thread-safe. A chunk with references stays
 * where it is. The caller that drops the last reference of a chunk outside the
 * table frees the chunk.
 */
#ifndef FS_DATA_CACHE_TABLE_H
#define FS_DATA_CACHE_TABLE_H

#include <pthread.h>

#include "fs/data/cache/chunk.h"
#include "fs/data/cache/counts.h"

enum { TABLE_SHARDS = 16 };

struct table_shard {
	pthread_mutex_t lock;
	pthread_cond_t settled;
	struct chunk **buckets;
	struct chunk *touched; /* chunks whose key is out of date */
};

struct table {
	size_t mask; /* of buckets in a shard */
	struct table_shard shards[TABLE_SHARDS];
	struct counts *counts;
};

/* For a cache of `limit` bytes. After -ENOMEM, the caller calls table_close().
 */
int table_open(struct table *table, uint64_t limit, struct counts *counts);
/* Frees the chunks, but not their memory in the arena. Takes a zeroed
   struct. */
void table_close(struct table *table);

bool table_has(struct table *table, const struct cache_file *file,
	       uint64_t index);

/* Finds a chunk that is READY or being read, and adds a reference. NULL: none.
 */
struct chunk *table_pin(struct table *table, const struct cache_file *file,
			uint64_t index);

/* Drops a reference. Returns true if it was the last one and the chunk has left
   the table; then the caller frees the chunk. */
bool table_unpin(struct table *table, struct chunk *g);

/* Sets the state of a chunk that was being read and wakes its waiters. Drops
   the reference of the read, with the result of table_unpin(). */
bool table_settle(struct table *table, struct chunk *g, enum chunk_state state);

/* Waits until a chunk is read, and counts the hit, wait or miss. Returns false
   if the read failed. */
bool table_wait(struct table *table, struct chunk *g,
		struct payload_tally *tally);

/* Call if the next use of a chunk has changed. If the chunk is READY, it gets a
   new key. */
void table_touch(struct table *table, const struct cache_file *file,
		 uint64_t index);

/* --- with the lock of the shard held --- */

struct table_shard *table_shard_of(struct table *table,
				   const struct cache_file *file,
				   uint64_t index);

/* Returns the link that points to the chunk, or the NULL link at the end of its
   chain. */
struct chunk **table_find(struct table *table, const struct cache_file *file,
			  uint64_t index);

void table_unlink(struct table *table, struct chunk *g);

/* Puts the chunk on the shard's list of those that need a new key. */
void table_mark_touched(struct table_shard *s, struct chunk *g);

#endif
