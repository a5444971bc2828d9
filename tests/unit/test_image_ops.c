/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on whole images against the definitions in the manual, for each
 * pixel, and with operations before and after them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/npy.h"
#include "fs/base/util/rng.h"
#include "loader/pipeline/graph/args.h"
#include "loader/pipeline/graph/op_table.h"
#include "loader/pipeline/op/op.h"
#include "loader/pipeline/text/parse.h"
#include "loader/pipeline/text/schedule.h"
#include "loader/run/transform/pipeline.h"
#include "tests/unit/fields.h"
#include "tests/unit/t.h"

enum { W = 23, H = 17, SIZE = 3 * W * H };

static struct pipeline_field field = FIELD_IMAGE(W, H);
static const struct pipeline_row row_0 = { .seed = 3, .epoch = 1, .id = 7 };
static uint8_t pixels[H][W][3];
static char error[256];

/* --- one operation --- */

/* The numbers that an operation draws, and how many it did draw. */
struct script {
	const double *numbers;
	size_t count;
	size_t at;
};

static double next(void *arg)
{
	struct script *s = arg;

	CHECK(s->at < s->count);
	return s->numbers[s->at++];
}

/* An operation by its text, with these draws, in place; all are made. */
static void apply(const char *text, const double *draws, size_t count,
		  uint8_t image[H][W][3])
{
	struct diagnostic c = { text, error, sizeof(error) };
	const struct image all = { &image[0][0][0], W, H, 3 * W };
	struct epochs epochs = { 0, UINT64_MAX };
	struct script script = { draws, count, 0 };
	const struct op_sample sample = { .id = 7,
					  .uniform = { next, &script } };
	const struct op *op;
	struct parse p;
	struct args args;

	CHECK(!parse_text(&c, &p) && p.num_stages == 1);
	op = op_table_find(p.stages[0].name);
	CHECK(op && op->kind == OP_IMAGE);
	CHECK(!args_bind(op, &p, &p.stages[0], &epochs, &c, &args));
	op->image->in_place(&args, &sample, &all);
	CHECK(script.at == count);
	parse_fini(&p);
}

static void start(uint8_t image[H][W][3])
{
	memcpy(image, pixels, SIZE);
}

static void vertical_flip_exchanges_top_and_bottom(void)
{
	uint8_t image[H][W][3];

	start(image);
	apply("vertical_flip", (const double[]){ 0.5 }, 1, image);
	CHECK(!memcmp(image, pixels, SIZE));
	apply("vertical_flip", (const double[]){ 0.49 }, 1, image);
	for (int y = 0; y < H; y++)
		CHECK(!memcmp(image[y], pixels[H - 1 - y], 3 * W));
}

static bool is_colour(const uint8_t p[3], int r, int g, int b)
{
	return p[0] == r && p[1] == g && p[2] == b;
}

/* Pixels outside of the rectangle do not change. */
static void check_cut(uint8_t image[H][W][3], const struct rect *cut)
{
	for (unsigned y = 0; y < H; y++) {
		for (unsigned x = 0; x < W; x++) {
			bool in = y - cut->y < cut->height &&
				  x - cut->x < cut->width;

			CHECK(in ? is_colour(image[y][x], 1, 2, 3)
				 : !memcmp(image[y][x], pixels[y][x], 3));
		}
	}
}

static void cutout_fills_one_rectangle(void)
{
	uint8_t image[H][W][3];

	start(image);
	apply("cutout(\"5,8\", \"1,2,3\")", (const double[]){ 0.99, 0.5, 0.5 },
	      3, image);
	check_cut(image, &(struct rect){ 8, 6, 8, 5 });
	start(image);
	apply("cutout(5, \"1,2,3\")", (const double[]){ 0, 0, 0.999999 }, 3,
	      image);
	check_cut(image, &(struct rect){ W - 5, 0, 5, 5 });
	start(image);
	apply("cutout(20, \"1,2,3\", 0.3)", (const double[]){ 0.2, 0.9, 0 }, 3,
	      image);
	check_cut(image, &(struct rect){ 0, 0, 20, H });
	start(image);
	apply("cutout(99, 9, 0.3)", (const double[]){ 0.3, 0, 0 }, 3, image);
	CHECK(!memcmp(image, pixels, SIZE));
	apply("cutout(99, 9)", (const double[]){ 0, 0.9, 0.9 }, 3, image);
	CHECK(is_colour(image[0][0], 9, 9, 9));
	CHECK(is_colour(image[H - 1][W - 1], 9, 9, 9));
}

