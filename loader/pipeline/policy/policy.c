/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/policy/policy.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/pixels/enhance.h"
#include "loader/util/exact_math.h"

/* --- magnitudes --- */

/* The operations without a magnitude have none in any space. */
#define PLAIN(kind)                                                            \
	{                                                                      \
		POLICY_##kind, 0, 0, POLICY_ONE, false                         \
	}
#define SIGNED(kind, most)                                                     \
	{                                                                      \
		POLICY_##kind, 0, most, POLICY_ONE, true                       \
	}
#define MOVES(most_x, most_y, unit_x, unit_y)                                  \
	{ POLICY_TRANSLATE_X, 0, most_x, unit_x, true },                       \
	{                                                                      \
		POLICY_TRANSLATE_Y, 0, most_y, unit_y, true                    \
	}
#define COLORS(most)                                                           \
	SIGNED(BRIGHTNESS, most), SIGNED(COLOR, most), SIGNED(CONTRAST, most), \
		SIGNED(SHARPNESS, most)
/* Posterize has from `most` bits on, and `range` fewer at last. */
#define LEVELS(most, range)                                                    \
	{ POLICY_POSTERIZE, most, range, POLICY_BITS, false },                 \
		{ POLICY_SOLARIZE, 1, 0, POLICY_ONE, false },                  \
		PLAIN(AUTOCONTRAST), PLAIN(EQUALIZE)

#define OF_SIDE (150.0 / 331)
#define OF_AUTO                                                                \
	SIGNED(SHEAR_X, 0.3), SIGNED(SHEAR_Y, 0.3),                            \
		MOVES(OF_SIDE, OF_SIDE, POLICY_WIDTH, POLICY_HEIGHT),          \
		SIGNED(ROTATE, 30), COLORS(0.9), LEVELS(8, 4)

static const struct policy_row rand_rows[] = { PLAIN(IDENTITY), OF_AUTO };
static const struct policy_row auto_rows[] = { OF_AUTO, PLAIN(INVERT) };
static const struct policy_row trivial_rows[] = {
	PLAIN(IDENTITY),       SIGNED(SHEAR_X, 0.99),
	SIGNED(SHEAR_Y, 0.99), MOVES(32, 32, POLICY_ONE, POLICY_ONE),
	SIGNED(ROTATE, 135),   COLORS(0.99),
	LEVELS(8, 6),
};
static const struct policy_row aug_mix_rows[] = {
	SIGNED(SHEAR_X, 0.3),
	SIGNED(SHEAR_Y, 0.3),
	MOVES(1 / 3.0, 1 / 3.0, POLICY_WIDTH, POLICY_HEIGHT),
	SIGNED(ROTATE, 30),
	LEVELS(4, 4),
	COLORS(0.9),
};

const struct policy_space policy_rand = { rand_rows, ARRAY_LEN(rand_rows) };
const struct policy_space policy_auto = { auto_rows, ARRAY_LEN(auto_rows) };
const struct policy_space policy_trivial = { trivial_rows,
					     ARRAY_LEN(trivial_rows) };
const struct policy_space policy_aug_mix = { aug_mix_rows,
					     ARRAY_LEN(aug_mix_rows) };

/* torch.linspace(): from both ends, each number rounded once. */
static double spaced(double first, double last, unsigned bin, unsigned bins)
{
	float a = (float)first, b = (float)last;
	float step = (b - a) / (float)(bins - 1);

	if (bin < bins / 2)
		return (float)(a + (double)step * bin);
	return (float)(b - (double)step * (bins - 1 - bin));
}

/* Bits that are left, as torchvision divides the range. */
static double bits_of(const struct policy_row *row, unsigned bin, unsigned bins)
{
	float gone = (float)bin / (float)((bins - 1) / row->last);

	return exact_round((float)row->first - gone);
}

double policy_magnitude(const struct policy_row *row, unsigned bin,
			unsigned bins, uint32_t width, uint32_t height)
{
	switch (row->unit) {
	case POLICY_BITS:
		return bits_of(row, bin, bins);
	case POLICY_WIDTH:
		return spaced(0, row->last * width, bin, bins);
	case POLICY_HEIGHT:
		return spaced(0, row->last * height, bin, bins);
	case POLICY_ONE:
		break;
	}
	return spaced(row->first, row->last, bin, bins);
}

