/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/reader.h"

#include <stdlib.h>

#include "fs/base/util/bytes.h"

static uint64_t gcd(uint64_t a, uint64_t b)
{
	uint64_t t;

	for (; b; b = t) {
		t = a % b;
		a = b;
	}
	return a;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static bool has_turn(const struct reader *r, unsigned next, uint64_t turn)
{
	return r->turns[next][turn / 64] >> turn % 64 & 1;
}

static void add_turn(struct reader *r, unsigned next, uint64_t turn)
{
	r->turns[next][turn / 64] |= (uint64_t)1 << turn % 64;
}

static void count_turns(struct reader *r)
{
	r->num_turns = 0;
	for (uint64_t i = 0; i < r->world; i++)
		r->num_turns += has_turn(r, 0, i);
}

uint64_t reader_step(const struct reader *r)
{
	return r->world ? r->world / r->num_turns : r->stride;
}

static uint64_t step_of(const struct reader *r)
{
	return max_u64(1, reader_step(r));
}

static void set_epoch(struct reader *r, const struct batch_key *key)
{
	r->epoch = key->epoch;
	r->orders[0] = order_init(&r->spec, r->epoch);
	r->orders[1] = order_init(&r->spec, r->epoch + 1);
	r->first = key->number;
	r->top = key->number;
	r->floor = key->number - min_u64(key->number, READER_LAG);
	memset(r->seen, 0, sizeof(r->seen));
	memset(r->done, 0, sizeof(r->done));
}

void reader_init(struct reader *r, const struct batch_key *key)
{
	uint64_t n = spec_positions(key->spec);

	*r = (struct reader){
		.ds = key->ds,
		.spec = *key->spec,
		.batches = spec_batches(key->spec),
		.missing = 1,
		.weight =
			max_u64(1, dataset_data_bytes(key->ds) /
					   max_u64(1, key->ds->format.samples)),
	};
	/* Samples that drop_last leaves out are not read. */
	r->samples = min_u64(n, r->batches * key->spec->batch);
	set_epoch(r, key);
	r->ahead = key->number * key->spec->batch;
	r->records = r->ahead;
	if (key->spec->draws)
		r->draws = calloc(1, sizeof(*r->draws));
}

void reader_fini(struct reader *r)
{
	free(r->draws);
}

static bool is_set(const struct reader *r, const uint64_t *bits,
		   uint64_t number)
{
	uint64_t i = number - r->floor;

	return number < r->floor ||
	       (i < READER_WINDOW && bits[i / 64] >> i % 64 & 1);
}

static void shift(uint64_t *bits, uint64_t words)
{
	memmove(bits, bits + words,
		(READER_WINDOW / 64 - words) * sizeof(*bits));
	memset(bits + READER_WINDOW / 64 - words, 0, words * sizeof(*bits));
}

static void set(struct reader *r, uint64_t *bits, uint64_t number)
{
	uint64_t i = number - r->floor, words;

	if (number < r->floor)
		return;
	/* Drops the oldest batches, a word of bits at a time. */
	if (i >= READER_WINDOW) {
		words = (i - READER_WINDOW) / 64 + 1;
		shift(r->seen, min_u64(words, READER_WINDOW / 64));
		shift(r->done, min_u64(words, READER_WINDOW / 64));
		r->floor += 64 * words;
		i = number - r->floor;
	}
	bits[i / 64] |= (uint64_t)1 << i % 64;
}

/* Returns whether a batch of this epoch (0) or of the following one (1) is one
   of the reader's ranks, or a whole number of strides from the others that it
   opened. */
static bool in_step(const struct reader *r, unsigned next, uint64_t number)
{
	if (r->world)
		return has_turn(r, next, number % r->world);
	return distance(number, r->first) % step_of(r) == 0;
}

/* Returns whether a batch is near the others and not opened yet. A job opens
   each batch once; therefore the second time belongs to another job. */
static bool is_near(const struct reader *r, uint64_t number)
{
	uint64_t reach = READER_LAG * step_of(r);

	if (number > r->top)
		return number - r->top <= reach;
	return !is_set(r, r->seen, number) && r->top - number <= reach;
}

bool reader_matches(const struct reader *r, const struct batch_key *key)
{
	if (r->ds != key->ds || !spec_equal(&r->spec, key->spec))
		return false;
	if (key->epoch == r->epoch)
		return is_near(r, key->number);
	if (key->epoch == r->epoch + 1)
		return key->number < READER_LAG * step_of(r);
	/* A rank may be late, after others have begun the next epoch. */
	return key->epoch + 1 == r->epoch && r->passed &&
	       r->top < READER_LAG * step_of(r) &&
	       r->batches - key->number <= READER_LAG * step_of(r);
}

/* Forgets the strides before the epoch that ends. */
static void begin_epoch(struct reader *r, const struct batch_key *key)
{
	r->passed++;
	r->ahead -= min_u64(r->ahead, r->samples);
	r->records -= min_u64(r->records, r->samples);
	r->stride = r->learned ? r->learned : r->stride;
	r->learned = 0;
	memcpy(r->turns[0], r->turns[1], sizeof(r->turns[0]));
	count_turns(r);
	set_epoch(r, key);
}

/*
 * Returns whether the batch pads the last step of all ranks: then it is one of
 * the epoch's first batches, which are those of other ranks. A rank has the
 * same turn throughout an epoch.
 */
static bool is_padding(const struct reader *r, uint64_t number,
		       const struct batch_share *share)
{
	uint64_t world = r->world ? r->world : r->stride;

	if (number >= world || r->top < world || in_step(r, 0, number))
		return false;
	if (r->world && share && share->world_size == r->world)
		return has_turn(r, 1, share->rank);
	return r->top >= 2 * world && r->batches - r->top <= world;
}

/* Records the rank that opens a batch. If loaders contradict each other, or one
   of them reports nothing, only the stride remains. */
static void learn_turn(struct reader *r, uint64_t number,
		       const struct batch_share *share)
{
	uint64_t world = share ? share->world_size : 0;

	if (r->opened == 1 && world <= READER_WORLD_MAX)
		r->world = world;
	if (!r->world)
		return;
	if (world == r->world) {
		add_turn(r, 1, share->rank % world);
		add_turn(r, 0, number % world);
		count_turns(r);
	} else if (!has_turn(r, 0, number % r->world)) {
		r->world = 0;
	}
}

static void learn_stride(struct reader *r, uint64_t number)
{
	uint64_t step = distance(number, r->first);

	if (!step)
		return;
	r->stride = gcd(r->stride, step);
	r->learned = gcd(r->learned, step);
}

/* The batches before `ahead` that the reader was not expected to open have not
   been examined. */
static void learn(struct reader *r, uint64_t number,
		  const struct batch_share *share)
{
	uint64_t before = reader_step(r), at = number * r->spec.batch;

	learn_turn(r, number, share);
	learn_stride(r, number);
	if (reader_step(r) == before)
		return;
	r->ahead = min_u64(r->ahead, at);
	r->records = min_u64(r->records, at);
}

void reader_advance(struct reader *r, const struct batch_key *key,
		    const struct batch_share *share)
{
	r->opened++;
	if (key->epoch < r->epoch)
		return;
	if (key->epoch > r->epoch)
		begin_epoch(r, key);
	if (is_padding(r, key->number, share))
		return;
	learn(r, key->number, share);
	set(r, r->seen, key->number);
	if (key->number < r->first)
		r->first = key->number;
	if (key->number > r->top)
		r->top = key->number;
}

static bool is_of(const struct reader *r, const struct batch_key *key)
{
	return r->ds == key->ds && spec_equal(&r->spec, key->spec);
}

bool reader_begins(const struct reader *r)
{
	return r->opened == 1 && !is_set(r, r->done, r->first);
}

bool reader_wants(const struct reader *r, const struct batch_key *key)
{
	if (!is_of(r, key) || key->epoch < r->epoch)
		return false;
	return key->epoch > r->epoch || !is_set(r, r->seen, key->number);
}

bool reader_opened(const struct reader *r, const struct batch_key *key)
{
	return is_of(r, key) && key->epoch == r->epoch &&
	       is_set(r, r->seen, key->number);
}

bool reader_done(struct reader *r, const struct batch_key *key)
{
	if (!is_of(r, key) || r->epoch != key->epoch ||
	    key->number > r->top + READER_PREFETCH * step_of(r) ||
	    is_set(r, r->done, key->number))
		return false;
	set(r, r->done, key->number);
	return true;
}

/* Returns whether the batch was neither opened long ago nor skipped. */
static bool is_due(const struct reader *r, uint64_t number)
{
	return number > r->top || (number >= r->first &&
				   r->top - number <= READER_LAG * step_of(r));
}

bool reader_awaits(const struct reader *r, unsigned next, uint64_t number)
{
	if (number >= r->batches || !in_step(r, next, number))
		return false;
	return next || (is_due(r, number) && !is_set(r, r->done, number));
}

uint64_t reader_position(const struct reader *r)
{
	return r->passed * r->samples +
	       min_u64(r->samples, (r->top + 1) * r->spec.batch);
}

/* Returns the next use among the examined places of the sample in one epoch. */
static uint64_t next_in_epoch(const struct reader *r, unsigned k,
			      uint64_t sample)
{
	uint64_t best = ORDER_NONE, position;

	for (uint64_t nth = 0; nth < ORDER_PLACES; nth++) {
		position = order_position(&r->orders[k], sample, nth);
		if (position == ORDER_NONE)
			break;
		if (reader_awaits(r, k, position / r->spec.batch))
			best = min_u64(best, position);
	}
	return best;
}

/* Keeps at least half of the known positions ahead of the reader, and some
   behind it for batches that others have not opened yet. */
static void look_ahead(const struct reader *r)
{
	struct draws *f = r->draws;
	uint64_t at = min_u64(r->samples, (r->top + 1) * r->spec.batch);

	if (!f->end || f->epoch != r->epoch ||
	    at > f->first + DRAWS_POSITIONS / 2)
		draws_look(f, r->orders, r->samples, r->epoch,
			   at - min_u64(at, DRAWS_POSITIONS / 4));
}

static uint64_t next_seen(const struct reader *r, uint64_t sample)
{
	uint64_t position, k;

	for (uint64_t nth = 0;; nth++) {
		position = draws_position(r->draws, sample, nth);
		if (position == ORDER_NONE)
			return ORDER_NONE;
		k = position / r->samples;
		if (reader_awaits(r, (unsigned)k,
				  position % r->samples / r->spec.batch))
			return r->passed * r->samples + position;
	}
}

/* Beyond the known positions, estimates the next use by the weights. */
static uint64_t next_draw(const struct reader *r, uint64_t sample)
{
	uint64_t gap = order_gap(&r->orders[0], sample), next = ORDER_NONE;
	uint64_t from = reader_position(r);

	if (gap == ORDER_NONE)
		return READER_NEVER;
	if (r->draws) {
		look_ahead(r);
		next = next_seen(r, sample);
		from = r->passed * r->samples + r->draws->end;
	}
	return next == ORDER_NONE ? from + gap : next;
}

uint64_t reader_next_use(const struct reader *r, uint64_t sample)
{
	uint64_t position;

	if (r->spec.draws)
		return next_draw(r, sample);
	if (order_position(&r->orders[0], sample, 0) == ORDER_NONE)
		return READER_NEVER;
	for (unsigned k = 0; k < 2; k++) {
		position = next_in_epoch(r, k, sample);
		if (position != ORDER_NONE)
			return (r->passed + k) * r->samples + position;
	}
	return (r->passed + 2) * r->samples;
}

/* Returns the reader's first batch in an epoch from `number` on. */
static uint64_t next_in_step(const struct reader *r, unsigned next,
			     uint64_t number)
{
	while (number < r->batches && !in_step(r, next, number))
		number++;
	return number;
}

bool reader_next(const struct reader *r, unsigned *next, uint64_t *number)
{
	uint64_t at = *number;

	/* A reader of one batch may be none. */
	if (!reader_step(r) || r->opened < 2)
		return false;
	while (!*next) {
		at = next_in_step(r, 0, at + 1);
		if (at >= r->batches)
			break;
		if (at > r->top || !is_set(r, r->seen, at)) {
			*number = at;
			return true;
		}
	}
	*number = next_in_step(r, 1, *next ? at + 1 : 0);
	*next = 1;
	return *number < r->batches;
}
