/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of a page cache since it was opened. Any thread adds and reads,
   without locks. Header only. */
#ifndef FS_DATA_CACHE_COUNTS_H
#define FS_DATA_CACHE_COUNTS_H

#include "fs/base/metrics/counters.h"
#include "fs/data/dataset/dataset.h"

enum counter {
	READS,
	READ_BYTES,
	EVICTED,
	WASTED,
	COLD_HITS,
	COLD_BYTES,
	COUNTERS,
};

struct counts {
	atomic_uint_fast64_t counters[COUNTERS];
	struct payload_tally tally;
	struct counters waits;
};

static inline void count(struct counts *c, enum counter what, uint64_t n)
{
	atomic_fetch_add_explicit(&c->counters[what], n, memory_order_relaxed);
}

/* Counts a value for the cache, and for the reader's tally unless it is
   NULL. */
static inline void count_value(struct counts *c, struct payload_tally *tally,
			       enum payload_count what, uint64_t n)
{
	atomic_fetch_add_explicit(&c->tally.n[what], n, memory_order_relaxed);
	if (tally)
		atomic_fetch_add_explicit(&tally->n[what], n,
					  memory_order_relaxed);
}

#endif
