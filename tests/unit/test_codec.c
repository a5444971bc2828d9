/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/codec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "tests/unit/arithmetic.h"
#include "tests/unit/jpegs.h"
#include "tests/unit/photos.h"
#include "tests/unit/t.h"

enum { CHANNELS = 3, GUARD = 4, GUARD_BYTE = 0xa5 };

struct jpeg {
	const uint8_t *bytes;
	size_t size;
};

static const struct jpeg KINDS[] = {
	{ JPEG_GRAY, sizeof(JPEG_GRAY) },
	{ JPEG_PROGRESSIVE, sizeof(JPEG_PROGRESSIVE) },
	{ JPEG_FULL, sizeof(JPEG_FULL) },
	{ JPEG_HALF, sizeof(JPEG_HALF) },
	{ JPEG_CMYK, sizeof(JPEG_CMYK) },
};

static struct codec *codec;

/* Rows have some spare bytes, which the codec must not write. */
static struct image image_make(uint32_t width, uint32_t height)
{
	size_t stride = (size_t)width * CHANNELS + GUARD;
	struct image image = {
		.pixels = malloc(stride * height),
		.width = width,
		.height = height,
		.stride = stride,
	};

	CHECK(image.pixels);
	memset(image.pixels, GUARD_BYTE, stride * height);
	return image;
}

static uint8_t *pixel(const struct image *image, uint32_t x, uint32_t y)
{
	return image->pixels + y * image->stride + (size_t)x * CHANNELS;
}

/* Decodes the rectangle; *out is the caller's to free if it succeeds. */
static int decode(struct jpeg jpeg, struct rect rect, struct image *out)
{
	struct image image = image_make(rect.width, rect.height);
	int r = codec_decode(codec, jpeg.bytes, jpeg.size, &rect, &image);

	for (uint32_t y = 0; y < rect.height; y++)
		for (int i = 0; i < GUARD; i++)
			CHECK(pixel(&image, rect.width, y)[i] == GUARD_BYTE);
	if (r)
		free(image.pixels);
	else
		*out = image;
	return r;
}

static struct codec_info probe(struct jpeg jpeg)
{
	struct codec_info info = { 0 };

	CHECK(!codec_probe(codec, jpeg.bytes, jpeg.size, &info));
	return info;
}

static struct image decode_all(struct jpeg jpeg)
{
	struct codec_info info = probe(jpeg);
	struct rect all = { 0, 0, info.width, info.height };
	struct image image = { 0 };

	CHECK(!decode(jpeg, all, &image));
	return image;
}

/* Detail everywhere, in all colors, so that a shifted crop differs. */
static struct image image_busy(uint32_t width, uint32_t height)
{
	struct image image = image_make(width, height);
	struct rng rng = { .key = width * 1000 + height };

	for (uint32_t y = 0; y < height; y++)
		for (uint32_t i = 0; i < width * CHANNELS; i++)
			pixel(&image, 0, y)[i] =
				(uint8_t)(i * 3 + y * 5 + rng_next(&rng) % 90);
	return image;
}

static struct jpeg encode_busy(uint32_t width, uint32_t height)
{
	struct image image = image_busy(width, height);
	uint8_t *bytes = NULL;
	size_t size = 0;

	CHECK(!codec_encode(codec, &image, 90, &bytes, &size));
	free(image.pixels);
	return (struct jpeg){ bytes, size };
}

static uint32_t below(struct rng *rng, uint32_t n)
{
	return (uint32_t)(rng_uniform(rng) * n);
}

static struct rect random_rect(struct rng *rng, const struct image *in)
{
	struct rect r = {
		.width = 1 + below(rng, in->width),
		.height = 1 + below(rng, in->height),
	};

	/* Narrow ones are where crops go wrong. */
	if (below(rng, 3) == 0)
		r.width = 1 + below(rng, r.width < 4 ? r.width : 4);
	r.x = below(rng, in->width - r.width + 1);
	r.y = below(rng, in->height - r.height + 1);
	return r;
}

