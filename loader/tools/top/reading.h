/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a mount tells of itself at one time, out of its .betonfs/stats.json.
 * Nothing of it is believed: numbers are in range, names are printable, and
 * there are no more of them than a mount can have.
 *
 * Nothing in the mount stays open, so that it can be unmounted meanwhile.
 */
#ifndef LOADER_TOOLS_TOP_READING_H
#define LOADER_TOOLS_TOP_READING_H

#include <stddef.h>
#include <stdint.h>

#include "fs/metrics/jobs.h"

enum top_stage {
	TOP_READ,
	TOP_DECODE,
	TOP_TRANSFORM,
	TOP_UPLOAD,
	TOP_STAGES,
};

/* Times are in seconds; sums are of all loaders that the rank has had. */
struct top_rank {
	uint64_t rank, world;
	uint64_t loaders; /* that are connected */
	uint64_t epoch, number;
	uint64_t idle_s; /* since a loader told anything */
	/* Of the time between the last two words. */
	double told_rate, told_wait, told_fill;
	uint64_t batches, samples, failed_rows;
	uint64_t queue_ready, queue_places;
	double open_s, wait_s, trainer_s;
	double delay_s[TOP_STAGES];
};

struct top_job {
	char name[JOBS_NAME_SIZE];
	uint64_t batches, late, bytes;
	uint64_t connections;
	uint64_t idle_s;
	const struct top_rank *ranks; /* of the reading's */
	size_t num_ranks;
};

struct top_reading {
	int64_t at_ns; /* of the monotonic clock */
	uint64_t uptime_s;
	char mode[16]; /* of the cache */
	uint64_t limit, used;
	uint64_t hits, late, misses;
	uint64_t reads, read_bytes, delivered_bytes;
	uint64_t slot_bytes;
	uint64_t way_batches[JOBS_WAYS], way_late[JOBS_WAYS];
	uint64_t way_bytes[JOBS_WAYS];
	size_t readers;
	size_t num_jobs, num_ranks;
	struct top_job jobs[JOBS_MAX];
	struct top_rank ranks[JOBS_RANKS_MAX];
};

enum { TOP_WHY_SIZE = 160 };

/* *out is for free(). -EPROTO: it is not what a mount tells. With any error,
   `why` is a sentence. */
int top_reading_parse(const char *text, size_t size, int64_t at_ns,
		      struct top_reading **out, char why[TOP_WHY_SIZE]);

/* The same from a mount, as it is now. -ENOENT: it is none; any error may mean
   that it went away. */
int top_reading_take(const char *mount, struct top_reading **out,
		     char why[TOP_WHY_SIZE]);

const char *top_stage_name(enum top_stage stage);

/* Text of others, as a terminal may have it: bytes that are not printable ASCII
   become '?', and what does not fit is cut. */
void top_printable(const char *text, char *out, size_t size);

#endif
