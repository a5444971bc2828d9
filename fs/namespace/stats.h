/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics of a mount since it was mounted, as text: JSON, and
 * OpenMetrics 1.0 for Prometheus, both from one table. Thread-safe; the caller
 * frees the texts.
 */
#ifndef FS_NAMESPACE_STATS_H
#define FS_NAMESPACE_STATS_H

#include "fs/engine/engine.h"
#include "fs/metrics/jobs.h"

/* The sources of the figures; all outlive the statistics. */
struct stats {
	struct engine *engine;
	struct jobs *jobs;
	const char *mountpoint;
	time_t started; /* stats_now() at the mount */
	/* The name of a dataset's directory; empty: there is only one. */
	const char *(*directory_of)(const void *arg, const struct dataset *ds);
	const void *arg;
};

/* Seconds of the monotonic clock. */
time_t stats_now(void);

int stats_json(const struct stats *stats, char **out);
int stats_metrics(const struct stats *stats, char **out);
/* The statistics of one job. -ESTALE: the mount no longer remembers it. */
int stats_job(const struct stats *stats, uint64_t number, char **out);

#endif
