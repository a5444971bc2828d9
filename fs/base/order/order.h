/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders: pure functions from (spec, epoch, position) to a sample, in O(1) time
 * and memory. beton-orders(7) defines them to the bit. A new order is a row of
 * the table in order.c; messages and --help list the rows.
 */
#ifndef FS_BASE_ORDER_ORDER_H
#define FS_BASE_ORDER_ORDER_H

#include "fs/base/order/spec.h"
#include "fs/base/util/rng.h"

struct order;

struct order_row {
	enum beton_order order;
	const char *name;
	bool uses_blocks;  /* the keys block and window */
	bool uses_buckets; /* the key bucket */
	bool draws; /* samples with replacement, by weights of a subset */
	void (*init)(struct order *o);
	/* The place of a position in [0, n). */
	uint64_t (*at)(const struct order *o, uint64_t position);
	/* The position of a place: the inverse of at(). NULL if `draws`. */
	uint64_t (*position)(const struct order *o, uint64_t place);
	/* The places [*first, *end) around a place that the order uses
	   together. */
	void (*run)(const struct order *o, uint64_t place, uint64_t *first,
		    uint64_t *end);
};

/* One epoch of one spec. By value; nothing to release. */
struct order {
	const struct order_row *row;
	uint64_t n;
	uint64_t first;		     /* sample of place 0 */
	const struct subset *subset; /* NULL, or the samples by place */
	uint64_t key;
	uint64_t block;
	uint64_t window; /* or bucket */
	uint64_t batch;
	uint64_t cut; /* bucketed: the first place of the short batch */
	struct permutation permutation;
};

/* Rows by index, by name and by number. NULL: there is no such row. */
const struct order_row *order_row_at(size_t i);
const struct order_row *order_by_name(const char *name, size_t size);
const struct order_row *order_by_id(enum beton_order order);

/* The word_at() of a struct typed whose words are all orders. */
const char *order_name_at(size_t i);

/* If the spec has a named subset, its ids must be loaded. */
struct order order_init(const struct spec *spec, uint64_t epoch);

/* Returns the sample at a position of the epoch. Requires position < n. */
uint64_t order_sample(const struct order *order, uint64_t position);

/* The inverse of order_sample(): the position of the nth place, from 0, of a
   sample. ORDER_NONE: it has fewer places. Not for orders with `draws`. */
#define ORDER_NONE UINT64_MAX
uint64_t order_position(const struct order *order, uint64_t sample,
			uint64_t nth);

/* Functions that must be fast examine at most this many places of one
   sample. */
enum { ORDER_PLACES = 16 };

/* For orders with `draws`: positions from one use of a sample to the next on
   average, below 2^32, computed from its first ORDER_PLACES places. ORDER_NONE:
   the order never uses it. */
uint64_t order_gap(const struct order *order, uint64_t sample);

/*
 * The samples [*first, *end) of the dataset around a sample that the order uses
 * together, and that are therefore worth reading with one request.
 */
void order_run(const struct order *order, uint64_t sample, uint64_t *first,
	       uint64_t *end);

#endif
