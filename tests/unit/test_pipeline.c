/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/image/codec/codec.h"
#include "loader/image/resize/resample.h"
#include "loader/pipeline/op/dtype.h"
#include "loader/pipeline/text/diagnostic.h"
#include "loader/run/transform/output_plan.h"
#include "loader/run/transform/pipeline.h"
#include "tests/unit/fields.h"
#include "tests/unit/jpegs.h"
#include "tests/unit/t.h"

enum { W = 40, H = 30 };

static const struct pipeline_field fields[] = {
	FIELD_IMAGE(W, H),
	FIELD_LABEL,
	{ .name = "flip",
	  .stem = "flip",
	  .column = COLUMN_SCALAR,
	  .usable = true,
	  .dtype = "<f8" },
	{ .name = "own",
	  .stem = "own",
	  .column = COLUMN_RECORD,
	  .dtype = "|u1" },
	{ .name = "a vector",
	  .stem = "a%20vector",
	  .column = COLUMN_ARRAY,
	  .usable = true,
	  .dtype = "<f4",
	  .ndim = 2,
	  .shape = { 50, 2 } },
	{ .name = "text",
	  .stem = "text",
	  .column = COLUMN_RAGGED,
	  .usable = true,
	  .dtype = "|u1" },
	{ .name = "names",
	  .stem = "names",
	  .column = COLUMN_ARRAY,
	  .usable = true,
	  .dtype = "<U3",
	  .ndim = 1,
	  .shape = { 4 } },
};

static const struct pipeline_field pair[] = {
	{ .name = "left",
	  .stem = "left",
	  .column = COLUMN_IMAGE,
	  .usable = true,
	  .dtype = "|u1",
	  .width = W,
	  .height = H },
	{ .name = "right",
	  .stem = "right",
	  .column = COLUMN_IMAGE,
	  .usable = true,
	  .dtype = "|u1" },
};

static char error[256];
static uint8_t pixels[H][W][3];
static const struct pipeline_row row_0 = { .seed = 1, .epoch = 2, .id = 3 };

static const struct pipeline_value raw = {
	.bytes = &pixels[0][0][0],
	.size = sizeof(pixels),
	.mode = BETON_MODE_RAW,
	.width = W,
	.height = H,
};

static int parse(const char *text, struct pipeline **out)
{
	return pipeline_parse(text, fields, ARRAY_LEN(fields), 0, out, error,
			      sizeof(error));
}

/* Runs output 0 of a text over the raw image; returns pipeline_run()'s. */
static int run_value(const char *text, const struct pipeline_value *value,
		     const struct pipeline_row *row, void *out)
{
	struct pipeline_worker *w = NULL;
	struct pipeline *p = NULL;
	int r = parse(text, &p);

	if (r)
		fprintf(stderr, "%s: %s\n", text, error);
	CHECK(!r && !pipeline_worker_open(p, &w));
	r = pipeline_run(p, w, 0, value, row, BETON_STAGE_ALL, out, NULL);
	snprintf(error, sizeof(error), "%s", pipeline_worker_message(w));
	CHECK(!r == !error[0]);
	pipeline_worker_close(w);
	pipeline_close(p);
	return r;
}

static void run(const char *text, void *out)
{
	CHECK(!run_value(text, &raw, &row_0, out));
}

static void check_output(const struct pipeline *p, size_t i, const char *name,
			 const char *dtype, uint64_t row_size)
{
	const struct pipeline_output *o = pipeline_output_at(p, i);

	CHECK(o && !strcmp(o->name, name) && !strcmp(o->dtype, dtype));
	CHECK(o->row_size == row_size);
}

static void without_a_text_every_usable_field_is_an_output(void)
{
	struct pipeline *p;

	CHECK(!parse(NULL, &p));
	CHECK(pipeline_num_outputs(p) == 6 && !pipeline_output_at(p, 6));
	check_output(p, 0, "image", "|u1", 3 * W * H);
	check_output(p, 1, "label", "<i8", 8);
	check_output(p, 2, "flip", "<f8", 8);
	check_output(p, 3, "a%20vector", "<f4", 400);
	check_output(p, 4, "text", "|u1", 0);
	check_output(p, 5, "names", "<U3", 48);
	CHECK(pipeline_output_at(p, 0)->ndim == 3);
	CHECK(pipeline_output_at(p, 0)->shape[0] == H);
	CHECK(pipeline_output_at(p, 0)->shape[1] == W);
	CHECK(pipeline_output_at(p, 0)->shape[2] == 3);
	CHECK(pipeline_output_at(p, 1)->ndim == 0);
	CHECK(pipeline_output_at(p, 3)->field == 4);
	CHECK(pipeline_output_at(p, 4)->ragged);
	pipeline_close(p);
}

static void statements_come_first_and_in_order(void)
{
	struct pipeline *p;

	CHECK(!parse("label | int32; b = center_crop(8) | half | chw\n"
		     "\"a vector\" | double; flip | drop; text | drop;"
		     "image | resize(\"5,6\") | float; names | drop",
		     &p));
	CHECK(pipeline_num_outputs(p) == 4);
	check_output(p, 0, "label", "<i4", 4);
	check_output(p, 1, "b", "<f2", 8 * 8 * 3 * 2);
	check_output(p, 2, "a%20vector", "<f8", 800);
	check_output(p, 3, "image", "<f4", 5 * 6 * 3 * 4);
	CHECK(pipeline_output_at(p, 1)->shape[0] == 3);
	CHECK(pipeline_output_at(p, 3)->shape[0] == 5);
	CHECK(pipeline_output_at(p, 3)->shape[1] == 6);
	pipeline_close(p);
}

