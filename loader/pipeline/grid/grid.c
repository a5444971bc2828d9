/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/grid/grid.h"

#include <string.h>

#include "fs/base/util/bytes.h"

struct grid grid_of_type(const struct type *type)
{
	return (struct grid){
		.dtype = type->dtype,
		.mask = type->mask,
		.width = type->width,
		.height = type->height,
		.channels = type->channels ? type->channels : 1,
		.frames = type->frames ? type->frames : 1,
	};
}

size_t grid_pixel_size(const struct grid *g)
{
	return g->channels * dtype_size(g->dtype);
}

size_t grid_row_size(const struct grid *g)
{
	return g->width * grid_pixel_size(g);
}

uint64_t grid_pack(struct grid *g)
{
	uint64_t size = dtype_size(g->dtype);

	if (!mul_ok(size, g->channels, &size) || !mul_ok(size, g->width, &size))
		return UINT64_MAX;
	g->stride = size;
	if (!mul_ok(size, g->height, &size))
		return UINT64_MAX;
	g->frame = size;
	return mul_ok(size, g->frames, &size) ? size : UINT64_MAX;
}

void grid_crop(struct grid *g, const struct rect *part)
{
	g->values += part->y * g->stride + part->x * grid_pixel_size(g);
	g->width = part->width;
	g->height = part->height;
}

void grid_fill(const struct grid *g, const struct rect *part,
	       const struct arg *fill, const struct arg *label)
{
	const struct arg *from = g->mask && label ? label : fill;
	size_t item = dtype_size(g->dtype), pixel = grid_pixel_size(g);
	struct grid area = *g;

	if (!part->width || !part->height)
		return;
	grid_crop(&area, part);
	for (uint32_t c = 0; c < g->channels; c++)
		dtype_convert(DTYPE_F8, &from->number[from->count == 1 ? 0 : c],
			      g->dtype, area.values + c * item, 1);
	for (size_t x = 1; x < area.width; x++)
		memcpy(area.values + x * pixel, area.values, pixel);
	for (uint32_t f = 0; f < area.frames; f++) {
		for (uint32_t y = 0; y < area.height; y++) {
			if (f || y)
				memcpy(grid_row(&area, f, y), area.values,
				       grid_row_size(&area));
		}
	}
}

/* Copies `n` items of a size, `from` and `to` bytes apart. */
#define DEFINE_SPREAD(bits)                                                    \
	static void spread_##bits(const uint8_t *in, ptrdiff_t from,           \
				  uint8_t *out, size_t to, size_t n)           \
	{                                                                      \
		for (; n; n--, in += from, out += to)                          \
			memcpy(out, in, (bits) / 8);                           \
	}

DEFINE_SPREAD(8)
DEFINE_SPREAD(16)
DEFINE_SPREAD(32)
DEFINE_SPREAD(64)

static void spread(size_t size, const uint8_t *in, ptrdiff_t from, uint8_t *out,
		   size_t to, size_t n)
{
	if (size == 1)
		spread_8(in, from, out, to, n);
	else if (size == 2)
		spread_16(in, from, out, to, n);
	else if (size == 4)
		spread_32(in, from, out, to, n);
	else if (size == 8)
		spread_64(in, from, out, to, n);
	else
		for (; n; n--, in += from, out += to)
			memcpy(out, in, size);
}

/* Copies a row, from the last pixel to the first if mirrored. */
static void copy_row(const struct grid *g, const uint8_t *in, bool mirror,
		     uint8_t *out)
{
	size_t pixel = grid_pixel_size(g);

	if (mirror)
		spread(pixel, in + (g->width - 1) * pixel, -(ptrdiff_t)pixel,
		       out, pixel, g->width);
	else
		memcpy(out, in, grid_row_size(g));
}

void grid_copy(const struct grid *in, bool mirror, const struct grid *out)
{
	for (uint32_t f = 0; f < in->frames; f++) {
		for (uint32_t y = 0; y < in->height; y++)
			copy_row(in, grid_row(in, f, y), mirror,
				 grid_row(out, f, y));
	}
}

void grid_convert(const struct grid *in, const struct grid *out)
{
	for (uint32_t f = 0; f < in->frames; f++) {
		for (uint32_t y = 0; y < in->height; y++)
			dtype_convert(in->dtype, grid_row(in, f, y), out->dtype,
				      grid_row(out, f, y),
				      (size_t)in->width * in->channels);
	}
}

/* Writes the planes of a frame. */
static void store_planes(const struct grid *in, uint32_t f, bool mirror,
			 uint8_t *out)
{
	size_t item = dtype_size(in->dtype), pixel = grid_pixel_size(in);
	ptrdiff_t step = mirror ? -(ptrdiff_t)pixel : (ptrdiff_t)pixel;
	size_t first = mirror ? (in->width - 1) * pixel : 0;

	for (uint32_t c = 0; c < in->channels; c++) {
		for (uint32_t y = 0; y < in->height; y++) {
			spread(item, grid_row(in, f, y) + first + c * item,
			       step, out, item, in->width);
			out += in->width * item;
		}
	}
}

void grid_store(const struct grid *in, bool mirror, bool chw, void *out)
{
	struct grid to = *in;

	grid_pack(&to);
	to.values = out;
	if (!chw || in->channels == 1) {
		grid_copy(in, mirror, &to);
		return;
	}
	for (uint32_t f = 0; f < in->frames; f++)
		store_planes(in, f, mirror, grid_row(&to, f, 0));
}
