/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "fs/base/util/bytes.h"
#include "loader/pipeline/list/boxes.h"
#include "tests/unit/t.h"

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static void check_box(const double *box, double x0, double y0, double x1,
		      double y1)
{
	CHECK(near(box[0], x0) && near(box[1], y0));
	CHECK(near(box[2], x1) && near(box[3], y1));
}

static void a_crop_is_shifted_and_scaled(void)
{
	const struct rect part = { 10, 20, 40, 20 };
	struct move m = move_crop(&part, 80, 60, false);
	double x = 30, y = 30;

	move_place(&m, &x, &y);
	CHECK(near(x, 40) && near(y, 30) && !move_is_mirrored(&m));
	m = move_crop(&part, 80, 60, true);
	x = y = 30;
	move_place(&m, &x, &y);
	CHECK(near(x, 40) && near(y, 30) && move_is_mirrored(&m));
}

static void moves_one_after_the_other_are_one(void)
{
	const struct rect part = { 3, 5, 7, 11 };
	struct move a = move_crop(&part, 13, 17, true);
	struct move b = { { 0.6, 0.8, 1, -0.8, 0.6, 2, 0, 0, 1 }, 19, 23 };
	struct move both = move_both(&a, &b);
	double x = 4.25, y = 9.5, v = x, w = y;

	move_place(&a, &x, &y);
	move_place(&b, &x, &y);
	move_place(&both, &v, &w);
	CHECK(near(x, v) && near(y, w));
	CHECK(both.width == 19 && both.height == 23);
	CHECK(move_is_mirrored(&both));
}

static const struct box_rule all = { .min_size = 0 };

static void a_turned_box_is_the_hull_of_its_corners(void)
{
	const double s = sqrt(0.5);
	struct move turn = { { s, s, 0, -s, s, 50, 0, 0, 1 }, 200, 200 };
	double box[] = { 10, 20, 30, 50 };

	CHECK(box_follow(&all, 100, 100, &turn, 1, box));
	check_box(box, 30 * s, 40 * s + 50 - 50 * s, 80 * s, 40 * s + 50);
}

/* Pixels come from the positions of the map, so points move by its inverse. */
static void a_move_is_the_inverse_of_its_map(void)
{
	const struct warp_map maps[] = {
		{ .m = { 1, 0, 0, 0, 1, 0 } },
		{ .m = { 0.5, -2, 3, 0.25, 1.5, -7 } },
		{ .m = { 1.2, 0.1, -4, -0.2, 0.9, 6, 0.003, -0.002 },
		  .divides = true },
	};

	for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
		const double *m = maps[i].m;
		struct move move = move_of_map(&maps[i], 50, 60);
		double w = m[6] * 20 + m[7] * 30 + 1;
		double x = (m[0] * 20 + m[1] * 30 + m[2]) / w;
		double y = (m[3] * 20 + m[4] * 30 + m[5]) / w;

		move_place(&move, &x, &y);
		CHECK(near(x, 20) && near(y, 30));
		CHECK(move.width == 50 && move.height == 60);
		CHECK(near(move.m[8], 1) && !move_is_mirrored(&move));
		CHECK(maps[i].divides || (!move.m[6] && !move.m[7]));
	}
}

static void perspectives_one_after_the_other_are_one(void)
{
	const struct warp_map map = { .m = { 1.2, 0.1, -4, -0.2, 0.9, 6, 0.003,
					     -0.002 },
				      .divides = true };
	struct move a = move_of_map(&map, 50, 60);
	struct move b = { { -1, 0, 50, 0, 1, 0, 0, 0, 1 }, 50, 60 };
	struct move both = move_both(&a, &b);
	double x = 4.25, y = 9.5, v = x, w = y;

	move_place(&a, &x, &y);
	move_place(&b, &x, &y);
	move_place(&both, &v, &w);
	CHECK(near(x, v) && near(y, w) && move_is_mirrored(&both));
}