struct mistake {
	const char *text;
	const char *error;
};

static const struct mistake mistakes[] = {
	{ "nofield | float",
	  "column 1: no field or operation is called `nofield'; the fields "
	  "are image, " },
	{ "imgae | float", "column 1: no field or operation is called `imgae'; "
			   "did you mean `image'?" },
	{ "randomHorizontalFlip",
	  "column 1: no field or operation is called "
	  "`randomHorizontalFlip'; did you mean `flip'?, in" },
	{ "image | RandomHFlip(0.5)",
	  "column 9: no operation is called `RandomHFlip'; did you "
	  "mean `flip'?" },
	{ "image | RandomHorizontalFlip(0.5, 1, 2)",
	  "column 38: flip takes 2 arguments at most" },
	{ "image | randomCrop(32)",
	  "column 9: no operation is called "
	  "`randomCrop'; did you mean `random_crop'?" },
	{ "image | random_crop(999)", "column 9: random_crop is larger than "
				      "the image; pad_if_needed=true" },
	{ "image | crop(32)", "column 9: no operation is called `crop'; did "
			      "you mean `center_crop'?" },
	{ "image | to_tensor", "column 9: no operation is called "
			       "`to_tensor'; `normalize(0, 1) | float | chw'" },
	{ "image | bf16", "column 9: no operation is called `bf16'; did you "
			  "mean `bfloat16'?" },
	{ "image | mosaic(30)", "column 9: no operation is called `mosaic'; "
				"in Python, Loader(transforms=[f])" },
	{ "image | xyzzyx",
	  "column 9: no operation is called `xyzzyx'; the "
	  "operations are affine, array, aug_mix, "
	  "auto_augment, autocontrast, bfloat16, brightness" },
	{ "no_such_operation(3)", "column 1: no operation is called" },
	{ "image | center_corp(3)",
	  "column 9: no operation is called "
	  "`center_corp'; did you mean `center_crop'" },
	{ "image | label", "column 9: no operation is called `label', which is "
			   "a field; a `;' begins another output" },
	{ "image | op.f", "column 9: no operation is called `op.f'; write a "
			  "function of a C file as \"FILE.c\".FUNCTION" },
	{ "image | resize([8,8])", "column 16: lists are quoted: \"8,8\"" },
	{ "image | resize([8, x])", "column 16: lists are quoted: \"0.08,1\"" },
	{ "image | random_apply([flip, invert])",
	  "column 22: operations have no brackets: random_apply(flip | "
	  "invert)" },
	{ "IMAGE", "column 1: no field or operation is called `IMAGE'; did you "
		   "mean `image'?" },
	{ "\"imag\" | float",
	  "column 1: the dataset has no field \"imag\"; did "
	  "you mean `image'?" },
	{ "own", "column 1: field \"own\" has a custom type" },
	{ "float; float", "column 8: there is an output `image' already" },
	{ "a = float\nb = half; a = half", "line 2, column 11: there is an "
					   "output `a' already" },
	{ "label = float", "column 1: the field `label' is an output too" },
	{ ".a = float", "column 1: the name of an output has letters" },
	{ "a = label | drop", "column 1: `drop' makes no output" },
	{ "label | int32 | drop",
	  "column 17: drop must be the only operation" },
	{ "label | drop | int32", "column 16: nothing can follow `drop'" },
	{ "chw | center_crop(8)",
	  "column 7: center_crop must stand before chw" },
	{ "float | resize(8)", "column 9: resize works on 8-bit images" },
	{ "half | normalize(imagenet)", "column 8: normalize works on uint8" },
	{ "flip(1) | decode(exact)", "column 11: decode must be the first" },
	{ "label | flip", "column 9: flip works on images only" },
	{ "label | chw", "column 9: chw works on images only" },
	{ "normalize(\"0,0\", 1)",
	  "column 1: normalize takes one number, or one per channel" },
	{ "text | float", "column 8: float does not work on bytes and JSON" },
	{ "image | one_hot(3)", "column 9: one_hot works on single numbers" },
	{ "\"a vector\" | one_hot(3)", "column 14: one_hot works on single" },
	{ "label | float | one_hot(3)", "column 17: one_hot works on whole" },
	{ "label | one_hot(3) | one_hot(3)", "column 22: one_hot works on si" },
	{ "label | one_hot(0)", "column 17: classes of one_hot takes" },
	{ "text | one_hot(3)", "column 8: one_hot works on single numbers" },
	{ "names | replace_label(3, 1)",
	  "column 9: replace_label works on si" },
	{ "label | replace_label(\"3,,4\", 1)",
	  "column 9: replace_label: expected sample ids as \"3,17\", "
	  "not `'" },
	{ "label | replace_label(\"no/such\", 1)",
	  "column 9: replace_label: no/such: No such file" },
	{ "label | replace_label(\"/dev/null\", 1)",
	  "column 9: replace_label: /dev/null: Invalid argument" },
	{ "names | float", "column 9: float cannot convert values of this" },
};