/* A rectangle of 16 x 8 of 23 x 17 pixels: an area of 128 and a ratio of 2. */
static void random_erasing_fills_what_is_smaller_than_the_image(void)
{
	const char *text = "random_erasing(0.5, \"0.33,0.33\", \"2,2\", "
			   "value=\"1,2,3\")";
	uint8_t image[H][W][3];
	int kept = 0;

	start(image);
	apply(text, (const double[]){ 0.5 }, 1, image);
	CHECK(!memcmp(image, pixels, SIZE));
	apply(text, (const double[]){ 0.4, 0, 0, 0.99, 0.5 }, 5, image);
	check_cut(image, &(struct rect){ 8, 1, 8, 16 });
	/* Ten attempts at a height of 18 and more. */
	start(image);
	apply("random_erasing(1, \"0.4,0.4\", \"2.1,2.1\")",
	      (const double[21]){ 0 }, 21, image);
	CHECK(!memcmp(image, pixels, SIZE));
	apply("random_erasing(1, \"0.25,0.25\", \"1,1\", random)",
	      (const double[]){ 0, 0, 0, 0, 0, 0.3 }, 6, image);
	for (int i = 0; i < SIZE; i++)
		kept += ((uint8_t *)image)[i] == ((uint8_t *)pixels)[i];
	CHECK(kept >= SIZE - 300 && kept < SIZE - 250);
}

/* The pixel (x, y) of what is cut out of the padded image. */
static bool is_moved(uint8_t image[H][W][3], unsigned x, unsigned y, int by_x,
		     int by_y)
{
	int from_x = (int)x + by_x, from_y = (int)y + by_y;

	if (from_x < 0 || from_x >= W || from_y < 0 || from_y >= H)
		return is_colour(image[y][x], 4, 5, 6);
	return !memcmp(image[y][x], pixels[from_y][from_x], 3);
}

static void translate_cuts_out_of_the_padded_image(void)
{
	static const double draws[] = { 0, 0.2, 0.4, 0.5, 0.6, 0.8, 0.99999 };
	static const int paddings[] = { 0, 1, 3, W - 1, W, 100 };
	uint8_t image[H][W][3];
	char text[64];

	for (size_t i = 0;
	     i < ARRAY_LEN(paddings) * ARRAY_LEN(draws) * ARRAY_LEN(draws);
	     i++) {
		int p = paddings[i % ARRAY_LEN(paddings)];
		size_t k = i / ARRAY_LEN(paddings);
		double v = draws[k % ARRAY_LEN(draws)];
		double w = draws[k / ARRAY_LEN(draws)];

		snprintf(text, sizeof(text), "random_translate(%d, \"4,5,6\")",
			 p);
		start(image);
		apply(text, (const double[]){ v, w }, 2, image);
		for (unsigned at = 0; at < W * H; at++)
			CHECK(is_moved(image, at % W, at / W,
				       (int)(w * (2 * p + 1)) - p,
				       (int)(v * (2 * p + 1)) - p));
	}
}

static void contrast_is_about_the_mean_grey(void)
{
	/* 1 - 0.5 + 0.75 (1.5 - 0.5) is 1.25. */
	static const double draws[] = { 0.1, 0.75 };
	const uint8_t *in = &pixels[0][0][0];
	uint8_t image[H][W][3], *out = &image[0][0][0];
	double sum = 0;
	float mean;

	for (int i = 0; i < W * H; i++) {
		const uint8_t *p = in + 3 * (size_t)i;

		sum += (int)(0.2989F * p[0] + 0.587F * p[1] + 0.114F * p[2]);
	}
	mean = (float)(sum / (W * H));
	start(image);
	apply("contrast(0.5)", draws, 2, image);
	for (int i = 0; i < SIZE; i++) {
		float v = 1.25F * in[i] + -0.25F * mean;

		CHECK(out[i] == (v < 0 ? 0 : v > 255 ? 255 : (int)v));
	}
	start(image);
	apply("contrast(0.5, 0.1)", draws, 1, image);
	CHECK(!memcmp(image, pixels, SIZE));
}

