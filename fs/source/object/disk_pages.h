/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of a disk tier's source: which of them come from where, and whether
 * those that were read are right.
 */
#ifndef FS_SOURCE_OBJECT_DISK_PAGES_H
#define FS_SOURCE_OBJECT_DISK_PAGES_H

#include "fs/source/local/source.h"
#include "fs/source/object/disk_fill.h"
#include "fs/source/tier/store.h"

enum {
	/* Parts of a request that are read from different places. */
	DISK_RUNS_MAX = 32,
};

struct disk_read;

struct disk_source {
	struct source base;
	struct source *inner;
	struct source *local; /* the data file */
	struct tier_store store;
	struct disk_fill fill;
	atomic_bool is_started;
	atomic_bool is_closing;
	atomic_uint_fast64_t hits, misses;
	pthread_mutex_t lock; /* guards the list, and `refs` of its reads */
	struct disk_read *reads;
};

/* Pages [first, end) of a request, from one place. */
struct disk_run {
	uint64_t first, end;
	bool is_local;
};

/* The bytes of a request that exist, and their pages. */
struct disk_span {
	uint64_t off, end;
	uint64_t first;
	size_t n;
};

/* Returns the source, which is one of a disk tier. */
static inline struct disk_source *disk_of(const struct source *source)
{
	return (struct disk_source *)source;
}

/* Returns the bytes of the object. */
static inline uint64_t disk_size(const struct disk_source *d)
{
	return d->store.index.size;
}

/* Starts the thread that fills the tier, once. */
void disk_start(struct disk_source *d);

/* The range begins within the object. */
struct disk_span disk_span_of(const struct disk_source *d, uint64_t off,
			      uint64_t size);
/* Logs a request past the end of the object. */
void disk_past_end(const struct disk_source *d, size_t size, uint64_t off);

/* Returns the end of the pages from `at` on that are all in the tier, or all
   not. `sums` has 0 for those that are not. */
size_t disk_same_until(const uint32_t *sums, size_t n, size_t at);
/* Divides n pages from `first` on into runs. Returns their number. */
unsigned disk_find_runs(const uint32_t *sums, size_t n, uint64_t first,
			struct disk_run runs[DISK_RUNS_MAX]);

/*
 * Compares pages in memory, from byte `skip` of iov on, with their checksums.
 * Returns the smallest run that contains all that differ.
 */
struct disk_run disk_check_pages(struct disk_source *d,
				 const struct disk_run *run,
				 const struct iovec *iov, size_t skip,
				 const uint32_t *sums);

#endif