static void mistakes_are_reported_with_their_column(void)
{
	struct pipeline *p = NULL;

	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		const struct mistake *m = &mistakes[i];

		CHECK(parse(m->text, &p) == -EINVAL && !p);
		if (strncmp(error, m->error, strlen(m->error)) != 0)
			fprintf(stderr, "%s: %s\n", m->text, error);
		CHECK(!strncmp(error, m->error, strlen(m->error)));
	}
	CHECK(pipeline_parse("|", fields, 1, 0, &p, NULL, 0) == -EINVAL);
}

static void an_unnamed_field_is_the_only_image(void)
{
	struct pipeline *p = NULL;

	CHECK(pipeline_parse("float", pair, 2, 0, &p, error, sizeof(error)));
	CHECK(strstr(error, "column 1: the dataset has several image fields"));
	CHECK(pipeline_parse("x = float", fields + 1, 2, 0, &p, error,
			     sizeof(error)));
	CHECK(strstr(error, "column 5: the dataset has no image field"));
	CHECK(!pipeline_parse("left | center_crop(12, 1.0); "
			      "\"right\" | center_crop(12, 1.0)",
			      pair, 2, 0, &p, error, sizeof(error)));
	CHECK(pipeline_num_outputs(p) == 2);
	check_output(p, 1, "right", "|u1", 12 * 12 * 3);
	pipeline_close(p);
}

static void a_word_that_names_a_field_is_the_field(void)
{
	struct pipeline *p;

	/* The dataset has a field called flip; flip(...) is the operation. */
	CHECK(!parse("flip; image | flip", &p));
	check_output(p, 0, "flip", "<f8", 8);
	pipeline_close(p);
	CHECK(!parse("flip(0)", &p));
	check_output(p, 0, "image", "|u1", 3 * W * H);
	pipeline_close(p);
}

static void values_stay_as_they_are_without_operations(void)
{
	static uint8_t out[H][W][3];

	run("image", out);
	CHECK(!memcmp(out, pixels, sizeof(pixels)));
	run("decode(exact) | hwc | uint8", out);
	CHECK(!memcmp(out, pixels, sizeof(pixels)));
}

static bool is_plain(const char *text)
{
	struct pipeline *p;
	bool plain;

	CHECK(!parse(text, &p));
	plain = pipeline_output_at(p, 0)->plain;
	pipeline_close(p);
	return plain;
}

/* Then the column of a batch file is the output, without a copy. */
static void operations_that_change_no_byte_are_left_out(void)
{
	static const char *const plain[] = {
		"image",	 "hwc",	      "uint8",
		"decode(exact)", "chw | hwc", "decode(draft) | uint8 | hwc",
	};
	static const char *const changed[] = {
		"chw",
		"hwc | chw",
		"float",
		"float | uint8",
		"decode(gray)",
		"image | flip",
		"cache(decoded, 1MiB)",
		"resize(40) | hwc",
	};
	uint8_t out[H][W][3];

	for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
		CHECK(is_plain(plain[i]));
		run(plain[i], out);
		CHECK(!memcmp(out, pixels, sizeof(out)));
	}
	for (size_t i = 0; i < ARRAY_LEN(changed); i++)
		CHECK(!is_plain(changed[i]));
}

static void flip_mirrors_and_chw_transposes(void)
{
	static uint8_t mirrored[H][W][3], planar[3][H][W], both[3][H][W];

	run("flip(1)", mirrored);
	run("chw", planar);
	run("flip(p=1) | chw", both);
	for (int y = 0; y < H; y++) {
		for (int x = 0; x < W; x++) {
			const uint8_t *p = pixels[y][x];

			CHECK(!memcmp(mirrored[y][W - 1 - x], p, 3));
			CHECK(planar[0][y][x] == p[0] &&
			      planar[2][y][x] == p[2]);
			CHECK(both[1][y][W - 1 - x] == p[1]);
		}
	}
	run("flip(0)", mirrored);
	CHECK(!memcmp(mirrored, pixels, sizeof(pixels)));
}

/* Rows that are no multiple of a word: 5 x 7 pixels of `size` bytes. */
static void check_odd_rows(const char *type, size_t size)
{
	static uint8_t hwc[35 * 3 * 8], chw[35 * 3 * 8];
	char text[80];

	snprintf(text, sizeof(text), "resize(\"5,7\") | %s", type);
	run(text, hwc);
	snprintf(text, sizeof(text), "resize(\"5,7\") | flip(1) | %s | chw",
		 type);
	run(text, chw);
	for (size_t i = 0; i < 105; i++) {
		size_t pixel = i % 35, x = pixel % 7;
		size_t from = 3 * (pixel - x + 6 - x) + i / 35;

		CHECK(!memcmp(chw + i * size, hwc + from * size, size));
	}
}

static void rows_of_odd_widths_are_complete(void)
{
	check_odd_rows("uint8", 1);
	check_odd_rows("half", 2);
	check_odd_rows("bfloat16", 2);
	check_odd_rows("float", 4);
	check_odd_rows("double", 8);
}

/* A second implementation of normalize(imagenet). */
static float normalized(unsigned channel, uint8_t v)
{
	static const double mean[] = { 0.485, 0.456, 0.406 };
	static const double std[] = { 0.229, 0.224, 0.225 };

	return (v - (float)(255 * mean[channel])) *
	       (float)(1 / (255 * std[channel]));
}

