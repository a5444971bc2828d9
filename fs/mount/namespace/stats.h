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

#include "fs/mount/namespace/stats_facts.h"

int stats_json(const struct stats *stats, const struct stats_subject *subject,
	       char **out);
int stats_metrics(const struct stats *stats,
		  const struct stats_subject *subject, char **out);
/* The statistics of one job. -ESTALE: the mount no longer remembers it. */
int stats_job(const struct stats *stats, const struct stats_subject *subject,
	      uint64_t number, char **out);

#endif
