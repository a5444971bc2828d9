/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/gallery/page.h"

#include <string.h>

#include "fs/util/bytes.h"
#include "loader/tools/ui/html.h"

static const char style[] =
#include "loader/tools/gallery/page.css.inc"
	;

static const char body[] =
#include "loader/tools/gallery/page.html.inc"
	;

static const struct survey *survey_of(const struct gallery *g)
{
	return g->survey;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* --- the dataset --------------------------------------------------------- */

/* Mean size of the inspected values, in bytes. */
static double mean_size(const struct survey_field *f)
{
	size_t n = f->series[SURVEY_SIZES].n;

	return n ? f->stored / (double)n : 0;
}

/* Mean size of a sample: its values and its metadata. */
static double mean_sample(const struct survey *s)
{
	double sum = (double)s->ds->format.itemsize;

	for (size_t i = 0; i < s->num_fields; i++)
		sum += mean_size(&s->fields[i]);
	return sum;
}

static void write_tile(FILE *out, const char *name, const char *value)
{
	fprintf(out, "<div><dt>%s</dt><dd>%s</dd></div>\n", name, value);
}

static void write_modes_tile(FILE *out, const struct survey *s)
{
	uint64_t jpegs = 0, raws = 0;
	char text[HTML_NUMBER_SIZE];

	for (size_t i = 0; i < s->num_fields; i++) {
		jpegs += s->fields[i].jpegs;
		raws += s->fields[i].raws;
	}
	if (jpegs + raws)
		write_tile(out, "images stored as JPEG",
			   html_percent((double)jpegs, (double)(jpegs + raws),
					text));
}

/* Values with damaged metadata, plus images that failed to decode. */
static uint64_t count_damage(const struct gallery *g)
{
	uint64_t n = 0;

	for (size_t i = 0; i < g->survey->num_fields; i++)
		n += g->survey->fields[i].damaged + g->exhibits[i].failed;
	return n;
}

static void write_tiles(FILE *out, const void *gallery)
{
	const struct survey *s = survey_of(gallery);
	const struct format *f = &s->ds->format;
	uint64_t pages = (f->table_off - f->first_page) / f->page_size;
	char a[HTML_NUMBER_SIZE], b[HTML_NUMBER_SIZE];
	char text[2 * HTML_NUMBER_SIZE + 8];

	write_tile(out, "samples", html_count(s->samples, a));
	write_tile(out, "file size", html_bytes((double)f->file_size, a));
	write_tile(out, "mean sample size", html_bytes(mean_sample(s), a));
	write_tile(out, "fields", html_count(f->num_fields, a));
	snprintf(text, sizeof(text), "%s of %s", html_count(pages, a),
		 html_bytes(f->page_size, b));
	write_tile(out, "pages", text);
	write_modes_tile(out, s);
}

static void write_coverage(FILE *out, const void *gallery)
{
	const struct survey *s = survey_of(gallery);
	char n[HTML_NUMBER_SIZE], all[HTML_NUMBER_SIZE],
		share[HTML_NUMBER_SIZE];

	html_count(s->samples, all);
	if (s->records == s->samples)
		fprintf(out,
			"The figures cover the labels and numbers of all %s samples",
			all);
	else
		fprintf(out,
			"The figures cover the labels and numbers of %s of %s samples (%s), spread evenly",
			html_count(s->records, n), all,
			html_percent((double)s->records, (double)s->samples,
				     share));
	if (s->values == s->samples)
		fputs(", and all sizes.", out);
	else
		fprintf(out,
			", and the sizes of %s of them (%s), spread evenly.",
			html_count(s->values, n),
			html_percent((double)s->values, (double)s->samples,
				     share));
}

static void write_damaged_samples(FILE *out, const struct survey_field *f)
{
	uint64_t n = min_u64(f->damaged, SURVEY_DAMAGED);

	for (uint64_t i = 0; i < n; i++)
		fprintf(out, "%s %llu",
			i		  ? ","
			: f->damaged == 1 ? " sample"
					  : " samples",
			(unsigned long long)f->damaged_samples[i]);
	if (n < f->damaged)
		fputs(" and others", out);
}

static void write_damage_of(FILE *out, const struct survey_field *f,
			    const struct exhibit *e, uint64_t values)
{
	char n[HTML_NUMBER_SIZE], all[HTML_NUMBER_SIZE];

	if (f->damaged) {
		html_print(
			out,
			"<li>%s: %s of %s values have an invalid offset or size:",
			f->field->stem, html_count(f->damaged, n),
			html_count(values, all));
		write_damaged_samples(out, f);
		fputs("</li>\n", out);
	}
	if (e->failed)
		html_print(
			out,
			"<li>%s: %s of the %s images below cannot be shown</li>\n",
			f->field->stem, html_count(e->failed, n),
			html_count(e->num_shots, all));
}

static void write_damage(FILE *out, const void *gallery)
{
	const struct gallery *g = gallery;

	if (!count_damage(g))
		return;
	fputs("<div class=\"damage\"><b>This dataset is damaged</b><ul>\n",
	      out);
	for (size_t i = 0; i < g->survey->num_fields; i++)
		write_damage_of(out, &g->survey->fields[i], &g->exhibits[i],
				g->survey->values);
	fputs("</ul></div>\n", out);
}

/* --- the fields ---------------------------------------------------------- */

static void write_field_row(FILE *out, const struct survey_field *f)
{
	char size[HTML_NUMBER_SIZE];

	html_bytes(field_is_scalar(f->field) ? f->field->type->meta_size
					     : mean_size(f),
		   size);
	html_print(out, "<tr><th scope=\"row\">%s", f->field->name);
	if (strcmp(f->field->name, f->field->stem) != 0)
		html_print(out, "<br><small>file-name form %s</small>",
			   f->field->stem);
	fputs("</th><td>", out);
	gallery_field_holds(out, f->field);
	fprintf(out, "</td><td class=\"n\">%s</td></tr>\n", size);
}

static void write_fields(FILE *out, const void *gallery)
{
	const struct survey *s = survey_of(gallery);

	for (size_t i = 0; i < s->num_fields; i++)
		write_field_row(out, &s->fields[i]);
}

static void write_more(FILE *out, const void *gallery)
{
	const struct survey *s = survey_of(gallery);
	uint64_t all = s->ds->format.num_fields;
	char n[HTML_NUMBER_SIZE];

	if (s->num_fields < all)
		fprintf(out, "<p>The page omits %s more fields.</p>\n",
			html_count(all - s->num_fields, n));
}

static void write_sections(FILE *out, const void *gallery)
{
	const struct gallery *g = gallery;
	const struct survey *s = g->survey;

	for (size_t i = 0; i < s->num_fields; i++)
		gallery_field_write(out, s, &s->fields[i], &g->exhibits[i]);
}

static struct html_bar space_bar(const char *name, double bytes, double all)
{
	char size[HTML_NUMBER_SIZE], share[HTML_NUMBER_SIZE];

	return html_bar(name, bytes, false, "%s  (%s)", html_bytes(bytes, size),
			html_percent(bytes, all, share));
}

static void write_space(FILE *out, const void *gallery)
{
	const struct survey *s = survey_of(gallery);
	const struct format *f = &s->ds->format;
	struct html_bar bars[SURVEY_FIELDS_MAX + 3];
	double all = (double)f->file_size;
	double left = all, records = (double)f->samples * (double)f->itemsize;
	size_t n = 0;

	for (size_t i = 0; i < s->num_fields; i++)
		if (s->fields[i].stored > 0)
			bars[n++] = space_bar(s->fields[i].field->stem,
					      mean_size(&s->fields[i]) *
						      (double)s->samples,
					      all);
	bars[n++] = space_bar("metadata", (double)f->meta_off + records, all);
	bars[n++] =
		space_bar("allocation table", all - (double)f->table_off, all);
	for (size_t i = 0; i < n; i++)
		left -= bars[i].value;
	/* A negative rest is the error of sizes that were estimated from some
	   samples. */
	if (left > 0)
		bars[n++] = space_bar("unused", left, all);
	html_bars(out, "Bytes of the file", bars, n);
}

static void write_fingerprint(FILE *out, const void *gallery)
{
	const struct dataset *ds = survey_of(gallery)->ds;

	for (size_t i = 0; i < BETON_FINGERPRINT_SIZE; i++)
		fprintf(out, "%02x", ds->fingerprint[i]);
}

void gallery_page_write(FILE *out, const struct gallery *g)
{
	const char *name = base_name(dataset_path(g->survey->ds));
	const struct html_part parts[] = {
		{ "name", .text = name },
		{ "tiles", .write = write_tiles },
		{ "coverage", .write = write_coverage },
		{ "damage", .write = write_damage },
		{ "fields", .write = write_fields },
		{ "more", .write = write_more },
		{ "sections", .write = write_sections },
		{ "space", .write = write_space },
		{ "fingerprint", .write = write_fingerprint },
		{ "version", .text = beton_version() },
		{ .name = NULL },
	};

	html_page(out, &(struct html_page){ name, style, body, parts, g });
}
