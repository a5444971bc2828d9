/* SPDX-License-Identifier: Apache-2.0 */
/* A table of the reports of one job's ranks, ordered by rank. If a rank reads
   several datasets, they are added up in one row. */
#ifndef FS_BASE_METRICS_RANK_LIST_H
#define FS_BASE_METRICS_RANK_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "fs/base/metrics/rank_figures.h"

/* Bytes of a job's name, with its NUL. */
enum { JOBS_NAME_SIZE = 65 };

struct jobs_rank {
	char job[JOBS_NAME_SIZE];
	uint64_t rank;
	uint64_t world_size;
	uint64_t loaders; /* connected ones */
	uint64_t idle_s;  /* since the last report */
	struct rank_figures all;
	struct rank_figures last; /* between its last two reports */
};

struct rank_list {
	struct jobs_rank *of;
	size_t n;
	size_t max;
};

/* Inserts a rank by its number, or adds it to the row of this number. If no row
   is free, drops the rank with the greatest number. */
void rank_list_add(struct rank_list *list, const struct jobs_rank *rank);

#endif