static void check_crops(struct jpeg jpeg, struct rng *rng, int n)
{
	struct image all = decode_all(jpeg);

	for (int i = 0; i < n; i++) {
		struct rect r = random_rect(rng, &all);
		struct image crop = { 0 };

		CHECK(!decode(jpeg, r, &crop));
		for (uint32_t y = 0; y < r.height; y++)
			CHECK(!memcmp(pixel(&crop, 0, y),
				      pixel(&all, r.x, r.y + y),
				      (size_t)r.width * CHANNELS));
		free(crop.pixels);
	}
	free(all.pixels);
}

static void a_crop_is_a_part_of_the_whole(void)
{
	static const uint32_t sizes[][2] = {
		{ 1, 1 },   { 2, 3 },	{ 16, 16 }, { 17, 33 },	 { 18, 9 },
		{ 35, 35 }, { 64, 20 }, { 95, 61 }, { 130, 97 },
	};
	struct rng rng = { .key = 1 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct jpeg jpeg = encode_busy(sizes[i][0], sizes[i][1]);

		check_crops(jpeg, &rng, 100);
		free((void *)jpeg.bytes);
	}
}

static void crops_are_exact_for_every_kind_of_file(void)
{
	struct rng rng = { .key = 2 };

	for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
		check_crops(KINDS[i], &rng, 200);
}

/*
 * Scan by scan a progressive file gets sharper. Stopped early it is a legal
 * file that libjpeg smooths; crops of that are exact too.
 */
static void crops_of_unfinished_progressions_are_exact(void)
{
	struct rng rng = { .key = 3 };
	uint8_t bytes[sizeof(JPEG_PROGRESSIVE)];
	int scans = 0;

	for (size_t i = 0; i + 2 < sizeof(bytes); i++) {
		if (JPEG_PROGRESSIVE[i] != 0xff ||
		    JPEG_PROGRESSIVE[i + 1] != 0xda || scans++ == 0)
			continue;
		memcpy(bytes, JPEG_PROGRESSIVE, i);
		bytes[i] = 0xff;
		bytes[i + 1] = 0xd9;
		check_crops((struct jpeg){ bytes, i + 2 }, &rng, 60);
	}
	CHECK(scans > 3);
}

/* The values are Pillow's for (7, 5); decoders may differ by a rounding or
   two. */
static void colors_are_those_of_pillow(void)
{
	static const uint8_t want[][CHANNELS] = {
		{ 122, 122, 122 }, { 42, 49, 182 },   { 78, 143, 135 },
		{ 48, 155, 165 },  { 226, 160, 151 },
	};

	for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
		struct image image = decode_all(KINDS[i]);

		for (int c = 0; c < CHANNELS; c++)
			CHECK(abs(pixel(&image, 7, 5)[c] - want[i][c]) <= 2);
		free(image.pixels);
	}
}

