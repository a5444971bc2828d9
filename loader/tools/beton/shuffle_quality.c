/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/beton/shuffle_quality.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "fs/base/order/order.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/tools/ui/sort.h"

/*
 * Enough for means within one percent. The labels of 64 batches of 256 take
 * 16,384 reads.
 */
enum { BATCHES = 64, BUCKETS = 130 };

/* Parts of the dataset, and their samples. */
enum { PARTS = 64, PART_SAMPLES = 1024 };

/* Runs up to this factor longer than by chance occur by chance. */
static const double by_chance = 1.25;

static int count_classes(const uint64_t *ids, uint32_t n,
			 shuffle_quality_label *label, void *arg, double *out)
{
	cleanup_free int64_t *labels = malloc(n * sizeof(*labels) + 1);
	uint32_t distinct = 1;
	int r = labels ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < n && !r; i++)
		r = label(arg, ids[i], &labels[i]);
	if (r)
		return r;
	sort_integers(labels, n);
	for (uint32_t i = 1; i < n; i++)
		distinct += labels[i] != labels[i - 1];
	*out = distinct;
	return 0;
}

/* Returns the bucket of a gap: its power of two, forward or backward. */
static unsigned bucket_of_gap(uint64_t from, uint64_t to)
{
	uint64_t gap = to > from ? to - from : from - to;
	unsigned bits = gap ? 64 - (unsigned)__builtin_clzll(gap) : 0;

	return 2 * bits + (to > from);
}

static double gap_entropy(const uint64_t *ids, uint32_t n)
{
	unsigned counts[BUCKETS] = { 0 };
	double bits = 0, share;

	for (uint32_t i = 1; i < n; i++)
		counts[bucket_of_gap(ids[i - 1], ids[i])]++;
	for (size_t i = 0; i < BUCKETS; i++) {
		share = counts[i] / (n > 1 ? n - 1.0 : 1.0);
		if (counts[i])
			bits -= share * log2(share);
	}
	return bits;
}

static int measure_batch(const struct spec *spec, const struct order *order,
			 uint64_t number, shuffle_quality_label *label,
			 void *arg, double *out)
{
	uint32_t n = spec_batch_samples(spec, number);
	cleanup_free uint64_t *ids = malloc(n * sizeof(*ids) + 1);

	if (!ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		ids[i] = order_sample(order, number * spec->batch + i);
	if (label)
		return count_classes(ids, n, label, arg, out);
	*out = gap_entropy(ids, n);
	return 0;
}

static int measure_spec(const struct spec *spec, shuffle_quality_label *label,
			void *arg, uint64_t batches,
			struct shuffle_quality_measure *out)
{
	const struct order order = order_init(spec, 0);
	uint64_t total = spec_batches(spec), number;
	double v, sum = 0, least = INFINITY;
	int r = 0;

	for (uint64_t i = 0; i < batches && !r; i++) {
		number = (uint64_t)((unsigned __int128)i * total / batches);
		r = measure_batch(spec, &order, number, label, arg, &v);
		if (r)
			return r;
		sum += v;
		least = v < least ? v : least;
	}
	*out = (struct shuffle_quality_measure){ sum / (double)batches, least };
	return 0;
}

int shuffle_quality_measure(const struct spec *spec,
			    shuffle_quality_label *label, void *arg,
			    struct shuffle_quality *out)
{
	struct spec random = *spec;
	uint64_t batches = min_u64(BATCHES, spec_batches(spec));
	struct shuffle_quality q = { .of_labels = label != NULL,
				     .batches = batches };
	int r;

	if (!batches)
		return -ENODATA;
	if (!spec->draws)
		random.order = BETON_ORDER_RANDOM;
	r = measure_spec(spec, label, arg, batches, &q.spec);
	if (!r)
		r = measure_spec(&random, label, arg, batches, &q.random);
	if (!r)
		*out = q;
	return r;
}

/* --- the order on disk --- */

/* The labels of the inspected samples, and their neighbors. */
struct disk_look {
	int64_t *labels;
	uint64_t n;
	uint64_t neighbors; /* pairs of them */
	uint64_t changes;   /* pairs with different labels */
	bool is_ascending;
};

/* Reads the labels of samples [first, end). */
static int look_at_part(struct disk_look *look, uint64_t first, uint64_t end,
			shuffle_quality_label *label, void *arg)
{
	int64_t *l = look->labels + look->n;
	int r;

	for (uint64_t i = first; i < end; i++, l++, look->n++) {
		r = label(arg, i, l);
		if (r)
			return r;
		if (look->n && *l < l[-1])
			look->is_ascending = false;
		look->neighbors += i > first;
		look->changes += i > first && *l != l[-1];
	}
	return 0;
}

static int look_at_parts(struct disk_look *look, uint64_t samples,
			 shuffle_quality_label *label, void *arg)
{
	uint64_t parts = samples <= PARTS * PART_SAMPLES ? 1 : PARTS, first;
	uint64_t size = parts == 1 ? samples : PART_SAMPLES;
	int r = 0;

	for (uint64_t i = 0; i < parts && !r; i++) {
		first = (uint64_t)((unsigned __int128)i * (samples - size) /
				   max_u64(1, parts - 1));
		r = look_at_part(look, first, first + size, label, arg);
	}
	return r;
}

/* Returns the probability that two samples have different labels. Sorts the
   labels. */
static double odds_of_change(struct disk_look *look)
{
	double same = 0, n = (double)look->n, run;
	uint64_t from = 0;

	sort_integers(look->labels, look->n);
	for (uint64_t i = 1; i <= look->n; i++) {
		if (i < look->n && look->labels[i] == look->labels[from])
			continue;
		run = (double)(i - from);
		same += run * (run - 1);
		from = i;
	}
	return 1 - same / (n * (n - 1));
}

/* Without a change, the runs are at least as long as the parts. */
static void describe_disk(struct disk_look *look,
			  struct shuffle_quality_on_disk *out)
{
	double change = odds_of_change(look);

	out->samples = look->n;
	out->run = (double)look->neighbors / (double)max_u64(1, look->changes);
	out->shuffled_run = change > 0 ? 1 / change : out->run;
	if (change <= 0)
		out->order = DISK_UNIFORM;
	else if (look->is_ascending)
		out->order = DISK_SORTED;
	else
		out->order = out->run > by_chance * out->shuffled_run
				     ? DISK_RUNS
				     : DISK_SHUFFLED;
}

int shuffle_quality_look_at_disk(uint64_t samples, shuffle_quality_label *label,
				 void *arg, struct shuffle_quality_on_disk *out)
{
	uint64_t room = min_u64(samples, PARTS * PART_SAMPLES);
	cleanup_free int64_t *labels = malloc(room * sizeof(*labels) + 1);
	struct disk_look look = { .labels = labels, .is_ascending = true };
	int r;

	if (samples < 2)
		return -ENODATA;
	if (!labels)
		return -ENOMEM;
	r = look_at_parts(&look, samples, label, arg);
	if (!r)
		describe_disk(&look, out);
	return r;
}
