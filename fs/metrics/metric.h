/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be told of a thing, as a table: where the number is, what it is
 * called in JSON and in OpenMetrics. Header only.
 */
#ifndef FS_METRICS_METRIC_H
#define FS_METRICS_METRIC_H

#include <stddef.h>

#include "fs/metrics/histogram.h"

enum metric_type {
	COUNTER,
	GAUGE,
	RATIO,
	SECONDS, /* a counter of nanoseconds */
	TIMES,	 /* a histogram, of nanoseconds; not in JSON */
};

struct metric {
	/* In stats.json, from the object that the table is about; NULL: not
	   there. */
	const char *path;
	/* In metrics, after "betonfs_" and before "_total"; NULL: not there. */
	const char *name;
	const char *unit; /* with which the name must end; NULL: none */
	enum metric_type type;
	size_t at; /* of a uint64_t, a RATIO's double, or struct metric_times */
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

/* What is no whole number: a RATIO, or SECONDS. */
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
