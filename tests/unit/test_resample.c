/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/resize/resample.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "tests/unit/t.h"

enum { CHANNELS = 3, GUARD = 5, GUARD_BYTE = 0xa5 };

static struct resampler *resampler;

/* Rows have some spare bytes, which the resampler must not write. */
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

static struct image image_random(struct rng *rng, uint32_t width,
				 uint32_t height)
{
	struct image image = image_make(width, height);

	for (uint32_t y = 0; y < height; y++)
		for (uint32_t x = 0; x < width * CHANNELS; x++)
			pixel(&image, 0, y)[x] = (uint8_t)rng_next(rng);
	return image;
}

static struct image resized(enum interpolation how, const struct image *in,
			    uint32_t width, uint32_t height)
{
	struct image out = image_make(width, height);

	CHECK(!resample(resampler, how, in, &out));
	for (uint32_t y = 0; y < height; y++)
		for (int i = 0; i < GUARD; i++)
			CHECK(pixel(&out, width, y)[i] == GUARD_BYTE);
	return out;
}

/* 7 x 5 pixels without any pattern that a filter could miss. */
static struct image image_small(void)
{
	struct image image = image_make(7, 5);

	for (uint32_t y = 0; y < 5; y++)
		for (uint32_t x = 0; x < 7; x++)
			for (uint32_t c = 0; c < CHANNELS; c++)
				pixel(&image, x, y)[c] =
					(uint8_t)(x * 37 + y * 61 + c * 91 +
						  x * y * 7);
	return image;
}

struct known {
	enum interpolation how;
	uint32_t width;
	uint32_t height;
	const uint8_t *pixels;
};

static void check_known(const struct known *k)
{
	struct image in = image_small();
	struct image out = resized(k->how, &in, k->width, k->height);
	size_t row = (size_t)k->width * CHANNELS;

	for (uint32_t y = 0; y < k->height; y++)
		CHECK(!memcmp(pixel(&out, 0, y), k->pixels + y * row, row));
	free(in.pixels);
	free(out.pixels);
}

/* OpenCV 4.6, INTER_AREA: shrunk; one axis enlarged; the other one. */
static void area_gives_opencvs_bytes(void)
{
	static const uint8_t shrunk[] = {
		79,  141, 137, 140, 143, 103, 135, 102, 156,
		164, 95,  149, 132, 135, 124, 122, 132, 143,
	};
	static const uint8_t taller[] = {
		16,  107, 198, 69,  160, 31,  137, 228, 63,  206, 41,  132,
		67,  158, 161, 128, 219, 61,  207, 93,	133, 81,  121, 212,
		118, 143, 103, 187, 124, 113, 123, 112, 202, 110, 113, 138,
		169, 92,  95,  159, 81,	 172, 90,  181, 170, 132, 91,  116,
		198, 56,  147, 79,  140, 188, 160, 199, 86,  102, 105, 167,
		162, 107, 198, 109, 200, 71,  229, 64,	155, 94,  185, 130,
	};
	static const uint8_t wider[] = {
		49,  140, 231, 79,  170, 115, 110, 201, 65,
		140, 202, 66,  176, 63,	 102, 213, 99,	139,
		126, 100, 169, 69,  109, 200, 99,  139, 230,
	};

	check_known(&(struct known){ INTERPOLATION_AREA, 3, 2, shrunk });
	check_known(&(struct known){ INTERPOLATION_AREA, 4, 6, taller });
	check_known(&(struct known){ INTERPOLATION_AREA, 9, 1, wider });
}

