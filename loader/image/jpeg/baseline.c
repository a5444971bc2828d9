/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/baseline.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "loader/image/jpeg/entropy.h"
#include "loader/image/jpeg/entry_index.h"
#include "loader/image/jpeg/entry_record.h"
#include "loader/image/jpeg/huffman.h"
#include "loader/image/jpeg/stuffing.h"
#include "loader/util/scratch.h"

enum {
	RST0 = 0xd0,
	RESTARTS = 8,
	MARKER_SIZE = 2,
	/* Row lengths that are a power of two would share few cache sets. */
	STRIDE_UNIT = 64,
};

static const char OTHER_INDEX[] = "an index of another file";

struct baseline {
	struct huffman *tables;
	struct entropy_scan scan;
	struct scratch data; /* of the scan, without stuffing */
	struct scratch samples[BASELINE_COMPONENTS];
	struct scratch entries;
	struct scratch marks;
	const char *message;
};

int baseline_open(struct baseline **out)
{
	/* Alignment of the scan's tables. */
	struct baseline *b =
		aligned_alloc(_Alignof(struct baseline),
			      align_up(sizeof(*b), _Alignof(struct baseline)));
	int r;

	if (!b)
		return -ENOMEM;
	memset(b, 0, sizeof(*b));
	b->message = "";
	r = huffman_open(&b->tables);
	if (r)
		baseline_close(b);
	else
		*out = b;
	return r;
}

void baseline_close(struct baseline *b)
{
	if (!b)
		return;
	huffman_close(b->tables);
	scratch_fini(&b->data);
	for (int i = 0; i < BASELINE_COMPONENTS; i++)
		scratch_fini(&b->samples[i]);
	scratch_fini(&b->entries);
	scratch_fini(&b->marks);
	free(b);
}

const char *baseline_message(const struct baseline *b)
{
	return b->message;
}

/* Sets the message, or NULL for success. Returns e if there is a message. */
static int say(struct baseline *b, const char *message, int e)
{
	b->message = message ? message : "";
	return message ? e : 0;
}

int baseline_header(struct baseline *b, const uint8_t *bytes, size_t size,
		    struct baseline_image *out)
{
	return say(b, baseline_header_parse(bytes, size, out), -ENOTSUP);
}

static const char *set_tables(struct baseline *b,
			      const struct baseline_image *image)
{
	struct entropy_scan *scan = &b->scan;

	scan->components = image->components;
	scan->mcus_across = image->mcus_across;
	for (unsigned i = 0; i < image->components; i++) {
		const struct baseline_component *from = &image->component[i];
		struct entropy_component *to = &scan->component[i];

		to->side = from->side;
		to->idct = idct_best(from->side);
		to->blocks_across = from->blocks_across;
		to->blocks_down = from->blocks_down;
		to->dc = huffman_dc(b->tables, from->dc);
		to->ac = huffman_ac(b->tables, from->ac);
		if (!to->dc || !to->ac)
			return "a Huffman table that no encoder writes";
		for (int k = 0; k < IDCT_SIZE; k++)
			to->quant[IDCT_PLACE[k]] = from->quant[k];
	}
	return NULL;
}

/* The part of an axis that is wanted of a component, in samples. */
struct baseline_span {
	uint32_t from;
	uint32_t to;
};

static struct baseline_span span_of(uint32_t at, uint32_t size, uint32_t covers,
				    uint32_t margin, uint32_t limit)
{
	uint32_t from = at / covers;
	uint64_t to = ((uint64_t)at + size + covers - 1) / covers;

	return (struct baseline_span){
		.from = from - (uint32_t)min_u64(from, margin),
		.to = (uint32_t)min_u64(to + margin, limit),
	};
}

/* Sets the wanted blocks of a component, and allocates their samples. */
static int make_plane(struct scratch *memory, struct baseline_span x,
		      struct baseline_span y, struct entropy_component *c,
		      struct baseline_plane *out)
{
	uint64_t stride;
	uint8_t *samples;

