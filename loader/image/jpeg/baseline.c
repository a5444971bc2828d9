/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/baseline.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "loader/image/jpeg/baseline_scan.h"

enum {
	/* Row lengths that are a power of two would share few cache sets. */
	STRIDE_UNIT = 64,
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

int baseline_header(struct baseline *b, const uint8_t *bytes, size_t size,
		    struct baseline_image *out)
{
	return baseline_say(b, baseline_header_parse(bytes, size, out),
			    -ENOTSUP);
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
			return baseline_say(b, "out of memory", -ENOMEM);
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
		return baseline_scan_rows(b, image, from->index);
	if (from->record)
		return baseline_scan_recorded(b, image, from->record, rows);
	return baseline_scan_start(b, image, rows * image->mcus_across);
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
		return baseline_say(b, "the rectangle is not inside", -ERANGE);
	bad = baseline_scan_tables(b, image);
	if (bad)
		return baseline_say(b, bad, -ENOTSUP);
	r = make_planes(b, image, rect, margin, wanted, found);
	if (!r)
		r = baseline_scan_data(b, image);
	if (r)
		return r;
	bad = decode_scan(b, image, rect, from);
	if (!bad)
		memcpy(planes, found, wanted * sizeof(*planes));
	return baseline_say(b, bad, -ENOTSUP);
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
	bad = baseline_scan_tables(b, image);
	if (bad)
		return baseline_say(b, bad, -ENOTSUP);
	r = make_planes(b, image, &whole, 0, image->components, found);
	if (!r)
		r = baseline_scan_data(b, image);
	if (r)
		return r;
	bad = baseline_scan_compare(b, image, index);
	if (!bad)
		memcpy(planes, found, image->components * sizeof(*planes));
	return baseline_say(b, bad, -ENOTSUP);
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
		return baseline_say(b, "restart markers", -ENOTSUP);
	n = div_round_up(across, step) * image->mcus_down;
	bad = baseline_scan_tables(b, image);
	if (bad)
		return baseline_say(b, bad, -ENOTSUP);
	r = baseline_scan_data(b, image);
	if (r)
		return r;
	if (scratch_grow(&b->entries, n, sizeof(struct entry)))
		return baseline_say(b, "out of memory", -ENOMEM);
	b->scan.width = b->scan.height = 0;
	bad = baseline_scan_index(b, image, step, n, b->entries.p);
	if (!bad)
		*out = (struct entry_index){ b->entries.p, n, step };
	return baseline_say(b, bad, -ENOTSUP);
}

int baseline_stored_index(struct baseline *b,
			  const struct baseline_image *image,
			  struct entry_index *out)
{
	struct entry_scan scan = baseline_scan(image);
	uint64_t n;

	if (!scan.index_step)
		return baseline_say(b, "no index", -ENOENT);
	n = entry_count(&scan, scan.index_step);
	if (scratch_grow(&b->entries, n, sizeof(struct entry)))
		return baseline_say(b, "out of memory", -ENOMEM);
	if (entry_parse(image->index, image->index_size, &scan, b->entries.p))
		return baseline_say(b, BASELINE_OTHER_INDEX, -ENOENT);
	*out = (struct entry_index){ b->entries.p, (uint32_t)n,
				     scan.index_step };
	return baseline_say(b, NULL, 0);
}
