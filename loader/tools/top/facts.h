/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a view. Text and JSON both use them, so a value that is added
   appears in both. */
#ifndef LOADER_TOOLS_TOP_FACTS_H
#define LOADER_TOOLS_TOP_FACTS_H

#include "loader/tools/top/view.h"
#include "loader/tools/ui/fact.h"

/* Columns of the table of jobs and ranks, from the left. */
enum top_column {
	COLUMN_NAME = 1,
	COLUMN_SPEED,
	COLUMN_EPOCH,
	COLUMN_BATCH,
	COLUMN_QUEUE,
	COLUMN_WAIT,
	COLUMN_FAILED,
	COLUMN_VERDICT,
	COLUMNS,
};

/* Least widths, in characters. */
enum { NAME_MIN = 12, BAR_MIN = 5 /* inside its brackets */, VERDICT_MIN = 10 };

/* A line of the table: a job, or a rank that is one of several. */
struct top_row {
	const struct top_job_view *job;
	const struct top_rank_view *rank; /* NULL: the job's own line */
	const char *name;
	const char *verdict;
	char text[TOP_SENTENCE_SIZE];
	const char *waits_for; /* NULL: nothing */
	uint64_t connections;
	double batches_per_s, bytes_per_s, stalled_share;
	/* For a job: the figures of its worst rank, but sums over all ranks. */
	struct top_rank now;
	struct top_rank_view seen;
	bool is_placed; /* `now` has an epoch and a batch */
	bool has_ranks;
	bool has_rates;
};

/* `rank` is NULL for the job itself. The row points into the view. */
void top_row_fill(const struct top_view *v, const struct top_job_view *job,
		  const struct top_rank_view *rank, struct top_row *out);

/* Bits of struct fact's `whose`: */
enum { TOP_JOB = 1, TOP_RANK = 2 };

extern const struct fact top_row_facts[];
/* About struct top_view: */
extern const struct fact top_delivery_facts[];
extern const struct fact top_value_facts[];
extern const struct fact top_disk_facts[];
/* About struct top_network_view: */
extern const struct fact top_network_facts[];
/* About struct top_reading: */
extern const struct fact top_cache_facts[];
extern const struct fact top_budget_facts[];
extern const struct fact top_use_facts[]; /* by purpose */

#endif