static float limited(double v)
{
	return (float)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static double grey_of(const float v[3])
{
	return 0.2989 * v[0] + 0.587 * v[1] + 0.114 * v[2];
}

/* In float64 here, so a value may be truncated to its neighbor. */
static void jittered(const uint8_t in[3], double mean, uint8_t out[3])
{
	/* The turn is 0.4 (2 * 0.9 - 1) = 0.32. */
	const double c = cos(2 * M_PI * 0.32), s = sin(2 * M_PI * 0.32);
	const double m[3] = { c + (1 - c) / 3, (1 - c) / 3 - sqrt(1 / 3.) * s,
			      (1 - c) / 3 + sqrt(1 / 3.) * s };
	float v[3], w[3];
	double gray;

	for (int i = 0; i < 3; i++)
		v[i] = limited(1.25 * in[i]);
	for (int i = 0; i < 3; i++)
		v[i] = limited(0.7 * v[i] + 0.3 * mean);
	gray = grey_of(v);
	for (int i = 0; i < 3; i++)
		w[i] = limited(1.5 * v[i] - 0.5 * gray);
	for (int i = 0; i < 3; i++)
		out[i] = (uint8_t)limited(m[0] * w[i] + m[1] * w[(i + 1) % 3] +
					  m[2] * w[(i + 2) % 3]);
}

static void color_jitter_is_four_steps(void)
{
	/* Factors of 1 - 0.5 + 0.75, 1 - 0.4 + 0.8 / 8, and 0 + 2.5 * 0.6. */
	static const double draws[] = { 0.1, 0.75, 0.125, 0.6, 0.9 };
	uint8_t image[H][W][3], *out = &image[0][0][0], want[3];
	const uint8_t *in = &pixels[0][0][0];
	double sum = 0;

	for (int i = 0; i < W * H; i++) {
		float v[3];

		for (int k = 0; k < 3; k++)
			v[k] = limited(1.25 * in[3 * i + k]);
		sum += grey_of(v);
	}
	start(image);
	apply("color_jitter(0.5, 0.4, 1.5, 0.4, 0.2)", draws, 5, image);
	for (int i = 0; i < W * H; i++) {
		jittered(in + 3 * (size_t)i, sum / (W * H), want);
		for (int k = 0; k < 3; k++)
			CHECK(abs(out[3 * i + k] - want[k]) <= 1);
	}
	start(image);
	apply("color_jitter(0.5, 0.4, 1.5, 0.4, 0.1)", draws, 5, image);
	CHECK(!memcmp(image, pixels, SIZE));
	apply("color_jitter", draws, 5, image);
	CHECK(!memcmp(image, pixels, SIZE));
}

/* --- among others --- */

static int parse(const char *text, struct pipeline **out)
{
	return pipeline_parse(text, &field, 1, 0, out, error, sizeof(error));
}

/* Output 0 of a text, of an image. */
static int run_image(const char *text, const uint8_t *image, uint32_t width,
		     uint32_t height, void *out)
{
	const struct pipeline_value v = {
		.bytes = image,
		.size = 3 * (uint64_t)width * height,
		.mode = BETON_MODE_RAW,
		.width = width,
		.height = height,
	};
	struct pipeline_worker *w;
	struct pipeline *p;
	int r = parse(text, &p);

	if (r)
		fprintf(stderr, "%s: %s\n", text, error);
	CHECK(!r && !pipeline_worker_open(p, &w));
	r = pipeline_run(p, w, 0, &v, &row_0, BETON_STAGE_ALL, out, NULL);
	snprintf(error, sizeof(error), "%s", pipeline_worker_message(w));
	CHECK(!r == !error[0]);
	pipeline_worker_close(w);
	pipeline_close(p);
	return r;
}

struct split {
	const char *before;
	const char *op;
	const char *after;
	uint32_t width, height; /* of the image between */
};

static const struct split splits[] = {
	{ "image", "contrast(0.7, 1)", "hwc", W, H },
	{ "image", "cutout(4, 200)", "normalize(imagenet) | half | chw", W, H },
	{ "flip(1) | brightness(0.5, 1)", "random_translate(3)",
	  "saturation(0.5, 1) | float", W, H },
	{ "resize(\"9,13\")", "vertical_flip(1)", "flip(1) | chw", 13, 9 },
	{ "image", "vertical_flip(1)", "resize(\"20,30\") | float | chw", W,
	  H },
	{ "invert", "contrast(0.7, 1)",
	  "random_resized_crop(\"9,12\") | flip(1) | "
	  "random_resized_crop(\"7,8\") | brightness(0.4, 1) | half",
	  W, H },
	{ "image", "pad(3, edge)", "hwc", W + 6, H + 6 },
	{ "invert", "pad(\"1,0\")", "float | chw", W + 2, H },
	{ "image", "cutout(3, 9) | pad(2, reflect) | vertical_flip(1)",
	  "resize(\"9,9\") | half", W + 4, H + 4 },
	{ "image", "pad(2) | pad(1, symmetric) | pad(4, edge) | pad(1)",
	  "center_crop(8)", W + 16, H + 16 },
};

/* Later operations work on the result as on any raw image. */
static void passes_follow_one_another(void)
{
	static uint8_t between[4 * SIZE];
	static uint64_t want[5000], got[5000];
	char text[300];

	for (size_t i = 0; i < ARRAY_LEN(splits); i++) {
		const struct split *s = &splits[i];

		snprintf(text, sizeof(text), "%s | %s", s->before, s->op);
		CHECK(!run_image(text, pixels[0][0], W, H, between));
		memset(want, 0xee, sizeof(want));
		memset(got, 0xee, sizeof(got));
		field.width = s->width;
		field.height = s->height;
		CHECK(!run_image(s->after, between, s->width, s->height, want));
		field.width = W;
		field.height = H;
		snprintf(text, sizeof(text), "%s | %s | %s", s->before, s->op,
			 s->after);
		CHECK(!run_image(text, pixels[0][0], W, H, got));
		if (memcmp(want, got, sizeof(want)) != 0)
			fprintf(stderr, "%s\n", text);
		CHECK(!memcmp(want, got, sizeof(want)));
	}
}

static void several_follow_one_another_too(void)
{
	uint8_t want[H][W][3], got[H][W][3];

	CHECK(!run_image("vertical_flip(1) | contrast(0.7, 1) | cutout(5) | "
			 "vertical_flip(1)",
			 pixels[0][0], W, H, got));
	CHECK(!run_image("vertical_flip(1) | contrast(0.7, 1)", pixels[0][0], W,
			 H, want));
	CHECK(!run_image("cutout(5) | vertical_flip(1)", want[0][0], W, H,
			 want));
	CHECK(!memcmp(want, got, SIZE));
}

static void sizes_are_set_by_the_end(void)
{
	uint8_t out[6][5][3];

	CHECK(!run_image("vertical_flip | resize(\"6,5\")", pixels[0][0], H, W,
			 out));
	CHECK(run_image("vertical_flip | flip", pixels[0][0], H, W, out));
	CHECK(strstr(error, "comes out as 17x23, but `image' is 23x17"));
	CHECK(run_image("vertical_flip | resize(\"6,5\")", pixels[0][0], 0, W,
			out));
}

static char mask[] = "/tmp/test_image_ops-XXXXXX";

/* All values are 200, and the size is that of sample 0. */
static void write_mask(void)
{
	const uint64_t shape[] = { H, W, 3 };
	uint8_t values[SIZE];
	char head[NPY_HEADER_MAX];
	size_t size = npy_header(head, "|u1", 3, shape);
	int fd = mkstemp(mask);
	FILE *f = fdopen(fd, "w");

	memset(values, 200, sizeof(values));
	CHECK(f && fwrite(head, 1, size, f) == size);
	CHECK(fwrite(values, 1, SIZE, f) == SIZE && !fclose(f));
}

/* Images of other sizes than sample 0 may be too small. */
static void a_crop_of_a_smaller_image_is_an_error(void)
{
	static const char *const crops[] = {
		"random_crop(\"17,24\")",
		"flip | random_crop(18) | resize(\"3,3\")",
		"random_crop(\"17,28\", \"2,0\", mode=edge)",
		"vertical_flip | random_crop(18) | resize(\"3,3\")",
	};
	static uint8_t out[3 * 18 * 28];
	const struct pipeline_field known = field;

	field.width = 0;
	field.height = 0;
	for (size_t i = 0; i < ARRAY_LEN(crops); i++) {
		CHECK(run_image(crops[i], pixels[0][0], W, H, out));
		CHECK(!strncmp(error,
			       "random_crop: an image of 23x17 is too small; ",
			       45));
	}
	CHECK(!run_image("random_crop(\"17,24\", pad_if_needed=true)",
			 pixels[0][0], W, H, out));
	CHECK(!run_image("random_crop(\"17,24\", pad_if_needed=1)",
			 pixels[0][0], W, H, out));
	CHECK(!run_image("random_crop(\"17,23\")", pixels[0][0], W, H, out));
	CHECK(!memcmp(out, pixels, SIZE));
	field = known;
}

static void a_mask_is_for_images_of_its_size(void)
{
	char poison[100];
	uint8_t out[H][W][3], small[6][5][3];
	const uint8_t *in = &pixels[0][0][0], *got = &out[0][0][0];
	char text[140];

	write_mask();
	snprintf(poison, sizeof(poison), "poison(\"%s\", 0.5, \"6,7\")", mask);
	CHECK(!run_image(poison, in, W, H, out));
	for (int i = 0; i < SIZE; i++)
		CHECK(got[i] == (int)(0.5F * in[i] + 100));
	/* The size that is set later is no help. */
	snprintf(text, sizeof(text), "%s | resize(\"6,5\")", poison);
	CHECK(!run_image(text, in, W, H, small));
	CHECK(run_image(text, in, H, W, small));
	CHECK(strstr(error, "comes out as 17x23, but `image' is 23x17"));
	unlink(mask);
}

static void prebuilt_code_still_serves(void)
{
	struct pipeline *p;

	CHECK(!parse("random_translate(4) | cutout(8) | normalize(imagenet) | "
		     "half | chw",
		     &p));
	CHECK(!strcmp(pipeline_engine(p, 0), "prebuilt"));
	pipeline_close(p);
	/* The code is compiled for the operations before the last one. */
	CHECK(!parse("brightness(0.5) | contrast(0.4) | normalize(imagenet)",
		     &p));
	CHECK(!strcmp(pipeline_engine(p, 0), "generic"));
	pipeline_close(p);
	CHECK(!parse("vertical_flip", &p));
	CHECK(!strcmp(pipeline_engine(p, 0), "none"));
	pipeline_close(p);
}

struct mistake {
	const char *text;
	const char *error;
};

static const struct mistake mistakes[] = {
	{ "float | cutout(8)",
	  "column 9: cutout works on 8-bit images; it must stand before" },
	{ "chw | contrast(1)", "column 7: contrast must stand before chw" },
	{ "cuda | vertical_flip",
	  "column 8: vertical_flip runs on the CPU and must stand before "
	  "cuda" },
	{ "cutout(8, \"1,2\")",
	  "column 1: cutout: a color has one number, or three" },
	{ "random_translate(-1)", "column 18: padding of random_translate" },
	{ "cutout(8, 256)", "column 11: fill of cutout takes whole numbers" },
	{ "cutout(8, p=0) | cache(decoded, 1MiB)",
	  "column 18: cache must stand before operations" },
	{ "cutout(8) | decode(exact)", "column 13: decode must be the first" },
};

static void mistakes_are_reported(void)
{
	struct pipeline *p;

	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		const struct mistake *m = &mistakes[i];

		CHECK(parse(m->text, &p));
		if (strncmp(error, m->error, strlen(m->error)) != 0)
			fprintf(stderr, "%s: %s\n", m->text, error);
		CHECK(!strncmp(error, m->error, strlen(m->error)));
	}
}

int main(void)
{
	struct rng rng = { .key = 2 };
	uint8_t *to = &pixels[0][0][0];

	for (size_t i = 0; i < SIZE; i++)
		to[i] = (uint8_t)rng_next(&rng);
	vertical_flip_exchanges_top_and_bottom();
	cutout_fills_one_rectangle();
	random_erasing_fills_what_is_smaller_than_the_image();
	translate_cuts_out_of_the_padded_image();
	contrast_is_about_the_mean_grey();
	color_jitter_is_four_steps();
	passes_follow_one_another();
	several_follow_one_another_too();
	sizes_are_set_by_the_end();
	a_crop_of_a_smaller_image_is_an_error();
	a_mask_is_for_images_of_its_size();
	prebuilt_code_still_serves();
	mistakes_are_reported();
	return 0;
}
