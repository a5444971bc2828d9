/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/metrics/rank_list.h"

#include <string.h>

#include "fs/base/util/bytes.h"

/* Adds what a rank has read of another dataset. */
static void merge_rank(struct jobs_rank *to, const struct jobs_rank *from)
{
	to->loaders += from->loaders;
	rank_figures_add(&to->all, &from->all);
	if (from->idle_s >= to->idle_s)
		return;
	to->world_size = from->world_size;
	to->idle_s = from->idle_s;
	to->all.epoch = from->all.epoch;
	to->all.number = from->all.number;
	to->last = from->last;
}

void rank_list_add(struct rank_list *list, const struct jobs_rank *rank)
{
	size_t at = list->n;

	while (at && list->of[at - 1].rank >= rank->rank)
		at--;
	if (at < list->n && list->of[at].rank == rank->rank) {
		merge_rank(&list->of[at], rank);
		return;
	}
	if (at == list->max)
		return;
	list->n = min_u64(list->n + 1, list->max);
	memmove(&list->of[at + 1], &list->of[at],
		(list->n - 1 - at) * sizeof(*list->of));
	list->of[at] = *rank;
}