	c->x = x.from / c->side;
	c->y = y.from / c->side;
	c->width = div_round_up(x.to, c->side) - c->x;
	c->height = div_round_up(y.to, c->side) - c->y;
	stride = align_up((uint64_t)c->width * c->side, STRIDE_UNIT) +
		 STRIDE_UNIT;
	if (scratch_grow(memory,
			 stride * c->height * c->side + 2 * BASELINE_SLACK, 1))
		return -ENOMEM;
	samples = (uint8_t *)memory->p + BASELINE_SLACK;
	c->samples = samples;
	c->stride = stride;
	*out = (struct baseline_plane){
		.samples =
			samples + y.from % c->side * stride + x.from % c->side,
		.stride = stride,
		.x = x.from,
		.y = y.from,
		.width = x.to - x.from,
		.height = y.to - y.from,
	};
	return 0;
}

/* The MCUs that contain a wanted block. */
static void set_mcus(struct entropy_scan *scan)
{
	uint32_t left = UINT32_MAX;
	uint32_t top = UINT32_MAX;
	uint32_t right = 0;
	uint32_t bottom = 0;

	for (unsigned i = 0; i < scan->components; i++) {
		const struct entropy_component *c = &scan->component[i];
		uint32_t x1 = div_round_up(c->x + c->width, c->blocks_across);
		uint32_t y1 = div_round_up(c->y + c->height, c->blocks_down);

		if (!c->width)
			continue;
		left = (uint32_t)min_u64(left, c->x / c->blocks_across);
		top = (uint32_t)min_u64(top, c->y / c->blocks_down);
		right = (uint32_t)max_u64(right, x1);
		bottom = (uint32_t)max_u64(bottom, y1);
	}
	scan->x = left;
	scan->y = top;
	scan->width = right - left;
	scan->height = bottom - top;
}

/* Planes of the first `wanted` components; no block of the others is wanted. */
static int make_planes(struct baseline *b, const struct baseline_image *image,
		       const struct rect *rect, uint32_t margin,
		       unsigned wanted,
		       struct baseline_plane planes[BASELINE_COMPONENTS])
{
	for (unsigned i = wanted; i < image->components; i++) {
		b->scan.component[i].x = b->scan.component[i].y = 0;
		b->scan.component[i].width = b->scan.component[i].height = 0;
	}
	for (unsigned i = 0; i < wanted; i++) {
		const struct baseline_component *c = &image->component[i];
		struct baseline_span x = span_of(rect->x, rect->width,
						 c->across, margin, c->width);
		struct baseline_span y = span_of(rect->y, rect->height, c->down,
						 margin, c->height);

		if (make_plane(&b->samples[i], x, y, &b->scan.component[i],
			       &planes[i]))
			return say(b, "out of memory", -ENOMEM);
	}
	set_mcus(&b->scan);
	return 0;
}

/*
 * The rows of MCUs that libjpeg decodes. To upsample the last row of pixels, it
 * needs the next row of chroma samples.
 */
static uint32_t rows_to_read(const struct baseline *b,
			     const struct baseline_image *image,
			     const struct rect *rect)
{
	uint32_t rows = b->scan.y + b->scan.height;

	for (unsigned i = 0; i < image->components; i++) {
		const struct baseline_component *c = &image->component[i];
		struct baseline_span y =
			span_of(rect->y, rect->height, c->down, 1, c->height);

		rows = (uint32_t)max_u64(
			rows, div_round_up(y.to, c->blocks_down * c->side));
	}
	return rows;
}

static bool is_restart(const uint8_t *p, size_t size, uint32_t number)
{
	return size >= MARKER_SIZE && p[0] == 0xff &&
	       p[1] == RST0 + number % RESTARTS;
}

/*
 * Decodes MCUs from the first on, one run for each restart interval. An
 * interval ends with at most seven bits of padding.
 */
