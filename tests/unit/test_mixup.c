/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that become one of two: mixup, and what stands before and after it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/pipeline/op/beta.h"
#include "loader/pipeline/op/dtype.h"
#include "loader/run/transform/pipeline.h"
#include "tests/unit/fields.h"
#include "tests/unit/t.h"

enum { W = 23, H = 17, SIZE = 3 * W * H };

static const struct pipeline_field fields[] = {
	FIELD_IMAGE(W, H),
	FIELD_LABEL,
	{ .name = "vector",
	  .stem = "vector",
	  .column = COLUMN_ARRAY,
	  .usable = true,
	  .dtype = "<f4",
	  .ndim = 2,
	  .shape = { 2, 3 } },
	{ .name = "wide",
	  .stem = "wide",
	  .column = COLUMN_ARRAY,
	  .usable = true,
	  .dtype = "<i8",
	  .ndim = 1,
	  .shape = { 2 } },
};
static uint8_t pixels[2][SIZE];
static char error[256];

static int parse(const char *text, struct pipeline **out)
{
	return pipeline_parse(text, fields, ARRAY_LEN(fields), 0, out, error,
			      sizeof(error));
}

static struct pipeline_value raw(const uint8_t *image)
{
	return (struct pipeline_value){ .bytes = image,
					.size = SIZE,
					.mode = BETON_MODE_RAW,
					.width = W,
					.height = H };
}

static struct pipeline_value value(const void *bytes, uint64_t size)
{
	return (struct pipeline_value){ .bytes = bytes, .size = size };
}

static struct pipeline_row key(uint64_t id)
{
	return (struct pipeline_row){ .seed = 5, .epoch = 2, .id = id };
}

/*
 * Output 0 of sample 3, mixed with sample 8, or with itself, in a batch that
 * ends with sample 9. The parts are returned too, if wanted.
 */
static int mix(const char *text, const struct pipeline_value v[2], bool alone,
	       void *out, void *first, void *second)
{
	const struct pipeline_row rows[] = { key(3), key(8), key(9) };
	const struct pipeline_output *o;
	struct pipeline_worker *w;
	struct pipeline_pair pair;
	struct pipeline *p;
	uint8_t *parts;
	int r = parse(text, &p);

	if (r)
		fprintf(stderr, "%s: %s\n", text, error);
	CHECK(!r && !pipeline_worker_open(p, &w));
	o = pipeline_output_at(p, 0);
	parts = calloc(2, o->part_size);
	CHECK(parts && o->part_size);
	for (size_t i = 0; i < 2; i++)
		CHECK(!pipeline_run(p, w, 0, &v[i], &rows[i], BETON_STAGE_ALL,
				    parts + i * o->part_size, NULL));
	if (first)
		memcpy(first, parts, o->part_size);
	if (second)
		memcpy(second, parts + o->part_size, o->part_size);
	pair = (struct pipeline_pair){
		.own = parts,
		.other = parts + (alone ? 0 : o->part_size),
		.row = &rows[0],
		.last = &rows[2],
	};
	r = pipeline_pair(p, w, 0, &pair, out);
	snprintf(error, sizeof(error), "%s", pipeline_worker_message(w));
	free(parts);
	pipeline_worker_close(w);
	pipeline_close(p);
	return r;
}

static double next(void *rng)
{
	return rng_uniform(rng);
}

/* The share of a row, by what keys its random numbers. */
static float share_of(uint64_t id, double alpha, const char *stream)
{
	const uint64_t words[] = { 5, 2, id, 0, rng_key_of_text(stream) };
	struct rng rng = { .key = rng_key(words, 5) };

	return (float)beta_draw(alpha, (struct uniform){ next, &rng });
}

static uint8_t mixed(uint8_t own, uint8_t other, float share)
{
	return (uint8_t)(other + share * (float)(own - other));
}

