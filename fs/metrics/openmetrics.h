/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of metrics as text of OpenMetrics 1.0. */
#ifndef FS_METRICS_OPENMETRICS_H
#define FS_METRICS_OPENMETRICS_H

#include <stdio.h>

#include "fs/metrics/metric.h"

/* What has the rows of a table: one thing, or many that labels tell apart. */
struct openmetrics_family {
	const struct metric *rows;
	size_t num_rows;
	const void *things;
	size_t size; /* of a thing */
	size_t n;
	/* Of each: openmetrics_label() */
	void (*labels)(FILE *out, const void *thing);
};

/* A label after another one. */
void openmetrics_label(FILE *out, const char *name, const char *value);

/* All samples have a label with the mountpoint, which is UTF-8. */
void openmetrics_put(FILE *out, const struct openmetrics_family *family,
		     const char *mountpoint);
void openmetrics_end(FILE *out);

#endif