/* Pillow 12, Image.BILINEAR. */
static void bilinear_gives_pillows_bytes(void)
{
	static const uint8_t shrunk[] = {
		97,  141, 126, 135, 135, 112, 131, 110, 156,
		158, 100, 146, 130, 132, 129, 126, 132, 146,
	};
	static const uint8_t taller[] = {
		19,  110, 189, 77,  168, 54,  145, 185, 71,  203, 50,  129,
		68,  159, 155, 134, 171, 73,  173, 97,	137, 94,  115, 203,
		122, 142, 104, 155, 108, 123, 114, 120, 181, 109, 117, 143,
		171, 89,  102, 132, 95,	 156, 103, 172, 148, 131, 98,  120,
		190, 64,  152, 105, 140, 144, 164, 165, 102, 108, 114, 162,
		156, 113, 192, 123, 143, 100, 192, 78,	169, 100, 179, 136,
	};
	static const uint8_t wider[] = {
		122, 119, 142, 129, 108, 141, 131, 125, 126,
		126, 144, 109, 113, 110, 107, 153, 150, 146,
		140, 137, 148, 120, 112, 145, 118, 101, 152,
	};

	check_known(&(struct known){ INTERPOLATION_BILINEAR, 3, 2, shrunk });
	check_known(&(struct known){ INTERPOLATION_BILINEAR, 4, 6, taller });
	check_known(&(struct known){ INTERPOLATION_BILINEAR, 9, 1, wider });
}

/* Pillow 9. */
static void others_give_pillows_bytes(void)
{
	static const uint8_t cubic_3x2[] = {
		90,  141, 125, 137, 140, 107, 132, 105, 158,
		163, 96,  145, 131, 133, 133, 124, 134, 145,
	};
	static const uint8_t cubic_4x6[] = {
		13,  103, 201, 74,  174, 45,  143, 198, 62,  213, 36,  129,
		60,  167, 163, 140, 181, 58,  189, 80,	135, 77,  122, 222,
		122, 152, 91,  166, 95,	 125, 104, 114, 201, 106, 124, 135,
		183, 80,  89,  129, 82,	 169, 85,  195, 150, 144, 86,  107,
		201, 52,  160, 93,  151, 144, 174, 175, 83,  104, 106, 176,
		153, 118, 201, 121, 144, 90,  202, 62,	176, 92,  191, 135,
	};
	static const uint8_t cubic_9x1[] = {
		122, 116, 146, 128, 105, 145, 130, 130, 127,
		123, 151, 105, 117, 110, 103, 162, 154, 145,
		144, 138, 151, 116, 108, 147, 116, 105, 154,
	};
	static const uint8_t lanczos_3x2[] = {
		89,  139, 123, 137, 144, 104, 133, 103, 160,
		165, 95,  142, 132, 132, 139, 123, 135, 146,
	};
	static const uint8_t lanczos_4x6[] = {
		12,  98,  205, 73,  177, 46,  141, 203, 56,  218, 30,  129,
		54,  168, 170, 139, 191, 47,  196, 75,	128, 75,  122, 228,
		125, 166, 81,  180, 79,	 125, 97,  105, 222, 99,  139, 132,
		194, 67,  83,  123, 68,	 184, 69,  225, 139, 161, 72,  98,
		200, 53,  172, 87,  162, 138, 188, 165, 76,  100, 109, 187,
		148, 125, 202, 119, 142, 84,  205, 52,	184, 91,  198, 136,
	};
	static const uint8_t lanczos_9x1[] = {
		121, 116, 145, 127, 103, 148, 131, 135, 127,
		120, 151, 102, 117, 110, 103, 162, 151, 143,
		148, 142, 154, 113, 104, 146, 118, 108, 154,
	};
	static const uint8_t nearest_3x2[] = {
		105, 196, 31,  193, 28,	 119, 25,  116, 207,
		241, 76,  167, 101, 192, 27,  217, 52,	143,
	};
	static const uint8_t nearest_9x3[] = {
		0,   91,  182, 37,  128, 219, 37,  128, 219, 74,  165, 0,
		111, 202, 37,  148, 239, 74,  185, 20,	111, 185, 20,  111,
		222, 57,  148, 122, 213, 48,  173, 8,	99,  173, 8,   99,
		224, 59,  150, 19,  110, 201, 70,  161, 252, 121, 212, 47,
		121, 212, 47,  172, 7,	 98,  244, 79,	170, 53,  144, 235,
		53,  144, 235, 118, 209, 44,  183, 18,	109, 248, 83,  174,
		57,  148, 239, 57,  148, 239, 122, 213, 48,
	};

	check_known(&(struct known){ INTERPOLATION_BICUBIC, 3, 2, cubic_3x2 });
	check_known(&(struct known){ INTERPOLATION_BICUBIC, 4, 6, cubic_4x6 });
	check_known(&(struct known){ INTERPOLATION_BICUBIC, 9, 1, cubic_9x1 });
	check_known(
		&(struct known){ INTERPOLATION_LANCZOS, 3, 2, lanczos_3x2 });
	check_known(
		&(struct known){ INTERPOLATION_LANCZOS, 4, 6, lanczos_4x6 });
	check_known(
		&(struct known){ INTERPOLATION_LANCZOS, 9, 1, lanczos_9x1 });
	check_known(
		&(struct known){ INTERPOLATION_NEAREST, 3, 2, nearest_3x2 });
	check_known(
		&(struct known){ INTERPOLATION_NEAREST, 9, 3, nearest_9x3 });
}