/* Boxes move as if each of the maps that are joined was applied in turn. */
static void joined_maps_move_as_one_after_the_other(void)
{
	const struct warp_map maps[] = {
		{ .m = { 0.5, -2, 3, 0.25, 1.5, -7 } },
		{ .m = { 0.6, 0.8, 1, -0.8, 0.6, 2 } },
		{ .m = { 1, 0.3, -4, 0, 1, 6 } },
	};
	struct warp_map joined[3];
	struct move product, each = move_none(50, 60);

	warp_join(maps, 3, joined);
	product = move_of_map(&joined[0], 50, 60);
	for (size_t i = 0; i < 3; i++) {
		struct move next = move_of_map(&maps[i], 50, 60);

		each = move_both(&each, &next);
	}
	for (size_t i = 0; i < 9; i++)
		CHECK(near(product.m[i], each.m[i]));
	for (size_t i = 0; i < 8; i++)
		CHECK(near(joined[2].m[i], maps[2].m[i]));
	CHECK(!joined[0].divides && !joined[1].divides);
}

/* A corner on the horizon is nowhere, also if a box would be cut there. */
static void a_box_to_the_horizon_is_dropped(void)
{
	struct move move = { { 1, 0, 0, 0, 1, 0, -0.05, 0, 1 }, 40, 40 };
	struct box_rule point = { .format = BOX_XY };
	double box[] = { 2, 2, 20, 9 }, at[BOX_NUMBERS] = { 20, 5 };

	CHECK(!box_follow(&all, 40, 40, &move, 1, box));
	CHECK(!box_follow(&point, 40, 40, &move, 1, at));
	box[0] = 2;
	box[1] = 2;
	box[2] = 10;
	box[3] = 9;
	CHECK(box_follow(&all, 40, 40, &move, 1, box));
	check_box(box, 2 / 0.9, 2 / 0.9, 20, 18);
}

/* An area that overflows drops no box, unless part of it must be left. */
static void a_huge_box_is_cut(void)
{
	struct box_rule rule = { .min_visible = 0.1 };
	double box[] = { -1e308, -1e308, 1e308, 1e308 };

	CHECK(box_follow(&all, 40, 30, NULL, 0, box));
	check_box(box, 0, 0, 40, 30);
	CHECK(!box_follow(&rule, 40, 30, NULL, 0,
			  (double[]){ -1e308, -1e308, 1e308, 1e308 }));
}

/* By a quarter, where a hull is exact. */
static void a_quarter_turn_keeps_the_area(void)
{
	struct move turn = { { 0, -1, 100, 1, 0, 0, 0, 0, 1 }, 100, 60 };
	double box[] = { 10, 20, 30, 50 };
	struct box_rule rule = { .min_visible = 1, .min_size = 20 };

	CHECK(box_follow(&rule, 60, 100, &turn, 1, box));
	check_box(box, 50, 10, 80, 30);
}

static void a_box_is_dropped_by_its_share_and_its_size(void)
{
	const struct rect part = { 0, 0, 15, 100 };
	struct move crop = move_crop(&part, 15, 100, false);
	struct box_rule rule = { .min_visible = 0.25 };
	double box[] = { 10, 20, 30, 50 };

	CHECK(box_follow(&rule, 100, 100, &crop, 1, box));
	check_box(box, 10, 20, 15, 50);
	rule.min_visible = 0.26;
	CHECK(!box_follow(&rule, 100, 100, &crop, 1,
			  (double[]){ 10, 20, 30, 50 }));
	rule = (struct box_rule){ .min_size = 5.5 };
	CHECK(!box_follow(&rule, 100, 100, &crop, 1,
			  (double[]){ 10, 20, 30, 50 }));
}

static void without_moves_a_box_is_cut_to_its_image(void)
{
	double box[] = { -5, 20, 30, 500 };

	CHECK(box_follow(&all, 100, 100, NULL, 0, box));
	check_box(box, 0, 20, 30, 100);
}

static void nonfinite_boxes_are_dropped(void)
{
	const double bad[] = { NAN, INFINITY, -INFINITY };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		for (size_t k = 0; k < 4; k++) {
			double box[] = { 1, 2, 3, 4 };

			box[k] = bad[i];
			CHECK(!box_follow(&all, 9, 9, NULL, 0, box));
		}
	}
}

int main(void)
{
	a_crop_is_shifted_and_scaled();
	moves_one_after_the_other_are_one();
	a_turned_box_is_the_hull_of_its_corners();
	a_move_is_the_inverse_of_its_map();
	perspectives_one_after_the_other_are_one();
	joined_maps_move_as_one_after_the_other();
	a_box_to_the_horizon_is_dropped();
	a_huge_box_is_cut();
	a_quarter_turn_keeps_the_area();
	a_box_is_dropped_by_its_share_and_its_size();
	without_moves_a_box_is_cut_to_its_image();
	nonfinite_boxes_are_dropped();
	return 0;
}
