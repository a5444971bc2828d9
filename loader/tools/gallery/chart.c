/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/gallery/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "loader/tools/gallery/bins.h"
#include "loader/tools/ui/html.h"

enum {
	TICKS = 4,	  /* below a histogram, at most */
	TICK_LENGTH = 11, /* characters that fit below a tick */
	CLASSES_ALL = 32, /* up to so many classes have a bar each */
	CLASSES_TOP = 20, /* bars, if there are more classes */
	PROFILE = 68,	  /* columns, 5 units of the picture each */
};

/* Larger doubles cannot represent every integer. */
#define WHOLE_MAX 9007199254740992.0

/* --- numbers ------------------------------------------------------------- */

const char *chart_integer(int64_t x, char text[CHART_NUMBER_SIZE])
{
	text[0] = '-';
	html_count(x < 0 ? 0 - (uint64_t)x : (uint64_t)x, text + (x < 0));
	return text;
}

const char *chart_number(enum chart_unit unit, double x,
			 char text[CHART_NUMBER_SIZE])
{
	if (unit == CHART_BYTES)
		return html_bytes(x, text);
	if (unit == CHART_REAL || fabs(x) > WHOLE_MAX) {
		snprintf(text, CHART_NUMBER_SIZE, "%.4g", x + 0.0);
		return text;
	}
	chart_integer((int64_t)x, text);
	if (unit == CHART_PIXELS)
		strcat(text, " px");
	return text;
}

/* The lower bound of bin i as text. Rounding errors near 0 are 0. */
static const char *bound_text(const struct bins *b, enum chart_unit unit,
			      size_t i, char text[CHART_NUMBER_SIZE])
{
	double x = b->first + (double)i * b->width;

	return chart_number(unit, fabs(x) < b->width / 1e6 ? 0 : x, text);
}

/* --- histograms ---------------------------------------------------------- */

static void fill_column(const struct bins *b, enum chart_unit unit, size_t i,
			struct html_column *c)
{
	char from[CHART_NUMBER_SIZE], to[CHART_NUMBER_SIZE];
	char n[HTML_NUMBER_SIZE];
	bool below = !i && b->more_below;
	bool above = i + 1 == b->n && b->more_above;
	bool single = b->width == 1 && unit != CHART_REAL && !below && !above;

	c->value = (double)b->count[i];
	html_count(b->count[i], n);
	bound_text(b, unit, i, from);
	bound_text(b, unit, i + 1, to);
	if (single)
		snprintf(c->title, sizeof(c->title), "%.40s: %.30s", from, n);
	else
		snprintf(c->title, sizeof(c->title), "%.28s to %.28s: %.28s",
			 below ? "less" : from, above ? "more" : to, n);
	if (i % ((b->n + TICKS - 1) / TICKS))
		return;
	if (strlen(from) > TICK_LENGTH)
		snprintf(c->tick, sizeof(c->tick), "%.3g",
			 b->first + (double)i * b->width);
	else
		snprintf(c->tick, sizeof(c->tick), "%.30s", from);
}

static void draw_histogram(FILE *out, const char *title, enum chart_unit unit,
			   const struct bins *b)
{
	struct html_column columns[BINS_MAX] = { 0 };

	for (size_t i = 0; i < b->n; i++)
		fill_column(b, unit, i, &columns[i]);
	html_columns(out, title, columns, b->n);
}

static void begin_card(FILE *out, const char *title)
{
	html_print(out, "<figure class=\"card\"><figcaption>%s</figcaption>\n",
		   title);
}

static void write_range(FILE *out, enum chart_unit unit, const struct series *s)
{
	char least[CHART_NUMBER_SIZE], middle[CHART_NUMBER_SIZE];
	char most[CHART_NUMBER_SIZE], n[HTML_NUMBER_SIZE];

	fprintf(out, "<p>median %s, %s to %s; %s values</p>",
		chart_number(unit, s->v[s->n / 2], middle),
		chart_number(unit, s->v[0], least),
		chart_number(unit, s->v[s->n - 1], most), html_count(s->n, n));
}

void chart_series(FILE *out, const char *title, enum chart_unit unit,
		  const struct series *s)
{
	char text[CHART_NUMBER_SIZE], about[160];
	struct bins b;

	if (!s->n)
		return;
	begin_card(out, title);
	if (s->v[0] == s->v[s->n - 1]) {
		fprintf(out, "<p class=\"all\">all %s</p>",
			chart_number(unit, s->v[0], text));
	} else {
		snprintf(about, sizeof(about), "histogram: %.140s", title);
		if (bins_fill(&b, s->v, s->n, unit != CHART_REAL))
			draw_histogram(out, about, unit, &b);
		write_range(out, unit, s);
	}
	fputs("</figure>\n", out);
}

