/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/pixels/warp.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/pixels/warp_loops.h"
#include "loader/util/exact_math.h"

/* Beyond this many pixels no image has any. */
static const double FAR = 1 << 30;

/* In 2^-16 pixels, rounded to nearest, halves up. */
static int64_t fixed(double v)
{
	int64_t whole;

	v = v > -FAR ? v < FAR ? v : FAR : -FAR;
	v = v * WARP_ONE + 0.5;
	whole = (int64_t)v;
	return whole - (v < (double)whole);
}

/* floor(a / b), b > 0. */
static int64_t divide_down(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Narrows [from, to), a part of the row, to the k with 0 <= start + k * step <
 * end. */
static void narrow(int64_t start, int64_t step, int64_t end, struct warp_row *r)
{
	int64_t first, last;

	if (!step) {
		if (start < 0 || start >= end)
			r->from = r->to = 0;
		return;
	}
	if (step > 0) {
		first = -divide_down(start, step);
		last = divide_down(end - 1 - start, step);
	} else {
		first = -divide_down(end - 1 - start, -step);
		last = divide_down(start, -step);
	}
	if (first > r->from)
		r->from = first;
	if (last + 1 < r->to)
		r->to = last + 1;
	if (r->from > r->to)
		r->from = r->to = 0;
}

static void fill_pixels(uint8_t *to, size_t count,
			const uint8_t fill[IMAGE_CHANNELS])
{
	for (size_t i = 0; i < count; i++, to += IMAGE_CHANNELS) {
		to[0] = fill[0];
		to[1] = fill[1];
		to[2] = fill[2];
	}
}

static struct rect seen_of(const struct image *out, const struct rect *seen)
{
	return seen ? *seen : (struct rect){ 0, 0, out->width, out->height };
}

/* The places of an affine map: of the first pixel, and the steps. */
struct lattice {
	int64_t x;
	int64_t y;
	int64_t step_x; /* to the next pixel of a row */
	int64_t step_y;
	int64_t down_x; /* to the next row */
	int64_t down_y;
};

static struct lattice lattice_of(const double *m)
{
	return (struct lattice){
		.x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5),
		.y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5),
		.step_x = fixed(m[0]),
		.step_y = fixed(m[3]),
		.down_x = fixed(m[1]),
		.down_y = fixed(m[4]),
	};
}

/* Narrows [from, to) of row y to the places inside the image. */
static void narrow_row(const struct lattice *l, uint32_t y, struct warp_row *r)
{
	narrow(l->x + y * l->down_x, l->step_x,
	       (int64_t)r->in->width << WARP_BITS, r);
	narrow(l->y + y * l->down_y, l->step_y,
	       (int64_t)r->in->height << WARP_BITS, r);
}

/* The first lattice has the pixels' places. */
static void warp_rows(const struct lattice *l, size_t count, enum warp_how how,
		      const uint8_t fill[IMAGE_CHANNELS],
		      const struct image *in, const struct image *out,
		      const struct rect *seen)
{
	const struct warp_loops *loops = ISA_BEST(warp_loops);
	const struct rect part = seen_of(out, seen);
	const int64_t first = part.x, end = first + part.width;
	struct warp_row r = { .in = in,
			      .step_x = l->step_x,
			      .step_y = l->step_y };

	for (uint32_t y = part.y; y < part.y + part.height; y++) {
		uint8_t *to = out->pixels + y * out->stride;

		r.x = l->x + y * l->down_x;
		r.y = l->y + y * l->down_y;
		r.from = first;
		r.to = end;
		for (size_t i = 0; i < count; i++)
			narrow_row(&l[i], y, &r);
		if (r.from >= r.to)
			r.from = r.to = first;
		fill_pixels(to + IMAGE_CHANNELS * first,
			    (size_t)(r.from - first), fill);
		r.out = to;
		loops->row[how](&r);
		fill_pixels(to + IMAGE_CHANNELS * r.to, (size_t)(end - r.to),
			    fill);
	}
}

void warp_affine(const struct affine *map, enum warp_how how,
		 const uint8_t fill[IMAGE_CHANNELS], const struct image *in,
		 const struct image *out, const struct rect *seen)
{
	struct lattice l = lattice_of(map->m);

	warp_rows(&l, 1, how, fill, in, out, seen);
}

void warp_joined(const struct warp_map *joined, size_t count, enum warp_how how,
		 const uint8_t fill[IMAGE_CHANNELS], const struct image *in,
		 const struct image *out, const struct rect *seen)
{
	struct lattice l[WARP_MAPS_MAX];

	for (size_t i = 0; i < count; i++)
		l[i] = lattice_of(joined[i].m);
	warp_rows(l, count, how, fill, in, out, seen);
}

static struct affine affine_in(const struct warp_map *map)
{
	struct affine out;

