/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/alloc_table.h"

typedef unsigned long long ull;

enum {
	PIECE_SIZE = 1 << 20,
	/* Bounds the memory for extents. */
	PIECES_MAX = 1 << 16,
};

/* The offsets that a piece of the records or of the table contains. */
struct scan_extent {
	uint64_t low, high; /* low > high: none */
};

/* An array in the file, and its pieces. */
struct rows {
	uint64_t off;
	uint64_t size; /* of a row */
	uint64_t num;
	uint64_t per_piece;
	struct scan_extent *extents; /* owned */
};

struct scan {
	struct target *t;
	struct rows records;
	struct rows table;
	uint8_t *piece; /* the bytes of one */
	bool is_first;
	const struct scan_fns *fns;
	uint64_t low, high; /* of the range */
	struct scan_extent *extent;
	/* The order of the table, in the first pass. */
	uint64_t last_off, runs;
	uint64_t last_sample, succession, longest;
};

static int open_rows(struct rows *r, uint64_t off, uint64_t size, uint64_t num)
{
	uint64_t pieces;

	*r = (struct rows){ .off = off, .size = size, .num = num };
	r->per_piece = max_u64(PIECE_SIZE / size, num / PIECES_MAX + 1);
	pieces = num / r->per_piece + 1;
	r->extents = malloc(pieces * sizeof(*r->extents));
	return r->extents ? 0 : -ENOMEM;
}

int scan_open(struct target *t, struct scan **out)
{
	const struct format *f = &t->format;
	struct scan *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (s) {
		s->t = t;
		s->piece = malloc(PIECE_SIZE);
		r = open_rows(&s->table, f->table_off, FORMAT_ENTRY_SIZE,
			      f->table_entries);
	}
	if (!r)
		r = open_rows(&s->records, f->meta_off, max_u64(f->itemsize, 1),
			      f->itemsize ? f->samples : 0);
	if (!r && s->piece) {
		*out = s;
		return 0;
	}
	log_error(t->log, "%s: out of memory", t->source->path);
	scan_close(s);
	return -ENOMEM;
}

void scan_close(struct scan *s)
{
	if (!s)
		return;
	free(s->records.extents);
	free(s->table.extents);
	free(s->piece);
	free(s);
}

/* --- pieces --- */

typedef void row_fn(struct scan *s, uint64_t i, const uint8_t *row);

/* Rows [first, last), read in blocks. */
static int read_rows(struct scan *s, const struct rows *rows, uint64_t first,
		     uint64_t last, row_fn *fn)
{
	uint64_t most = PIECE_SIZE / rows->size, n;
	int r = 0;

	for (; first < last && !r; first += n) {
		n = min_u64(most, last - first);
		r = target_read(s->t, s->piece, n * rows->size,
				rows->off + first * rows->size);
		for (uint64_t i = 0; i < n && !r; i++)
			fn(s, first + i, s->piece + i * rows->size);
		r = r ? r : target_poll(s->t, s->is_first ? n * rows->size : 0);
	}
	return r;
}

static int scan_rows(struct scan *s, struct rows *rows, row_fn *fn)
{
	uint64_t first = 0, last;
	int r = 0;

	for (size_t k = 0; first < rows->num && !r; k++, first = last) {
		last = min_u64(first + rows->per_piece, rows->num);
		s->extent = &rows->extents[k];
		if (s->is_first)
			*s->extent = (struct scan_extent){ UINT64_MAX, 0 };
		else if (s->extent->low >= s->high || s->extent->high < s->low)
			continue;
		r = read_rows(s, rows, first, last, fn);
	}
	return r;
}

/* Returns whether an offset is in the range of the pass. */
static bool is_wanted(struct scan *s, uint64_t off)
{
	if (s->is_first) {
		s->extent->low = min_u64(s->extent->low, off);
		s->extent->high = max_u64(s->extent->high, off);
	}
	return off >= s->low && off < s->high;
}

/* --- the allocation table --- */

