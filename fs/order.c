/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/order.h"

#include "fs/bytes.h"

/* What a key is for, so that no two uses share one. */
enum { FOR_ORDER = 1, FOR_WINDOW = 2 };

static void init_nothing(struct order *o)
{
	(void)o;
}

static uint64_t sequential_at(const struct order *o, uint64_t position)
{
	(void)o;
	return position;
}

static void init_random(struct order *o)
{
	o->permutation = permutation_init(o->n, o->key);
}

static uint64_t random_at(const struct order *o, uint64_t position)
{
	return permutation_at(&o->permutation, position);
}

/* Whole blocks are permuted; the short one stays last. */
static void init_quasi(struct order *o)
{
	o->permutation = permutation_init(o->n / o->block, o->key);
}

/* a * b / c without wrapping. */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t c)
{
	return (uint64_t)((unsigned __int128)a * b / c);
}

/*
 * The k-th of `count` windows is positions [k n / count, (k + 1) n / count).
 * The one that holds a position is floor(position count / n), or the next where
 * rounding down put its end below the position.
 */
static uint64_t window_of(const struct order *o, uint64_t position,
			  uint64_t count)
{
	uint64_t k = scale(position, count, o->n);

	while (scale(k + 1, o->n, count) <= position)
		k++;
	return k;
}

/* Blocks in random order, then every window of that sequence mixed. */
static uint64_t quasi_at(const struct order *o, uint64_t position)
{
	uint64_t count = o->n / o->window + (o->n % o->window != 0);
	uint64_t k = window_of(o, position, count);
	uint64_t start = scale(k, o->n, count);
	uint64_t end = scale(k + 1, o->n, count);
	const uint64_t words[] = { o->key, FOR_WINDOW, k };
	struct permutation mix =
		permutation_init(end - start, rng_key(words, ARRAY_LEN(words)));
	uint64_t place = start + permutation_at(&mix, position - start);
	uint64_t block = place / o->block;

	if (block < o->n / o->block)
		block = permutation_at(&o->permutation, block);
	return block * o->block + place % o->block;
}

static const struct order_row rows[] = {
	{ BETON_ORDER_SEQUENTIAL, "sequential", false, init_nothing,
	  sequential_at },
	{ BETON_ORDER_RANDOM, "random", false, init_random, random_at },
	{ BETON_ORDER_QUASI_RANDOM, "quasi_random", true, init_quasi,
	  quasi_at },
};

const struct order_row *order_row_at(size_t i)
{
	return i < ARRAY_LEN(rows) ? &rows[i] : NULL;
}

const struct order_row *order_by_name(const char *name, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (strlen(rows[i].name) == size &&
		    !memcmp(rows[i].name, name, size))
			return &rows[i];
	}
	return NULL;
}

const struct order_row *order_by_id(enum beton_order order)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].order == order)
			return &rows[i];
	}
	return NULL;
}

struct order order_init(const struct spec *spec, uint64_t epoch)
{
	const uint64_t words[] = { spec->seed, epoch, FOR_ORDER, spec->order };
	struct order o = {
		.row = order_by_id(spec->order),
		.n = spec->end - spec->first,
		.first = spec->first,
		.subset = spec->subset,
		.key = rng_key(words, ARRAY_LEN(words)),
		.block = spec->block,
		.window = spec->window,
	};

	o.row->init(&o);
	return o;
}

uint64_t order_sample(const struct order *o, uint64_t position)
{
	uint64_t place = o->first + o->row->at(o, position);

	return o->subset ? o->subset->ids[place] : place;
}
