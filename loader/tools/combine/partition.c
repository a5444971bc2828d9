/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/combine/partition.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/rng.h"

static int open_group(struct dataset *ds, uint32_t field, struct group **out)
{
	int r = group_open(ds, field, out);

	return r == -ENOMEM ? log_no_memory(ds->log, dataset_path(ds)) : r;
}

static int allocate_starts(const struct dataset *ds, size_t num,
			   struct partition *p)
{
	p->num = num;
	p->starts = calloc(num + 1, sizeof(*p->starts));
	return p->starts ? 0 : log_no_memory(ds->log, dataset_path(ds));
}

void partition_fini(struct partition *p)
{
	/* The samples of a group are its own. */
	if (!p->group)
		free(p->samples);
	group_close(p->group);
	free(p->starts);
	*p = (struct partition){ .num = 0 };
}

int partition_by_value(struct dataset *ds, uint32_t field,
		       struct partition *out)
{
	struct group *g;
	int r = open_group(ds, field, &g);

	if (r)
		return r;
	out->group = g;
	out->samples = g->samples;
	if (g->num > PARTITION_MAX) {
		log_error(ds->log,
			  "%s: field '%s' has %llu values, one file each: at "
			  "most %d are supported",
			  dataset_path(ds), ds->format.fields[field].name,
			  (unsigned long long)g->num, PARTITION_MAX);
		return -EINVAL;
	}
	r = allocate_starts(ds, g->num, out);
	for (size_t i = 0; !r && i <= g->num; i++)
		out->starts[i] = g->starts[i];
	return r;
}

int partition_by_number(struct dataset *ds, uint64_t num, struct partition *out)
{
	uint64_t n = ds->format.samples;
	int r;

	if (num > n) {
		log_error(ds->log,
			  "%s: has %llu samples, too few for %llu files",
			  dataset_path(ds), (unsigned long long)n,
			  (unsigned long long)num);
		return -EINVAL;
	}
	r = allocate_starts(ds, num, out);
	for (uint64_t i = 0; !r && i <= num; i++)
		out->starts[i] = (uint64_t)((unsigned __int128)n * i / num);
	return r;
}

/* --- shares -------------------------------------------------------------- */

struct partition_draw {
	const struct partition_shares *shares;
	uint8_t *part_of;		       /* the part of each sample */
	uint64_t counts[PARTITION_SHARES_MAX]; /* of samples in each part */
	double ends[PARTITION_SHARES_MAX];     /* sums of shares */
};

/* Returns how many of the first `n` samples belong to the parts up to `part`,
   if the shares were exact. */
static uint64_t share_of(const struct partition_draw *d, size_t part,
			 uint64_t n)
{
	if (part + 1 == d->shares->num)
		return n;
	return (uint64_t)(d->ends[part] * (double)n + 0.5);
}

/*
 * Divides the samples [first, first + n) of a list, which continues the lists
 * before it: what was rounded down in one is rounded up in another. NULL:
 * sample i is at i.
 */
static void divide(struct partition_draw *d, const uint32_t *list,
		   uint64_t first, uint64_t n, uint64_t key)
{
	struct permutation p = permutation_init(n, key);
	uint64_t from = 0, to;

	for (size_t part = 0; part < d->shares->num; part++) {
		to = share_of(d, part, first + n) - share_of(d, part, first);
		to = min_u64(max_u64(to, from), n);
		for (uint64_t i = from; i < to; i++) {
			uint64_t at = first + permutation_at(&p, i);

			d->part_of[list ? list[at] : at] = (uint8_t)part;
		}
		d->counts[part] += to - from;
		from = to;
	}
}

static int divide_all(struct dataset *ds, struct partition_draw *d)
{
	const struct partition_shares *s = d->shares;
	struct group *g;
	int r;

	if (s->stratify < 0) {
		divide(d, NULL, 0, ds->format.samples, s->seed);
		return 0;
	}
	r = open_group(ds, (uint32_t)s->stratify, &g);
	if (r)
		return r;
	for (uint64_t k = 0; k < g->num; k++)
		divide(d, g->samples, g->starts[k],
		       g->starts[k + 1] - g->starts[k],
		       rng_mix(s->seed ^ rng_mix((uint64_t)g->values[k])));
	group_close(g);
	return 0;
}

/* Lists the samples of each part. */
static int list_parts(const struct dataset *ds, const struct partition_draw *d,
		      struct partition *out)
{
	uint64_t n = ds->format.samples;
	cleanup_free uint64_t *next = calloc(out->num, sizeof(*next));

	out->samples = calloc(n + 1, sizeof(*out->samples));
	if (!next || !out->samples)
		return log_no_memory(ds->log, dataset_path(ds));
	for (size_t k = 0; k < out->num; k++) {
		if (!d->counts[k]) {
			log_error(ds->log,
				  "%s: has %llu samples, too few: part %zu "
				  "would have none",
				  dataset_path(ds), (unsigned long long)n, k);
			return -EINVAL;
		}
		next[k] = out->starts[k];
		out->starts[k + 1] = out->starts[k] + d->counts[k];
	}
	for (uint64_t i = 0; i < n; i++)
		out->samples[next[d->part_of[i]]++] = (uint32_t)i;
	return 0;
}

static int draw_parts(struct dataset *ds, struct partition_draw *d,
		      struct partition *out)
{
	double sum = 0;
	int r = allocate_starts(ds, d->shares->num, out);

	d->part_of = calloc(ds->format.samples + 1, sizeof(*d->part_of));
	if (!r && !d->part_of)
		r = log_no_memory(ds->log, dataset_path(ds));
	for (size_t k = 0; k < d->shares->num; k++)
		d->ends[k] = sum += d->shares->shares[k];
	r = r ? r : divide_all(ds, d);
	return r ? r : list_parts(ds, d, out);
}

int partition_by_share(struct dataset *ds,
		       const struct partition_shares *shares,
		       struct partition *out)
{
	struct partition_draw d = { .shares = shares };
	int r;

	if (ds->format.samples > GROUP_SAMPLES_MAX) {
		log_error(ds->log,
			  "%s: %llu samples are too many: at most %llu",
			  dataset_path(ds),
			  (unsigned long long)ds->format.samples,
			  (unsigned long long)GROUP_SAMPLES_MAX);
		return -EFBIG;
	}
	r = draw_parts(ds, &d, out);
	free(d.part_of);
	return r;
}