static void types_and_layouts_come_in_any_order(void)
{
	static float hwc[H][W][3], chw[3][H][W], chw2[3][H][W];
	static uint16_t half[3][H][W], half2[H][W][3];
	static uint16_t brain[3][H][W], brain2[H][W][3];
	static int64_t wide[H][W][3];
	static double real[H][W][3];

	run("normalize(imagenet)", hwc);
	run("normalize(imagenet) | float | chw", chw);
	run("chw | float | normalize(imagenet)", chw2);
	run("normalize(imagenet) | chw | half", half);
	run("normalize(imagenet) | half", half2);
	run("normalize(imagenet) | chw | bfloat16", brain);
	run("normalize(imagenet) | bfloat16", brain2);
	run("int64", wide);
	CHECK(!memcmp(chw, chw2, sizeof(chw)));
	for (unsigned i = 0; i < H * W * 3; i++) {
		unsigned y = i / (W * 3), x = i / 3 % W, c = i % 3;
		float want = normalized(c, pixels[y][x][c]);

		CHECK(hwc[y][x][c] == want && chw[c][y][x] == want);
		CHECK(half[c][y][x] == half_of_float(want));
		CHECK(half2[y][x][c] == half_of_float(want));
		CHECK(brain[c][y][x] == bfloat_of_float(want));
		CHECK(brain2[y][x][c] == bfloat_of_float(want));
		CHECK(wide[y][x][c] == pixels[y][x][c]);
	}
	run("float", hwc);
	CHECK(hwc[3][4][1] == pixels[3][4][1]);
	run("normalize(0, 1) | uint8 | double", real);
	CHECK(real[0][0][0] == (pixels[0][0][0] > 127));
}

/* The part `from` of the raw image, resampled; the slow way. */
static void resampled(const struct rect *from, enum interpolation how,
		      struct image *out)
{
	struct image in = { &pixels[from->y][from->x][0], from->width,
			    from->height, 3 * (size_t)W };
	struct resampler *r;

	CHECK(!resampler_open(&r) && !resample(r, how, &in, out));
	resampler_close(r);
}

static void crops_resample_the_named_region(void)
{
	static uint8_t want[12][12][3], got[12][12][3];
	struct image out = { &want[0][0][0], 12, 12, 36 };

	resampled(&(struct rect){ 7, 2, 26, 26 }, INTERPOLATION_AREA, &out);
	run("center_crop(12)", got);
	CHECK(!memcmp(got, want, sizeof(got)));
	resampled(&(struct rect){ 5, 0, 30, 30 }, INTERPOLATION_BILINEAR, &out);
	run("center_crop(12, 1.0, bilinear)", got);
	CHECK(!memcmp(got, want, sizeof(got)));
	resampled(&(struct rect){ 0, 0, W, H }, INTERPOLATION_AREA, &out);
	run("resize(\"12,12\")", got);
	CHECK(!memcmp(got, want, sizeof(got)));
}

static void mirror(uint8_t *p, unsigned width, unsigned height)
{
	for (unsigned i = 0; i < width * height; i++) {
		unsigned x = i % width, other = i - x + width - 1 - x;

		for (unsigned c = 0; x < width / 2 && c < 3; c++) {
			uint8_t v = p[3 * i + c];

			p[3 * i + c] = p[3 * other + c];
			p[3 * other + c] = v;
		}
	}
}

static void operations_are_applied_in_their_order(void)
{
	static uint8_t a[10][10][3], b[10][10][3], c[9][12][3], d[9][12][3];

	/* An odd crop, so that a mirror first takes other columns. */
	run("flip(1) | center_crop(10, 0.7) | flip(1)", a);
	mirror(&pixels[0][0][0], W, H);
	run("center_crop(10, 0.7)", b);
	mirror(&pixels[0][0][0], W, H);
	mirror(&b[0][0][0], 10, 10);
	CHECK(!memcmp(a, b, sizeof(a)));
	/* resize(9): 40 x 30 becomes 12 x 9. */
	run("resize(15) | flip(1) | resize(9)", c);
	run("resize(\"15,20\") | flip(1) | resize(\"9,12\")", d);
	CHECK(!memcmp(c, d, sizeof(c)));
	/* Crops that keep their size resample nothing. */
	run("resize(15) | center_crop(9, 0.6) | flip(1) | flip(1)", a);
}

static bool same_crops(const char *a, const char *b,
		       const struct pipeline_row *row)
{
	static uint8_t x[6][6][3], y[6][6][3];

	CHECK(!run_value(a, &raw, &row_0, x));
	CHECK(!run_value(b, &raw, row ? row : &row_0, y));
	return !memcmp(x, y, sizeof(x));
}

static void draws_depend_on_seed_epoch_id_and_occurrence(void)
{
	static const char *const rrc = "random_resized_crop(6)";
	struct pipeline_row rows[] = { row_0, row_0, row_0, row_0 };

	rows[0].seed++;
	rows[1].epoch++;
	rows[2].id++;
	rows[3].occurrence++;
	CHECK(same_crops(rrc, rrc, NULL));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK(!same_crops(rrc, rrc, &rows[i]));
}