/* --- places --- */

bool policy_map(enum policy_kind kind, double by, uint32_t width,
		uint32_t height, struct affine *out)
{
	int whole = (int)by;

	switch (kind) {
	case POLICY_SHEAR_X:
		*out = affine_shear_x(by);
		return by != 0;
	case POLICY_SHEAR_Y:
		*out = affine_shear_y(by);
		return by != 0;
	case POLICY_ROTATE:
		*out = affine_rotation(by, width, height);
		return by != 0;
	case POLICY_TRANSLATE_X:
		*out = affine_translation(whole, 0);
		return whole;
	case POLICY_TRANSLATE_Y:
		*out = affine_translation(0, whole);
		return whole;
	default:
		return false;
	}
}

/* --- a canvas --- */

enum { ALIGNMENT = 64 };

static uint64_t image_bytes(uint32_t width, uint32_t height)
{
	uint64_t bytes = IMAGE_CHANNELS * (uint64_t)width * height;

	return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

uint64_t canvas_scratch(uint32_t width, uint32_t height)
{
	return image_bytes(width, height) + enhance_scratch(width);
}

void canvas_start(struct canvas *c, const struct image *image, void *scratch)
{
	c->now = *image;
	c->spare = (struct image){ scratch, image->width, image->height,
				   IMAGE_CHANNELS * (size_t)image->width };
	c->rows = (uint8_t *)scratch + image_bytes(image->width, image->height);
}

static void copy_image(const struct image *from, const struct image *to)
{
	for (uint32_t y = 0; y < to->height; y++)
		memcpy(to->pixels + y * to->stride,
		       from->pixels + y * from->stride,
		       IMAGE_CHANNELS * (size_t)to->width);
}

void canvas_end(struct canvas *c, const struct image *image)
{
	if (c->now.pixels != image->pixels)
		copy_image(&c->now, image);
}

/* Moves pixels; zero leaves them where they are. */
static void move(struct canvas *c, enum policy_kind kind, double by)
{
	struct image made = c->spare;
	struct affine map;

	if (!policy_map(kind, by, c->now.width, c->now.height, &map))
		return;
	warp_affine(&map, c->how, c->fill, &c->now, &made, NULL);
	c->spare = c->now;
	c->now = made;
}

static void blend(struct canvas *c, enum policy_kind kind, double by)
{
	float factor = (float)(1 + by);

	if (kind == POLICY_BRIGHTNESS)
		enhance_brightness(&c->now, factor);
	else if (kind == POLICY_COLOR)
		enhance_saturation(&c->now, factor);
	else if (kind == POLICY_CONTRAST)
		enhance_contrast(&c->now, factor);
	else
		enhance_sharpness(&c->now, factor, c->rows);
}

void canvas_apply(struct canvas *c, enum policy_kind kind, double magnitude)
{
	switch (kind) {
	case POLICY_IDENTITY:
		return;
	case POLICY_SHEAR_X:
	case POLICY_SHEAR_Y:
	case POLICY_TRANSLATE_X:
	case POLICY_TRANSLATE_Y:
	case POLICY_ROTATE:
		move(c, kind, magnitude);
		return;
	case POLICY_BRIGHTNESS:
	case POLICY_COLOR:
	case POLICY_CONTRAST:
	case POLICY_SHARPNESS:
		blend(c, kind, magnitude);
		return;
	case POLICY_POSTERIZE:
		enhance_posterize(&c->now, (unsigned)magnitude);
		return;
	case POLICY_SOLARIZE:
		enhance_solarize(&c->now, 255 * magnitude);
		return;
	case POLICY_AUTOCONTRAST:
		enhance_autocontrast(&c->now);
		return;
	case POLICY_EQUALIZE:
		enhance_equalize(&c->now);
		return;
	case POLICY_INVERT:
		enhance_invert(&c->now);
		return;
	}
}
