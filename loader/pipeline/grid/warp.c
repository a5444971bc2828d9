/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/grid/warp.h"

#include <string.h>

#include "fs/base/util/bytes.h"

/* --- nearest --- */

/* Copies the pixels in which places lie. */
#define DEFINE_PICK(bits)                                                      \
	static void pick_##bits(const struct grid *in, uint32_t frame,         \
				const struct warp_places *at, size_t count,    \
				uint8_t *out)                                  \
	{                                                                      \
		for (size_t i = 0; i < count; i++, out += (bits) / 8) {        \
			size_t x = (size_t)(at->x[i] >> WARP_BITS);            \
			uint32_t y = (uint32_t)(at->y[i] >> WARP_BITS);        \
                                                                               \
			if (at->x[i] != WARP_OUTSIDE)                          \
				memcpy(out,                                    \
				       grid_row(in, frame, y) +                \
					       x * ((bits) / 8),               \
				       (bits) / 8);                            \
		}                                                              \
	}

DEFINE_PICK(8)
DEFINE_PICK(16)
DEFINE_PICK(32)
DEFINE_PICK(64)

static void pick_any(const struct grid *in, uint32_t frame,
		     const struct warp_places *at, size_t count, uint8_t *out)
{
	size_t pixel = grid_pixel_size(in);

	for (size_t i = 0; i < count; i++, out += pixel) {
		size_t x = (size_t)(at->x[i] >> WARP_BITS);
		uint32_t y = (uint32_t)(at->y[i] >> WARP_BITS);

		if (at->x[i] != WARP_OUTSIDE)
			memcpy(out, grid_row(in, frame, y) + x * pixel, pixel);
	}
}

static void pick(const struct grid *in, uint32_t frame,
		 const struct warp_places *at, size_t count, uint8_t *out)
{
	switch (grid_pixel_size(in)) {
	case 1:
		pick_8(in, frame, at, count, out);
		return;
	case 2:
		pick_16(in, frame, at, count, out);
		return;
	case 4:
		pick_32(in, frame, at, count, out);
		return;
	case 8:
		pick_64(in, frame, at, count, out);
		return;
	default:
		pick_any(in, frame, at, count, out);
	}
}

/* --- bilinear --- */

/* The four values about a place, and their weights. */
struct four {
	const uint8_t *value[4]; /* above, then below */
	int32_t x;		 /* the weight of the right ones, */
	int32_t y;		 /* and of the lower ones */
};

static struct four four_at(const struct grid *in, uint32_t frame, int32_t x,
			   int32_t y)
{
	struct warp_about h = warp_about(x, in->width);
	struct warp_about v = warp_about(y, in->height);
	const uint8_t *above = grid_row(in, frame, (uint32_t)v.first);
	const uint8_t *below = grid_row(in, frame, (uint32_t)v.second);
	size_t pixel = grid_pixel_size(in);

	return (struct four){
		{ above + h.first * pixel, above + h.second * pixel,
		  below + h.first * pixel, below + h.second * pixel },
		h.weight,
		v.weight
	};
}

static uint8_t blend_bytes(const struct four *f, size_t c)
{
	int32_t left = WARP_WEIGHTS - f->x;
	int32_t top = f->value[0][c] * left + f->value[1][c] * f->x;
	int32_t bottom = f->value[2][c] * left + f->value[3][c] * f->x;

	return (uint8_t)((top * (WARP_WEIGHTS - f->y) + bottom * f->y) >>
			 (2 * WARP_WEIGHT_BITS));
}

static float real_at(enum dtype dtype, const uint8_t *value)
{
	float v;

	if (dtype == DTYPE_F4)
		memcpy(&v, value, sizeof(v));
	else
		dtype_convert(dtype, value, DTYPE_F4, &v, 1);
	return v;
}

