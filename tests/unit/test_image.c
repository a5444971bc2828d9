/* SPDX-License-Identifier: Apache-2.0 */
/* <beton/image.h>: single images in memory. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "beton/image.h"
#include "beton/writer.h"
#include "tests/unit/t.h"

enum { SIDE = 32, HALF = SIDE / 2, ROW = 3 * SIDE, PIXELS = ROW * SIDE };

static uint8_t pixels[PIXELS], whole[PIXELS], part[PIXELS];
static struct beton_writer_value jpeg;

static void encode(void)
{
	const struct beton_writer_recipe recipe = { .mode = BETON_MODE_JPG,
						    .quality = 95 };
	const struct beton_writer_image image = { pixels, SIDE, SIDE };

	for (size_t i = 0; i < PIXELS; i++)
		pixels[i] = (uint8_t)(i / ROW * 7);
	CHECK(!beton_writer_encode(&recipe, &image, &jpeg));
}

static int decode(uint32_t x, uint32_t y, uint32_t side, uint8_t *to)
{
	const struct beton_image_part of = { x, y, side, side };
	const struct beton_image out = { to, side, side };

	return beton_image_decode(jpeg.bytes, jpeg.size, &of, &out);
}

static void check_parts(void)
{
	CHECK(!decode(0, 0, SIDE, whole));
	for (size_t i = 0; i < PIXELS; i++)
		CHECK(abs(whole[i] - pixels[i]) < 8);
	CHECK(!decode(5, 9, HALF, part));
	for (size_t y = 0; y < HALF; y++)
		CHECK(!memcmp(part + y * ROW / 2,
			      whole + (y + 9) * ROW + (size_t)15, ROW / 2));
	CHECK(decode(HALF + 1, 0, HALF, part) == -ERANGE);
}

static void check_sizes(void)
{
	const struct beton_image_part of = { 0, 0, SIDE, SIDE };
	const struct beton_image out = { part, HALF, HALF };
	uint32_t width, height;

	CHECK(!beton_image_size(jpeg.bytes, jpeg.size, &width, &height));
	CHECK(width == SIDE && height == SIDE);
	CHECK(beton_image_size(pixels, PIXELS, &width, &height) == -EBADMSG);
	CHECK(beton_image_decode(jpeg.bytes, jpeg.size, &of, &out) == -EINVAL);
}

static int resize(struct beton_image_part of, uint32_t side)
{
	const struct beton_image in = { whole, SIDE, SIDE };
	const struct beton_image out = { part, side, side };

	return beton_image_resize(&in, &of, &out);
}

static void check_resize(void)
{
	const struct beton_image_part quarter = { HALF, HALF, HALF, HALF };
	const struct beton_image_part outside = { HALF, 0, HALF + 1, 1 };
	const struct beton_image_part far = { UINT32_MAX, 0, 2, 1 };
	const struct beton_image_part none = { 0, 0, 0, 1 };

	CHECK(!resize(quarter, HALF));
	CHECK(!memcmp(part, whole + (size_t)HALF * ROW + ROW / 2, ROW / 2));
	CHECK(!resize(quarter, 1));
	CHECK(resize(outside, HALF) == -ERANGE);
	CHECK(resize(far, HALF) == -ERANGE);
	CHECK(resize(none, HALF) == -EINVAL);
	CHECK(resize(quarter, 0) == -EINVAL);
}

int main(void)
{
	encode();
	check_parts();
	check_sizes();
	check_resize();
	free((void *)jpeg.bytes);
	return 0;
}