static void groups_share_draws_and_names_of_outputs_do_not_matter(void)
{
	static const char *const rrc = "random_resized_crop(6)";
	static const char *const grouped = "random_resized_crop(6, group=g)";

	CHECK(same_crops(rrc, "b = random_resized_crop(6); a = image | float",
			 NULL));
	/* A second one draws other numbers, unless the groups are one. */
	CHECK(!same_crops(rrc, "b = resize(\"6,6\") | random_resized_crop(6)",
			  NULL));
	CHECK(!same_crops(rrc, grouped, NULL));
	CHECK(same_crops(grouped, "random_resized_crop(6, group=\"g\")", NULL));
	CHECK(!same_crops(grouped, "random_resized_crop(6, group=h)", NULL));
	/* Ordinals count the operations of one name over the whole text. */
	CHECK(same_crops(rrc, "random_resized_crop(6, group=0)", NULL));
}

static void two_crops_of_one_image_differ(void)
{
	static uint8_t a[6][6][3], b[6][6][3], c[6][6][3];
	struct pipeline_worker *w;
	struct pipeline *p;

	CHECK(!parse("a = random_resized_crop(6, group=x);"
		     "b = random_resized_crop(6, group=x);"
		     "c = random_resized_crop(6); image | drop",
		     &p));
	CHECK(!pipeline_worker_open(p, &w));
	CHECK(!pipeline_run(p, w, 0, &raw, &row_0, 0, a, NULL));
	CHECK(!pipeline_run(p, w, 1, &raw, &row_0, 0, b, NULL));
	CHECK(!pipeline_run(p, w, 2, &raw, &row_0, 0, c, NULL));
	CHECK(!memcmp(a, b, sizeof(a)) && memcmp(a, c, sizeof(a)) != 0);
	pipeline_worker_close(w);
	pipeline_close(p);
}

static void half_of_the_images_are_flipped(void)
{
	static uint8_t out[H][W][3];
	struct pipeline_row row = row_0;
	int flipped = 0;

	for (row.id = 0; row.id < 1000; row.id++) {
		CHECK(!run_value("image | flip", &raw, &row, out));
		flipped += memcmp(out, pixels, sizeof(out)) != 0;
	}
	CHECK(flipped > 430 && flipped < 570);
}

static void scalars_and_arrays_are_converted(void)
{
	int64_t big = INT64_C(5000000000);
	struct pipeline_value v = { .bytes = (uint8_t *)&big, .size = 8 };
	uint32_t text[12] = { 'a', 'b', 'c', 'd' }, other[12] = { 0 };
	float vector[100], copy[100];
	double wide[100];
	int32_t narrow;
	float f;

	CHECK(!run_value("label", &v, &row_0, &big) && big == 5000000000);
	CHECK(!run_value("label | int32", &v, &row_0, &narrow));
	CHECK(narrow == INT32_MAX);
	CHECK(!run_value("label | int32 | float", &v, &row_0, &f));
	CHECK(f == 0x1p31F);
	for (int i = 0; i < 100; i++)
		vector[i] = (float)i / 3;
	v = (struct pipeline_value){ .bytes = (uint8_t *)vector, .size = 400 };
	CHECK(!run_value("\"a vector\"", &v, &row_0, copy));
	CHECK(!memcmp(copy, vector, sizeof(copy)));
	CHECK(!run_value("\"a%20vector\" | double", &v, &row_0, wide));
	for (int i = 0; i < 100; i++)
		CHECK(wide[i] == (double)vector[i]);
	v = (struct pipeline_value){ .bytes = (uint8_t *)text, .size = 48 };
	CHECK(!run_value("names | cuda", &v, &row_0, other));
	CHECK(!memcmp(text, other, sizeof(text)));
	v = (struct pipeline_value){ .bytes = (uint8_t *)vector, .size = 400 };
	v.size = 399;
	CHECK(run_value("\"a vector\"", &v, &row_0, copy) == -EINVAL);
	CHECK(strstr(error, "399 bytes where the dataset announces 400"));
}

static void labels_become_others(void)
{
	int64_t label = 2;
	struct pipeline_value v = { .bytes = (uint8_t *)&label, .size = 8 };
	struct pipeline_row row = { .id = 17 };
	uint16_t halves[4];
	float hot[4];
	double real;
	struct pipeline *p;

	CHECK(!parse("label | one_hot(5) | half", &p));
	check_output(p, 0, "label", "<f2", 10);
	CHECK(pipeline_output_at(p, 0)->ndim == 1);
	CHECK(pipeline_output_at(p, 0)->shape[0] == 5);
	pipeline_close(p);
	CHECK(!run_value("label | one_hot(4)", &v, &row, hot));
	CHECK(!hot[0] && !hot[1] && hot[2] == 1 && !hot[3]);
	CHECK(!run_value("label | int32 | uint8 | one_hot(4) | double | half",
			 &v, &row, halves));
	CHECK(!halves[1] && halves[2] == 0x3c00 && !halves[3]);
	CHECK(!run_value("label | replace_label(\"3, 17\", 1) | one_hot(4)", &v,
			 &row, hot));
	CHECK(hot[1] == 1 && !hot[2]);
	row.id = 16;
	CHECK(!run_value("label | double | replace_label(\"3,17\", 0.5)", &v,
			 &row, &real));
	CHECK(real == 2);
	row.id = 3;
	CHECK(!run_value("label | double | replace_label(\"3,17\", 0.5)", &v,
			 &row, &real));
	CHECK(real == 0.5);
	label = 4;
	CHECK(run_value("label | one_hot(4)", &v, &row, hot) == -EINVAL);
	CHECK(strstr(error, "one_hot: the label is not from 0 to classes - 1"));
	label = -1;
	CHECK(run_value("label | one_hot(4)", &v, &row, hot) == -EINVAL);
}

