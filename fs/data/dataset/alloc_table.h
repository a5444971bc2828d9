/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocation table, which contains the size of the allocation at an offset.
 * Only JPEGs need it. It is read once, on first use, and little of it stays in
 * memory:
 *
 *   - a table of up to ALLOC_KEEP_BYTES is kept whole, sorted;
 *   - a larger one is cut into its ascending runs (one per process that wrote
 *     the file) and every ALLOC_STRIDE-th offset is kept; a look-up reads one
 *     stride at most per run whose span covers the offset;
 *   - one of up to ALLOC_SORT_BYTES with more runs than ALLOC_RUNS_FEW is kept
 *     whole as well.
 *
 * At ten million entries that is 240 MB read once, and 600 KB kept. The time of
 * a look-up is bounded, whatever the table contains.
 */
#ifndef FS_DATA_DATASET_ALLOC_TABLE_H
#define FS_DATA_DATASET_ALLOC_TABLE_H

#include "fs/data/dataset/format.h"
#include "fs/source/local/source.h"

enum {
	ALLOC_KEEP_BYTES = 1 << 20,
	ALLOC_SORT_BYTES = 32 << 20, /* takes 22 MB of memory */
	ALLOC_STRIDE = 256,	     /* entries: 6 KiB, one or two disk pages */
	/* From this number on, the reads cost more than the memory of a sorted
	   table. */
	ALLOC_RUNS_FEW = 64,
	/* Limits the time of a look-up to a millisecond. A file that FFCV wrote
	   has one run per process of its writer. */
	ALLOC_RUNS_MAX = 1024,
};

struct alloc;

/* Reads the table. Failures are logged. The source must outlive the result.
   `tables` is the number of tables that share the memory limit. */
int alloc_open(struct source *source, const struct format *format,
	       size_t tables, struct log *log, struct alloc **out);
void alloc_close(struct alloc *alloc);

/*
 * Sets *size to the size of the largest allocation at `off`, because an empty
 * allocation may have the offset of another. -ENOENT: there is none.
 * Thread-safe.
 */
int alloc_size(const struct alloc *alloc, uint64_t off, uint64_t *size);

/* Requests the entries that alloc_size() is about to read, without waiting. */
void alloc_prefetch(const struct alloc *alloc, uint64_t off);

/* Returns whether alloc_size() answers from memory, for callers that must not
   wait. */
bool alloc_is_at_hand(const struct alloc *alloc, uint64_t off);

/* Returns the number of reads that alloc_size() may need; 0: the table is in
   memory. */
size_t alloc_reads(const struct alloc *alloc);

#endif