static void report_entry(struct scan *s, enum check_id check, uint64_t i,
			 const struct format_entry *e, const char *why)
{
	report_file(s->t->report, check, s->table.off + i * FORMAT_ENTRY_SIZE,
		    "entry %llu (sample %llu, %llu bytes at %llu): %s", (ull)i,
		    (ull)e->sample, (ull)e->size, (ull)e->off, why);
}

static void note_order(struct scan *s, const struct format_entry *e)
{
	s->runs += e->off < s->last_off;
	s->last_off = e->off;
	s->succession = e->sample == s->last_sample ? s->succession + 1 : 1;
	s->last_sample = e->sample;
	s->longest = max_u64(s->longest, s->succession);
}

static void on_entry(struct scan *s, uint64_t i, const uint8_t *row)
{
	const struct format *f = &s->t->format;
	struct format_entry e = format_entry_parse(row);
	bool is_sound;

	if (!s->is_first && (e.off < s->low || e.off >= s->high))
		return;
	is_sound = format_is_value_range(f, e.off, e.size);
	if (s->is_first) {
		note_order(s, &e);
		if (e.sample >= f->samples)
			report_entry(s, CHECK_ENTRY_SAMPLE, i, &e,
				     "there is no such sample");
		if (!is_sound)
			report_entry(s, CHECK_ENTRY_PLACE, i, &e,
				     "its bytes are not inside one page");
	}
	if (is_sound && e.size && is_wanted(s, e.off))
		s->fns->entry(s->fns->arg, &e);
}

/* Limits of readers (fs/data/dataset/alloc_table.h). */
static void check_order(struct scan *s)
{
	const struct format *f = &s->t->format;
	uint64_t size = f->table_entries * FORMAT_ENTRY_SIZE;

	if (size > ALLOC_SORT_BYTES && s->runs >= ALLOC_RUNS_MAX)
		report_file(
			s->t->report, CHECK_TABLE_ORDER, f->table_off,
			"the offsets of the allocation table descend %llu times, so betonfs refuses all JPEGs",
			(ull)s->runs);
	if (size > ALLOC_KEEP_BYTES && s->longest > f->sample_entries)
		report_file(
			s->t->report, CHECK_TABLE_ORDER, f->table_off,
			"the allocation table has %llu successive entries of one sample, so betonfs refuses all JPEGs",
			(ull)s->longest);
}

static void check_size(struct scan *s)
{
	const struct format *f = &s->t->format;
	uint64_t rest = (f->file_size - f->table_off) % FORMAT_ENTRY_SIZE;
	uint64_t wanted;

	if (rest)
		report_file(
			s->t->report, CHECK_TABLE_REST, f->file_size - rest,
			"%llu bytes follow the last whole entry of the allocation table",
			(ull)rest);
	if (format_has_custom(f) ||
	    !mul_ok(f->samples, f->sample_entries, &wanted) ||
	    wanted == f->table_entries)
		return;
	report_file(
		s->t->report, CHECK_TABLE_COUNT, f->table_off,
		"the allocation table has %llu entries, %llu samples need %llu%s",
		(ull)f->table_entries, (ull)f->samples, (ull)wanted,
		f->table_entries < wanted ? ": the file was probably cut off"
					  : "");
}

/* --- records --- */

static void report_value(struct scan *s, enum check_id check, uint64_t sample,
			 uint32_t field, const struct value_span *v,
			 const char *why)
{
	struct finding f = {
		.check = check,
		.sample = sample,
		.field = field,
		.off = v->off,
		.size = v->size == VALUE_SIZE_IN_TABLE ? 0 : v->size,
	};

	snprintf(f.why, sizeof(f.why), "%s", why);
	report_add(s->t->report, &f);
}

static enum check_id check_of_view(const struct field *f, const struct value *v)
{
	if (!field_is_image(f))
		return CHECK_VALUE_SIZE;
	return v->mode != BETON_MODE_JPG && v->mode != BETON_MODE_RAW
		       ? CHECK_IMAGE_MODE
		       : CHECK_IMAGE_SIDES;
}

/* The place of a value. A JPEG has at least one byte. */
static bool is_place(const struct format *f, const struct value_span *v)
{
	return format_is_value_range(
		f, v->off, v->size == VALUE_SIZE_IN_TABLE ? 1 : v->size);
}