/* --- classes ------------------------------------------------------------- */

/* The most frequent first; equally frequent ones in order of values. */
static int by_frequency(const void *a, const void *b)
{
	const struct census_count *x = a, *y = b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

/* A copy, the most frequent first, which the caller frees. NULL: out of
   memory. */
static struct census_count *copy_by_rank(const struct census_count *counts,
					 size_t n)
{
	struct census_count *c = malloc(n * sizeof(*c) + 1);

	if (c) {
		memcpy(c, counts, n * sizeof(*c));
		qsort(c, n, sizeof(*c), by_frequency);
	}
	return c;
}

void chart_frequencies(FILE *out, const struct census_count *counts, size_t n)
{
	cleanup_free struct census_count *c = copy_by_rank(counts, n);
	struct html_column columns[PROFILE] = { 0 };
	char most[HTML_NUMBER_SIZE], least[HTML_NUMBER_SIZE];
	char middle[HTML_NUMBER_SIZE], rank[HTML_NUMBER_SIZE];
	size_t num = min_u64(n, PROFILE);

	if (!c || n <= CLASSES_ALL)
		return;
	for (size_t i = 0; i < num; i++) {
		size_t at = i * n / num;

		columns[i].value = (double)c[at].n;
		snprintf(columns[i].title, sizeof(columns[i].title),
			 "rank %.30s: %.30s samples", html_count(at + 1, rank),
			 html_count(c[at].n, most));
	}
	snprintf(columns[0].tick, HTML_NUMBER_SIZE, "most frequent");
	snprintf(columns[num - 1].tick, HTML_NUMBER_SIZE, "rarest");
	begin_card(out, "samples per value, most frequent first");
	html_columns(out, "samples per value, most frequent first", columns,
		     num);
	fprintf(out, "<p>median %s, %s to %s samples</p></figure>\n",
		html_count(c[n / 2].n, middle), html_count(c[n - 1].n, least),
		html_count(c[0].n, most));
}

const char *chart_class(const struct field *field, int64_t value,
			char text[CHART_NUMBER_SIZE])
{
	const char *name = class_name(field->classes, value);
	char number[CHART_NUMBER_SIZE];
	size_t end = CHART_NUMBER_SIZE - 1;

	if (!name)
		return chart_integer(value, text);
	if (snprintf(text, CHART_NUMBER_SIZE, "%s %s",
		     chart_integer(value, number), name) < CHART_NUMBER_SIZE)
		return text;
	/* No part of a character at the end. */
	while (((uint8_t)text[end - 3] & 0xc0) == 0x80)
		end--;
	memcpy(text + end - 3, "…", sizeof("…"));
	return text;
}

static struct html_bar bar_of(const struct field *field,
			      const struct census_count *c, uint64_t total)
{
	char name[CHART_NUMBER_SIZE], n[HTML_NUMBER_SIZE];
	char share[HTML_NUMBER_SIZE];

	return html_bar(chart_class(field, c->value, name), (double)c->n, false,
			"%s  (%s)", html_count(c->n, n),
			html_percent((double)c->n, (double)total, share));
}

/* A line for the classes without a bar. One bar for all of them would dwarf the
   others. */
static void write_others(FILE *out, const struct census_count *c, size_t n,
			 uint64_t total)
{
	char values[HTML_NUMBER_SIZE], samples[HTML_NUMBER_SIZE];
	char share[HTML_NUMBER_SIZE];
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += c[i].n;
	fprintf(out,
		"<p class=\"others\">other classes: %s values, %s samples (%s)</p>\n",
		html_count(n, values), html_count(sum, samples),
		html_percent((double)sum, (double)total, share));
}

void chart_classes(FILE *out, const char *title, const struct field *field,
		   const struct census_count *counts, size_t n)
{
	cleanup_free struct census_count *ranked = copy_by_rank(counts, n);
	const struct census_count *c = n <= CLASSES_ALL ? counts : ranked;
	size_t num = n <= CLASSES_ALL ? n : CLASSES_TOP;
	struct html_bar bars[CLASSES_ALL];
	uint64_t total = 0;

	if (!ranked)
		return;
	for (size_t i = 0; i < n; i++)
		total += counts[i].n;
	for (size_t i = 0; i < num; i++)
		bars[i] = bar_of(field, &c[i], total);
	html_bars(out, title, bars, num);
	if (num < n)
		write_others(out, c + num, n - num, total);
}
