/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/list/move.h"

struct move move_none(uint32_t width, uint32_t height)
{
	return move_shift(0, 0, width, height);
}

struct move move_shift(double x, double y, uint32_t width, uint32_t height)
{
	return (struct move){ { 1, 0, x, 0, 1, y }, width, height };
}

struct move move_crop(const struct rect *part, uint32_t width, uint32_t height,
		      bool mirror)
{
	double x = (double)width / part->width;
	double y = (double)height / part->height;
	struct move v = { { x, 0, -(x * part->x), 0, y, -(y * part->y) },
			  width,
			  height };

	if (mirror) {
		v.m[0] = -v.m[0];
		v.m[2] = width - v.m[2];
	}
	return v;
}

struct move move_both(const struct move *first, const struct move *second)
{
	const double *a = second->m, *b = first->m;

	return (struct move){
		{ a[0] * b[0] + a[1] * b[3], a[0] * b[1] + a[1] * b[4],
		  a[0] * b[2] + a[1] * b[5] + a[2], a[3] * b[0] + a[4] * b[3],
		  a[3] * b[1] + a[4] * b[4], a[3] * b[2] + a[4] * b[5] + a[5] },
		second->width,
		second->height
	};
}

void move_place(const struct move *move, double *x, double *y)
{
	const double *m = move->m;
	double to = m[0] * *x + m[1] * *y + m[2];

	*y = m[3] * *x + m[4] * *y + m[5];
	*x = to;
}

bool move_is_mirrored(const struct move *move)
{
	return move->m[0] * move->m[4] - move->m[1] * move->m[3] < 0;
}
