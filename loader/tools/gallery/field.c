/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/gallery/field.h"

#include "fs/util/bytes.h"
#include "loader/tools/gallery/chart.h"
#include "loader/tools/ui/html.h"

enum {
	HEX_BYTES = 48,
	/* Smaller images are enlarged without smoothing; pixels a side. */
	TINY = 100,
	/* Images outside the fold-out part. */
	FIRST = 24,
};

static void write_caption(FILE *out, const struct shot *shot,
			  const struct survey *s, bool mixed)
{
	const struct value *v = &shot->value;
	char size[HTML_NUMBER_SIZE], label[CHART_NUMBER_SIZE];

	fputs("<figcaption>", out);
	if (shot->has_label)
		html_print(out, "<b>%s %s</b><br>", s->label->field->stem,
			   chart_class(s->label->field, shot->label, label));
	fprintf(out, "sample %llu", (unsigned long long)shot->sample);
	if (v->width)
		fprintf(out, "<br>%u &times; %u, %s%s", v->width, v->height,
			html_bytes((double)v->size, size),
			mixed && v->mode == BETON_MODE_RAW ? ", raw" : "");
	fputs("</figcaption></figure>\n", out);
}

static void write_alt(FILE *out, const struct shot *shot,
		      const struct survey *s)
{
	char label[CHART_NUMBER_SIZE];

	fprintf(out, "sample %llu", (unsigned long long)shot->sample);
	if (shot->has_label)
		html_print(out, ", %s %s", s->label->field->stem,
			   chart_class(s->label->field, shot->label, label));
}

static void write_shot(FILE *out, const struct shot *shot,
		       const struct survey *s, bool mixed)
{
	const struct thumbnail *t = &shot->thumbnail;

	fputs("<figure>", out);
	if (shot->why[0]) {
		html_print(
			out,
			"<div class=\"broken\"><b>cannot be shown</b><br>%s</div>",
			shot->why);
	} else {
		fprintf(out, "<img%s width=\"%u\" height=\"%u\" alt=\"",
			t->width < TINY && t->height < TINY ? " class=\"tiny\""
							    : "",
			t->width, t->height);
		write_alt(out, shot, s);
		fputs("\" src=\"", out);
		html_jpeg(out, t->jpeg, t->size);
		fputs("\">", out);
	}
	write_caption(out, shot, s, mixed);
}

/* Returns whether image i is visible at first. Visible images are spread over
   all, so that they show many classes. */
static bool is_first(const struct exhibit *e, size_t i)
{
	size_t n = e->num_shots;

	return n <= FIRST || i * FIRST / n != (i + 1) * FIRST / n;
}

static void write_shots(FILE *out, const struct survey *s,
			const struct survey_field *f, const struct exhibit *e)
{
	bool mixed = f->jpegs && f->raws;
	const char *end =
		e->num_shots > FIRST ? "</div></details>\n" : "</div>\n";

	fputs("<div class=\"shots\">\n", out);
	for (size_t i = 0; i < e->num_shots; i++)
		if (is_first(e, i))
			write_shot(out, &e->shots[i], s, mixed);
	if (e->num_shots > FIRST)
		fprintf(out,
			"</div>\n<details><summary>%zu more</summary><div class=\"shots\">\n",
			e->num_shots - FIRST);
	for (size_t i = 0; i < e->num_shots; i++)
		if (!is_first(e, i))
			write_shot(out, &e->shots[i], s, mixed);
	fputs(end, out);
}