static float blend_reals(const struct four *f, enum dtype dtype, size_t at)
{
	float x = (float)f->x / WARP_WEIGHTS, y = (float)f->y / WARP_WEIGHTS;
	float v[4], top, bottom;

	for (unsigned i = 0; i < 4; i++)
		v[i] = real_at(dtype, f->value[i] + at);
	top = v[0] * (1 - x) + v[1] * x;
	bottom = v[2] * (1 - x) + v[3] * x;
	return top * (1 - y) + bottom * y;
}

static void blend_pixel(const struct grid *in, const struct four *f,
			uint8_t *out)
{
	size_t item = dtype_size(in->dtype);

	for (uint32_t c = 0; c < in->channels; c++) {
		float v;

		if (in->dtype == DTYPE_U1) {
			out[c] = blend_bytes(f, c);
			continue;
		}
		v = blend_reals(f, in->dtype, c * item);
		dtype_convert(DTYPE_F4, &v, in->dtype, out + c * item, 1);
	}
}

static void blend(const struct grid *in, uint32_t frame,
		  const struct warp_places *at, size_t count, uint8_t *out)
{
	size_t pixel = grid_pixel_size(in);

	for (size_t i = 0; i < count; i++, out += pixel) {
		struct four f;

		if (at->x[i] == WARP_OUTSIDE)
			continue;
		f = four_at(in, frame, at->x[i], at->y[i]);
		blend_pixel(in, &f, out);
	}
}

/* --- a grid --- */

/* Makes some pixels of a row of all frames, which are filled already. */
static void sample(const struct grid_warp *w, const struct warp_places *at,
		   size_t count, const struct grid *in, const struct grid *out,
		   uint32_t x, uint32_t y)
{
	bool blends = w->how == WARP_BILINEAR && !in->mask;

	for (uint32_t f = 0; f < out->frames; f++) {
		uint8_t *to = grid_row(out, f, y) + x * grid_pixel_size(out);

		(blends ? blend : pick)(in, f, at, count, to);
	}
}

static void fill_all(const struct grid_warp *w, const struct grid *out)
{
	const struct rect all = { 0, 0, out->width, out->height };

	grid_fill(out, &all, w->fill, w->label);
}

/* The places by the first map, of those that are inside by all of them. */
static void find(const struct warp_map *maps, size_t count,
		 const struct grid *in, uint32_t x, uint32_t y, size_t n,
		 struct warp_places *at)
{
	struct warp_places by;

	warp_find(maps, in->width, in->height, x, y, n, at);
	for (size_t k = 1; k < count; k++) {
		warp_find(&maps[k], in->width, in->height, x, y, n, &by);
		for (size_t i = 0; i < n; i++) {
			if (by.x[i] == WARP_OUTSIDE)
				at->x[i] = WARP_OUTSIDE;
		}
	}
}

void grid_warp_maps(const struct grid_warp *w, const struct warp_map *maps,
		    size_t count, const struct grid *in, const struct grid *out)
{
	struct warp_places at;

	fill_all(w, out);
	for (uint32_t y = 0; y < out->height; y++) {
		for (uint32_t x = 0; x < out->width; x += WARP_PLACES) {
			size_t n = min_u64(out->width - x, WARP_PLACES);

			find(maps, count, in, x, y, n, &at);
			sample(w, &at, n, in, out, x, y);
		}
	}
}

void grid_warp_displaced(const struct grid_warp *w, const float *dx,
			 const float *dy, const struct grid *in,
			 const struct grid *out)
{
	struct warp_places at;

	fill_all(w, out);
	for (uint32_t y = 0; y < out->height; y++) {
		for (uint32_t x = 0; x < out->width; x += WARP_PLACES) {
			size_t n = min_u64(out->width - x, WARP_PLACES);

			warp_find_displaced(dx, dy, in->width, in->height, x, y,
					    n, &at);
			sample(w, &at, n, in, out, x, y);
			dx += n;
			dy += n;
		}
	}
}
