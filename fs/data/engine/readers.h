/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers of a plan: which one opens or awaits a batch, how far they are on
 * a clock that they share, and when one of them uses a sample next. Not
 * thread-safe; the plan locks.
 */
#ifndef FS_DATA_ENGINE_READERS_H
#define FS_DATA_ENGINE_READERS_H

#include <stdatomic.h>

#include "fs/data/engine/reader.h"

enum { READERS_MAX = 64 };

struct readers {
	struct cache *cache;   /* NULL: the kernel's */
	_Atomic uint64_t room; /* bytes of the cache */
	uint64_t ahead;	       /* bytes that are read before they are needed */
	struct reader list[READERS_MAX];
	size_t num;
	uint64_t ids;
	uint64_t clock; /* bytes: position of the foremost reader */
};

/* Returns the reader's progress, in the unit that all readers share. */
uint64_t readers_place(const struct reader *r);

/* Returns whether the reader has opened no batch for long. */
bool readers_is_silent(const struct reader *r, int64_t now);
void readers_note_silent(struct readers *s, int64_t now);
/* Drops those that were silent for so long that they will not return. */
void readers_forget(struct readers *s, int64_t now);

/* Returns the number of readers that share the cache with this one, with those
   `beside` it, which use the same samples at about the same time, or
   without. */
uint64_t readers_sharing(const struct readers *s, const struct reader *with,
			 bool beside);

/* Returns the reader that opens this batch. If two jobs have the same spec, it
   is the one in the batch's epoch; at the start of an epoch, the nearer one. */
struct reader *readers_find(struct readers *s, const struct batch_key *key);
/* Returns any reader of this sequence. */
struct reader *readers_find_stream(struct readers *s,
				   const struct batch_key *key);
/* NULL: the reader is gone. */
struct reader *readers_find_id(struct readers *s, uint64_t id);
/* Returns the reader that will open the batch first, among those that have not
   opened it yet. */
struct reader *readers_find_next(struct readers *s,
				 const struct batch_key *key);
/* Returns the reader for which a batch is collated, or NULL if the plan cannot
   determine it. */
struct reader *readers_find_served(struct readers *s,
				   const struct batch_key *key);

/* Adds a reader, level with the foremost. If there are too many, it replaces
   the one that has been silent for longest. */
struct reader *readers_add(struct readers *s, const struct batch_key *key);
/* Advances the common clock, or brings a reader that fell behind back to it. */
void readers_keep_level(struct readers *s, struct reader *r);

/* Returns when a reader uses some sample of the chunk next, on the common
   clock. CACHE_NEVER: not at all. Never 0, which means a chunk that a reader
   waits for. */
uint64_t readers_chunk_next_use(const struct readers *s,
				const struct cache_file *file, uint64_t chunk);
/* Returns whether a reader needs some sample of the chunk up to the horizon of
   the reader with the id `reader`. Only the next batches of other readers
   count, as many as they are likely to open. */
bool readers_chunk_is_due(const struct readers *s,
			  const struct cache_file *file, uint64_t chunk,
			  uint64_t reader, uint64_t horizon);

#endif
