/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/gallery/survey.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "fs/util/rng.h"
#include "loader/tools/ui/progress.h"
#include "loader/tools/ui/sort.h"

enum { READ_BYTES = 256 << 10, SHOW_EVERY = 1024 };

uint64_t survey_place(uint64_t samples, uint64_t n, uint64_t i)
{
	uint64_t first, next;

	if (n >= samples)
		return i;
	first = (uint64_t)((unsigned __int128)i * samples / n);
	next = (uint64_t)((unsigned __int128)(i + 1) * samples / n);
	/* A random position within the share: with a fixed step, labels that
	   repeat every ten samples would all be the same. */
	return first + rng_mix(i) % (next - first);
}

/* --- records ------------------------------------------------------------- */

/* A walk through the records, in order: all of them, or some that are spread
   evenly. */
struct walk {
	struct dataset *ds;
	struct progress *progress;
	uint64_t n; /* samples to visit */
	uint64_t next;
	uint64_t sample; /* that the last record belongs to */
	uint8_t *buf;
	uint64_t room; /* records that fit into `buf` */
	uint64_t first;
	uint64_t have;
};

static int walk_open(struct walk *w, struct dataset *ds, uint64_t n,
		     struct progress *progress)
{
	const struct format *f = &ds->format;

	*w = (struct walk){ .ds = ds, .n = n, .progress = progress };
	w->room = n < f->samples || f->itemsize >= READ_BYTES
			  ? 1
			  : READ_BYTES / (f->itemsize + !f->itemsize);
	w->buf = malloc(w->room * f->itemsize + 1);
	return w->buf ? 0 : -ENOMEM;
}

/* Returns 1 and the next record, valid until the next call; 0 at the end; or
   -errno. */
static int walk_next(struct walk *w, const uint8_t **record)
{
	const struct format *f = &w->ds->format;
	int r;

	if (w->next == w->n)
		return 0;
	if (w->progress && w->next % SHOW_EVERY == 0)
		progress_show(w->progress, w->next);
	w->sample = survey_place(f->samples, w->n, w->next++);
	if (w->sample < w->first || w->sample >= w->first + w->have) {
		w->first = w->sample;
		w->have = min_u64(w->room, f->samples - w->sample);
		r = dataset_records(w->ds, w->first, w->have, w->buf);
		if (r)
			return r;
	}
	*record = w->buf + (w->sample - w->first) * f->itemsize;
	return 1;
}

/* --- numbers ------------------------------------------------------------- */

static bool is_usable(const struct survey_field *f)
{
	return !f->field->unusable;
}

static int count_number(struct survey_field *f, const struct value *v)
{
	double x = field_number(f->field, v->scalar);

	if (isfinite(x)) {
		f->least = f->finite ? fmin(f->least, x) : x;
		f->most = f->finite ? fmax(f->most, x) : x;
		f->finite++;
		/* A running mean: the sum could exceed a double. */
		f->mean += x / (double)f->finite - f->mean / (double)f->finite;
	}
	return f->census ? census_add(f->census,
				      f->field->type->integer(v->scalar))
			 : 0;
}

static int count_numbers(struct survey *s, const struct walk *w,
			 const uint8_t *record)
{
	struct value v;
	int r = 0;

	for (size_t i = 0; i < s->num_fields && !r; i++) {
		struct survey_field *f = &s->fields[i];

		if (is_usable(f) && field_is_scalar(f->field) &&
		    !dataset_place(s->ds, f->index, w->sample, record, &v))
			r = count_number(f, &v);
	}
	return r;
}

/* --- values -------------------------------------------------------------- */

static void note_damage(struct survey_field *f, uint64_t sample)
{
	if (f->damaged < SURVEY_DAMAGED)
		f->damaged_samples[f->damaged] = sample;
	f->damaged++;
}

static int append_number(struct survey_field *f, enum survey_series which,
			 double x)
{
	struct series *series = &f->series[which];

	if (!series->v)
		series->v = malloc(SURVEY_VALUES * sizeof(*series->v));
	if (!series->v)
		return -ENOMEM;
	series->v[series->n++] = x;
	return 0;
}

