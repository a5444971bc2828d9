/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unit in which the page cache holds, evicts and reads: the payloads of a
 * few neighboring samples (of one, unless samples are tiny), as whole pages of
 * the dataset file.
 */
#ifndef FS_DATA_CACHE_CHUNK_H
#define FS_DATA_CACHE_CHUNK_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "fs/data/cache/arena.h"
#include "fs/data/cache/heap.h"
#include "fs/data/dataset/dataset.h"

/* Pieces of the file. The values of one sample are adjacent, except where a
   page of the dataset ended between them. */
enum { CHUNK_EXTENTS = 4 };

enum chunk_state {
	CHUNK_READING,
	CHUNK_READY,
	CHUNK_FAILED, /* FAILED and GONE chunks are not in the table */
	CHUNK_GONE,
};

/* A range of the file, [off, off + frames * ARENA_FRAME). */
struct chunk_extent {
	uint64_t off;
	uint32_t frames;
};

struct cache_file;

struct chunk {
	struct heap_node node; /* guarded by room.lock, as `charged` is */
	uint64_t charged;      /* bytes counted for the chunk itself */
	struct cache_file *file;
	uint64_t index; /* among the chunks of the file */
	uint64_t owner; /* of its read, as in struct cache_want */
	bool is_missed; /* a reader waited for it before it was read */
	/* Guarded by the lock of the shard, down to `used`. */
	struct chunk *chain;
	struct chunk *touched;
	enum chunk_state state;
	uint32_t refs; /* readers that copy out of it, and its read */
	bool is_touched;
	bool used;
	/* Set before the chunk is READY, and constant from then on. */
	atomic_uint pending; /* reads under way */
	atomic_int error;
	uint32_t num_extents;
	struct chunk_extent extents[CHUNK_EXTENTS];
	uint32_t num_frames;
	uint32_t *frames;
};

/* Finds the offsets of the payloads of `n` samples by their metadata records.
   Leaves out damaged values, and values beyond the room for pieces. */
void chunk_locate(struct chunk *g, struct dataset *ds, const uint8_t *records,
		  uint64_t first, uint64_t n);

/* Copies a range of the file to the caller. Returns false if the chunk does not
   cover it. */
bool chunk_copy(const struct chunk *g, const struct arena *arena,
		const struct payload_read *what);

/* Fills `iov` with the memory of all frames, neighbors joined. Returns the
   number of entries. */
unsigned chunk_iov(const struct chunk *g, const struct arena *arena,
		   struct iovec *iov);

#endif
