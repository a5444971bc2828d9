/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/group.h"

#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/value.h"

enum {
	CHUNK_BYTES = 4 << 20,
	/* More bits would make a pass write to more buckets than the TLB has
	   entries. */
	DIGIT_BITS = 8,
	BUCKETS = 1 << DIGIT_BITS,
};

/* Values with this bit flipped sort as unsigned numbers. */
#define SIGN ((uint64_t)1 << 63)

/* A column while its samples are sorted. */
struct group_column {
	uint64_t n;
	uint64_t *keys;	    /* values of the samples, sign flipped */
	uint64_t varying;   /* bits in which they differ */
	bool is_ascending;  /* true for datasets that are sorted by class */
	uint32_t *samples;  /* in the order of their keys, once sorted */
	uint32_t *previous; /* the order before the current digit, while sorting
			     */
};

static void note_key(struct group_column *c, uint64_t sample, uint64_t key)
{
	c->keys[sample] = key;
	c->varying |= key ^ c->keys[0];
	if (sample && key < c->keys[sample - 1])
		c->is_ascending = false;
}

static int read_keys(struct dataset *ds, uint32_t field, struct group_column *c)
{
	uint64_t itemsize = ds->format.itemsize, n;
	uint64_t most = max_u64(1, CHUNK_BYTES / itemsize);
	cleanup_free uint8_t *records = malloc(most * itemsize);
	const struct field *f = &ds->format.fields[field];
	const uint8_t *at;
	int r = records ? 0 : -ENOMEM;

	dataset_prefetch_run(ds, 0, c->n);
	for (uint64_t first = 0; first < c->n && !r; first += n) {
		n = min_u64(most, c->n - first);
		r = dataset_records(ds, first, n, records);
		at = records + f->meta_off;
		for (uint64_t i = 0; i < n && !r; i++, at += itemsize)
			note_key(c, first + i,
				 (uint64_t)f->type->integer(at) ^ SIGN);
	}
	return r;
}

/* One pass of a stable radix sort. */
static void sort_digit(struct group_column *c, unsigned shift)
{
	uint32_t counts[BUCKETS] = { 0 };
	uint32_t *before = c->samples, at = 0, n;

	c->samples = c->previous;
	c->previous = before;
	for (uint64_t i = 0; i < c->n; i++)
		counts[c->keys[i] >> shift & (BUCKETS - 1)]++;
	for (size_t i = 0; i < BUCKETS; i++) {
		n = counts[i];
		counts[i] = at;
		at += n;
	}
	for (uint64_t i = 0; i < c->n; i++) {
		uint32_t *to =
			&counts[c->keys[before[i]] >> shift & (BUCKETS - 1)];

		c->samples[(*to)++] = before[i];
	}
}

static int sort_samples(struct group_column *c)
{
	for (uint64_t i = 0; i < c->n; i++)
		c->samples[i] = (uint32_t)i;
	if (c->is_ascending)
		return 0;
	c->previous = malloc(c->n * sizeof(*c->previous));
	if (!c->previous)
		return -ENOMEM;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		if (c->varying >> shift & (BUCKETS - 1))
			sort_digit(c, shift);
	}
	free(c->previous);
	return 0;
}

static bool is_first(const struct group_column *c, uint64_t i)
{
	return !i || c->keys[c->samples[i]] != c->keys[c->samples[i - 1]];
}

static int find_values(const struct group_column *c, struct group *g)
{
	uint64_t k = 0;

	for (uint64_t i = 0; i < c->n; i++)
		g->num += is_first(c, i);
	g->values = malloc(g->num * sizeof(*g->values) + 1);
	g->starts = malloc((g->num + 1) * sizeof(*g->starts));
	if (!g->values || !g->starts)
		return -ENOMEM;
	for (uint64_t i = 0; i < c->n; i++) {
		if (!is_first(c, i))
			continue;
		g->values[k] = (int64_t)(c->keys[c->samples[i]] ^ SIGN);
		g->starts[k++] = (uint32_t)i;
	}
	g->starts[k] = (uint32_t)c->n;
	return 0;
}

static int make_group(struct dataset *ds, uint32_t field, struct group *g)
{
	struct group_column c = { .n = ds->format.samples,
				  .is_ascending = true };
	int r = -ENOMEM;

	c.keys = malloc(c.n * sizeof(*c.keys) + 1);
	c.samples = malloc(c.n * sizeof(*c.samples) + 1);
	if (c.keys && c.samples)
		r = read_keys(ds, field, &c);
	if (!r)
		r = sort_samples(&c);
	if (!r)
		r = find_values(&c, g);
	g->samples = c.samples;
	free(c.keys);
	return r;
}

int group_open(struct dataset *ds, uint32_t field, struct group **out)
{
	struct group *g;
	int r;

	if (ds->format.samples > GROUP_SAMPLES_MAX) {
		log_error(
			ds->log,
			"%s: %llu samples are too many to group by %s: at most %llu",
			ds->source->path,
			(unsigned long long)ds->format.samples,
			ds->format.fields[field].stem,
			(unsigned long long)GROUP_SAMPLES_MAX);
		return -EFBIG;
	}
	g = calloc(1, sizeof(*g));
	r = g ? make_group(ds, field, g) : -ENOMEM;
	if (r)
		group_close(g);
	else
		*out = g;
	return r;
}

void group_close(struct group *g)
{
	if (!g)
		return;
	free(g->values);
	free(g->starts);
	free(g->samples);
	free(g);
}

uint64_t group_bytes(const struct group *g)
{
	return sizeof(*g) + g->num * sizeof(*g->values) +
	       (g->num + 1) * sizeof(*g->starts) +
	       g->starts[g->num] * sizeof(*g->samples);
}

uint64_t group_need(const struct dataset *ds)
{
	const uint64_t each = sizeof(uint64_t) + sizeof(uint32_t) +
			      sizeof(int64_t) + sizeof(uint32_t);

	return sizeof(struct group) + sizeof(uint32_t) +
	       min_u64(ds->format.samples, GROUP_SAMPLES_MAX) * each;
}

bool group_find(const struct group *g, int64_t value, uint64_t *ordinal)
{
	uint64_t low = 0, high = g->num, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (g->values[mid] < value)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == g->num || g->values[low] != value)
		return false;
	*ordinal = low;
	return true;
}

bool group_has(const struct group *g, uint64_t ordinal, uint64_t sample)
{
	uint64_t low = g->starts[ordinal], high = g->starts[ordinal + 1], mid;
	uint64_t end = high;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (g->samples[mid] < sample)
			low = mid + 1;
		else
			high = mid;
	}
	return low < end && g->samples[low] == sample;
}