static void equal_sizes_are_copied(void)
{
	struct rng rng = { .key = 1 };
	struct image in = image_random(&rng, 13, 4);

	for (int how = 0; how < INTERPOLATIONS; how++) {
		struct image out = resized(how, &in, 13, 4);

		for (uint32_t y = 0; y < 4; y++)
			CHECK(!memcmp(pixel(&in, 0, y), pixel(&out, 0, y), 39));
		free(out.pixels);
	}
	free(in.pixels);
}

/* Half up, where every other average is half to even. */
static void quarters_round_half_up(void)
{
	struct image in = image_make(2, 2);

	for (int sum = 0; sum <= 4; sum++) {
		for (int i = 0; i < 4; i++)
			memset(pixel(&in, i % 2, i / 2), i < sum, CHANNELS);

		struct image out = resized(INTERPOLATION_AREA, &in, 1, 1);

		CHECK(*out.pixels == (sum + 2) / 4);
		free(out.pixels);
	}
	free(in.pixels);
}

/* The weight of input k in output i of the triangle filter. */
static double triangle(uint32_t from, uint32_t to, uint32_t i, uint32_t k)
{
	double scale = (double)from / to;
	double support = scale < 1 ? 1 : scale;
	double x = __builtin_fabs((k + 0.5) - (i + 0.5) * scale) / support;

	return x < 1 ? 1 - x : 0;
}

/* The part of output i that input k covers. */
static double box(uint32_t from, uint32_t to, uint32_t i, uint32_t k)
{
	double scale = (double)from / to;
	double begin = i * scale > k ? i * scale : k;
	double end = (i + 1) * scale < k + 1. ? (i + 1) * scale : k + 1.;

	return end > begin ? end - begin : 0;
}

static double filtered(double (*weight)(uint32_t, uint32_t, uint32_t, uint32_t),
		       const struct image *in, const struct image *out,
		       uint32_t at)
{
	uint32_t ox = at / CHANNELS % out->width;
	uint32_t oy = at / CHANNELS / out->width;
	double sum = 0;
	double all = 0;

	for (uint32_t y = 0; y < in->height; y++) {
		double wy = weight(in->height, out->height, oy, y);

		for (uint32_t x = 0; wy > 0 && x < in->width; x++) {
			double w = wy * weight(in->width, out->width, ox, x);

			sum += w * pixel(in, x, y)[at % CHANNELS];
			all += w;
		}
	}
	return sum / all;
}

static void check_near(enum interpolation how, const struct image *in,
		       const struct image *out)
{
	for (uint32_t i = 0; i < out->width * out->height * CHANNELS; i++) {
		double want = filtered(
			how == INTERPOLATION_AREA ? box : triangle, in, out, i);
		uint32_t x = i / CHANNELS % out->width;
		uint32_t y = i / CHANNELS / out->width;
		double got = pixel(out, x, y)[i % CHANNELS];

		CHECK(__builtin_fabs(got - want) <= 1.01);
	}
}

static void every_size_is_near_the_real_filter(void)
{
	struct rng rng = { .key = 2 };

	for (int i = 0; i < 150; i++) {
		uint32_t w = 1 + (uint32_t)(rng_uniform(&rng) * 40);
		uint32_t h = 1 + (uint32_t)(rng_uniform(&rng) * 40);
		uint32_t ow = 1 + (uint32_t)(rng_uniform(&rng) * 40);
		uint32_t oh = 1 + (uint32_t)(rng_uniform(&rng) * 40);
		struct image in = image_random(&rng, w, h);
		struct image out = resized(INTERPOLATION_BILINEAR, &in, ow, oh);

		check_near(INTERPOLATION_BILINEAR, &in, &out);
		free(out.pixels);
		out = resized(INTERPOLATION_AREA, &in, ow, oh);
		if (ow <= w && oh <= h)
			check_near(INTERPOLATION_AREA, &in, &out);
		free(out.pixels);
		free(in.pixels);
	}
}

