/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/list/list_rows.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/field.h"

static uint64_t *starts_of(const struct list_rows *g)
{
	return (uint64_t *)g->starts.bytes;
}

uint64_t *list_rows_count(const struct list_rows *g, uint32_t sample)
{
	return (uint64_t *)g->counts.bytes + sample;
}

uint8_t *list_rows_place(const struct list_rows *g, uint32_t sample)
{
	return g->rows.bytes + starts_of(g)[sample];
}

int list_rows_begin(struct list_rows *g, uint32_t samples)
{
	uint64_t size = sizeof(uint64_t) * ((uint64_t)samples + 1);
	int r = buffer_reserve(&g->starts, size);

	if (!r)
		r = buffer_reserve(&g->counts, size);
	if (r)
		return r;
	memset(g->counts.bytes, 0, size);
	g->samples = samples;
	g->size = 0;
	return 0;
}

int list_rows_add(struct list_rows *g, uint32_t sample, uint64_t size)
{
	starts_of(g)[sample] = g->size;
	return add_ok(g->size, size, &g->size) && g->size < INT64_MAX ? 0
								      : -ENOMEM;
}

int list_rows_reserve(struct list_rows *g)
{
	return buffer_reserve(&g->rows, g->size + 1);
}

void list_rows_fini(struct list_rows *g)
{
	buffer_fini(&g->rows);
	buffer_fini(&g->starts);
	buffer_fini(&g->counts);
}

/* Returns the number of rows if each sample has at most `length`. */
static uint64_t count_rows(const struct list_rows *g, uint64_t length)
{
	uint64_t rows = 0;

	for (uint32_t i = 0; i < g->samples; i++)
		rows += min_u64(*list_rows_count(g, i), length);
	return rows;
}

void list_rows_cut(const struct list_rows *g, uint64_t most)
{
	uint64_t fits = 0, length = most, left;

	if (count_rows(g, UINT64_MAX) <= most)
		return;
	while (fits < length) {
		uint64_t middle = length - (length - fits) / 2;

		if (count_rows(g, middle) <= most)
			fits = middle;
		else
			length = middle - 1;
	}
	left = most - count_rows(g, length);
	for (uint32_t i = 0; i < g->samples; i++) {
		uint64_t *rows = list_rows_count(g, i);

		if (*rows <= length)
			continue;
		*rows = length + (left > 0);
		left -= left > 0;
	}
}

void list_rows_join(const struct list_rows *g, uint64_t item_size,
		    int64_t *offsets)
{
	uint64_t at = 0, rows;

	for (uint32_t i = 0; i < g->samples; i++) {
		rows = *list_rows_count(g, i);
		memmove(g->rows.bytes + at * item_size, list_rows_place(g, i),
			rows * item_size);
		offsets[i] = (int64_t)at;
		at += rows;
	}
	offsets[g->samples] = (int64_t)at;
}

/* Returns the length of all samples after padding. */
static bool find_length(const struct list_rows *g, uint64_t multiple,
			uint64_t *out)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < g->samples; i++)
		most = max_u64(most, *list_rows_count(g, i));
	return add_ok(most, multiple - 1, &most) &&
	       mul_ok(most / multiple, multiple, out);
}

static uint8_t *fill(uint8_t *to, const struct pipeline_output *o,
		     uint64_t rows)
{
	size_t size = field_dtype_size(o->dtype);

	for (uint64_t i = 0; i < rows * o->item_size; i += size)
		to = mempcpy(to, o->filler, size);
	return to;
}

int list_rows_pad(const struct list_rows *g, const struct pipeline_output *o,
		  struct buffer *out, uint64_t *length)
{
	uint64_t size;
	uint8_t *to;

	if (!find_length(g, o->multiple, length) ||
	    !mul_ok(*length, o->item_size, &size) ||
	    !mul_ok(size, g->samples, &size) || size >= INT64_MAX ||
	    buffer_reserve(out, size + 1))
		return -ENOMEM;
	to = out->bytes;
	for (uint32_t i = 0; i < g->samples; i++) {
		uint64_t rows = *list_rows_count(g, i);

		if (o->pads_left)
			to = fill(to, o, *length - rows);
		to = mempcpy(to, list_rows_place(g, i), rows * o->item_size);
		if (!o->pads_left)
			to = fill(to, o, *length - rows);
	}
	return 0;
}
