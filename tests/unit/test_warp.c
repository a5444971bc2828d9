/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a warped image has the pixels of the whole. */
#include "loader/image/pixels/warp.h"

#include <string.h>

#include "fs/base/util/rng.h"
#include "tests/unit/t.h"

enum { WIDTH = 203, HEIGHT = 61, ROW = 3 * WIDTH, TRIES = 1500 };
enum { UNTOUCHED = 77 };

static uint8_t pixels[HEIGHT * ROW];
static uint8_t whole[HEIGHT * ROW];
static uint8_t part[HEIGHT * ROW];
static float away_x[HEIGHT * WIDTH];
static float away_y[HEIGHT * WIDTH];

static const struct image in = { pixels, WIDTH, HEIGHT, ROW };

static double about(struct rng *rng, double most)
{
	return (2 * rng_uniform(rng) - 1) * most;
}

/* Some are the identity but for rounding, which puts places between two. */
static struct warp_map any_map(struct rng *rng, bool divides)
{
	struct warp_map map = { .divides = divides };
	double size = rng_uniform(rng) < 0.3 ? 1e-15 : 1;

	for (unsigned i = 0; i < 6; i++)
		map.m[i] = (i % 4 == 0) +
			   about(rng, size * (i % 3 == 2 ? 50 : 0.4));
	for (unsigned i = 6; divides && i < 8; i++)
		map.m[i] = about(rng, size * 0.002);
	return map;
}

/* Sometimes one pixel, sometimes all. */
static struct rect any_part(struct rng *rng)
{
	struct rect r = { .x = (uint32_t)(rng_uniform(rng) * WIDTH),
			  .y = (uint32_t)(rng_uniform(rng) * HEIGHT) };

	r.width = 1 + (uint32_t)(rng_uniform(rng) * (WIDTH - r.x));
	r.height = 1 + (uint32_t)(rng_uniform(rng) * (HEIGHT - r.y));
	return r;
}

/* Rows beside the part stay as they are, and so does what follows its rows. */
static void check_part(const struct rect *seen)
{
	for (uint32_t y = 0; y < HEIGHT; y++) {
		const uint8_t *got = part + (size_t)y * ROW;
		size_t begin = 3 * (size_t)seen->x;
		size_t end = begin + 3 * (size_t)seen->width;
		bool is_in = y >= seen->y && y < seen->y + seen->height;

		for (size_t i = is_in ? end : 0; i < ROW; i++)
			CHECK(got[i] == UNTOUCHED);
		if (is_in)
			CHECK(!memcmp(got + begin,
				      whole + (size_t)y * ROW + begin,
				      end - begin));
	}
}

enum kind {
	AFFINE,
	PERSPECTIVE,
	JOINED,
	DISPLACED,
	KINDS,
};

static void draw(enum kind kind, enum warp_how how, const struct warp_map *map,
		 const struct rect *seen, uint8_t *to)
{
	static const uint8_t fill[IMAGE_CHANNELS] = { 9, 99, 199 };
	const struct image out = { to, WIDTH, HEIGHT, ROW };

	memset(to, UNTOUCHED, sizeof(part));
	if (kind == DISPLACED)
		warp_displaced(away_x, away_y, how, fill, &in, &out, seen);
	else if (kind == JOINED)
		warp_joined(map, 2, how, fill, &in, &out, seen);
	else
		warp_image(map, how, fill, &in, &out, seen);
}

static void a_part_is_of_the_whole(void)
{
	struct rng rng = { .key = 4 };

	for (unsigned i = 0; i < TRIES; i++) {
		const enum kind kind = (enum kind)(i % KINDS);
		const enum warp_how how =
			i / KINDS % 2 ? WARP_NEAREST : WARP_BILINEAR;
		const struct warp_map maps[2] = {
			any_map(&rng, kind == PERSPECTIVE), any_map(&rng, false)
		};
		const struct rect seen = any_part(&rng);

		draw(kind, how, maps, NULL, whole);
		draw(kind, how, maps, &seen, part);
		check_part(&seen);
	}
}

int main(void)
{
	struct rng rng = { .key = 3 };

	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)rng_next(&rng);
	for (size_t i = 0; i < HEIGHT * WIDTH; i++) {
		away_x[i] = (float)about(&rng, 20);
		away_y[i] = (float)about(&rng, 20);
	}
	a_part_is_of_the_whole();
	return 0;
}
