/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/openmetrics.h"

static void put_escaped(FILE *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '"' || *value == '\\')
			fprintf(out, "\\%c", *value);
		else
			fputc(*value, out);
	}
}

void openmetrics_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, ",%s=\"", name);
	put_escaped(out, value);
	fputc('"', out);
}

static void put_head(FILE *out, const struct metric *m)
{
	fprintf(out, "# TYPE betonfs_%s %s\n", m->name,
		m->type == COUNTER ? "counter" : "gauge");
	if (m->unit)
		fprintf(out, "# UNIT betonfs_%s %s\n", m->name, m->unit);
	fprintf(out, "# HELP betonfs_%s %s\n", m->name, m->help);
}

/* The mountpoint is told everywhere: the files of several mounts of a machine
   are collected together. */
static void put_sample(FILE *out, const struct openmetrics_family *family,
		       const struct metric *m, const char *mountpoint,
		       const void *thing)
{
	fprintf(out, "betonfs_%s%s{mountpoint=\"", m->name,
		m->type == COUNTER ? "_total" : "");
	put_escaped(out, mountpoint);
	fputc('"', out);
	family->labels(out, thing);
	if (m->type == RATIO)
		fprintf(out, "} %.6f\n", metric_ratio(m, thing));
	else
		fprintf(out, "} %llu\n",
			(unsigned long long)metric_count(m, thing));
}

/* Samples of one name stand together. */
void openmetrics_put(FILE *out, const struct openmetrics_family *family,
		     const char *mountpoint)
{
	for (size_t i = 0; i < family->num_rows; i++) {
		const struct metric *m = &family->rows[i];

		if (!m->name)
			continue;
		put_head(out, m);
		for (size_t k = 0; k < family->n; k++)
			put_sample(out, family, m, mountpoint,
				   (const char *)family->things +
					   k * family->size);
	}
}

void openmetrics_end(FILE *out)
{
	fputs("# EOF\n", out);
}