static void inconsistent_values_fail_their_sample(void)
{
	static uint8_t out[H * W * 3];
	struct pipeline_value v = raw;

	v.size--;
	CHECK(run_value("image", &v, &row_0, out) == -EINVAL);
	CHECK(strstr(error, "3599 bytes for a raw image of 40x30"));
	v.size = 0;
	v.width = 0;
	CHECK(run_value("image", &v, &row_0, out) == -EINVAL);
	CHECK(strstr(error, "empty"));
	v = raw;
	v.width = H;
	v.height = W;
	CHECK(run_value("image", &v, &row_0, out) == -EINVAL);
	CHECK(strstr(error, "image of 30x40 comes out as 30x40, but `image' is "
			    "40x30 as sample 0"));
	CHECK(run_value("resize(8)", &v, &row_0, out) == -EINVAL);
	CHECK(!run_value("center_crop(8)", &v, &row_0, out));
	v.mode = BETON_MODE_JPG;
	CHECK(run_value("image", &v, &row_0, out) == -EBADMSG);
}

static void sample_0_of_unknown_size_leaves_only_row_errors(void)
{
	struct pipeline_worker *w;
	struct pipeline *p;

	CHECK(!pipeline_parse("left | drop", pair, 2, 0, &p, error,
			      sizeof(error)));
	check_output(p, 0, "right", "|u1", 0);
	CHECK(!pipeline_worker_open(p, &w));
	CHECK(pipeline_run(p, w, 0, &raw, &row_0, 0, NULL, NULL) == -EINVAL);
	pipeline_worker_close(w);
	pipeline_close(p);
}

/* The test image as a JPEG; the caller frees its bytes. */
static struct pipeline_value jpeg(struct codec *codec)
{
	struct image image = { &pixels[0][0][0], W, H, 3 * (size_t)W };
	struct pipeline_value v = { .mode = BETON_MODE_JPG,
				    .width = W,
				    .height = H };
	uint8_t *bytes;
	size_t size;

	CHECK(!codec_encode(codec, &image, 90, &bytes, &size));
	v.bytes = bytes;
	v.size = size;
	return v;
}

static void jpegs_are_cropped_as_if_decoded_whole(void)
{
	static uint8_t a[7][9][3], b[7][9][3], whole[H][W][3];
	struct image all = { &whole[0][0][0], W, H, 3 * (size_t)W };
	struct rect everything = { .width = W, .height = H };
	struct pipeline_value decoded = raw, v;
	struct pipeline_row row = row_0;
	struct codec *codec;

	CHECK(!codec_open(&codec));
	v = jpeg(codec);
	CHECK(!codec_decode(codec, v.bytes, v.size, &everything, &all));
	decoded.bytes = &whole[0][0][0];
	for (row.id = 0; row.id < 50; row.id++) {
		const char *text =
			"decode(exact) | random_resized_crop(\"7,9\") | flip";

		CHECK(!run_value(text, &v, &row, a));
		CHECK(!run_value(text, &decoded, &row, b));
		CHECK(!memcmp(a, b, sizeof(a)));
	}
	free((void *)(uintptr_t)v.bytes);
	codec_close(codec);
}

/* Smooth colors, edges and a little noise, as cameras give them. */
static struct pipeline_value photo(struct codec *codec, struct rng *rng)
{
	enum { PW = 330, PH = 250 };
	static uint8_t p[PH][PW][3];
	struct image image = { &p[0][0][0], PW, PH, 3 * (size_t)PW };
	struct pipeline_value v = { .mode = BETON_MODE_JPG,
				    .width = PW,
				    .height = PH };
	uint32_t edge = 80 + (uint32_t)(rng_uniform(rng) * 150);
	uint8_t *bytes;
	size_t size;

	for (uint32_t y = 0; y < PH; y++)
		for (uint32_t x = 0; x < PW; x++)
			for (uint32_t c = 0; c < 3; c++)
				p[y][x][c] =
					(uint8_t)(40 +
						  (x * (c + 1) + y * (3 - c)) /
							  9 +
						  (x + y / 2 > edge ? 50 : 0) +
						  rng_next(rng) % 5);
	CHECK(!codec_encode(codec, &image, 90, &bytes, &size));
	v.bytes = bytes;
	v.size = size;
	return v;
}

/* The mean of the absolute differences between two texts' results. */
static double difference(const char *a, const char *b,
			 const struct pipeline_value *v,
			 const struct pipeline_row *row)
{
	static uint8_t out[2][96 * 96 * 3];
	double sum = 0;

	CHECK(!run_value(a, v, row, out[0]) && !run_value(b, v, row, out[1]));
	for (size_t i = 0; i < sizeof(out[0]); i++)
		sum += abs(out[0][i] - out[1][i]);
	return sum / sizeof(out[0]);
}

/* The mean over photographs of two texts' differences. */
static double mean_difference(const char *a, const char *b)
{
	enum { PHOTOS = 20 };
	struct rng rng = { .key = 1 };
	struct pipeline_row row = row_0;
	struct codec *codec;
	double sum = 0;

	CHECK(!codec_open(&codec));
	for (row.id = 0; row.id < PHOTOS; row.id++) {
		struct pipeline_value v = photo(codec, &rng);

		sum += difference(a, b, &v, &row);
		free((void *)(uintptr_t)v.bytes);
	}
	codec_close(codec);
	return sum / PHOTOS;
}

