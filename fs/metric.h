/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be told of a thing, as a table: where the number is, what it is
 * called in JSON and in OpenMetrics. Header only.
 */
#ifndef FS_METRIC_H
#define FS_METRIC_H

#include <stddef.h>
#include <stdint.h>

enum metric_type { COUNTER, GAUGE, RATIO };

struct metric {
	/* In stats.json, from the object that the table is about; NULL: not
	   there. */
	const char *path;
	/* In metrics, after "betonfs_" and before "_total"; NULL: not there. */
	const char *name;
	const char *unit; /* with which the name must end; NULL: none */
	enum metric_type type;
	size_t at; /* of a uint64_t, or of a RATIO's double */
	const char *help;
};

static inline uint64_t metric_count(const struct metric *m, const void *thing)
{
	return *(const uint64_t *)((const char *)thing + m->at);
}

static inline double metric_ratio(const struct metric *m, const void *thing)
{
	return *(const double *)((const char *)thing + m->at);
}

#endif
