/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads that fill chunks: pages that stand together in the file are read
 * together, up to FILL_FRAMES, whichever chunks they belong to.
 */
#ifndef FS_CACHE_FILL_H
#define FS_CACHE_FILL_H

#include "fs/cache/chunk.h"

/* 1 MiB: larger reads gain nothing on the devices there are, and a kernel takes
   1024 pieces of memory for one read. */
enum { FILL_FRAMES = 256 };

struct fill_target {
	const struct arena *arena;
	struct source *source;
	/* From any thread: before and after each read, and when the last read
	   of a chunk is over, whose error is set if one failed. */
	void (*read_begun)(void *arg);
	void (*read_done)(void *arg, uint64_t owner, uint64_t bytes,
			  int result);
	void (*chunk_done)(void *arg, struct chunk *chunk);
	void *arg;
};

/*
 * Reads the frames of chunks of one file and owner, which have memory. Returns
 * when all reads are submitted; `target` has to outlive them.
 */
void fill_chunks(const struct fill_target *target, struct chunk **chunks,
		 unsigned n);

#endif