static void check_image(const char *text, float share)
{
	const struct pipeline_value v[] = { raw(pixels[0]), raw(pixels[1]) };
	uint8_t a[SIZE], b[SIZE], out[SIZE];

	CHECK(!mix(text, v, false, out, a, b));
	for (size_t i = 0; i < SIZE; i++)
		CHECK(out[i] == mixed(a[i], b[i], share));
	CHECK(!mix(text, v, true, out, a, NULL));
	CHECK(!memcmp(out, a, SIZE));
}

static void images_are_mixed_by_one_share(void)
{
	check_image("image | mixup(0.4)", share_of(9, 0.4, "mixup:0"));
	check_image("image | mixup(2, sample)", share_of(3, 2, "mixup:0"));
	check_image("image | flip | cutout(5) | mixup(1, group=x)",
		    share_of(9, 1, "mixup:x"));
}

/* Later operations work on the mixture as on any raw image, with the random
   numbers of the row. */
static void later_operations_use_the_mixture(void)
{
	static const char *const after[] = {
		"normalize(imagenet) | half | chw",
		"vertical_flip(1) | float",
		"random_resized_crop(\"8,9\") | flip | cutout(3) | brightness(1)",
		"hwc",
	};
	const struct pipeline_value v[] = { raw(pixels[0]), raw(pixels[1]) };
	static uint64_t want[SIZE], got[SIZE];
	uint8_t middle[SIZE];
	char text[200];

	CHECK(!mix("image | invert | mixup(0.4)", v, false, middle, NULL,
		   NULL));
	for (size_t i = 0; i < ARRAY_LEN(after); i++) {
		const struct pipeline_row row = key(3);
		const struct pipeline_value m = raw(middle);
		struct pipeline_worker *w;
		struct pipeline *p;

		memset(want, 0xee, sizeof(want));
		memset(got, 0xee, sizeof(got));
		CHECK(!parse(after[i], &p) && !pipeline_worker_open(p, &w));
		CHECK(!pipeline_run(p, w, 0, &m, &row, BETON_STAGE_ALL, want,
				    NULL));
		pipeline_worker_close(w);
		pipeline_close(p);
		snprintf(text, sizeof(text), "image | invert | mixup(0.4) | %s",
			 after[i]);
		CHECK(!mix(text, v, false, got, NULL, NULL));
		CHECK(!memcmp(want, got, sizeof(want)));
	}
}

static void labels_come_with_their_share(void)
{
	const int64_t labels[] = { 7, 2 };
	const struct pipeline_value v[] = { value(&labels[0], 8),
					    value(&labels[1], 8) };
	float share = share_of(9, 0.4, "mixup:0"), out[10];
	uint16_t halves[3];

	CHECK(!mix("label | mixup(0.4)", v, false, out, NULL, NULL));
	CHECK(out[0] == 7 && out[1] == 2 && out[2] == share);
	CHECK(!mix("label | mixup(0.4)", v, true, out, NULL, NULL));
	CHECK(out[0] == 7 && out[1] == 7 && out[2] == 1);
	CHECK(!mix("label | int32 | mixup(0.4) | double | half", v, false,
		   halves, NULL, NULL));
	CHECK(halves[0] == 0x4700 && halves[1] == 0x4000);
	CHECK(halves[2] == half_of_float(share));
	CHECK(!mix("label | one_hot(10) | mixup(0.4)", v, false, out, NULL,
		   NULL));
	for (int i = 0; i < 10; i++)
		CHECK(out[i] == (i == 7 ? share : i == 2 ? 1 + share * -1 : 0));
	CHECK(!mix("label | float | mixup(0.4)", v, false, out, NULL, NULL));
	CHECK(out[0] == 2 + share * 5);
}

static void equal_labels_stay_whole(void)
{
	const int64_t label = 3;
	const struct pipeline_value v[] = { value(&label, 8),
					    value(&label, 8) };
	float out[5];

	CHECK(!mix("label | one_hot(5) | mixup(0.3)", v, false, out, NULL,
		   NULL));
	CHECK(out[3] == 1 && out[0] == 0);
}