static const char *decode_from_start(struct baseline *b,
				     const struct baseline_image *image,
				     uint32_t n)
{
	uint32_t interval = image->restart_interval;
	const uint8_t *at = image->scan;
	size_t left = image->scan_size;
	uint32_t mcu = 0;

	for (uint32_t i = 0;; i++) {
		struct entropy_run run = {
			.bytes = b->data.p,
			.mcu = mcu,
			.n = interval ? (uint32_t)min_u64(interval, n - mcu)
				      : n,
		};
		size_t read = entropy_unstuff(at, left, b->data.p, &run.size);
		const char *bad = entropy_decode(&b->scan, &run);

		mcu = run.mcu;
		if (bad || mcu == n)
			return bad;
		read += stuffing_fill(at + read, left - read);
		at += read;
		left -= read;
		if ((run.bit + 7) / 8 != run.size || !is_restart(at, left, i))
			return "no restart marker where one must be";
		at += MARKER_SIZE;
		left -= MARKER_SIZE;
	}
}

/* The entries of a row of MCUs: of its first wanted MCU, or before, and the
   first one after the last. */
struct row_entries {
	uint64_t first;
	uint64_t end;
	uint32_t mcu; /* of the first one, in the row */
};

static struct row_entries entries_of(const struct entropy_scan *scan,
				     uint32_t step, uint32_t y)
{
	uint64_t per_row = div_round_up(scan->mcus_across, step);
	uint32_t first = scan->x / step;

	return (struct row_entries){
		.first = y * per_row + first,
		.end = y * per_row + div_round_up(scan->x + scan->width, step),
		.mcu = first * step,
	};
}

/* The end of the bytes of the MCU before an entry, which may share its last
   byte. NULL: of the last MCU. */
static size_t end_before(const struct entry *entry, size_t scan_size)
{
	if (!entry)
		return scan_size;
	return (size_t)min_u64((uint64_t)entry->byte + 2, scan_size);
}

/* Decodes the wanted MCUs of row y from an entry, MCU `mcu` of the row, up to the
   next one that is not needed. */
static const char *decode_row(struct baseline *b,
			      const struct baseline_image *image,
			      const struct entry *entry,
			      const struct entry *next, uint32_t mcu,
			      uint32_t y)
{
	size_t end = end_before(next, image->scan_size);
	const struct entropy_scan *scan = &b->scan;
	struct entropy_run run = {
		.bytes = b->data.p,
		.bit = entry->bit,
		.mcu = y * scan->mcus_across + mcu,
		.n = scan->x + scan->width - mcu,
		.dc = { entry->dc[0], entry->dc[1], entry->dc[2] },
	};

	if (entry->byte >= end || entry->bit > 7)
		return OTHER_INDEX;
	entropy_unstuff(image->scan + entry->byte, end - entry->byte, b->data.p,
			&run.size);
	return entropy_decode(&b->scan, &run);
}

/* Whether the index has the number of entries that the image needs. */
static bool is_index_of(const struct entry_index *index,
			const struct baseline_image *image)
{
	uint64_t per_row =
		index->step ? div_round_up(image->mcus_across, index->step) : 0;

	return per_row && index->n == per_row * image->mcus_down &&
	       !image->restart_interval;
}

static const char *decode_rows(struct baseline *b,
			       const struct baseline_image *image,
			       const struct entry_index *index)
{
	if (!is_index_of(index, image))
		return OTHER_INDEX;
	for (uint32_t i = 0; i < b->scan.height; i++) {
		uint32_t y = b->scan.y + i;
		struct row_entries row = entries_of(&b->scan, index->step, y);
		const struct entry *entries = index->entries;
		const char *bad =
			decode_row(b, image, &entries[row.first],
				   row.end < index->n ? &entries[row.end] : NULL,
				   row.mcu, y);

		if (bad)
			return bad;
	}
	return NULL;
}

static int make_data(struct baseline *b, const struct baseline_image *image)
{
	if (scratch_grow(&b->data, (uint64_t)image->scan_size + ENTROPY_PAD, 1))
		return say(b, "out of memory", -ENOMEM);
	return 0;
}

/* The position in the scan with stuffing, as decoding advances. */
struct stuffed {
	const uint8_t *bytes; /* without */
	uint64_t at;
	uint64_t stuffing; /* bytes before it, and before `bytes` */
};

static uint64_t stuffed_at(struct stuffed *s, uint64_t at)
{
	const uint8_t *p = s->bytes + s->at;
	const uint8_t *end = s->bytes + at;

	while (p < end && (p = memchr(p, 0xff, (size_t)(end - p)))) {
		s->stuffing++;
		p++;
	}
	s->at = at;
	return at + s->stuffing;
}

