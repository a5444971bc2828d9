/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/list/boxes.h"

/* Left, top, right and bottom. */
struct boxes_sides {
	double x0, y0, x1, y1;
};

unsigned box_numbers(enum box_format format)
{
	return format == BOX_XY ? 2 : BOX_NUMBERS;
}

static bool is_finite(const double *v, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (!(v[i] - v[i] == 0))
			return false;
	}
	return true;
}

static void scale(double *box, unsigned count, double x, double y)
{
	for (unsigned i = 0; i < count; i++)
		box[i] *= i % 2 ? y : x;
}

static struct boxes_sides sides_of(enum box_format format, const double *b)
{
	if (format == BOX_XYXY)
		return (struct boxes_sides){ b[0], b[1], b[2], b[3] };
	if (format == BOX_XYWH)
		return (struct boxes_sides){ b[0], b[1], b[0] + b[2],
					     b[1] + b[3] };
	return (struct boxes_sides){ b[0] - b[2] / 2, b[1] - b[3] / 2,
				     b[0] + b[2] / 2, b[1] + b[3] / 2 };
}

static void write_sides(enum box_format format, const struct boxes_sides *s,
			double *b)
{
	double width = s->x1 - s->x0, height = s->y1 - s->y0;

	b[0] = s->x0;
	b[1] = s->y0;
	b[2] = format == BOX_XYXY ? s->x1 : width;
	b[3] = format == BOX_XYXY ? s->y1 : height;
	if (format == BOX_CXCYWH) {
		b[0] = (s->x0 + s->x1) / 2;
		b[1] = (s->y0 + s->y1) / 2;
	}
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static double most(double a, double b)
{
	return a > b ? a : b;
}

static double limited(double v, double max)
{
	return most(0, least(v, max));
}

/* The smallest box around the moved corners. Returns whether all of them are
   somewhere. */
static bool hull(const struct move *move, const struct boxes_sides *s,
		 struct boxes_sides *out)
{
	const double xs[] = { s->x0, s->x1, s->x0, s->x1 };
	const double ys[] = { s->y0, s->y0, s->y1, s->y1 };
	struct boxes_sides v = { 0 };
	bool finite = true;

	for (unsigned i = 0; i < 4; i++) {
		double p[] = { xs[i], ys[i] };

		move_place(move, &p[0], &p[1]);
		finite = finite && is_finite(p, 2);
		v.x0 = i ? least(v.x0, p[0]) : p[0];
		v.y0 = i ? least(v.y0, p[1]) : p[1];
		v.x1 = i ? most(v.x1, p[0]) : p[0];
		v.y1 = i ? most(v.y1, p[1]) : p[1];
	}
	*out = v;
	return finite;
}

static struct boxes_sides cut(const struct boxes_sides *s, double width,
			      double height)
{
	return (struct boxes_sides){ limited(s->x0, width),
				     limited(s->y0, height),
				     limited(s->x1, width),
				     limited(s->y1, height) };
}

static double area(const struct boxes_sides *s)
{
	return most(0, s->x1 - s->x0) * most(0, s->y1 - s->y0);
}

/* Whether enough of a box is left; `whole`: without cuts. */
static bool is_visible(const struct box_rule *rule,
		       const struct boxes_sides *seen,
		       const struct boxes_sides *whole)
{
	return seen->x1 - seen->x0 >= rule->min_size &&
	       seen->y1 - seen->y0 >= rule->min_size &&
	       (!(rule->min_visible > 0) ||
		area(seen) >= rule->min_visible * area(whole));
}

static bool follow_box(const struct box_rule *rule, const struct move *moves,
		       size_t num_moves, const struct move *start, double *box)
{
	struct boxes_sides seen = sides_of(rule->format, box), whole = seen;
	struct move all = *start;

	seen = cut(&seen, all.width, all.height);
	for (size_t i = 0; i < num_moves; i++) {
		if (!hull(&moves[i], &seen, &seen))
			return false;
		seen = cut(&seen, moves[i].width, moves[i].height);
		all = move_both(&all, &moves[i]);
	}
	hull(&all, &whole, &whole);
	write_sides(rule->format, &seen, box);
	return is_visible(rule, &seen, &whole);
}

static bool is_inside(const double *point, double width, double height)
{
	return point[0] >= 0 && point[0] < width && point[1] >= 0 &&
	       point[1] < height;
}

static bool follow_point(const struct box_rule *rule, const struct move *moves,
			 size_t num_moves, const struct move *start, double *p)
{
	bool seen = is_inside(p, start->width, start->height);

	for (size_t i = 0; i < num_moves; i++) {
		move_place(&moves[i], &p[0], &p[1]);
		seen = seen && is_inside(p, moves[i].width, moves[i].height);
	}
	return seen || !(rule->min_visible > 0);
}

bool box_follow(const struct box_rule *rule, uint32_t width, uint32_t height,
		const struct move *moves, size_t num_moves,
		double box[BOX_NUMBERS])
{
	const struct move start = move_none(width, height);
	const struct move *end = num_moves ? &moves[num_moves - 1] : &start;
	unsigned count = box_numbers(rule->format);
	bool kept;

	if (!is_finite(box, count))
		return false;
	if (rule->is_normalized)
		scale(box, count, width, height);
	kept = (rule->format == BOX_XY ? follow_point : follow_box)(
		rule, moves, num_moves, &start, box);
	if (rule->is_normalized)
		scale(box, count, 1.0 / end->width, 1.0 / end->height);
	return kept && is_finite(box, count);
}