/* Also the sizes where sums are largest, and where there is but one pixel. */
static void one_colour_stays_one_colour(void)
{
	static const uint32_t sizes[][4] = {
		{ 1, 1, 1, 300 },     { 1, 1, 300, 1 },
		{ 300, 1, 1, 1 },     { 65535, 1, 1, 1 },
		{ 1, 65535, 1, 1 },   { 65535, 3, 2, 2 },
		{ 3, 65535, 3, 223 }, { 1, 1, 65535, 2 },
		{ 2, 2, 1, 65535 },   { 49, 49, 1, 1 },
		{ 4000, 4000, 1, 1 }, { 65535, 1, 65534, 1 },
		{ 2, 1, 1, 65535 },   { 640, 480, 7, 700 },
	};

	for (size_t i = 0; i < ARRAY_LEN(sizes) * 10; i++) {
		const uint32_t *s = sizes[i / 10];
		int color = i % 2 ? 255 : 77;
		struct image in = image_make(s[0], s[1]);

		memset(in.pixels, color, in.stride * in.height);

		struct image out = resized(i / 2 % 5, &in, s[2], s[3]);

		for (uint32_t y = 0; y < s[3]; y++)
			for (uint32_t k = 0; k < s[2] * CHANNELS; k++)
				CHECK(pixel(&out, 0, y)[k] == color);
		free(in.pixels);
		free(out.pixels);
	}
}

/* A result does not depend on earlier calls of the resampler. */
static void results_do_not_depend_on_history(void)
{
	struct rng rng = { .key = 4 };
	struct image in = image_random(&rng, 57, 31);
	struct image a = resized(INTERPOLATION_AREA, &in, 24, 24);

	for (uint32_t size = 1; size < 90; size += 8) {
		struct image b =
			resized(size % INTERPOLATIONS, &in, size, 90 - size);
		struct image c = resized(INTERPOLATION_AREA, &in, 24, 24);

		CHECK(!memcmp(a.pixels, c.pixels, a.stride * a.height));
		free(b.pixels);
		free(c.pixels);
	}
	free(a.pixels);
	free(in.pixels);
}

static int row_of(void *arg, uint32_t y, const uint8_t **pixels)
{
	const struct image *image = arg;

	*pixels = pixel(image, 0, y);
	return y < image->height ? 0 : -1;
}

/* The part of a resize, `rows` at a time, of the part of `in` it asks for. */
static struct image part_of(const struct resize *resize, const struct image *in,
			    uint32_t rows)
{
	struct image out = image_make(resize->part.width, resize->part.height);
	struct image source = *in, band = out;
	struct rect needs;

	CHECK(!resample_start(resampler, resize, &needs));
	CHECK(needs.x + needs.width <= in->width);
	CHECK(needs.y + needs.height <= in->height);
	source.pixels = pixel(in, needs.x, needs.y);
	source.height = needs.height;
	for (uint32_t y = 0; y < out.height; y += band.height) {
		band.pixels = pixel(&out, 0, y);
		band.height = (uint32_t)min_u64(rows, out.height - y);
		CHECK(!resample_rows(resampler,
				     &(struct row_source){ row_of, &source },
				     &band));
	}
	return out;
}

static void check_part(const struct resize *resize, const struct image *whole,
		       const struct image *part)
{
	for (uint32_t y = 0; y < part->height; y++)
		for (uint32_t x = 0; x < part->width; x++) {
			uint32_t at = resize->mirror ? part->width - 1 - x : x;

			CHECK(!memcmp(pixel(part, x, y),
				      pixel(whole, resize->part.x + at,
					    resize->part.y + y),
				      CHANNELS));
		}
}