static const char *entry_at(struct stuffed *s, const struct entropy_mark *mark,
			    struct entry *out)
{
	uint64_t byte = stuffed_at(s, mark->bit / 8);

	if (byte > UINT32_MAX)
		return "more data than an index can have";
	*out = (struct entry){
		.byte = (uint32_t)byte,
		.bit = mark->bit % 8,
		.dc = { (int16_t)mark->dc[0], (int16_t)mark->dc[1],
			(int16_t)mark->dc[2] },
	};
	return NULL;
}

/* Decodes a run of whole rows of MCUs with `n` marks. */
static const char *decode_marked(struct baseline *b, struct entropy_run *run,
				 uint32_t step, size_t n)
{
	if (scratch_grow(&b->marks, n, sizeof(struct entropy_mark)))
		return "out of memory";
	run->marks = b->marks.p;
	run->step = step;
	return entropy_decode(&b->scan, run);
}

/* --- entries that are kept --- */

/* Adds the marks of rows, which the run has decoded, and where it ends. */
static void record_marks(const struct baseline *b,
			 const struct entropy_run *run, uint32_t first_byte,
			 struct entry_record *record, size_t first, size_t n)
{
	const struct entropy_mark *marks = b->marks.p;
	const struct entropy_mark last = {
		run->bit,
		{ run->dc[0], run->dc[1], run->dc[2] },
	};
	struct stuffed s = { .bytes = run->bytes, .stuffing = first_byte };
	struct entry entry;

	for (size_t i = 1; i <= n && first + i < record->count; i++)
		if (!entry_at(&s, i < n ? &marks[i] : &last, &entry))
			entry_record_put(record, first + i, &entry);
}

/* Decodes rows of MCUs, from the last known entry on. */
static const char *decode_rest(struct baseline *b,
			       const struct baseline_image *image,
			       struct entry_record *record, uint32_t first,
			       uint32_t end)
{
	size_t per_row = entry_record_per_row(record);
	size_t n = (end - first) * per_row;
	const struct entry entry = entry_record_at(record, first * per_row);
	struct entropy_run run = {
		.bytes = b->data.p,
		.bit = entry.bit,
		.mcu = first * image->mcus_across,
		.n = (end - first) * image->mcus_across,
		.dc = { entry.dc[0], entry.dc[1], entry.dc[2] },
	};
	const char *bad;

	if (entry.byte > image->scan_size)
		return OTHER_INDEX;
	entropy_unstuff(image->scan + entry.byte,
			image->scan_size - entry.byte, b->data.p, &run.size);
	if (!entry_record_begin(record, first))
		return entropy_decode(&b->scan, &run);
	bad = decode_marked(b, &run, record->step, n);
	if (!bad)
		record_marks(b, &run, entry.byte, record, first * per_row, n);
	entry_record_end(record, bad ? first : end);
	return bad;
}

/* Decodes the wanted MCUs of a known row. */
static const char *decode_known(struct baseline *b,
				const struct baseline_image *image,
				const struct entry_record *record, uint32_t y)
{
	struct row_entries row = entries_of(&b->scan, record->step, y);
	struct entry first = entry_record_at(record, row.first), next;
	bool is_last = row.end >= record->count;

	if (!is_last)
		next = entry_record_at(record, row.end);
	return decode_row(b, image, &first, is_last ? NULL : &next, row.mcu, y);
}

/*
 * Decodes wanted MCUs of known rows, and then all rows up to `rows`, so that
 * the same data is read as from the start.
 */
static const char *decode_recorded(struct baseline *b,
				   const struct baseline_image *image,
				   struct entry_record *record, uint32_t rows)
{
	uint32_t known = entry_record_rows(record);
	uint32_t end = (uint32_t)min_u64(known, b->scan.y + b->scan.height);
	const char *bad = NULL;

	for (uint32_t y = b->scan.y; y < end && !bad; y++)
		bad = decode_known(b, image, record, y);
	return bad || rows <= known ? bad
				    : decode_rest(b, image, record, known, rows);
}

/* The entries that a call may use; NULL: none. */
struct entries {
	const struct entry_index *index;
	struct entry_record *record;
};

