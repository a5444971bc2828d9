/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics of a mount at one time, read from its .betonfs/stats.json.
 * They are untrusted: numbers are checked to be in range, names are made
 * printable, and lists are no longer than a mount can have.
 *
 * No file in the mount stays open, so the mount can be unmounted.
 */
#ifndef LOADER_TOOLS_TOP_READING_H
#define LOADER_TOOLS_TOP_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/base/memory/budget.h"
#include "fs/base/metrics/jobs.h"

enum top_stage {
	TOP_READ,
	TOP_DECODE,
	TOP_TRANSFORM,
	TOP_UPLOAD,
	TOP_MAKERS,
	TOP_NETWORK,
	TOP_STAGES,
};

/* Times are in seconds. Sums cover all loaders that the rank has had. */
struct top_rank {
	uint64_t rank, world_size;
	uint64_t loaders; /* connected ones */
	uint64_t epoch, number;
	uint64_t idle_s; /* since a loader last reported */
	/* Between the last two reports of its loader: */
	double reported_rate, reported_wait, reported_fill;
	uint64_t batches, samples, failed_samples;
	uint64_t queue_ready, queue_capacity;
	double open_s, wait_s, trainer_s;
	double delay_s[TOP_STAGES];
};

struct top_job {
	char name[JOBS_NAME_SIZE];
	uint64_t batches, stalled, bytes;
	uint64_t connections;
	uint64_t idle_s;
	const struct top_rank *ranks; /* in the reading's `ranks` */
	size_t num_ranks;
};

/* Further datasets behind URLs are not read. */
enum { TOP_NETWORKS_MAX = 64 };

/* A dataset behind a URL. Counts are since the start of the daemon. */
struct top_network {
	char dataset[JOBS_NAME_SIZE];
	uint64_t rate, payload_bytes; /* bytes/s, bytes */
	double latency_s;
	uint64_t in_flight, depth, waiting;
	uint64_t requests, retries, throttled, failures;
	uint64_t is_out; /* the server does not answer */
	uint64_t tier_size, tier_stored, tier_limit;
};

struct top_reading {
	int64_t at_ns; /* of the monotonic clock */
	uint64_t uptime_s;
	bool is_whole; /* not one dataset of a mount of several */
	char mode[16]; /* of the cache */
	uint64_t limit, used;
	uint64_t hits, stalled, misses;
	uint64_t reads, read_bytes, delivered_bytes;
	uint64_t slot_bytes;
	/* The daemon's memory, and its parts by purpose. */
	uint64_t budget_limit, budget_used;
	uint64_t budget_by[BUDGET_USES];
	uint64_t way_batches[JOBS_WAYS], way_stalled[JOBS_WAYS];
	uint64_t way_bytes[JOBS_WAYS];
	size_t readers;
	size_t num_jobs, num_ranks;
	struct top_job jobs[JOBS_MAX];
	struct top_rank ranks[JOBS_RANKS_MAX];
	size_t num_networks;
	struct top_network networks[TOP_NETWORKS_MAX];
};

enum { TOP_WHY_SIZE = 160 };

/* Parses statistics. Free *out with free(). -EPROTO: the text is not the
   statistics of a mount. On any error, `why` contains a sentence. */
int top_reading_parse(const char *text, size_t size, int64_t at_ns,
		      struct top_reading **out, char why[TOP_WHY_SIZE]);

/* Reads the present statistics of a mount. -ENOENT: `mount` is not a mount. Any
   error may mean that it was unmounted. */
int top_reading_take(const char *mount, struct top_reading **out,
		     char why[TOP_WHY_SIZE]);

const char *top_stage_name(enum top_stage stage);

/* Copies untrusted text so that a terminal can show it: replaces each byte that
   is not printable ASCII with '?', and cuts what does not fit. */
void top_printable(const char *text, char *out, size_t size);

#endif
