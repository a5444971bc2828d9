/* SPDX-License-Identifier: Apache-2.0 */
/* Reads that fill chunks: adjacent pages of the file are read together, up to
   source_best_read(), also across chunks. */
#ifndef FS_DATA_CACHE_FILL_H
#define FS_DATA_CACHE_FILL_H

#include "fs/data/cache/chunk.h"

struct fill_target {
	const struct arena *arena;
	struct source *source;
	/*
	 * Called from any thread: before and after each read, and when the last
	 * read of a chunk has ended. The chunk's `error` is set if a read
	 * failed.
	 */
	void (*read_begun)(void *arg, uint64_t bytes);
	void (*read_done)(void *arg, uint64_t owner, uint64_t bytes,
			  int result);
	void (*chunk_done)(void *arg, struct chunk *chunk);
	void *arg;
};

/* Reads the frames of chunks, which belong to one file and owner and have
   memory. Returns when all reads are submitted; `target` has to outlive them.
 */
void fill_chunks(const struct fill_target *target, struct chunk **chunks,
		 unsigned n);

#endif
