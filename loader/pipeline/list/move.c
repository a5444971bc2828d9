/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/list/move.h"

struct move move_none(uint32_t width, uint32_t height)
{
	return move_shift(0, 0, width, height);
}

struct move move_shift(double x, double y, uint32_t width, uint32_t height)
{
	return (struct move){ { 1, 0, x, 0, 1, y, 0, 0, 1 }, width, height };
}

struct move move_crop(const struct rect *part, uint32_t width, uint32_t height,
		      bool mirror)
{
	double x = (double)width / part->width;
	double y = (double)height / part->height;
	struct move v = { { x, 0, -(x * part->x), 0, y, -(y * part->y), 0, 0,
			    1 },
			  width,
			  height };

	if (mirror) {
		v.m[0] = -v.m[0];
		v.m[2] = width - v.m[2];
	}
	return v;
}

/* The inverse of the matrix of a map, whose last element is 1. */
struct move move_of_map(const struct warp_map *map, uint32_t width,
			uint32_t height)
{
	const double *m = map->m;
	double d = m[0] * m[4] - m[1] * m[3];
	struct move v = { { m[4] - m[5] * m[7], m[2] * m[7] - m[1],
			    m[1] * m[5] - m[2] * m[4], m[5] * m[6] - m[3],
			    m[0] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
			    m[3] * m[7] - m[4] * m[6],
			    m[1] * m[6] - m[0] * m[7], d },
			  width,
			  height };

	for (unsigned i = 0; i < 9 && d != 0; i++)
		v.m[i] /= d;
	return v;
}

struct move move_both(const struct move *first, const struct move *second)
{
	struct move both = { .width = second->width, .height = second->height };

	for (unsigned row = 0; row < 9; row += 3) {
		const double *a = second->m + row;

		for (unsigned k = 0; k < 3; k++) {
			const double *b = first->m + k;

			both.m[row + k] = a[0] * b[0] + a[1] * b[3];
			both.m[row + k] += a[2] * b[6];
		}
	}
	return both;
}

void move_place(const struct move *move, double *x, double *y)
{
	const double *m = move->m;
	double w = m[6] * *x + m[7] * *y + m[8];
	double to = m[0] * *x + m[1] * *y + m[2];

	*y = (m[3] * *x + m[4] * *y + m[5]) / w;
	*x = to / w;
}

bool move_is_mirrored(const struct move *move)
{
	const double *m = move->m;
	double area = m[0] * (m[4] * m[8] - m[5] * m[7]) -
		      m[1] * (m[3] * m[8] - m[5] * m[6]) +
		      m[2] * (m[3] * m[7] - m[4] * m[6]);

	return area * m[8] < 0;
}
