/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a kind of object as a table: the offset of each number, and
   its name in JSON and in OpenMetrics. Header only. */
#ifndef FS_BASE_METRICS_METRIC_H
#define FS_BASE_METRICS_METRIC_H

#include <stddef.h>

#include "fs/base/metrics/histogram.h"

enum metric_type {
	COUNTER,
	GAUGE,
	RATIO,
	SECONDS, /* a counter of nanoseconds */
	TIMES,	 /* a histogram, of nanoseconds; not in JSON */
};

struct metric {
	/* The path in stats.json, below the object of the table; NULL: not in
	   JSON. */
	const char *path;
	/* The name in OpenMetrics, between "betonfs_" and "_total"; NULL: not
	   there. */
	const char *name;
	const char *unit; /* the name must end with it; NULL: none */
	enum metric_type type;
	size_t at; /* offset of a uint64_t, double or metric_times */
	const char *help;
};

struct metric_times {
	uint64_t sum_ns;
	uint64_t counts[HISTOGRAM_BUCKETS];
};

static inline uint64_t metric_count(const struct metric *m, const void *thing)
{
	return *(const uint64_t *)((const char *)thing + m->at);
}

/* The value of a RATIO or of SECONDS. */
static inline double metric_real(const struct metric *m, const void *thing)
{
	const void *at = (const char *)thing + m->at;

	return m->type == RATIO ? *(const double *)at
				: 1e-9 * (double)*(const uint64_t *)at;
}

static inline const struct metric_times *metric_times(const struct metric *m,
						      const void *thing)
{
	return (const void *)((const char *)thing + m->at);
}

#endif