static void write_modes(FILE *out, const struct survey_field *f)
{
	const uint64_t counts[] = { f->jpegs, f->raws };
	static const char *const names[] = { "JPEG", "raw" };
	struct html_bar bars[ARRAY_LEN(counts)];
	double all = (double)(f->jpegs + f->raws);
	char n[HTML_NUMBER_SIZE], share[HTML_NUMBER_SIZE];

	if (!f->jpegs || !f->raws) {
		if (all > 0)
			fprintf(out, "<p>All images are stored as %s.</p>\n",
				names[f->jpegs == 0]);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		bars[i] = html_bar(names[i], (double)counts[i], false,
				   "%s  (%s)", html_count(counts[i], n),
				   html_percent((double)counts[i], all, share));
	html_bars(out, "How images are stored", bars, ARRAY_LEN(bars));
}

static void write_images(FILE *out, const struct survey *s,
			 const struct survey_field *f, const struct exhibit *e)
{
	write_shots(out, s, f, e);
	write_modes(out, f);
	fputs("<div class=\"cards\">\n", out);
	chart_series(out, "size as stored", CHART_BYTES,
		     &f->series[SURVEY_SIZES]);
	chart_series(out, "width", CHART_PIXELS, &f->series[SURVEY_WIDTHS]);
	chart_series(out, "height", CHART_PIXELS, &f->series[SURVEY_HEIGHTS]);
	fputs("</div>\n", out);
}

static void write_float(FILE *out, const struct survey *s,
			const struct survey_field *f, const struct exhibit *e)
{
	char n[HTML_NUMBER_SIZE];

	(void)e;
	/* Adding 0 turns -0 into 0. */
	if (f->finite)
		fprintf(out, "<p>Range %.6g to %.6g, mean %.6g.</p>\n",
			f->least + 0.0, f->most + 0.0, f->mean + 0.0);
	if (s->records > f->finite)
		fprintf(out, "<p>%s values are not finite.</p>\n",
			html_count(s->records - f->finite, n));
	fputs("<div class=\"cards\">\n", out);
	chart_series(out, "values", CHART_REAL, &f->series[SURVEY_NUMBERS]);
	fputs("</div>\n", out);
}

/* The counts of the rarest and of the most frequent value. */
static void write_balance(FILE *out, const struct census_count *c, size_t n)
{
	char least[HTML_NUMBER_SIZE], most[HTML_NUMBER_SIZE];
	uint64_t low = c[0].n, high = c[0].n;

	for (size_t i = 1; i < n; i++) {
		low = min_u64(low, c[i].n);
		high = max_u64(high, c[i].n);
	}
	if (low == high)
		fprintf(out, ", each with %s samples", html_count(low, least));
	else
		fprintf(out,
			", each with %s to %s samples, a ratio of 1 to %.3g",
			html_count(low, least), html_count(high, most),
			(double)high / (double)low);
}

static void write_int(FILE *out, const struct survey *s,
		      const struct survey_field *f, const struct exhibit *e)
{
	char text[HTML_NUMBER_SIZE];
	size_t n;
	const struct census_count *c = census_counts(f->census, &n);
	bool classes = n && n < s->records;

	(void)e;
	if (!s->records)
		return;
	fprintf(out, "<p>%s%s different value%s", n ? "" : "More than ",
		html_count(n ? n : CENSUS_MAX, text), n == 1 ? "" : "s");
	if (classes)
		write_balance(out, c, n);
	else if (n)
		fputs(", one for each sample", out);
	fputs(".</p>\n", out);
	if (classes)
		chart_classes(out, "Samples per value", f->field, c, n);
	fputs("<div class=\"cards\">\n", out);
	if (!classes)
		chart_series(out, "values", CHART_WHOLE,
			     &f->series[SURVEY_NUMBERS]);
	else
		chart_frequencies(out, c, n);
	fputs("</div>\n", out);
}

static void write_bytes(FILE *out, const struct snippet *s)
{
	size_t n = min_u64(s->n, HEX_BYTES);

	for (size_t i = 0; i < n; i++)
		fprintf(out, "%02x ", s->bytes[i]);
	if (n < s->size)
		fputs("...", out);
}

static void write_snippet(FILE *out, const struct snippet *s)
{
	size_t n = s->n < s->size ? html_whole(s->bytes, s->n) : s->n;
	char size[HTML_NUMBER_SIZE];

	fprintf(out, "<figure><figcaption>sample %llu, ",
		(unsigned long long)s->sample);
	if (s->why[0]) {
		html_print(out, "damaged</figcaption><pre>%s", s->why);
	} else {
		fprintf(out, "%s</figcaption><pre>",
			html_bytes((double)s->size, size));
		if (html_is_text(s->bytes, n)) {
			html_text_of(out, s->bytes, n);
			fputs(n < s->size ? "..." : "", out);
		} else {
			write_bytes(out, s);
		}
	}
	fputs("</pre></figure>\n", out);
}

static void write_texts(FILE *out, const struct survey *s,
			const struct survey_field *f, const struct exhibit *e)
{
	(void)s;
	fputs("<div class=\"texts\">\n", out);
	for (size_t i = 0; i < e->num_snippets; i++)
		write_snippet(out, &e->snippets[i]);
	fputs("</div>\n<div class=\"cards\">\n", out);
	chart_series(out, "size", CHART_BYTES, &f->series[SURVEY_SIZES]);
	fputs("</div>\n", out);
}

/* --- fields -------------------------------------------------------------- */

typedef void write_fn(FILE *out, const struct survey *s,
		      const struct survey_field *f, const struct exhibit *e);

/* NULL: the page shows nothing of such values. */
static write_fn *writer_of(const struct field *f)
{
	switch (f->type->column) {
	case COLUMN_IMAGE:
		return write_images;
	case COLUMN_RAGGED:
		return write_texts;
	case COLUMN_SCALAR:
		return field_is_integer(f) ? write_int : write_float;
	case COLUMN_ARRAY:
	case COLUMN_RECORD:
		break;
	}
	return NULL;
}

void gallery_field_holds(FILE *out, const struct field *f)
{
	fputs(f->type->words, out);
	if (field_is_array(f)) {
		html_print(out, ", <code>%s</code> (", f->dtype);
		for (uint32_t i = 0; i < f->ndim; i++)
			fprintf(out, "%s%llu", i ? ", " : "",
				(unsigned long long)f->shape[i]);
		fputs(f->ndim == 1 ? ",)" : ")", out);
	}
	if (f->unusable)
		html_print(out, "; not usable: %s", f->unusable);
}

void gallery_field_write(FILE *out, const struct survey *s,
			 const struct survey_field *f, const struct exhibit *e)
{
	write_fn *write = writer_of(f->field);

	if (!write || f->field->unusable)
		return;
	html_print(out, "<section><h2>%s <small>%s</small></h2>\n",
		   f->field->stem, f->field->type->words);
	write(out, s, f, e);
	fputs("</section>\n", out);
}