	memcpy(out.m, map->m, sizeof(out.m));
	return out;
}

/* The map that does `first`'s, and then `second`'s, to an image. */
static struct affine join(const struct affine *first,
			  const struct affine *second)
{
	const double *a = first->m, *b = second->m;

	return (struct affine){ {
		a[0] * b[0] + a[1] * b[3],
		a[0] * b[1] + a[1] * b[4],
		a[0] * b[2] + a[1] * b[5] + a[2],
		a[3] * b[0] + a[4] * b[3],
		a[3] * b[1] + a[4] * b[4],
		a[3] * b[2] + a[4] * b[5] + a[5],
	} };
}

void warp_join(const struct warp_map *maps, size_t count, struct warp_map *out)
{
	out[count - 1] = maps[count - 1];
	for (size_t i = count - 1; i-- > 0;) {
		struct affine first = affine_in(&maps[i]);
		struct affine rest = affine_in(&out[i + 1]);

		first = join(&first, &rest);
		out[i] = warp_map_of(&first);
	}
}

/* The places of all WARP_PLACES from pixel (x, y) of the result on. */
static void find_divided(const double *m, uint32_t width, uint32_t height,
			 uint32_t x, uint32_t y, struct warp_places *out)
{
	double u = x + 0.5, v = y + 0.5;
	struct warp_division d = { .x = m[0] * u + m[1] * v + m[2],
				   .y = m[3] * u + m[4] * v + m[5],
				   .d = m[6] * u + m[7] * v + 1,
				   .step = { m[0], m[3], m[6] },
				   .width = width,
				   .height = height };

	ISA_BEST(warp_loops)->divide(&d, out);
}

static void warp_divided(const struct perspective *map, enum warp_how how,
			 const uint8_t fill[IMAGE_CHANNELS],
			 const struct image *in, const struct image *out,
			 const struct rect *seen)
{
	const struct warp_loops *loops = ISA_BEST(warp_loops);
	const struct rect part = seen_of(out, seen);
	/* Places are rounded from those of the first pixel of WARP_PLACES. */
	const uint32_t first = part.x - part.x % WARP_PLACES;
	const uint32_t end = part.x + part.width;
	struct warp_places at;
	size_t count;

	for (uint32_t y = part.y; y < part.y + part.height; y++) {
		uint8_t *to = out->pixels + y * out->stride;

		for (uint32_t x = first; x < end; x += WARP_PLACES) {
			count = min_u64(end - x, WARP_PLACES);
			find_divided(map->m, in->width, in->height, x, y, &at);
			loops->sample[how](&at, count, in, fill,
					   to + IMAGE_CHANNELS * (size_t)x);
		}
	}
}

struct warp_map warp_map_of(const struct affine *map)
{
	struct warp_map out = { .divides = false };

	memcpy(out.m, map->m, sizeof(map->m));
	return out;
}

static void find_affine(const double *m, uint32_t width, uint32_t height,
			uint32_t x, uint32_t y, size_t count,
			struct warp_places *out)
{
	const int64_t end_x = (int64_t)width << WARP_BITS;
	const int64_t end_y = (int64_t)height << WARP_BITS;
	struct lattice l = lattice_of(m);
	int64_t at_x = l.x + y * l.down_x + x * l.step_x;
	int64_t at_y = l.y + y * l.down_y + x * l.step_y;

	for (size_t i = 0; i < count; i++) {
		bool in =
			at_x >= 0 && at_x < end_x && at_y >= 0 && at_y < end_y;

		out->x[i] = in ? (int32_t)at_x : WARP_OUTSIDE;
		out->y[i] = in ? (int32_t)at_y : 0;
		at_x += l.step_x;
		at_y += l.step_y;
	}
}

void warp_find(const struct warp_map *map, uint32_t width, uint32_t height,
	       uint32_t x, uint32_t y, size_t count, struct warp_places *out)
{
	if (map->divides)
		find_divided(map->m, width, height, x, y, out);
	else
		find_affine(map->m, width, height, x, y, count, out);
}

void warp_find_displaced(const float *dx, const float *dy, uint32_t width,
			 uint32_t height, uint32_t x, uint32_t y, size_t count,
			 struct warp_places *out)
{
	const struct warp_moves m = { dx, dy, x, y, width, height };

	ISA_BEST(warp_loops)->move(&m, count, out);
}

void warp_image(const struct warp_map *map, enum warp_how how,
		const uint8_t fill[IMAGE_CHANNELS], const struct image *in,
		const struct image *out, const struct rect *seen)
{
	const struct affine plain = affine_in(map);
	struct perspective divided;

	memcpy(divided.m, map->m, sizeof(divided.m));
	if (map->divides)
		warp_divided(&divided, how, fill, in, out, seen);
	else
		warp_affine(&plain, how, fill, in, out, seen);
}

enum { UNKNOWNS = 8 };