static int look_at_image(struct survey_field *f, const struct value *v)
{
	int r = append_number(f, SURVEY_WIDTHS, v->width);

	*(v->mode == BETON_MODE_RAW ? &f->raws : &f->jpegs) += 1;
	return r ? r : append_number(f, SURVEY_HEIGHTS, v->height);
}

static int look_at_value(struct survey_field *f, const struct value *v)
{
	double x;
	int r;

	if (field_is_scalar(f->field)) {
		x = field_number(f->field, v->scalar);
		return isfinite(x) ? append_number(f, SURVEY_NUMBERS, x) : 0;
	}
	f->stored += (double)v->size;
	r = append_number(f, SURVEY_SIZES, (double)v->size);
	if (!r && field_is_image(f->field))
		r = look_at_image(f, v);
	return r;
}

static int look_at_values(struct survey *s, const struct walk *w,
			  const uint8_t *record)
{
	struct value v = { .off = 0 };
	int r = 0;

	for (size_t i = 0; i < s->num_fields && !r; i++) {
		struct survey_field *f = &s->fields[i];

		if (!is_usable(f))
			continue;
		r = dataset_place(s->ds, f->index, w->sample, record, &v);
		if (!r) {
			r = look_at_value(f, &v);
		} else if (r != -ENOMEM) {
			note_damage(f, w->sample);
			r = 0;
		}
	}
	return r;
}

/* --- the whole ----------------------------------------------------------- */

typedef int look_fn(struct survey *s, const struct walk *w,
		    const uint8_t *record);

static int look_at_samples(struct survey *s, uint64_t n, look_fn *at)
{
	struct progress progress;
	struct walk w;
	const uint8_t *record;
	int r = walk_open(&w, s->ds, n, &progress);

	progress_init(&progress, n, s->ds->log);
	while (!r && (r = walk_next(&w, &record)) > 0)
		r = at(s, &w, record);
	progress_hide(&progress);
	free(w.buf);
	return r;
}

static int sort_series(struct survey *s)
{
	int r = 0;

	for (size_t i = 0; i < s->num_fields && !r; i++) {
		struct survey_field *f = &s->fields[i];

		for (size_t k = 0; k < SURVEY_SERIES; k++)
			sort_reals(f->series[k].v, f->series[k].n);
		if (f->census)
			r = census_end(f->census);
	}
	return r;
}

/* Chooses the label field. Values are classes if on average two samples share
   each. */
static void find_label(struct survey *s)
{
	const struct survey_field *f;
	size_t n;

	for (size_t i = 0; i < s->num_fields; i++) {
		f = &s->fields[i];
		if (!f->census || !is_usable(f))
			continue;
		census_counts(f->census, &n);
		if (!s->label)
			s->label = f;
		if (!s->classes && n > 1 && n <= s->records / 2)
			s->classes = f;
	}
	s->label = s->classes ? s->classes : s->label;
}

static int add_fields(struct survey *s)
{
	const struct format *format = &s->ds->format;
	int r = 0;

	s->num_fields = min_u64(format->num_fields, SURVEY_FIELDS_MAX);
	s->fields = calloc(s->num_fields + 1, sizeof(*s->fields));
	if (!s->fields)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->num_fields && !r; i++) {
		struct survey_field *f = &s->fields[i];

		f->field = &format->fields[i];
		f->index = i;
		if (field_is_integer(f->field))
			r = census_open(&f->census);
	}
	return r;
}

static bool has_images(const struct survey *s)
{
	for (size_t i = 0; i < s->num_fields; i++)
		if (field_is_image(s->fields[i].field))
			return true;
	return false;
}

/* If custom fields leave the size of records open, no record can be read. */
static int choose_how_many(struct survey *s)
{
	uint64_t n = s->ds->format.itemsize ? s->samples : 0;
	uint64_t values = SURVEY_VALUES;
	size_t reads = 0;
	int r = n && has_images(s) ? dataset_size_reads(s->ds, &reads) : 0;

	if (reads)
		values = min_u64(values, max_u64(SURVEY_READS / reads,
						 SURVEY_VALUES_LEAST));
	s->records = n <= SURVEY_ALL ? n : SURVEY_SPREAD;
	s->values = min_u64(n, values);
	return r;
}