static void a_probe_reports_the_header(void)
{
	static const struct codec_info want[] = {
		{ 9, 21, CODEC_GRAY, true, 1 }, { 41, 23, CODEC_RGB, false, 1 },
		{ 19, 10, CODEC_RGB, true, 1 }, { 35, 9, CODEC_RGB, true, 1 },
		{ 9, 9, CODEC_CMYK, true, 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
		struct codec_info got = probe(KINDS[i]);

		CHECK(got.width == want[i].width);
		CHECK(got.height == want[i].height);
		CHECK(got.color == want[i].color);
		CHECK(got.baseline == want[i].baseline);
		CHECK(got.orientation == want[i].orientation);
	}
}

/* The orientation of JPEG_FULL with this segment behind its first marker. */
static unsigned orientation_with(const uint8_t *segment, size_t size)
{
	uint8_t bytes[sizeof(JPEG_FULL) + 64];

	memcpy(bytes, JPEG_FULL, 2);
	memcpy(bytes + 2, segment, size);
	memcpy(bytes + 2 + size, JPEG_FULL + 2, sizeof(JPEG_FULL) - 2);
	return probe((struct jpeg){ bytes, sizeof(JPEG_FULL) + size })
		.orientation;
}

static void a_probe_reads_the_orientation(void)
{
	/* Marker, length, "Exif", TIFF header, one entry, no next. */
	uint8_t little[] = {
		0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0,    0, 'I', 'I',
		42,   0,    8, 0,  0,	0,   1,	  0,   0x12, 1, 3,   0,
		1,    0,    0, 0,  6,	0,   0,	  0,   0,    0, 0,   0,
	};
	uint8_t big[] = {
		0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,	'M', 'M',
		0,    42,   0, 0,  0,	8,   0,	  1,   1, 0x12, 0,   3,
		0,    0,    0, 1,  0,	8,   0,	  0,   0, 0,	0,   0,
	};

	CHECK(orientation_with(little, sizeof(little)) == 6);
	CHECK(orientation_with(big, sizeof(big)) == 8);
	little[22] = 4; /* LONG, as some cameras write it */
	CHECK(orientation_with(little, sizeof(little)) == 6);
	little[22] = 2;
	CHECK(orientation_with(little, sizeof(little)) == 1);
	little[22] = 3;
	little[28] = 9;
	CHECK(orientation_with(little, sizeof(little)) == 1);
	little[18] = 255; /* entries past the end */
	little[20] = 0;
	CHECK(orientation_with(little, sizeof(little)) == 1);
	memset(big + 14, 0xff, 4); /* a directory past the end */
	CHECK(orientation_with(big, sizeof(big)) == 1);
}

static void rectangles_must_lie_inside(void)
{
	static const struct rect outside[] = {
		{ 0, 0, 20, 10 }, { 0, 0, 19, 11 }, { 19, 0, 1, 1 },
		{ 0, 10, 1, 1 },  { 5, 5, 0, 1 },   { UINT32_MAX, 0, 2, 1 },
	};
	struct jpeg jpeg = KINDS[2];
	struct image unused = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
		CHECK(decode(jpeg, outside[i], &unused) == -ERANGE);
		CHECK(strstr(codec_message(codec), "19 x 10"));
	}
}

static size_t find_marker(const uint8_t *bytes, size_t size, uint8_t marker)
{
	for (size_t i = 0; i + 1 < size; i++)
		if (bytes[i] == 0xff && bytes[i + 1] == marker)
			return i;
	CHECK(!"no such marker");
	return 0;
}

static void check_refused(struct jpeg jpeg)
{
	struct image unused = { 0 };

	CHECK(decode(jpeg, (struct rect){ 0, 0, 1, 1 }, &unused) == -EBADMSG);
	CHECK(codec_message(codec)[0]);
}

/* 13 GB of coefficients, announced by 660 bytes. */
static void bombs_are_refused(void)
{
	uint8_t bytes[sizeof(JPEG_PROGRESSIVE)];
	struct codec_info info;

	memcpy(bytes, JPEG_PROGRESSIVE, sizeof(bytes));
	memset(bytes + find_marker(bytes, sizeof(bytes), 0xc2) + 5, 0xf0, 4);
	check_refused((struct jpeg){ bytes, sizeof(bytes) });
	CHECK(codec_probe(codec, bytes, sizeof(bytes), &info) == -EBADMSG);
	CHECK(strstr(codec_message(codec), "too many"));
}

static void other_kinds_of_jpeg_are_refused(void)
{
	static const uint8_t frames[] = { 0xc3, 0xc5, 0xcb, 0xcf };
	uint8_t bytes[sizeof(JPEG_HALF)];
	size_t at = find_marker(JPEG_HALF, sizeof(bytes), 0xc0);

	memcpy(bytes, JPEG_HALF, sizeof(bytes));
	for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
		bytes[at + 1] = frames[i];
		check_refused((struct jpeg){ bytes, sizeof(bytes) });
	}
	bytes[at + 1] = 0xc1;
	bytes[at + 4] = 12; /* bits per sample */
	check_refused((struct jpeg){ bytes, sizeof(bytes) });
}

static void other_formats_are_refused(void)
{
	static const uint8_t png[] = { 0x89, 'P', 'N', 'G', '\r', '\n' };
	static const uint8_t start[] = { 0xff, 0xd8, 0xff };

	check_refused((struct jpeg){ png, sizeof(png) });
	check_refused((struct jpeg){ png, 0 });
	check_refused((struct jpeg){ start, sizeof(start) });
}

