/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/baseline_scan.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/jpeg/stuffing.h"

enum {
	RST0 = 0xd0,
	RESTARTS = 8,
	MARKER_SIZE = 2,
};

int baseline_say(struct baseline *b, const char *message, int e)
{
	b->message = message ? message : "";
	return message ? e : 0;
}

const char *baseline_scan_tables(struct baseline *b,
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

static bool is_restart(const uint8_t *p, size_t size, uint32_t number)
{
	return size >= MARKER_SIZE && p[0] == 0xff &&
	       p[1] == RST0 + number % RESTARTS;
}

const char *baseline_scan_start(struct baseline *b,
				const struct baseline_image *image, uint32_t n)
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
		return BASELINE_OTHER_INDEX;
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

const char *baseline_scan_rows(struct baseline *b,
			       const struct baseline_image *image,
			       const struct entry_index *index)
{
	if (!is_index_of(index, image))
		return BASELINE_OTHER_INDEX;
	for (uint32_t i = 0; i < b->scan.height; i++) {
		uint32_t y = b->scan.y + i;
		struct row_entries row = entries_of(&b->scan, index->step, y);
		const struct entry *entries = index->entries;
		const char *bad = decode_row(
			b, image, &entries[row.first],
			row.end < index->n ? &entries[row.end] : NULL, row.mcu,
			y);

		if (bad)
			return bad;
	}
	return NULL;
}

int baseline_scan_data(struct baseline *b, const struct baseline_image *image)
{
	if (scratch_grow(&b->data, (uint64_t)image->scan_size + ENTROPY_PAD, 1))
		return baseline_say(b, "out of memory", -ENOMEM);
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
		return BASELINE_OTHER_INDEX;
	entropy_unstuff(image->scan + entry.byte, image->scan_size - entry.byte,
			b->data.p, &run.size);
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

const char *baseline_scan_recorded(struct baseline *b,
				   const struct baseline_image *image,
				   struct entry_record *record, uint32_t rows)
{
	uint32_t known = entry_record_rows(record);
	uint32_t end = (uint32_t)min_u64(known, b->scan.y + b->scan.height);
	const char *bad = NULL;

	for (uint32_t y = b->scan.y; y < end && !bad; y++)
		bad = decode_known(b, image, record, y);
	return bad || rows <= known
		       ? bad
		       : decode_rest(b, image, record, known, rows);
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

const char *baseline_scan_index(struct baseline *b,
				const struct baseline_image *image,
				uint32_t step, uint32_t n,
				struct entry *entries)
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

const char *baseline_scan_compare(struct baseline *b,
				  const struct baseline_image *image,
				  const struct entry_index *index)
{
	struct stuffed s = { .bytes = b->data.p };
	const struct entropy_mark *marks;
	struct entry entry;
	const char *bad;

	if (!is_index_of(index, image))
		return BASELINE_OTHER_INDEX;
	bad = decode_all_marked(b, image, index->step, index->n);
	marks = b->marks.p;
	for (uint32_t i = 0; i < index->n && !bad; i++) {
		bad = entry_at(&s, &marks[i], &entry);
		if (!bad && !is_entry(&entry, &index->entries[i]))
			bad = BASELINE_OTHER_INDEX;
	}
	return bad;
}