/* Returns whether the value has sound bytes in the pages. */
static bool view_value(struct scan *s, uint64_t sample, uint32_t i,
		       const uint8_t *record, struct value_span *out)
{
	const struct format *format = &s->t->format;
	const struct field *f = &format->fields[i];
	const uint8_t *meta = record + f->meta_off;
	const char *why = "";
	struct value v;
	int r = f->type->view(f, meta, &v, &why);

	*out = (struct value_span){
		.off = v.off,
		.size = r ? 0 : field_stored_size(f, meta, &v),
		.sample = sample,
		.field = (uint16_t)i,
		.width = (uint16_t)v.width,
		.height = (uint16_t)v.height,
		.is_jpeg = v.size == VALUE_SIZE_IN_TABLE,
	};
	if (r) {
		if (s->is_first)
			report_value(s, check_of_view(f, &v), sample, i, out,
				     why);
		return false;
	}
	if (!out->size) {
		if (s->is_first && f->type->ends_in_nul)
			report_value(s, CHECK_JSON_END, sample, i, out,
				     "a text without its NUL");
		return false;
	}
	if (is_place(format, out))
		return true;
	if (s->is_first)
		report_value(s, CHECK_VALUE_PLACE, sample, i, out,
			     "its bytes are not inside one page");
	return false;
}

static void check_gap(struct scan *s, uint64_t sample, uint64_t from,
		      uint64_t to, const uint8_t *record)
{
	while (from < to && !record[from])
		from++;
	if (from == to)
		return;
	report_file(s->t->report, CHECK_RECORD_PADDING,
		    s->records.off + sample * s->records.size + from,
		    "sample %llu: a gap of its record is not zero",
		    (ull)sample);
}

static void check_gaps(struct scan *s, uint64_t sample, const uint8_t *record)
{
	const struct format *f = &s->t->format;
	uint64_t at = 0;

	for (uint32_t i = 0; i < f->num_fields; i++) {
		check_gap(s, sample, at, f->fields[i].meta_off, record);
		at = f->fields[i].meta_off + f->fields[i].meta_size;
	}
	check_gap(s, sample, at, f->itemsize, record);
}

/* Most values of most passes are outside the range. */
static bool may_be_wanted(const struct scan *s, const struct field *f,
			  const uint8_t *record)
{
	uint64_t off = load64(record + f->meta_off + f->type->pointer_at);

	return s->is_first || (off >= s->low && off < s->high);
}

static void on_record(struct scan *s, uint64_t sample, const uint8_t *record)
{
	const struct format *f = &s->t->format;
	uint64_t page = UINT64_MAX;
	bool is_split = false;
	struct value_span v;

	for (uint32_t i = 0; i < f->num_fields; i++) {
		if (!field_has_payload(&f->fields[i]) ||
		    !may_be_wanted(s, &f->fields[i], record) ||
		    !view_value(s, sample, i, record, &v))
			continue;
		is_split |= page != UINT64_MAX && page != v.off / f->page_size;
		page = v.off / f->page_size;
		if (is_wanted(s, v.off))
			s->fns->value(s->fns->arg, &v);
	}
	if (!s->is_first)
		return;
	check_gaps(s, sample, record);
	if (is_split)
		report_file(s->t->report, CHECK_SAMPLE_PAGES, 0,
			    "sample %llu: its values are in several pages",
			    (ull)sample);
}

/* --- passes --- */

int scan_range(struct scan *s, uint64_t low, uint64_t high,
	       const struct scan_fns *fns)
{
	int r;

	s->fns = fns;
	s->low = low;
	s->high = high;
	r = scan_rows(s, &s->table, on_entry);
	return r ? r : scan_rows(s, &s->records, on_record);
}

int scan_first(struct scan *s, const struct scan_fns *fns)
{
	int r;

	check_size(s);
	s->is_first = true;
	r = scan_range(s, 0, UINT64_MAX, fns);
	s->is_first = false;
	if (!r)
		check_order(s);
	return r;
}
