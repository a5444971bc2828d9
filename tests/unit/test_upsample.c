/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/upsample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/image/codec/codec.h"
#include "loader/image/jpeg/upsample_class.h"
#include "tests/unit/jpegs.h"
#include "tests/unit/t.h"

enum { CHANNELS = 3, COLORS = 256 * 256 };

struct jpeg {
	const uint8_t *bytes;
	size_t size;
};

static struct codec *codec;
static struct baseline *baseline;
static struct upsample *fancy;

static uint32_t below(struct rng *rng, uint32_t n)
{
	return (uint32_t)(rng_uniform(rng) * n);
}

static void *allocate(size_t size)
{
	void *p = malloc(size);

	CHECK(p);
	return p;
}

static struct jpeg encode_busy(struct rng *rng, uint32_t width, uint32_t height)
{
	struct image image = {
		.pixels = allocate((size_t)width * height * CHANNELS),
		.width = width,
		.height = height,
		.stride = (size_t)width * CHANNELS,
	};
	uint8_t *bytes;
	size_t size;

	for (size_t i = 0; i < image.stride * height; i++)
		image.pixels[i] = (uint8_t)rng_next(rng);
	CHECK(!codec_encode(codec, &image, 95, &bytes, &size));
	free(image.pixels);
	return (struct jpeg){ bytes, size };
}

static struct rect random_rect(struct rng *rng,
			       const struct baseline_image *image)
{
	struct rect r = { .width = 1 + below(rng, image->width),
			  .height = 1 + below(rng, image->height) };

	r.x = below(rng, image->width - r.width + 1);
	r.y = below(rng, image->height - r.height + 1);
	return r;
}

/* Rows from the last to the first: each stands for itself. */
static void check_rect(struct jpeg jpeg, const struct baseline_image *image,
		       const struct rect *rect)
{
	struct image want = {
		.pixels =
			allocate((size_t)rect->width * rect->height * CHANNELS),
		.width = rect->width,
		.height = rect->height,
		.stride = (size_t)rect->width * CHANNELS,
	};
	struct baseline_plane planes[BASELINE_COMPONENTS];

	CHECK(!codec_decode(codec, jpeg.bytes, jpeg.size, rect, &want));
	CHECK(!baseline_decode(baseline, image, rect, 1, NULL, planes));
	CHECK(!upsample_start(fancy, image, planes, rect));
	for (uint32_t y = rect->height; y-- > 0;)
		CHECK(!memcmp(upsample_row(fancy, y),
			      want.pixels + y * want.stride, want.stride));
	free(want.pixels);
}

static void check_jpeg(struct jpeg jpeg, struct rng *rng)
{
	struct baseline_image image;

	CHECK(!baseline_header(baseline, jpeg.bytes, jpeg.size, &image));
	CHECK(upsample_can(&image));
	for (int i = 0; i < 40; i++) {
		struct rect rect = random_rect(rng, &image);

		check_rect(jpeg, &image, &rect);
	}
}

static void pixels_are_libjpegs(const struct upsample_class *class)
{
	static const struct jpeg kinds[] = {
		{ JPEG_GRAY, sizeof(JPEG_GRAY) },
		{ JPEG_FULL, sizeof(JPEG_FULL) },
		{ JPEG_HALF, sizeof(JPEG_HALF) },
	};
	struct rng rng = { .key = 1 };

	upsample_use(fancy, class);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		check_jpeg(kinds[i], &rng);
	/* The narrowest are where upsampling has cases of its own. */
	for (uint32_t width = 1; width < 90; width += 1 + width / 7) {
		struct jpeg jpeg = encode_busy(&rng, width, 91 - width);

		check_jpeg(jpeg, &rng);
		free((void *)(uintptr_t)jpeg.bytes);
	}
}

static uint8_t limited(int v)
{
	return (uint8_t)(v < 0 ? 0 : v > UINT8_MAX ? UINT8_MAX : v);
}

static int rounded(int v)
{
	return (v + (1 << (UPSAMPLE_POINT - 1))) >> UPSAMPLE_POINT;
}

/* Pixel by pixel, as libjpeg does it. */
static void convert(const uint8_t *const in[CHANNELS], size_t n, uint8_t *out)
{
	for (size_t x = 0; x < n; x++, out += CHANNELS) {
		int y = in[0][x];
		int cb = in[1][x] - UPSAMPLE_ZERO_CHROMA;
		int cr = in[2][x] - UPSAMPLE_ZERO_CHROMA;

		out[0] = limited(y + rounded(UPSAMPLE_RED_OF_CR * cr));
		out[1] = limited(y + rounded(UPSAMPLE_GREEN_OF_CB * cb +
					     UPSAMPLE_GREEN_OF_CR * cr));
		out[2] = limited(y + rounded(UPSAMPLE_BLUE_OF_CB * cb));
	}
}

/* All chromas with some lumas. */
static void check_colors(const struct upsample_class *class)
{
	const size_t size = CHANNELS * COLORS;
	uint8_t *bytes[CHANNELS];
	const uint8_t *in[CHANNELS];
	uint8_t *want = allocate(size);
	uint8_t *out = allocate(CHANNELS * (COLORS + UPSAMPLE_BLOCK));

	for (int i = 0; i < CHANNELS; i++)
		in[i] = bytes[i] = allocate(COLORS + UPSAMPLE_BLOCK);
	for (unsigned luma = 0; luma < 256; luma += 15) {
		for (unsigned i = 0; i < COLORS; i++) {
			bytes[0][i] = (uint8_t)luma;
			bytes[1][i] = (uint8_t)(i >> 8);
			bytes[2][i] = (uint8_t)i;
		}
		convert(in, COLORS, want);
		class->color(in, COLORS, out);
		CHECK(!memcmp(want, out, size));
	}
	for (int i = 0; i < CHANNELS; i++)
		free(bytes[i]);
	free(want);
	free(out);
}

/* Old libraries repeat rows, new ones interpolate them. */
static void rows_of_half_height_are_left_to_others(void)
{
	struct baseline_image image = { .components = 3 };

	for (unsigned i = 0; i < 3; i++)
		image.component[i].across = image.component[i].down = 1;
	CHECK(upsample_can(&image));
	image.component[2].down = 2;
	CHECK(!upsample_can(&image));
	image.component[2].across = 2;
	CHECK(upsample_can(&image));
}

int main(void)
{
	CHECK(!codec_open(&codec) && !baseline_open(&baseline));
	CHECK(!upsample_open(&fancy));
	pixels_are_libjpegs(&fancy_plain);
	check_colors(&fancy_plain);
	pixels_are_libjpegs(ISA_BEST(fancy));
	check_colors(ISA_BEST(fancy));
	if (ISA_BEST(fancy) == &fancy_plain)
		printf("skip: fancy: no AVX2\n");
	rows_of_half_height_are_left_to_others();
	upsample_close(fancy);
	upsample_close(NULL);
	baseline_close(baseline);
	codec_close(codec);
	return 0;
}
