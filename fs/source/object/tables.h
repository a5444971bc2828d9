/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source in front of a remote one. It reads small pieces of tables out of
 * blocks in memory, so that they do not cost a round trip each:
 *
 *   - source_read() of tables, and of anything before source_note_tables(),
 *     goes through the blocks; readers of one block share its request;
 *   - source_prefetch() requests blocks without waiting for them;
 *   - sequential reads request blocks ahead, enough to fill the link;
 *   - if the tables fit into memory, they are requested in the background as
 *     soon as one of their blocks is needed.
 *
 * Other requests pass through, unless all of their bytes are in memory. A
 * failed block is not kept: the next reader requests it again, as does once a
 * reader that waited for a request in the background.
 */
#ifndef FS_SOURCE_OBJECT_TABLES_H
#define FS_SOURCE_OBJECT_TABLES_H

#include "fs/source/local/source.h"

/* Less memory would not hold the blocks of one scan. */
enum { TABLES_MEMORY_LEAST = 4 << 20 };

/*
 * Opens a source in front of `inner`, which it takes over, also after a
 * failure: -ENOMEM. It takes up to `memory` bytes, but at least
 * TABLES_MEMORY_LEAST, and none before the first read. The log must outlive it.
 */
int tables_open(struct source *inner, uint64_t memory, struct log *log,
		struct source **out);

/* Stores bytes that were read before, whole blocks of them from block `off` /
   BLOCK_BYTES on, up to the end of the source. Call it before other threads
   use the source. */
void tables_store(struct source *source, const void *bytes, size_t size,
		  uint64_t off);

struct tables_stats {
	uint64_t reads; /* by source_read() and by requests of tables */
	uint64_t waits; /* those that had to wait for the inner source */
	uint64_t bytes; /* in memory, or being read */
	uint64_t limit;
};

/* Returns whether the source or one behind it is of this kind, and fills *out;
   zeros if not. */
bool tables_stats(const struct source *source, struct tables_stats *out);

#endif
