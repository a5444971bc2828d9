/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/gallery/census.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/util/cleanup.h"
#include "loader/tools/ui/sort.h"

struct census {
	struct census_count *counts; /* in ascending order of values */
	size_t num_counts;
	size_t num_waiting;
	bool full;
	int64_t waiting[CENSUS_MAX]; /* unordered, not counted yet */
};

int census_open(struct census **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void census_close(struct census *c)
{
	if (!c)
		return;
	free(c->counts);
	free(c);
}

/* Counts the waiting values equal to `value` from *at on, and moves *at behind
   them. */
static uint64_t take_equal(const struct census *c, size_t *at, int64_t value)
{
	size_t first = *at;

	while (*at < c->num_waiting && c->waiting[*at] == value)
		++*at;
	return *at - first;
}

/* Merges the counts and the waiting values, both sorted, into `to`. Returns the
   number of counts. */
static size_t merge_waiting(const struct census *c, struct census_count *to)
{
	size_t i = 0, at = 0, n = 0;

	while (i < c->num_counts || at < c->num_waiting) {
		if (at == c->num_waiting ||
		    (i < c->num_counts && c->counts[i].value <= c->waiting[at]))
			to[n] = c->counts[i++];
		else
			to[n] = (struct census_count){ c->waiting[at], 0 };
		to[n].n += take_equal(c, &at, to[n].value);
		n++;
	}
	return n;
}

int census_end(struct census *c)
{
	cleanup_free struct census_count *both = NULL;
	struct census_count *old = c->counts;

	if (c->full || !c->num_waiting)
		return 0;
	both = malloc((c->num_counts + c->num_waiting) * sizeof(*both));
	if (!both)
		return -ENOMEM;
	sort_integers(c->waiting, c->num_waiting);
	c->num_counts = merge_waiting(c, both);
	c->num_waiting = 0;
	c->counts = steal(both);
	c->full = c->num_counts > CENSUS_MAX;
	free(old);
	return 0;
}

int census_add(struct census *c, int64_t value)
{
	if (c->full)
		return 0;
	c->waiting[c->num_waiting++] = value;
	return c->num_waiting == CENSUS_MAX ? census_end(c) : 0;
}

const struct census_count *census_counts(const struct census *c, size_t *n)
{
	*n = c->full ? 0 : c->num_counts;
	return c->full ? NULL : c->counts;
}
