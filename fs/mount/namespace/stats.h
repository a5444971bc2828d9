/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics of a mount since it was mounted, as text: JSON, and
 * OpenMetrics 1.0 for Prometheus, both from one table (beton-metrics(7)). The
 * statistics of one of several datasets have only figures of that dataset,
 * because some users may not read the others. Thread-safe; the caller frees the
 * texts.
 */
#ifndef FS_MOUNT_NAMESPACE_STATS_H
#define FS_MOUNT_NAMESPACE_STATS_H

#include "fs/base/metrics/jobs.h"
#include "fs/base/metrics/rings_count.h"
#include "fs/data/engine/engine.h"

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

int stats_json(const struct stats *stats, const struct stats_subject *subject,
	       char **out);
int stats_metrics(const struct stats *stats,
		  const struct stats_subject *subject, char **out);
/* The statistics of one job. -ESTALE: the mount no longer remembers it. */
int stats_job(const struct stats *stats, const struct stats_subject *subject,
	      uint64_t number, char **out);

#endif
