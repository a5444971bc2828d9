/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of a report about a mount, all read at one time, as plain
 * numbers and names. stats.h has their forms as text. Thread-safe.
 */
#ifndef FS_MOUNT_NAMESPACE_STATS_FACTS_H
#define FS_MOUNT_NAMESPACE_STATS_FACTS_H

#include "fs/base/metrics/jobs.h"
#include "fs/base/metrics/openmetrics.h"
#include "fs/base/metrics/rings_count.h"
#include "fs/base/order/spec_text.h"
#include "fs/data/engine/engine.h"
#include "fs/source/object/disk.h"

/* The sources of the figures; all outlive the statistics. */
struct stats {
	struct engine *engine;
	struct jobs *jobs;
	const struct rings_count *rings; /* NULL: none */
	const char *mountpoint;
	time_t started; /* stats_now() at the mount */
	/* The name of a dataset's directory; empty: there is only one. */
	const char *(*directory_of)(const void *arg, const struct dataset *ds);
	const void *arg;
};

/* Seconds of the monotonic clock. */
time_t stats_now(void);

/* The subject of a report. Number 0 is the whole mount. */
struct stats_subject {
	uint32_t number;
	const struct dataset *ds; /* of another number */
};

enum { STATS_STREAMS_MAX = 64 }; /* as many as a plan has */

struct stream_facts {
	char *dataset; /* owned */
	char spec[SPEC_TEXT_MAX];
	struct plan_reader reader;
	uint64_t idle_s;
	double amplification;
};

/* A dataset behind a URL. */
struct network_facts {
	char *dataset; /* owned */
	uint64_t rate, in_flight, waiting, depth, requests, connections,
		retries, stalls, hedges, hedge_bytes, throttled, wire_bytes,
		payload_bytes, failures, is_out;
	double latency, p50, p99; /* seconds */
	struct disk_stats tier;	  /* zeros: there is none */
};

struct way_facts {
	const char *name;
	struct jobs_count count;
};

struct rank_facts {
	struct jobs_rank report;
	/* Computed from the last report of the loaders. */
	double samples_per_s;
	double wait_share;
	double queue_fill;
};

/* The ranks of jobs, in the order of the jobs. */
struct stats_ranks {
	struct rank_facts *list; /* owned */
	size_t n;
};

struct stage_facts {
	const char *name;
	struct counters_sum sum;
	struct metric_times times;
	double p50, p90, p99; /* seconds */
};

enum { STATS_STAGES = ENGINE_STAGES + 1 };

/* All figures of one report, read at one time. */
struct stats_facts {
	bool is_whole; /* of the whole mount; otherwise the engine's are 0 */
	uint64_t one;
	const char *mode; /* of the cache */
	uint64_t uptime_s;
	double amplification;
	struct engine_stats engine;
	struct budget_stats budget;
	uint64_t budget_used;
	uint64_t rings, ring_answered, ring_passed_on;
	const char *rings_why; /* there are none; "": there are */
	struct stage_facts stages[STATS_STAGES];
	size_t num_stages;
	struct way_facts ways[JOBS_WAYS];
	struct stream_facts streams[STATS_STREAMS_MAX];
	size_t num_streams;
	struct network_facts *networks; /* owned */
	size_t num_networks;
	struct jobs_entry jobs[JOBS_MAX];
	size_t num_jobs;
	struct stats_ranks ranks;
};

/* Reads all figures. The caller frees them. */
int stats_facts_read(const struct stats *stats,
		     const struct stats_subject *subject,
		     struct stats_facts **out);
void stats_facts_free(struct stats_facts *facts);

/* Reads the figures of the ranks of one job, or of all: 0. The caller frees the
   list. */
int stats_ranks_read(const struct stats *stats,
		     const struct stats_subject *subject, uint64_t job,
		     struct stats_ranks *out);

/* Computes the amplification of a stream again. */
void stream_facts_update(struct stream_facts *facts);

/* Returns a name, escaped if it is not UTF-8, because both formats require
   UTF-8. The caller frees it; NULL: no memory. */
char *stats_utf8(const char *name);

#endif