static void default_quality_is_near_exact(void)
{
	static const char *const texts[][2] = {
		{ "random_resized_crop(96) | flip",
		  "decode(exact) | random_resized_crop(96) | flip" },
		{ "decode(default) | resize(120, bilinear) | flip | "
		  "center_crop(96, 0.8)",
		  "decode(exact) | resize(120, bilinear) | flip | "
		  "center_crop(96, 0.8)" },
		{ "image | flip | center_crop(200) | resize(96)",
		  "decode(exact) | flip | center_crop(200) | resize(96)" },
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		double d = mean_difference(texts[i][0], texts[i][1]);

		CHECK(d > 0 && d <= 0.3);
	}
}

/* The photographs are 330 x 250: one pixel less cannot be halved. */
static void drafts_are_reduced_where_two_pixels_become_one(void)
{
	static const struct {
		const char *text;
		const char *exact;
		bool reduced;
	} texts[] = {
		{ "resize(\"125,165\") | center_crop(96, 0.76)",
		  "decode(exact) | resize(\"125,165\") | "
		  "center_crop(96, 0.76)",
		  true },
		{ "resize(\"126,165\") | center_crop(96, 0.76)", NULL, false },
		{ "resize(\"125,166\") | center_crop(96, 0.76)", NULL, false },
		{ "resize(\"60,300\") | resize(\"96,96\")", NULL, false },
		{ "random_resized_crop(96, scale=\"0.5,1\") | flip(1)",
		  "decode(exact) | random_resized_crop(96, scale=\"0.5,1\") | "
		  "flip(1)",
		  true },
		{ "flip(1) | resize(\"96,96\", bilinear)",
		  "decode(exact) | flip(1) | resize(\"96,96\", bilinear)",
		  true },
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		char draft[128];
		double d;

		snprintf(draft, sizeof(draft), "decode(draft) | %s",
			 texts[i].text);
		d = mean_difference(draft, texts[i].text);
		CHECK(texts[i].reduced == (d > 0));
		CHECK(!texts[i].reduced ||
		      mean_difference(draft, texts[i].exact) <= 1.5);
	}
}

/* Where there are no planes, or nothing is resized. */
static void other_jpegs_give_the_exact_pixels(void)
{
	struct pipeline_value v = { .bytes = JPEG_PROGRESSIVE,
				    .size = sizeof(JPEG_PROGRESSIVE),
				    .mode = BETON_MODE_JPG,
				    .width = 41,
				    .height = 23 };
	static uint8_t a[H * W * 3], b[H * W * 3];
	struct pipeline_value small;
	struct codec *codec;

	CHECK(difference("resize(\"96,96\")",
			 "decode(exact) | resize(\"96,96\")", &v, &row_0) == 0);
	CHECK(difference("decode(draft) | resize(4) | resize(\"96,96\")",
			 "decode(exact) | resize(4) | resize(\"96,96\")", &v,
			 &row_0) == 0);
	CHECK(!codec_open(&codec));
	small = jpeg(codec);
	CHECK(!run_value("image | flip(1)", &small, &row_0, a));
	CHECK(!run_value("decode(exact) | flip(1)", &small, &row_0, b));
	CHECK(!memcmp(a, b, sizeof(a)));
	free((void *)(uintptr_t)small.bytes);
	codec_close(codec);
}

static void damaged_jpegs_are_row_errors(void)
{
	static uint8_t out[H * W * 3];
	struct pipeline_value v, cut;
	struct codec *codec;

	CHECK(!codec_open(&codec));
	v = jpeg(codec);
	cut = v;
	cut.size /= 2;
	CHECK(run_value("image", &cut, &row_0, out) == -EBADMSG);
	cut.size = 3;
	CHECK(run_value("image", &cut, &row_0, out) == -EBADMSG);
	cut = v;
	cut.width++;
	CHECK(run_value("center_crop(8)", &cut, &row_0, out) == -EINVAL);
	CHECK(strstr(error, "the JPEG is 40x30, the dataset states 41x30"));
	free((void *)(uintptr_t)v.bytes);
	codec_close(codec);
}

static uint32_t below(struct rng *rng, uint32_t n)
{
	return (uint32_t)(rng_uniform(rng) * n);
}

/* Both decoders agree about damage: the same pixels, or none. */
static void check_damage(struct codec *codec, const struct pipeline_value *v)
{
	static uint8_t got[H][W][3], want[H][W][3], small[8][8][3];
	struct image all = { &want[0][0][0], W, H, 3 * (size_t)W };
	struct rect everything = { .width = W, .height = H };
	int r = run_value("decode(exact) | hwc", v, &row_0, got);
	int d = run_value("random_resized_crop(8)", v, &row_0, small);

	CHECK(!d || d == -EBADMSG || d == -EINVAL);
	if (r == -EINVAL) /* another size */
		return;
	CHECK(r == codec_decode(codec, v->bytes, v->size, &everything, &all));
	CHECK(r || !memcmp(got, want, sizeof(got)));
	/* If a whole image decodes, its parts do, too. */
	CHECK(r || !d);
}