/* libjpeg keeps tables, so a file without its own once took the last one's. */
static void no_image_depends_on_the_one_before(void)
{
	uint8_t bytes[sizeof(JPEG_FULL)];

	memcpy(bytes, JPEG_FULL, sizeof(bytes));
	/* Its quantization becomes a comment. */
	bytes[find_marker(bytes, sizeof(bytes), 0xdb) + 1] = 0xfe;
	free(decode_all(KINDS[2]).pixels);
	check_refused((struct jpeg){ bytes, sizeof(bytes) });
}

/* A block of the exact size, so that sanitizers see any byte past it. */
static struct jpeg exact_copy(struct jpeg jpeg, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1);

	CHECK(bytes);
	memcpy(bytes, jpeg.bytes, size);
	return (struct jpeg){ bytes, size };
}

/* Only the two bytes of the end marker may be missing, if anything. */
static void a_premature_end_is_noticed(void)
{
	for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
		struct codec_info info = probe(KINDS[i]);
		struct rect all = { 0, 0, info.width, info.height };

		for (size_t n = 0; n < KINDS[i].size - 2; n++) {
			struct jpeg part = exact_copy(KINDS[i], n);
			struct image image = { 0 };
			int r = decode(part, all, &image);

			if (!r)
				free(image.pixels);
			/* The last byte may be nothing but padding. */
			CHECK(r == -EBADMSG || n == KINDS[i].size - 3);
			free((void *)part.bytes);
		}
	}
}

static struct jpeg encode_arithmetic_jpeg(uint32_t width, uint32_t height,
					  bool busy)
{
	struct jpeg jpeg = { 0 };
	uint8_t *bytes;

	encode_arithmetic(width, height, busy, &bytes, &jpeg.size);
	jpeg.bytes = bytes;
	return jpeg;
}

/* An arithmetic decoder reads zeros where the file ends, which are codes as
   others are. */
static void a_premature_end_of_arithmetic_codes_is_noticed(void)
{
	struct rect all = { 0, 0, 64, 96 };
	struct image image = { 0 };
	struct jpeg jpeg;

	if (!has_arithmetic(__func__))
		return;
	jpeg = encode_arithmetic_jpeg(all.width, all.height, true);
	free(decode_all(jpeg).pixels);
	for (size_t n = 0; n < jpeg.size - 2; n++) {
		struct jpeg part = exact_copy(jpeg, n);

		CHECK(decode(part, all, &image) == -EBADMSG);
		free((void *)part.bytes);
	}
	free((void *)jpeg.bytes);
}

/* Few bytes are many pixels where all are alike, so their number is limited. */
static void arithmetic_bombs_are_refused(void)
{
	struct codec_info info;
	struct jpeg jpeg;
	uint8_t *size;

	if (!has_arithmetic(__func__))
		return;
	jpeg = encode_arithmetic_jpeg(3000, 2000, false);
	CHECK(jpeg.size < 500);
	free(decode_all(jpeg).pixels);
	size = (uint8_t *)jpeg.bytes +
	       find_marker(jpeg.bytes, jpeg.size, 0xc9) + 5;
	memset(size, 0xf0, 4);
	check_refused(jpeg);
	CHECK(codec_probe(codec, jpeg.bytes, jpeg.size, &info) == -EBADMSG);
	CHECK(strstr(codec_message(codec), "too many"));
	free((void *)jpeg.bytes);
}

static void check_damage_beyond_the_crop(struct jpeg jpeg)
{
	struct jpeg part = exact_copy(jpeg, jpeg.size / 2);
	struct image image = { 0 };

	CHECK(!decode(part, (struct rect){ 3, 0, 50, 60 }, &image));
	free(image.pixels);
	CHECK(decode(part, (struct rect){ 3, 150, 9, 9 }, &image) == -EBADMSG);
	free((void *)part.bytes);
	free((void *)jpeg.bytes);
}

static void damage_beyond_the_crop_is_not_looked_at(void)
{
	check_damage_beyond_the_crop(encode_busy(64, 200));
	if (has_arithmetic(__func__))
		check_damage_beyond_the_crop(
			encode_arithmetic_jpeg(64, 200, true));
}

