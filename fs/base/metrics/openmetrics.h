/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of metrics as text of OpenMetrics 1.0. */
#ifndef FS_BASE_METRICS_OPENMETRICS_H
#define FS_BASE_METRICS_OPENMETRICS_H

#include <stdio.h>

#include "fs/base/metrics/metric.h"

/* The objects that have the metrics of a table: one, or many with labels. */
struct openmetrics_family {
	const struct metric *rows;
	size_t num_rows;
	const void *things;
	size_t size; /* of one object */
	size_t n;
	/* Writes the labels of an object by openmetrics_label(). */
	void (*labels)(FILE *out, const void *thing);
};

/* Writes one more label. */
void openmetrics_label(FILE *out, const char *name, const char *value);

/* Every sample gets a label with the mountpoint, which is UTF-8. */
void openmetrics_put(FILE *out, const struct openmetrics_family *family,
		     const char *mountpoint);
void openmetrics_end(FILE *out);

#endif
