/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/pixels/warp.h"
#include "loader/image/pixels/warp_loops.h"

#include <string.h>

/* Four bytes at a time; the last pixel's fourth would be beyond the row. */
static void nearest(const struct warp_row *r)
{
	const uint8_t *pixels = r->in->pixels;
	size_t stride = r->in->stride;
	int64_t x = r->x + r->from * r->step_x;
	int64_t y = r->y + r->from * r->step_y;
	uint8_t *to = r->out + 3 * r->from, *end = r->out + 3 * r->to;

	for (; to < end; to += 3, x += r->step_x, y += r->step_y) {
		const uint8_t *p = pixels + (size_t)(y >> WARP_BITS) * stride +
				   3 * (size_t)(x >> WARP_BITS);

		memcpy(to, p, 2);
		to[2] = p[2];
	}
}

/* Blends the pixels about the place (x, y). */
static inline void blend_four(const struct image *in, int64_t x, int64_t y,
			      uint8_t *to)
{
	struct warp_about h = warp_about(x, in->width);
	struct warp_about v = warp_about(y, in->height);
	const uint8_t *above = in->pixels + v.first * in->stride;
	const uint8_t *below = in->pixels + v.second * in->stride;
	const uint8_t *a = above + 3 * h.first, *c = below + 3 * h.first;
	const uint8_t *b = above + 3 * h.second, *d = below + 3 * h.second;

	for (unsigned k = 0; k < 3; k++) {
		int32_t top =
			a[k] * (WARP_WEIGHTS - h.weight) + b[k] * h.weight;
		int32_t bottom =
			c[k] * (WARP_WEIGHTS - h.weight) + d[k] * h.weight;

		to[k] = (uint8_t)((top * (WARP_WEIGHTS - v.weight) +
				   bottom * v.weight) >>
				  (2 * WARP_WEIGHT_BITS));
	}
}

static void bilinear(const struct warp_row *r)
{
	int64_t x = r->x + r->from * r->step_x;
	int64_t y = r->y + r->from * r->step_y;
	uint8_t *to = r->out + 3 * r->from, *end = r->out + 3 * r->to;

	for (; to < end; to += 3, x += r->step_x, y += r->step_y)
		blend_four(r->in, x, y, to);
}

static void sample_nearest(const struct warp_places *at, size_t count,
			   const struct image *in, const uint8_t *fill,
			   uint8_t *out)
{
	for (size_t i = 0; i < count; i++, out += 3) {
		const uint8_t *p = fill;

		if (at->x[i] != WARP_OUTSIDE)
			p = in->pixels +
			    (size_t)(at->y[i] >> WARP_BITS) * in->stride +
			    3 * (size_t)(at->x[i] >> WARP_BITS);
		memcpy(out, p, 2);
		out[2] = p[2];
	}
}

static void sample_bilinear(const struct warp_places *at, size_t count,
			    const struct image *in, const uint8_t *fill,
			    uint8_t *out)
{
	for (size_t i = 0; i < count; i++, out += 3) {
		if (at->x[i] == WARP_OUTSIDE)
			memcpy(out, fill, 3);
		else
			blend_four(in, at->x[i], at->y[i], out);
	}
}

static void move(const struct warp_moves *m, size_t count,
		 struct warp_places *at)
{
	for (size_t i = 0; i < count; i++) {
		double x = (double)(m->x + i) + 0.5 + (double)m->dx[i];
		double y = (double)m->y + 0.5 + (double)m->dy[i];
		bool in =
			(x >= 0) & (x < m->width) & (y >= 0) & (y < m->height);

		at->x[i] = in ? (int32_t)(x * WARP_ONE) : WARP_OUTSIDE;
		at->y[i] = in ? (int32_t)(y * WARP_ONE) : 0;
	}
}

static void divide(const struct warp_division *d, struct warp_places *at)
{
	for (int i = 0; i < WARP_PLACES; i++) {
		double one = d->d + i * d->step[2];
		double x = (d->x + i * d->step[0]) / one;
		double y = (d->y + i * d->step[1]) / one;
		bool in =
			(x >= 0) & (x < d->width) & (y >= 0) & (y < d->height);

		at->x[i] = in ? (int32_t)(x * WARP_ONE) : WARP_OUTSIDE;
		at->y[i] = in ? (int32_t)(y * WARP_ONE) : 0;
	}
}

const struct warp_loops ISA_NAME(warp_loops) = {
	.row = { [WARP_NEAREST] = nearest, [WARP_BILINEAR] = bilinear },
	.sample = { [WARP_NEAREST] = sample_nearest,
		    [WARP_BILINEAR] = sample_bilinear },
	.divide = divide,
	.move = move,
};
