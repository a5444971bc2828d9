/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/metrics/openmetrics.h"

#include <stdbool.h>

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

/* By enum metric_type. */
static const char *const types[] = { "counter", "gauge", "gauge", "counter",
				     "histogram" };

static void put_head(FILE *out, const struct metric *m)
{
	fprintf(out, "# TYPE betonfs_%s %s\n", m->name, types[m->type]);
	if (m->unit)
		fprintf(out, "# UNIT betonfs_%s %s\n", m->name, m->unit);
	fprintf(out, "# HELP betonfs_%s %s\n", m->name, m->help);
}

/* The object whose samples are written. */
struct openmetrics_place {
	const struct openmetrics_family *family;
	const char *mountpoint;
	const void *thing;
};

/*
 * Writes a name and its labels, but not the end of the list of labels. Every
 * sample names the mountpoint, for the files of several mounts of a machine are
 * collected together.
 */
static void put_name(FILE *out, const struct openmetrics_place *place,
		     const struct metric *m, const char *suffix)
{
	fprintf(out, "betonfs_%s%s{mountpoint=\"", m->name, suffix);
	put_escaped(out, place->mountpoint);
	fputc('"', out);
	place->family->labels(out, place->thing);
}

static void put_count(FILE *out, uint64_t n)
{
	fprintf(out, "} %llu\n", (unsigned long long)n);
}

/* The first bucket of 4^n times 16 microseconds. */
static unsigned bucket_of(unsigned n)
{
	return histogram_bucket(UINT64_C(1) << (14 + 2 * n));
}

enum { BOUNDS = 11 }; /* up to 17 seconds */

static void put_times(FILE *out, const struct openmetrics_place *place,
		      const struct metric *m)
{
	const struct metric_times *t = metric_times(m, place->thing);
	uint64_t below = 0;
	unsigned i = 0;

	for (unsigned n = 0; n < BOUNDS; n++) {
		for (; i < bucket_of(n); i++)
			below += t->counts[i];
		put_name(out, place, m, "_bucket");
		fprintf(out, ",le=\"%.10g\"",
			1e-9 * (double)histogram_bound(i));
		put_count(out, below);
	}
	for (; i < HISTOGRAM_BUCKETS; i++)
		below += t->counts[i];
	put_name(out, place, m, "_bucket");
	fputs(",le=\"+Inf\"", out);
	put_count(out, below);
	put_name(out, place, m, "_count");
	put_count(out, below);
	put_name(out, place, m, "_sum");
	fprintf(out, "} %.9f\n", 1e-9 * (double)t->sum_ns);
}

static void put_sample(FILE *out, const struct openmetrics_place *place,
		       const struct metric *m)
{
	bool is_counter = m->type == COUNTER || m->type == SECONDS;

	if (m->type == TIMES) {
		put_times(out, place, m);
		return;
	}
	put_name(out, place, m, is_counter ? "_total" : "");
	if (m->type == COUNTER || m->type == GAUGE)
		put_count(out, metric_count(m, place->thing));
	else
		fprintf(out, "} %.*f\n", m->type == RATIO ? 6 : 9,
			metric_real(m, place->thing));
}

/* OpenMetrics requires the samples of one name to be adjacent. */
void openmetrics_put(FILE *out, const struct openmetrics_family *family,
		     const char *mountpoint)
{
	struct openmetrics_place place = { family, mountpoint, NULL };

	for (size_t i = 0; i < family->num_rows; i++) {
		if (!family->rows[i].name)
			continue;
		put_head(out, &family->rows[i]);
		for (size_t k = 0; k < family->n; k++) {
			place.thing =
				(const char *)family->things + k * family->size;
			put_sample(out, &place, &family->rows[i]);
		}
	}
}

void openmetrics_end(FILE *out)
{
	fputs("# EOF\n", out);
}