static void arrays_are_mixed_element_by_element(void)
{
	const float a[6] = { 1, 2, 3, 4, 5, 6 }, b[6] = { 0, 2, -3, 9, 1e9F };
	const struct pipeline_value v[] = { value(a, 24), value(b, 24) };
	float share = share_of(3, 0.4, "mixup:0"), out[6];
	double wide[6];

	CHECK(!mix("vector | mixup(0.4, sample)", v, false, out, NULL, NULL));
	for (int i = 0; i < 6; i++)
		CHECK(out[i] == b[i] + share * (a[i] - b[i]));
	CHECK(!mix("vector | mixup(0.4, sample) | half | double", v, false,
		   wide, NULL, NULL));
	CHECK(wide[0] == (double)float_of_half(half_of_float(out[0])));
}

static void outputs_report_what_a_part_takes(void)
{
	struct pipeline *p;

	CHECK(!parse("image | resize(\"4,5\") | mixup(1) | resize(9) | float; "
		     "label | int32 | mixup(1) | half; wide",
		     &p));
	CHECK(pipeline_output_at(p, 0)->part_size == 60);
	CHECK(pipeline_output_at(p, 0)->row_size == 11 * 9 * 3 * 4);
	CHECK(pipeline_output_at(p, 1)->part_size == 4);
	CHECK(pipeline_output_at(p, 1)->row_size == 6);
	CHECK(pipeline_output_at(p, 2)->part_size == 0);
	pipeline_close(p);
}

/* Not even if a later operation sets the size. */
static void parts_of_other_sizes_are_row_errors(void)
{
	const struct pipeline_row row = key(3);
	struct pipeline_value v = raw(pixels[0]);
	struct pipeline_worker *w;
	struct pipeline *p;
	uint8_t out[SIZE];

	v.width = H;
	v.height = W;
	CHECK(!parse("mixup(1) | center_crop(8)", &p));
	CHECK(!pipeline_worker_open(p, &w));
	CHECK(pipeline_run(p, w, 0, &v, &row, BETON_STAGE_ALL, out, NULL) ==
	      -EINVAL);
	CHECK(strstr(pipeline_worker_message(w), "comes out as 17x23"));
	pipeline_worker_close(w);
	pipeline_close(p);
}

struct mistake {
	const char *text;
	const char *error;
};

static const struct mistake mistakes[] = {
	{ "mixup(0.2) | mixup(0.2)",
	  "column 14: mixup is in this statement already" },
	{ "mixup", "column 1: mixup needs `alpha'" },
	{ "mixup(0)", "column 7: alpha of mixup takes numbers from" },
	{ "mixup(1, all)", "column 10: lambda of mixup takes one of batch, " },
	{ "float | mixup(1)", "column 9: mixup works on 8-bit images; it" },
	{ "cuda | mixup(1)", "column 8: mixup runs on the CPU and must" },
	{ "wide | mixup(1)", "column 8: mixup works on 8-bit images, whole" },
	{ "label | double | mixup(1)", "column 18: mixup works on 8-bit" },
	{ "label | cuda | mixup(1)", "column 16: mixup runs on the CPU" },
	{ "mixup(1) | cache(decoded, 1MiB)", "column 12: cache must stand" },
	{ "image | mixup(0.2); label | mixup(0.4)",
	  "column 29: mixup has other arguments in another statement; "
	  "name another group" },
	{ "image | mixup(0.2); label | mixup(0.2, sample)",
	  "column 29: mixup has other arguments" },
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
	CHECK(!parse("image | mixup(0.2); label | mixup(0.4, group=x)", &p));
	pipeline_close(p);
}

int main(void)
{
	struct rng rng = { .key = 2 };

	for (size_t i = 0; i < SIZE; i++) {
		pixels[0][i] = (uint8_t)rng_next(&rng);
		pixels[1][i] = (uint8_t)rng_next(&rng);
	}
	images_are_mixed_by_one_share();
	later_operations_use_the_mixture();
	labels_come_with_their_share();
	equal_labels_stay_whole();
	arrays_are_mixed_element_by_element();
	outputs_report_what_a_part_takes();
	parts_of_other_sizes_are_row_errors();
	mistakes_are_reported();
	return 0;
}
