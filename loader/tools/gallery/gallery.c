/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/gallery/gallery.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "loader/tools/gallery/page.h"
#include "loader/tools/ui/html.h"
#include "loader/tools/ui/progress.h"

/* Larger values and images are not worth reading or decoding for a
   thumbnail. */
static const uint64_t STORED_MAX = (uint64_t)512 << 20;
static const uint64_t PIXELS_MAX = (uint64_t)512 << 20;

/* Everything needed to make the images of the page. */
struct studio {
	struct survey *survey;
	struct thumbnailer *thumbnailer;
	struct progress progress;
	uint64_t images; /* per field */
	uint64_t done;
	uint8_t *record;
	uint8_t *bytes;
	uint64_t room;
};

static enum field_column column_of(const struct survey_field *f)
{
	return f->field->unusable ? COLUMN_RECORD : f->field->type->column;
}

static void set_why(char why[GALLERY_WHY_SIZE], const char *text)
{
	snprintf(why, GALLERY_WHY_SIZE, "%s", text);
}

/*
 * Reads the record of a sample and locates a value. Damage is described in
 * `why` and is not a failure. 0 or -ENOMEM.
 */
static int find_value(struct studio *s, const struct survey_field *f,
		      uint64_t sample, struct value *v,
		      char why[GALLERY_WHY_SIZE])
{
	struct dataset *ds = s->survey->ds;
	int r = dataset_records(ds, sample, 1, s->record);

	if (!r)
		r = dataset_place(ds, f->index, sample, s->record, v);
	if (!r)
		return 0;
	/* A failed lookup leaves it half filled. */
	*v = (struct value){ .off = 0 };
	set_why(why,
		r == -BETON_ECORRUPT ? "invalid offset or size" : strerror(-r));
	return r == -ENOMEM ? r : 0;
}

/* --- images -------------------------------------------------------------- */

static int reserve_bytes(struct studio *s, uint64_t size)
{
	if (s->room >= size)
		return 0;
	free(s->bytes);
	s->bytes = malloc(size);
	s->room = s->bytes ? size : 0;
	return s->bytes ? 0 : -ENOMEM;
}

/* Running out of memory for one image marks that image as broken. */
static void make_thumbnail(struct studio *s, struct shot *shot)
{
	const struct value *v = &shot->value;
	struct pipeline_value image = { .size = v->size,
					.mode = v->mode,
					.width = v->width,
					.height = v->height };
	int r = -EFBIG;

	if (v->size <= STORED_MAX &&
	    (uint64_t)v->width * v->height <= PIXELS_MAX)
		r = reserve_bytes(s, v->size + 1);
	if (!r)
		r = source_read(s->survey->ds->source, s->bytes, v->size,
				v->off);
	if (r) {
		set_why(shot->why, strerror(-r));
		return;
	}
	image.bytes = s->bytes;
	if (thumbnail_make(s->thumbnailer, &image, &shot->thumbnail))
		set_why(shot->why, thumbnailer_message(s->thumbnailer));
}

static void find_label(struct studio *s, struct shot *shot)
{
	const struct survey_field *f = s->survey->label;
	struct value v;

	if (!f ||
	    dataset_place(s->survey->ds, f->index, shot->sample, s->record, &v))
		return;
	shot->has_label = true;
	shot->label = f->field->type->integer(v.scalar);
}

static int take_shot(struct studio *s, const struct survey_field *f,
		     struct shot *shot)
{
	int r = find_value(s, f, shot->sample, &shot->value, shot->why);

	progress_show(&s->progress, s->done++);
	find_label(s, shot);
	if (!r && !shot->why[0])
		make_thumbnail(s, shot);
	return r;
}

static int take_shots(struct studio *s, const struct survey_field *f,
		      struct exhibit *e)
{
	cleanup_free uint64_t *ids = NULL;
	size_t n = 0;
	int r = survey_pick(s->survey, s->images, &ids, &n);

	if (r)
		return r;
	e->shots = calloc(n + 1, sizeof(*e->shots));
	if (!e->shots)
		return -ENOMEM;
	e->num_shots = n;
	for (size_t i = 0; i < n && !r; i++) {
		e->shots[i].sample = ids[i];
		r = take_shot(s, f, &e->shots[i]);
		e->failed += e->shots[i].why[0] != '\0';
	}
	return r;
}