/* Equations in the unknowns, the last column their right side. */
typedef double equations[UNKNOWNS][UNKNOWNS + 1];

static void exchange_rows(equations e, unsigned a, unsigned b)
{
	for (unsigned k = 0; k <= UNKNOWNS; k++) {
		double v = e[a][k];

		e[a][k] = e[b][k];
		e[b][k] = v;
	}
}

static double size_of(double v)
{
	return v < 0 ? -v : v;
}

/* Gauss and Jordan's elimination, by the largest element of each column. */
static bool solve(equations e)
{
	for (unsigned c = 0; c < UNKNOWNS; c++) {
		unsigned best = c;

		for (unsigned r = c + 1; r < UNKNOWNS; r++)
			if (size_of(e[r][c]) > size_of(e[best][c]))
				best = r;
		if (!(size_of(e[best][c]) > 1e-9))
			return false;
		exchange_rows(e, c, best);
		for (unsigned r = 0; r < UNKNOWNS; r++) {
			double f = e[r][c] / e[c][c];

			for (unsigned k = c; r != c && k <= UNKNOWNS; k++)
				e[r][k] -= f * e[c][k];
		}
	}
	return true;
}

bool perspective_of(const double from[4][2], const double to[4][2],
		    struct perspective *out)
{
	equations e = { { 0 } };

	for (unsigned i = 0; i < 4; i++) {
		for (unsigned axis = 0; axis < 2; axis++) {
			double *row = e[2 * i + axis], goal = from[i][axis];

			row[3 * axis] = to[i][0];
			row[3 * axis + 1] = to[i][1];
			row[3 * axis + 2] = 1;
			row[6] = -goal * to[i][0];
			row[7] = -goal * to[i][1];
			row[UNKNOWNS] = goal;
		}
	}
	if (!solve(e))
		return false;
	for (unsigned k = 0; k < UNKNOWNS; k++)
		out->m[k] = e[k][UNKNOWNS] / e[k][k];
	return true;
}

void warp_displaced(const float *dx, const float *dy, enum warp_how how,
		    const uint8_t fill[IMAGE_CHANNELS], const struct image *in,
		    const struct image *out, const struct rect *seen)
{
	const struct warp_loops *loops = ISA_BEST(warp_loops);
	const struct rect part = seen_of(out, seen);
	const uint32_t end = part.x + part.width;
	struct warp_places at;
	size_t count;

	for (uint32_t y = part.y; y < part.y + part.height; y++) {
		uint8_t *to = out->pixels + y * out->stride;
		size_t row = (size_t)y * out->width;

		for (uint32_t x = part.x; x < end; x += WARP_PLACES) {
			const struct warp_moves m = {
				dx + row + x, dy + row + x, x, y,
				in->width,    in->height
			};

			count = min_u64(end - x, WARP_PLACES);
			loops->move(&m, count, &at);
			loops->sample[how](&at, count, in, fill,
					   to + IMAGE_CHANNELS * (size_t)x);
		}
	}
}

static double sine(double degrees)
{
	return exact_sine(degrees / 360);
}

static double cosine(double degrees)
{
	return exact_sine(degrees / 360 + 0.25);
}

/* Moves the fixed point of a linear map from the corner to (x, y), after a move
   by (tx, ty). */
static void put_center(double m[6], double x, double y, double tx, double ty)
{
	m[2] = m[0] * (-x - tx) + m[1] * (-y - ty) + x;
	m[5] = m[3] * (-x - tx) + m[4] * (-y - ty) + y;
}

struct affine affine_of(const struct affine_words *w)
{
	double turn = w->degrees - w->shear[1], c = cosine(w->shear[1]);
	double tangent = sine(w->shear[0]) / cosine(w->shear[0]);
	double a = cosine(turn) / c, s = sine(turn) / c;
	double b = -a * tangent - sine(w->degrees);
	double d = -s * tangent + cosine(w->degrees);
	struct affine out = { { d / w->scale, -b / w->scale, 0, -s / w->scale,
				a / w->scale, 0 } };

	put_center(out.m, w->center[0], w->center[1], w->translate[0],
		   w->translate[1]);
	return out;
}

struct affine affine_rotation(double degrees, uint32_t width, uint32_t height)
{
	double c = cosine(degrees), s = sine(degrees);
	struct affine out = { { c, -s, 0, s, c, 0 } };

	put_center(out.m, width / 2.0, height / 2.0, 0, 0);
	return out;
}

struct affine affine_shear_x(double level)
{
	return (struct affine){ { 1, level, 0, 0, 1, 0 } };
}

struct affine affine_shear_y(double level)
{
	return (struct affine){ { 1, 0, 0, level, 1, 0 } };
}

struct affine affine_translation(double x, double y)
{
	return (struct affine){ { 1, 0, -x, 0, 1, -y } };
}