static void parts_are_cut_out_of_the_whole(void)
{
	struct rng rng = { .key = 6 };

	for (int i = 0; i < 300; i++) {
		uint32_t size[6];

		for (int k = 0; k < 6; k++)
			size[k] = 1 + (uint32_t)(rng_uniform(&rng) * 60);

		struct image in = image_random(&rng, size[0], size[1]);
		struct resize z = {
			.how = (enum interpolation)(i % INTERPOLATIONS),
			.from_width = in.width,
			.from_height = in.height,
			.to_width = size[2] == size[0] ? 61 : size[2],
			.to_height = size[3],
			.mirror = i / INTERPOLATIONS % 2,
		};
		struct image whole =
			resized(z.how, &in, z.to_width, z.to_height);

		z.part.x = size[4] % z.to_width;
		z.part.y = size[5] % z.to_height;
		z.part.width = 1 + size[5] % (z.to_width - z.part.x);
		z.part.height = 1 + size[4] % (z.to_height - z.part.y);

		struct image part = part_of(&z, &in, 1 + i % 5);

		check_part(&z, &whole, &part);
		free(in.pixels);
		free(whole.pixels);
		free(part.pixels);
	}
}

static char *shared_path(const char *name, char path[4096])
{
	const char *shared = getenv("BETON_SHARED");

	snprintf(path, 4096, "%s/data/golden/%s", shared ? shared : "../shared",
		 name);
	return path;
}

static char *read_whole(const char *name, size_t *size)
{
	char path[4096];
	FILE *f = fopen(shared_path(name, path), "rb");
	char *bytes = calloc(1, 1 << 20);

	CHECK(bytes);
	if (!f) {
		free(bytes);
		return NULL;
	}
	*size = fread(bytes, 1, (1 << 20) - 1, f);
	fclose(f);
	return bytes;
}

/* The number behind "name": after *at, which moves on. */
static uint32_t json_number(const char **at, const char *name)
{
	const char *p = strstr(*at, name);
	unsigned value = 0;

	CHECK(p);
	p += strlen(name);
	CHECK(sscanf(p, "\": %u", &value) == 1);
	*at = p;
	return value;
}

static void check_golden(const char **json, uint8_t *src, const uint8_t *want)
{
	enum { SRC_STRIDE = 131 * CHANNELS };
	uint32_t row0 = json_number(json, "row0");
	uint32_t row1 = json_number(json, "row1");
	uint32_t col0 = json_number(json, "col0");
	uint32_t col1 = json_number(json, "col1");
	uint32_t height = json_number(json, "out_h");
	uint32_t width = json_number(json, "out_w");
	struct image in = {
		.pixels = src + row0 * SRC_STRIDE + col0 * CHANNELS,
		.width = col1 - col0,
		.height = row1 - row0,
		.stride = SRC_STRIDE,
	};
	struct image out = resized(INTERPOLATION_AREA, &in, width, height);
	size_t row = (size_t)width * CHANNELS;

	want += json_number(json, "offset");
	for (uint32_t y = 0; y < height; y++)
		CHECK(!memcmp(pixel(&out, 0, y), want + y * row, row));
	free(out.pixels);
}

static void area_gives_the_golden_bytes(void)
{
	size_t size = 0;
	char *json = read_whole("resize_cases.json", &size);
	int n = 0;

	if (!json) {
		printf("skip: golden resizes: no ../shared\n");
		return;
	}

	char *src = read_whole("resize_src_97x131x3.bin", &size);
	char *want = read_whole("resize_out.bin", &size);
	const char *at = json;

	CHECK(src && want);
	for (; strstr(at, "row0"); n++)
		check_golden(&at, (uint8_t *)src, (const uint8_t *)want);
	CHECK(n > 0);
	free(json);
	free(src);
	free(want);
}

int main(void)
{
	CHECK(!resampler_open(&resampler));
	area_gives_opencvs_bytes();
	bilinear_gives_pillows_bytes();
	others_give_pillows_bytes();
	equal_sizes_are_copied();
	quarters_round_half_up();
	every_size_is_near_the_real_filter();
	one_colour_stays_one_colour();
	results_do_not_depend_on_history();
	parts_are_cut_out_of_the_whole();
	area_gives_the_golden_bytes();
	resampler_close(resampler);
	resampler_close(NULL);
	return 0;
}