static const char *decode_scan(struct baseline *b,
			       const struct baseline_image *image,
			       const struct rect *rect,
			       const struct entries *from)
{
	uint32_t rows = rows_to_read(b, image, rect);

	if (from->index)
		return decode_rows(b, image, from->index);
	if (from->record)
		return decode_recorded(b, image, from->record, rows);
	return decode_from_start(b, image, rows * image->mcus_across);
}

static int decode_part(struct baseline *b, const struct baseline_image *image,
		       const struct rect *rect, uint32_t margin,
		       const struct entries *from, unsigned wanted,
		       struct baseline_plane *planes)
{
	struct baseline_plane found[BASELINE_COMPONENTS] = { 0 };
	const char *bad;
	int r;

	if (!rect->width || !rect->height ||
	    !range_ok(rect->x, rect->width, image->width) ||
	    !range_ok(rect->y, rect->height, image->height))
		return say(b, "the rectangle is not inside", -ERANGE);
	bad = set_tables(b, image);
	if (bad)
		return say(b, bad, -ENOTSUP);
	r = make_planes(b, image, rect, margin, wanted, found);
	if (!r)
		r = make_data(b, image);
	if (r)
		return r;
	bad = decode_scan(b, image, rect, from);
	if (!bad)
		memcpy(planes, found, wanted * sizeof(*planes));
	return say(b, bad, -ENOTSUP);
}

int baseline_decode(struct baseline *b, const struct baseline_image *image,
		    const struct rect *rect, uint32_t margin,
		    const struct entry_index *index,
		    struct baseline_plane planes[BASELINE_COMPONENTS])
{
	const struct entries from = { .index = index };

	return decode_part(b, image, rect, margin, &from, image->components,
			   planes);
}

int baseline_decode_recorded(struct baseline *b,
			     const struct baseline_image *image,
			     const struct rect *rect, uint32_t margin,
			     struct entry_record *record,
			     struct baseline_plane planes[BASELINE_COMPONENTS])
{
	struct entries from = { .record = record };
	struct entry_index index;

	/* Reading the index takes longer than using what was kept of it. */
	if (!entry_record_is_whole(record) &&
	    !baseline_stored_index(b, image, &index)) {
		entry_record_fill(record, &index);
		from.index = &index;
	}
	return decode_part(b, image, rect, margin, &from, image->components,
			   planes);
}

int baseline_decode_luma(struct baseline *b, const struct baseline_image *image,
			 const struct rect *rect,
			 const struct entry_index *index,
			 struct baseline_plane *plane)
{
	const struct entries from = { .index = index };

	return decode_part(b, image, rect, 0, &from, 1, plane);
}

void baseline_part(const struct baseline_image *image,
		   const struct baseline_plane *whole, const struct rect *rect,
		   uint32_t margin,
		   struct baseline_plane planes[BASELINE_COMPONENTS])
{
	for (unsigned i = 0; i < image->components; i++) {
		const struct baseline_component *c = &image->component[i];
		size_t stride = whole[i].stride;
		struct baseline_span x = span_of(rect->x, rect->width,
						 c->across, margin, c->width);
		struct baseline_span y = span_of(rect->y, rect->height, c->down,
						 margin, c->height);

		planes[i] = (struct baseline_plane){
			.samples = whole[i].samples + y.from * stride + x.from,
			.stride = stride,
			.x = x.from,
			.y = y.from,
			.width = x.to - x.from,
			.height = y.to - y.from,
		};
	}
}

/* Decodes all MCUs with `n` marks. */
static const char *decode_all_marked(struct baseline *b,
				     const struct baseline_image *image,
				     uint32_t step, size_t n)
{
	struct entropy_run run = {
		.bytes = b->data.p,
		.n = image->mcus_across * image->mcus_down,
	};

	entropy_unstuff(image->scan, image->scan_size, b->data.p, &run.size);
	return decode_marked(b, &run, step, n);
}