static void damage_is_judged_by_libjpeg(void)
{
	struct rng rng = { .key = 7 };
	struct pipeline_value good, bad;
	struct codec *codec;
	uint8_t *bytes;

	CHECK(!codec_open(&codec));
	good = jpeg(codec);
	bad = good;
	for (int i = 0; i < 3000; i++) {
		bad.size = good.size - (i % 3 ? 0 : below(&rng, 300));
		bytes = malloc(bad.size);
		CHECK(bytes);
		memcpy(bytes, good.bytes, bad.size);
		for (uint32_t k = below(&rng, 4); k > 0; k--)
			bytes[below(&rng, (uint32_t)bad.size)] =
				(uint8_t)rng_next(&rng);
		bad.bytes = bytes;
		check_damage(codec, &bad);
		free(bytes);
	}
	free((void *)(uintptr_t)good.bytes);
	codec_close(codec);
}

static void stages_can_be_left_out(void)
{
	static uint8_t out[8][8][3];
	struct pipeline_worker *w;
	struct pipeline *p;
	struct codec *codec;
	struct pipeline_value v;
	uint64_t ns = 0;

	CHECK(!codec_open(&codec));
	v = jpeg(codec);
	CHECK(!parse("center_crop(8)", &p) && !pipeline_worker_open(p, &w));
	CHECK(!pipeline_run(p, w, 0, &v, &row_0, BETON_STAGE_DECODE, out, &ns));
	CHECK(!out[4][4][0] && ns > 0);
	ns = 0;
	CHECK(!pipeline_run(p, w, 0, &v, &row_0, BETON_STAGE_READ, out, &ns));
	CHECK(!out[4][4][0] && !ns);
	CHECK(!pipeline_run(p, w, 0, &v, &row_0, BETON_STAGE_TRANSFORM, out,
			    NULL));
	CHECK(out[4][4][0]);
	pipeline_worker_close(w);
	pipeline_close(p);
	free((void *)(uintptr_t)v.bytes);
	codec_close(codec);
}

static void ragged_fields_are_not_run(void)
{
	struct pipeline_worker *w;
	struct pipeline *p;
	char out;

	CHECK(!parse("text", &p) && !pipeline_worker_open(p, &w));
	CHECK(pipeline_run(p, w, 0, &raw, &row_0, 0, &out, NULL) == -EINVAL);
	pipeline_worker_close(w);
	pipeline_close(p);
}

/* Smooth enough to survive JPEG, without symmetry. */
static void paint(void)
{
	struct rng rng = { .key = 9 };

	for (int y = 0; y < H; y++) {
		for (int x = 0; x < W; x++) {
			pixels[y][x][0] = (uint8_t)(20 + 5 * x + y);
			pixels[y][x][1] = (uint8_t)(250 - 7 * y);
			pixels[y][x][2] = (uint8_t)(rng_next(&rng) & 0x3f);
		}
	}
}

/* Otherwise such a property is lost silently, as views of a mask once were. */
static void a_property_that_no_planner_takes_is_refused(void)
{
	static const struct {
		struct type type;
		const char *why;
	} cases[] = {
		{ { .views = 2 }, "the rows of `x' cannot have several views" },
		{ { .frames = 3 }, "the rows of `x' cannot have frames" },
		{ { .channels = 4 }, "the rows of `x' cannot have channels" },
		{ { .mask = true }, "the rows of `x' cannot have classes" },
		{ { .layout = LAYOUT_CHW },
		  "the rows of `x' cannot have an order of axes" },
	};
	const struct pipeline_field *label = &fields[1];
	char text[200];
	const struct diagnostic c = { "x", text, sizeof(text) };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct output_plan plan;
		struct chain chain = { .name = (char *)"x",
				       .source = cases[i].type };

		chain.source.kind = TYPE_ARRAY;
		chain.source.dtype = DTYPE_I8;
		CHECK(output_plan_init(&plan, &chain, label, &c) == -EINVAL);
		CHECK(strstr(text, cases[i].why));
		output_plan_fini(&plan);
	}
}

int main(void)
{
	paint();
	without_a_text_every_usable_field_is_an_output();
	statements_come_first_and_in_order();
	mistakes_are_reported_with_their_column();
	an_unnamed_field_is_the_only_image();
	a_word_that_names_a_field_is_the_field();
	values_stay_as_they_are_without_operations();
	operations_that_change_no_byte_are_left_out();
	flip_mirrors_and_chw_transposes();
	rows_of_odd_widths_are_complete();
	types_and_layouts_come_in_any_order();
	crops_resample_the_named_region();
	operations_are_applied_in_their_order();
	draws_depend_on_seed_epoch_id_and_occurrence();
	groups_share_draws_and_names_of_outputs_do_not_matter();
	two_crops_of_one_image_differ();
	half_of_the_images_are_flipped();
	scalars_and_arrays_are_converted();
	labels_become_others();
	inconsistent_values_fail_their_sample();
	sample_0_of_unknown_size_leaves_only_row_errors();
	jpegs_are_cropped_as_if_decoded_whole();
	default_quality_is_near_exact();
	drafts_are_reduced_where_two_pixels_become_one();
	other_jpegs_give_the_exact_pixels();
	damaged_jpegs_are_row_errors();
	damage_is_judged_by_libjpeg();
	stages_can_be_left_out();
	ragged_fields_are_not_run();
	a_property_that_no_planner_takes_is_refused();
	return 0;
}
