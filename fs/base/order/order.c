/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/order/order.h"

#include "fs/base/util/bytes.h"

/* Each use of random numbers has its own key, because its name is hashed into
   the key. */
enum { FOR_ORDER = 1, FOR_WINDOW = 2, FOR_CUT = 3 };

static void init_nothing(struct order *o)
{
	(void)o;
}

static uint64_t same_place(const struct order *o, uint64_t i)
{
	(void)o;
	return i;
}

static void run_to_the_end(const struct order *o, uint64_t place,
			   uint64_t *first, uint64_t *end)
{
	*first = place;
	*end = o->n;
}

static void init_random(struct order *o)
{
	o->permutation = permutation_init(o->n, o->key);
}

static uint64_t random_at(const struct order *o, uint64_t position)
{
	return permutation_at(&o->permutation, position);
}

static uint64_t random_position(const struct order *o, uint64_t place)
{
	return permutation_inverse(&o->permutation, place);
}

static void run_alone(const struct order *o, uint64_t place, uint64_t *first,
		      uint64_t *end)
{
	(void)o;
	*first = place;
	*end = place + 1;
}

/* Permutes the whole blocks; a short block stays last. */
static void init_quasi(struct order *o)
{
	o->permutation = permutation_init(o->n / o->block, o->key);
}

/* a * b / c without wrapping. */
static uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	return (uint64_t)((unsigned __int128)a * b / c);
}

/*
 * Window k of `count` windows is positions [k n / count, (k + 1) n / count).
 * A position lies in window floor(position count / n) or, if rounding down put
 * the end of that window at or below the position, in the next.
 */
static uint64_t window_of(const struct order *o, uint64_t position,
			  uint64_t count)
{
	uint64_t k = mul_div(position, count, o->n);

	while (mul_div(k + 1, o->n, count) <= position)
		k++;
	return k;
}

/* Returns the start and the permutation of the window of a position. */
static struct permutation mix_of(const struct order *o, uint64_t position,
				 uint64_t *start)
{
	uint64_t count = o->n / o->window + (o->n % o->window != 0);
	uint64_t k = window_of(o, position, count);
	const uint64_t words[] = { o->key, FOR_WINDOW, k };

	*start = mul_div(k, o->n, count);
	return permutation_init(mul_div(k + 1, o->n, count) - *start,
				rng_key(words, ARRAY_LEN(words)));
}

/* Blocks are in random order, and each window of that sequence is shuffled. */
static uint64_t quasi_at(const struct order *o, uint64_t position)
{
	uint64_t start;
	struct permutation mix = mix_of(o, position, &start);
	uint64_t place = start + permutation_at(&mix, position - start);
	uint64_t block = place / o->block;

	if (block < o->n / o->block)
		block = permutation_at(&o->permutation, block);
	return block * o->block + place % o->block;
}

static uint64_t quasi_position(const struct order *o, uint64_t place)
{
	uint64_t block = place / o->block, start;
	struct permutation mix;

	if (block < o->n / o->block)
		block = permutation_inverse(&o->permutation, block);
	place = block * o->block + place % o->block;
	mix = mix_of(o, place, &start);
	return start + permutation_inverse(&mix, place - start);
}

static void run_of_block(const struct order *o, uint64_t place, uint64_t *first,
			 uint64_t *end)
{
	*first = place - place % o->block;
	*end = *first + min_u64(o->block, o->n - *first);
}

/* Permutes the whole batches. The places of a short batch are random, so that
   no place is always left out. */
static void init_bucketed(struct order *o)
{
	const uint64_t words[] = { o->key, FOR_CUT };
	unsigned __int128 number = rng_key(words, ARRAY_LEN(words));
	uint64_t rest = o->n % o->batch;

	o->permutation = permutation_init(o->n / o->batch, o->key);
	o->cut = (uint64_t)(number * (o->n - rest + 1) >> 64);
}

/* Maps to the samples of whole batches, in batches that are not shuffled yet.
   The samples of a short batch are at the end. */