/* --- text ---------------------------------------------------------------- */

static int cut_out(struct studio *s, const struct survey_field *f,
		   struct snippet *out)
{
	struct value v = { .off = 0 };
	int r = find_value(s, f, out->sample, &v, out->why);

	if (r || out->why[0])
		return r;
	out->size = v.size;
	out->n = (size_t)min_u64(v.size, sizeof(out->bytes));
	r = source_read(s->survey->ds->source, out->bytes, out->n, v.off);
	if (r)
		set_why(out->why, strerror(-r));
	return 0;
}

static int cut_snippets(struct studio *s, const struct survey_field *f,
			struct exhibit *e)
{
	size_t n = min_u64(GALLERY_TEXTS, s->survey->values);
	int r = 0;

	e->snippets = calloc(n + 1, sizeof(*e->snippets));
	if (!e->snippets)
		return -ENOMEM;
	e->num_snippets = n;
	for (size_t i = 0; i < n && !r; i++) {
		e->snippets[i].sample = survey_place(s->survey->samples, n, i);
		r = cut_out(s, f, &e->snippets[i]);
	}
	return r;
}

/* --- the whole ----------------------------------------------------------- */

static int fill_exhibit(struct studio *s, size_t i, struct exhibit *e)
{
	const struct survey_field *f = &s->survey->fields[i];

	switch (column_of(f)) {
	case COLUMN_IMAGE:
		return take_shots(s, f, e);
	case COLUMN_RAGGED:
		return cut_snippets(s, f, e);
	case COLUMN_SCALAR:
	case COLUMN_ARRAY:
	case COLUMN_RECORD:
		break;
	}
	return 0;
}

static uint64_t count_image_fields(const struct survey *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->num_fields; i++)
		n += column_of(&s->fields[i]) == COLUMN_IMAGE;
	return n;
}

static int fill_exhibits(struct survey *survey, uint64_t images,
			 struct exhibit *to)
{
	uint64_t n = count_image_fields(survey);
	struct studio s = { .survey = survey, .images = images / (n + !n) };
	int r = thumbnailer_open(&s.thumbnailer);

	s.record = malloc(survey->ds->format.itemsize + 1);
	if (!r && !s.record)
		r = -ENOMEM;
	progress_init(&s.progress, n * min_u64(s.images, survey->samples),
		      survey->ds->log);
	for (size_t i = 0; i < survey->num_fields && !r; i++)
		r = fill_exhibit(&s, i, &to[i]);
	progress_hide(&s.progress);
	thumbnailer_close(s.thumbnailer);
	free(s.record);
	free(s.bytes);
	return r;
}

static void free_exhibits(struct exhibit *e, size_t n)
{
	for (size_t i = 0; e && i < n; i++) {
		for (size_t k = 0; k < e[i].num_shots; k++)
			free(e[i].shots[k].thumbnail.jpeg);
		free(e[i].shots);
		free(e[i].snippets);
	}
	free(e);
}

static int write_page(FILE *out, void *arg)
{
	gallery_page_write(out, arg);
	return 0;
}

static int save_page(struct survey *survey, const char *path, uint64_t images,
		     struct log *log)
{
	size_t n = survey->num_fields;
	struct gallery g = { .survey = survey,
			     .exhibits = calloc(n + 1, sizeof(*g.exhibits)) };
	int r = g.exhibits ? fill_exhibits(survey, images, g.exhibits)
			   : -ENOMEM;

	if (r == -ENOMEM)
		log_error(log, "%s: out of memory", dataset_path(survey->ds));
	if (!r)
		r = html_save(path, log, write_page, &g);
	free_exhibits(g.exhibits, n);
	return r;
}

int gallery_save(struct dataset *ds, const char *path, uint64_t images,
		 struct log *log)
{
	struct survey *survey;
	int r = survey_open(ds, &survey);

	if (r == -ENOMEM)
		log_error(log, "%s: out of memory", dataset_path(ds));
	if (r)
		return r;
	r = save_page(survey, path, images, log);
	survey_close(survey);
	return r;
}
