/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of a stage of the engine or of the loader: its items, bytes and
 * times. Any thread may read them at any time. Each counter is read by itself,
 * and imposes no order on other memory accesses. Header only.
 */
#ifndef FS_BASE_METRICS_COUNTERS_H
#define FS_BASE_METRICS_COUNTERS_H

#include <stdatomic.h>

#include "fs/base/metrics/histogram.h"

struct counters {
	atomic_uint_fast64_t items;
	atomic_uint_fast64_t bytes;
	atomic_uint_fast64_t busy_ns;
	atomic_uint_fast64_t input_wait_ns; /* waits for input */
	atomic_uint_fast64_t room_wait_ns;  /* waits for room for the result */
	atomic_uint_fast64_t times[HISTOGRAM_BUCKETS]; /* durations of items */
};

/* The values of counters at one moment, or the sum over several struct
   counters. */
struct counters_sum {
	uint64_t items;
	uint64_t bytes;
	uint64_t busy_ns;
	uint64_t input_wait_ns;
	uint64_t room_wait_ns;
	uint64_t times[HISTOGRAM_BUCKETS];
};

/* Any thread may call it. */
static inline void counters_add(atomic_uint_fast64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Like counters_add(), at a tenth of its cost. Only one thread may write this
   counter. */
static inline void counters_add_own(atomic_uint_fast64_t *counter, uint64_t n)
{
	atomic_store_explicit(
		counter,
		atomic_load_explicit(counter, memory_order_relaxed) + n,
		memory_order_relaxed);
}

static inline uint64_t counters_get(const atomic_uint_fast64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Counts one item that took `ns`. */
static inline void counters_item(struct counters *t, uint64_t bytes,
				 uint64_t ns)
{
	counters_add(&t->items, 1);
	counters_add(&t->bytes, bytes);
	counters_add(&t->busy_ns, ns);
	counters_add(&t->times[histogram_bucket(ns)], 1);
}

/* Counts items that took `ns` together, each an equal part of it. */
static inline void counters_items_own(struct counters *t, uint64_t items,
				      uint64_t bytes, uint64_t ns)
{
	counters_add_own(&t->items, items);
	counters_add_own(&t->bytes, bytes);
	counters_add_own(&t->busy_ns, ns);
	if (items)
		counters_add_own(&t->times[histogram_bucket(ns / items)],
				 items);
}

static inline void counters_sum(struct counters_sum *sum,
				const struct counters *t)
{
	sum->items += counters_get(&t->items);
	sum->bytes += counters_get(&t->bytes);
	sum->busy_ns += counters_get(&t->busy_ns);
	sum->input_wait_ns += counters_get(&t->input_wait_ns);
	sum->room_wait_ns += counters_get(&t->room_wait_ns);
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum->times[i] += counters_get(&t->times[i]);
}

#endif
