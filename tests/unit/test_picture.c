/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/picture/picture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "tests/unit/jpegs.h"
#include "tests/unit/t.h"

static struct codec *codec;
static struct picture_decoder *decoder;

struct bytes {
	const uint8_t *p;
	size_t size;
};

#define BYTES(a)                                                               \
	{                                                                      \
		a, sizeof(a)                                                   \
	}

static void names_of_files(void)
{
	static const char *const good[] = { "a.jpg",   "a.JPEG", ".jpe",
					    "b.a.PnG", "x.webp", "x.gif",
					    "x.bmp",   "x.tif",	 "x.tiff",
					    "x.avif",  "x.heic", "x.heif",
					    "x.jxl" };
	static const char *const bad[] = {
		"a", "a.", "jpg", "a.jp", "a.jpgx", "a.jpg.", "", "a.jpg "
	};
	char list[PICTURE_LIST_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CHECK(picture_has_extension(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!picture_has_extension(bad[i]));
	CHECK(strcmp(picture_extensions(list),
		     ".jpg, .jpeg, .jpe, .png, .webp, .gif, .bmp, .tif, .tiff, "
		     ".avif, .heic, .heif or .jxl") == 0);
}

/* The pixels of a JPEG are the codec's, whichever decoder takes it. */
static void compare_with_codec(const uint8_t *bytes, size_t size)
{
	struct codec_info info;
	struct picture p;
	struct image want;

	CHECK(!codec_probe(codec, bytes, size, &info));
	want = (struct image){
		.width = info.width,
		.height = info.height,
		.stride = 3 * (size_t)info.width,
	};
	want.pixels = malloc(want.stride * want.height);
	CHECK(want.pixels);
	CHECK(!codec_decode(codec, bytes, size,
			    &(struct rect){ 0, 0, info.width, info.height },
			    &want));
	CHECK(!picture_decode(decoder, bytes, size, &p));
	CHECK(p.image.width == want.width && p.image.height == want.height);
	CHECK(p.plain == (info.baseline && info.color != CODEC_CMYK));
	CHECK(!memcmp(p.image.pixels, want.pixels, want.stride * want.height));
	free(want.pixels);
}

static void jpegs_of_all_kinds(void)
{
	static const struct bytes jpegs[] = {
		BYTES(JPEG_GRAY), BYTES(JPEG_PROGRESSIVE), BYTES(JPEG_FULL),
		BYTES(JPEG_HALF), BYTES(JPEG_CMYK),
	};

	for (size_t i = 0; i < ARRAY_LEN(jpegs); i++)
		compare_with_codec(jpegs[i].p, jpegs[i].size);
}

static uint8_t *encode(uint32_t width, uint32_t height, size_t *size)
{
	struct rng rng = { .key = width * 64 + height };
	struct image image = { .width = width,
			       .height = height,
			       .stride = 3 * (size_t)width };
	uint8_t *bytes = NULL;

	image.pixels = malloc(image.stride * height);
	CHECK(image.pixels);
	for (size_t i = 0; i < image.stride * height; i++)
		image.pixels[i] = (uint8_t)(255 * rng_uniform(&rng));
	CHECK(!codec_encode(codec, &image, 90, &bytes, size));
	free(image.pixels);
	return bytes;
}

static void jpegs_of_all_sizes(void)
{
	struct picture_size found;

	for (uint32_t width = 1; width < 40; width++)
		for (uint32_t height = 1; height < 40; height += 3) {
			size_t size;
			uint8_t *bytes = encode(width, height, &size);

			compare_with_codec(bytes, size);
			CHECK(!picture_probe(decoder, bytes, size, &found));
			CHECK(found.width == width && found.height == height);
			free(bytes);
		}
}

/* The end marker is the last thing in the file. */
static void probing_finds_each_cut(void)
{
	struct picture_size found;
	size_t size;
	uint8_t *bytes = encode(30, 20, &size);

	for (size_t n = 0; n < size; n++)
		CHECK(picture_probe(decoder, bytes, n, &found) == -ENOTSUP);
	free(bytes);
}

static void probing_leaves_others_to_the_decoder(void)
{
	uint8_t bytes[sizeof(JPEG_FULL)];
	struct picture_size found;

	CHECK(picture_probe(decoder, JPEG_PROGRESSIVE, sizeof(JPEG_PROGRESSIVE),
			    &found) == -ENOTSUP);
	CHECK(!picture_probe(decoder, JPEG_GRAY, sizeof(JPEG_GRAY), &found));
	CHECK(found.width == 9 && found.height == 21);
	CHECK(!picture_probe(decoder, JPEG_FULL, sizeof(JPEG_FULL), &found));
	/* Restart markers in another order. */
	memcpy(bytes, JPEG_FULL, sizeof(bytes));
	for (size_t i = 0; i + 1 < sizeof(bytes); i++)
		if (bytes[i] == 0xff && bytes[i + 1] == 0xd1)
			bytes[i + 1] = 0xd2;
	CHECK(picture_probe(decoder, bytes, sizeof(bytes), &found) == -ENOTSUP);
}

int main(void)
{
	CHECK(!codec_open(&codec));
	CHECK(!picture_decoder_open(codec, &decoder));
	names_of_files();
	jpegs_of_all_kinds();
	jpegs_of_all_sizes();
	probing_finds_each_cut();
	probing_leaves_others_to_the_decoder();
	picture_decoder_close(decoder);
	codec_close(codec);
	return 0;
}