int survey_open(struct dataset *ds, struct survey **out)
{
	struct survey *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->ds = ds;
	s->samples = ds->format.samples;
	r = add_fields(s);
	r = r ? r : choose_how_many(s);
	r = r ? r : look_at_samples(s, s->records, count_numbers);
	r = r ? r : look_at_samples(s, s->values, look_at_values);
	r = r ? r : sort_series(s);
	if (r) {
		survey_close(s);
		return r;
	}
	find_label(s);
	*out = s;
	return 0;
}

void survey_close(struct survey *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->fields && i < s->num_fields; i++) {
		for (size_t k = 0; k < SURVEY_SERIES; k++)
			free(s->fields[i].series[k].v);
		census_close(s->fields[i].census);
	}
	free(s->fields);
	free(s);
}

/* --- choosing ------------------------------------------------------------ */

struct quota {
	uint64_t wanted;
	uint64_t given;
	uint64_t seen;
};

/* Divides `n` samples among the classes, evenly. If there are fewer samples
   than classes, one each for classes that are spread over all. */
static void share_out(struct quota *q, const struct census_count *counts,
		      size_t num, uint64_t n)
{
	bool more = n >= num;

	for (uint64_t i = 0; i < n && n < num; i++)
		q[(size_t)((2 * i + 1) * num / (2 * n))].wanted = 1;
	while (n && more) {
		more = false;
		for (size_t i = 0; i < num && n; i++) {
			if (q[i].wanted == counts[i].n)
				continue;
			q[i].wanted++;
			n--;
			more = true;
		}
	}
}

static int by_key(const void *key, const void *element)
{
	const int64_t *v = key;
	const struct census_count *c = element;

	return *v < c->value ? -1 : *v > c->value;
}

/* Returns whether to choose the next sample of a class, which has `n` of
   them. */
static bool is_chosen(struct quota *q, uint64_t n)
{
	uint64_t at = q->seen++;

	if (q->given == q->wanted ||
	    at != (2 * q->given + 1) * n / (2 * q->wanted))
		return false;
	q->given++;
	return true;
}

/* Reads the labels again. The chosen ids of class i start at ids[starts[i]]. */
static int pick_of_classes(const struct survey *s, struct quota *q,
			   const size_t *starts, uint64_t *ids)
{
	const struct survey_field *f = s->classes;
	const struct census_count *counts, *c;
	const uint8_t *record;
	struct value v;
	struct walk w;
	size_t num;
	int64_t label;
	int r = walk_open(&w, s->ds, s->records, NULL);

	counts = census_counts(f->census, &num);
	while (!r && (r = walk_next(&w, &record)) > 0) {
		r = dataset_place(s->ds, f->index, w.sample, record, &v);
		label = r ? 0 : f->field->type->integer(v.scalar);
		c = bsearch(&label, counts, num, sizeof(*counts), by_key);
		/* An unknown label: the file changed meanwhile. */
		if (!r && c && is_chosen(&q[c - counts], c->n))
			ids[starts[c - counts] + q[c - counts].given - 1] =
				w.sample;
	}
	free(w.buf);
	return r;
}

static int pick_by_class(const struct survey *s, uint64_t n, uint64_t *ids,
			 size_t *num_ids)
{
	size_t num, used = 0;
	const struct census_count *counts =
		census_counts(s->classes->census, &num);
	cleanup_free struct quota *q = calloc(num, sizeof(*q));
	cleanup_free size_t *starts = calloc(num, sizeof(*starts));
	int r;

	if (!q || !starts)
		return -ENOMEM;
	share_out(q, counts, num, n);
	for (size_t i = 0; i < num; i++) {
		starts[i] = used;
		used += q[i].wanted;
	}
	r = pick_of_classes(s, q, starts, ids);
	*num_ids = used;
	return r;
}

int survey_pick(const struct survey *s, uint64_t n, uint64_t **out,
		size_t *num_ids)
{
	cleanup_free uint64_t *ids = NULL;
	int r = 0;

	n = min_u64(n, s->records);
	ids = calloc(n + 1, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	if (n && s->classes) {
		r = pick_by_class(s, n, ids, num_ids);
	} else {
		for (uint64_t i = 0; i < n; i++)
			ids[i] = survey_place(s->samples, n, i);
		*num_ids = n;
	}
	if (!r)
		*out = steal(ids);
	return r;
}