static uint64_t bucketed_at(const struct order *o, uint64_t position)
{
	uint64_t whole = o->n - o->n % o->batch, start, at = position;
	struct permutation mix;

	if (position < whole)
		at = permutation_at(&o->permutation, position / o->batch) *
			     o->batch +
		     position % o->batch;
	if (position >= whole)
		at = o->cut + (position - whole);
	else if (at >= o->cut)
		at += o->n - whole;
	mix = mix_of(o, at, &start);
	return start + permutation_at(&mix, at - start);
}

static uint64_t bucketed_position(const struct order *o, uint64_t place)
{
	uint64_t rest = o->n % o->batch, start, at;
	struct permutation mix = mix_of(o, place, &start);

	at = start + permutation_inverse(&mix, place - start);
	if (at >= o->cut && at < o->cut + rest)
		return o->n - rest + (at - o->cut);
	if (at >= o->cut)
		at -= rest;
	return permutation_inverse(&o->permutation, at / o->batch) * o->batch +
	       at % o->batch;
}

static uint64_t weighted_at(const struct order *o, uint64_t position)
{
	struct rng rng = { .key = o->key, .position = position };

	return subset_draw(o->subset, rng_next(&rng));
}

static const struct order_row rows[] = {
	{
		.order = BETON_ORDER_SEQUENTIAL,
		.name = "sequential",
		.init = init_nothing,
		.at = same_place,
		.position = same_place,
		.run = run_to_the_end,
	},
	{
		.order = BETON_ORDER_RANDOM,
		.name = "random",
		.init = init_random,
		.at = random_at,
		.position = random_position,
		.run = run_alone,
	},
	{
		.order = BETON_ORDER_QUASI_RANDOM,
		.name = "quasi_random",
		.uses_blocks = true,
		.init = init_quasi,
		.at = quasi_at,
		.position = quasi_position,
		.run = run_of_block,
	},
	{
		.order = BETON_ORDER_WEIGHTED,
		.name = "weighted",
		.draws = true,
		.init = init_nothing,
		.at = weighted_at,
		.run = run_alone,
	},
	{
		.order = BETON_ORDER_BUCKETED,
		.name = "bucketed",
		.uses_buckets = true,
		.init = init_bucketed,
		.at = bucketed_at,
		.position = bucketed_position,
		.run = run_alone,
	},
};

const struct order_row *order_row_at(size_t i)
{
	return i < ARRAY_LEN(rows) ? &rows[i] : NULL;
}

const char *order_name_at(size_t i)
{
	return i < ARRAY_LEN(rows) ? rows[i].name : NULL;
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
		.n = spec_positions(spec),
		.first = spec->first,
		.subset = spec->subset,
		.key = rng_key(words, ARRAY_LEN(words)),
		.block = spec->block,
		.window = spec->bucket ? spec->bucket : spec->window,
		.batch = spec->batch,
	};

	o.row->init(&o);
	return o;
}

uint64_t order_sample(const struct order *o, uint64_t position)
{
	uint64_t place = o->first + o->row->at(o, position);

	return o->subset ? o->subset->ids[place] : place;
}

uint64_t order_position(const struct order *o, uint64_t sample, uint64_t nth)
{
	uint64_t place = sample - o->first;

	if (o->subset ? !subset_place(o->subset, sample, nth, &place)
		      : nth || sample < o->first || place >= o->n)
		return ORDER_NONE;
	return o->row->position(o, place);
}

uint64_t order_gap(const struct order *o, uint64_t sample)
{
	const struct subset *s = o->subset;
	uint64_t weight = 0, place;

	for (uint64_t k = 0; k < ORDER_PLACES; k++) {
		if (!subset_place(s, sample, k, &place))
			break;
		weight += subset_weight(s, place);
	}
	return weight ? min_u64(UINT32_MAX, s->sums[s->n - 1] / weight)
		      : ORDER_NONE;
}

/* Neighbors in a subset's list may lie far apart in the dataset. */
void order_run(const struct order *o, uint64_t sample, uint64_t *first,
	       uint64_t *end)
{
	if (o->subset) {
		*first = sample;
		*end = sample + 1;
		return;
	}
	o->row->run(o, sample - o->first, first, end);
	*first += o->first;
	*end += o->first;
}
