/* SPDX-License-Identifier: Apache-2.0 */
/* The activity of a mount between two readings, and the bottleneck that it
   suggests. Pure arithmetic. */
#ifndef LOADER_TOOLS_TOP_VIEW_H
#define LOADER_TOOLS_TOP_VIEW_H

#include <stdbool.h>

#include "loader/tools/top/reading.h"

enum { TOP_SENTENCE_SIZE = 64 };

enum top_verdict {
	TOP_NOT_DATA, /* data is not the bottleneck */
	TOP_WAITS,    /* the trainer waits for a stage */
	TOP_IDLE, /* loaders are connected, but the trainer takes no batches */
	TOP_SILENT,  /* loaders are connected, but never reported */
	TOP_FILES,   /* batch files are read by programs that do not report */
	TOP_STALLED, /* the same, and batches stall */
	TOP_ENDED,
	TOP_VERDICTS,
};

enum top_sort { TOP_BY_NAME, TOP_BY_SPEED, TOP_BY_WAIT, TOP_BY_FAILED };

struct top_rank_view {
	const struct top_rank *now;
	bool is_active; /* false: all members below are 0 */
	double samples_per_s;
	double wait_share; /* of the trainer's time */
	double queue_fill;
	enum top_stage stage; /* the stage that it waited for most */
};

/* The worst rank is the one that waits most for data. If all ranks step
   together, all wait for it. */
struct top_job_view {
	const struct top_job *now;
	struct top_rank_view *ranks; /* sorted; in the view's `ranks` */
	enum top_verdict verdict;
	struct top_rank_view worst; /* `now` is NULL if no rank is active */
	bool is_alone;		    /* no other rank waits */
	double samples_per_s;
	uint64_t failed_samples;
	double batches_per_s, bytes_per_s;
	double stalled_share;
};

struct top_network_view {
	struct top_network now;
	bool has_name; /* a mount of one dataset has no directory for it */
	bool is_out;
	bool has_rate;
	bool is_measured;   /* now.rate */
	double bytes_per_s; /* between the two readings */
	double latency_ms;
	bool has_tier;
	char tier[2 * TOP_SENTENCE_SIZE]; /* in words; "": none */
};

struct top_view {
	const struct top_reading *now;
	double seconds; /* between the two readings; 0: there is only one */
	bool has_rates; /* there are two */
	double values_per_s;
	double hit_share, stalled_share, miss_share; /* of values_per_s */
	double reads_per_s, read_bytes_per_s;
	double amplification; /* 0: nothing was delivered */
	bool has_amplification;
	double batches_per_s, bytes_per_s;
	double batches_stalled_share;
	size_t num_jobs;
	struct top_job_view jobs[JOBS_MAX]; /* sorted */
	struct top_rank_view ranks[JOBS_RANKS_MAX];
	size_t num_networks;
	struct top_network_view networks[TOP_NETWORKS_MAX];
};

/*
 * Compares two readings. `before` may be NULL or a reading of another daemon.
 * The view points into `now`, which must outlive it. 0, and free *out with
 * free(); or -ENOMEM.
 */
int top_view_make(const struct top_reading *before,
		  const struct top_reading *now, enum top_sort sort,
		  struct top_view **out);

/* The verdict in one word. */
const char *top_verdict_name(enum top_verdict verdict);

/* Describes a job, or a rank that is one of several, in a sentence or, if not
   `in_full`, in a word or two. */
void top_describe_job(const struct top_job_view *job, bool in_full,
		      char out[TOP_SENTENCE_SIZE]);
void top_describe_rank(const struct top_rank_view *rank, bool in_full,
		       char out[TOP_SENTENCE_SIZE]);

#endif