static const char *add_entries(struct baseline *b,
			       const struct baseline_image *image,
			       uint32_t step, uint32_t n, struct entry *entries)
{
	const char *bad = decode_all_marked(b, image, step, n);
	const struct entropy_mark *marks = b->marks.p;
	struct stuffed s = { .bytes = b->data.p };

	for (uint32_t i = 0; i < n && !bad; i++)
		bad = entry_at(&s, &marks[i], &entries[i]);
	return bad;
}

static bool is_entry(const struct entry *a, const struct entry *b)
{
	return a->byte == b->byte && a->bit == b->bit &&
	       !memcmp(a->dc, b->dc, sizeof(a->dc));
}

/* Decodes MCUs from the first on, and compares them with the index. */
static const char *decode_entries(struct baseline *b,
				  const struct baseline_image *image,
				  const struct entry_index *index)
{
	struct stuffed s = { .bytes = b->data.p };
	const struct entropy_mark *marks;
	struct entry entry;
	const char *bad;

	if (!is_index_of(index, image))
		return OTHER_INDEX;
	bad = decode_all_marked(b, image, index->step, index->n);
	marks = b->marks.p;
	for (uint32_t i = 0; i < index->n && !bad; i++) {
		bad = entry_at(&s, &marks[i], &entry);
		if (!bad && !is_entry(&entry, &index->entries[i]))
			bad = OTHER_INDEX;
	}
	return bad;
}

int baseline_decode_whole(struct baseline *b,
			  const struct baseline_image *image,
			  const struct entry_index *index,
			  struct baseline_plane planes[BASELINE_COMPONENTS])
{
	const struct rect whole = { .width = image->width,
				    .height = image->height };
	struct baseline_plane found[BASELINE_COMPONENTS];
	const char *bad;
	int r;

	if (!index)
		return baseline_decode(b, image, &whole, 0, NULL, planes);
	bad = set_tables(b, image);
	if (bad)
		return say(b, bad, -ENOTSUP);
	r = make_planes(b, image, &whole, 0, image->components, found);
	if (!r)
		r = make_data(b, image);
	if (r)
		return r;
	bad = decode_entries(b, image, index);
	if (!bad)
		memcpy(planes, found, image->components * sizeof(*planes));
	return say(b, bad, -ENOTSUP);
}

struct entry_scan baseline_scan(const struct baseline_image *image)
{
	struct entry_scan scan = {
		.bytes = image->scan,
		.size = image->scan_size,
		.mcus_across = image->mcus_across,
		.mcus_down = image->mcus_down,
		.components = image->components,
	};

	if (image->index && !image->restart_interval)
		scan.index_step =
			entry_step(image->index, image->index_size, &scan);
	return scan;
}

int baseline_index(struct baseline *b, const struct baseline_image *image,
		   uint32_t step, struct entry_index *out)
{
	uint32_t across = image->mcus_across;
	const char *bad;
	uint32_t n;
	int r;

	if (!step || step > across)
		step = across;
	if (image->restart_interval)
		return say(b, "restart markers", -ENOTSUP);
	n = div_round_up(across, step) * image->mcus_down;
	bad = set_tables(b, image);
	if (bad)
		return say(b, bad, -ENOTSUP);
	r = make_data(b, image);
	if (r)
		return r;
	if (scratch_grow(&b->entries, n, sizeof(struct entry)))
		return say(b, "out of memory", -ENOMEM);
	b->scan.width = b->scan.height = 0;
	bad = add_entries(b, image, step, n, b->entries.p);
	if (!bad)
		*out = (struct entry_index){ b->entries.p, n, step };
	return say(b, bad, -ENOTSUP);
}

int baseline_stored_index(struct baseline *b,
			  const struct baseline_image *image,
			  struct entry_index *out)
{
	struct entry_scan scan = baseline_scan(image);
	uint64_t n;

	if (!scan.index_step)
		return say(b, "no index", -ENOENT);
	n = entry_count(&scan, scan.index_step);
	if (scratch_grow(&b->entries, n, sizeof(struct entry)))
		return say(b, "out of memory", -ENOMEM);
	if (entry_parse(image->index, image->index_size, &scan, b->entries.p))
		return say(b, OTHER_INDEX, -ENOENT);
	*out = (struct entry_index){ b->entries.p, (uint32_t)n,
				     scan.index_step };
	return say(b, NULL, 0);
}