static void flipped_bytes_do_no_harm(void)
{
	struct rng rng = { .key = 4 };
	int decoded = 0;

	for (int i = 0; i < 4000; i++) {
		struct jpeg good = KINDS[below(&rng, ARRAY_LEN(KINDS))];
		struct jpeg bad = exact_copy(good, good.size);
		struct image image = { 0 };
		struct codec_info info;
		int flips = 1 + (int)below(&rng, 4);

		for (int k = 0; k < flips; k++)
			((uint8_t *)
				 bad.bytes)[below(&rng, (uint32_t)bad.size)] =
				(uint8_t)rng_next(&rng);
		if (!codec_probe(codec, bad.bytes, bad.size, &info) &&
		    !decode(bad, (struct rect){ 1, 2, 7, 6 }, &image)) {
			decoded++;
			free(image.pixels);
		}
		free((void *)bad.bytes);
	}
	CHECK(decoded > 100);
	/* The failures have no effect on the codec. */
	colors_are_those_of_pillow();
}

static void encoding_is_the_same_every_time(void)
{
	struct jpeg a = encode_busy(50, 40);
	struct jpeg b = encode_busy(50, 40);

	CHECK(a.size == b.size && !memcmp(a.bytes, b.bytes, a.size));
	CHECK(probe(a).baseline && probe(a).color == CODEC_RGB);
	free((void *)a.bytes);
	free((void *)b.bytes);
}

static void quality_is_estimated_correctly(void)
{
	struct image image = image_busy(64, 64);
	size_t last = 0;

	for (unsigned q = 10; q <= 100; q += 30) {
		uint8_t *bytes = NULL;
		size_t size = 0;

		CHECK(!codec_encode(codec, &image, q, &bytes, &size));
		CHECK(size > last);
		last = size;
		free(bytes);
	}
	free(image.pixels);
}

/* The output grows past its first 64 KiB. */
static void large_images_are_encoded_whole(void)
{
	struct jpeg jpeg = encode_busy(700, 500);
	struct image image = decode_all(jpeg);

	CHECK(jpeg.size > 1 << 17);
	CHECK(image.width == 700 && image.height == 500);
	free(image.pixels);
	free((void *)jpeg.bytes);
}

static void unencodable_images_are_refused(void)
{
	struct image image = image_make(1, 1);
	uint8_t *bytes = NULL;
	size_t size = 0;

	CHECK(codec_encode(codec, &image, 0, &bytes, &size) == -EINVAL);
	CHECK(codec_encode(codec, &image, 101, &bytes, &size) == -EINVAL);
	image.width = 65501;
	CHECK(codec_encode(codec, &image, 90, &bytes, &size) == -EINVAL);
	CHECK(!bytes && codec_message(codec)[0]);
	free(image.pixels);
}

static void check_photo(void *rng, const uint8_t *bytes, size_t size)
{
	check_crops((struct jpeg){ (uint8_t *)(uintptr_t)bytes, size }, rng,
		    12);
}

static void crops_of_photographs_are_exact(void)
{
	struct rng rng = { .key = 5 };

	photos_each(25, check_photo, &rng);
}

int main(void)
{
	CHECK(!codec_open(&codec));
	a_crop_is_a_part_of_the_whole();
	crops_are_exact_for_every_kind_of_file();
	crops_of_unfinished_progressions_are_exact();
	colors_are_those_of_pillow();
	a_probe_reports_the_header();
	a_probe_reads_the_orientation();
	rectangles_must_lie_inside();
	bombs_are_refused();
	other_kinds_of_jpeg_are_refused();
	other_formats_are_refused();
	no_image_depends_on_the_one_before();
	a_premature_end_is_noticed();
	a_premature_end_of_arithmetic_codes_is_noticed();
	arithmetic_bombs_are_refused();
	damage_beyond_the_crop_is_not_looked_at();
	flipped_bytes_do_no_harm();
	encoding_is_the_same_every_time();
	quality_is_estimated_correctly();
	large_images_are_encoded_whole();
	unencodable_images_are_refused();
	crops_of_photographs_are_exact();
	codec_close(codec);
	codec_close(NULL);
	return 0;
}
