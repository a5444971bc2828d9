/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a pipeline of a small dataset; what parses is run once over a raw
 * image, if its row is of a moderate size. With -DFUZZ_MAIN a program that
 * replays files.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/run/transform/phases.h"
#include "tests/unit/fields.h"

enum { W = 13, H = 9, ROW_MAX = 1 << 20, BOXES = 32 };

static const struct pipeline_field fields[] = {
	FIELD_IMAGE(W, H),
	FIELD_LABEL,
	{ .name = "a\"b",
	  .stem = "a%22b",
	  .column = COLUMN_ARRAY,
	  .usable = true,
	  .dtype = "<f2",
	  .ndim = 1,
	  .shape = { 3 } },
	{ .name = "text",
	  .stem = "text",
	  .column = COLUMN_RAGGED,
	  .usable = true,
	  .dtype = "|u1" },
	{ .name = "boxes",
	  .stem = "boxes",
	  .column = COLUMN_RAGGED,
	  .usable = true,
	  .dtype = "|u1",
	  .array = { .dtype = "<f4", .ndim = 2, .shape = { 1, 4 } } },
	{ .name = "own",
	  .stem = "own",
	  .column = COLUMN_RECORD,
	  .dtype = "|u1" },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two boxes; returns their size. */
static uint64_t make_boxes(uint8_t out[ARRAY_HEADER_MAX + BOXES])
{
	static const float values[] = { 1, 2, 9, 8, -3, 0, 4, 5 };
	const uint64_t shape[] = { 2, 4 };
	size_t n = array_header(out, "<f4", 2, shape);

	memcpy(out + n, values, sizeof(values));
	return n + sizeof(values);
}

static void run_list(const struct pipeline *p, struct pipeline_worker *w,
		     size_t i, const struct pipeline_value *v)
{
	uint64_t size = pipeline_list_size(p, i, v->size), rows;
	struct pipeline_row row = { .id = i };
	void *out = size <= ROW_MAX ? malloc(size ? size : 1) : NULL;

	if (out)
		pipeline_run_list(p, w, i, v, &row, BETON_STAGE_ALL, out,
				  &rows);
	free(out);
}

static void run_output(const struct pipeline *p, struct pipeline_worker *w,
		       size_t i)
{
	static const uint8_t pixels[H * W * 3] = { 1, 2, 3 };
	const struct pipeline_output *o = pipeline_output_at(p, i);
	struct pipeline_value v = { .bytes = pixels,
				    .size = sizeof(pixels),
				    .mode = BETON_MODE_RAW,
				    .width = W,
				    .height = H };
	struct pipeline_row row = { .id = i };
	struct pipeline_pair pair = { .row = &row, .last = &row };
	struct pipeline_value of[2];
	uint8_t boxes[ARRAY_HEADER_MAX + BOXES];
	void *out, *part;

	if (o->row_size > ROW_MAX || o->part_size > ROW_MAX)
		return;
	if (o->field == 1)
		v.size = 8;
	else if (o->field == 2)
		v.size = 6;
	else if (o->field == 4) {
		v.bytes = boxes;
		v.size = make_boxes(boxes);
	}
	of[1] = (struct pipeline_value){ .bytes = pixels,
					 .size = sizeof(pixels),
					 .mode = BETON_MODE_RAW,
					 .width = W,
					 .height = H };
	of[0] = o->of[1] == VALUE_NO_FIELD ? of[1] : v;
	of[0].of = &of[1];
	v.of = &of[0];
	if (o->is_list) {
		run_list(p, w, i, &v);
		return;
	}
	out = malloc(o->row_size ? o->row_size : 1);
	part = malloc(o->part_size ? o->part_size : 1);
	if (out && part &&
	    !pipeline_run(p, w, i, &v, &row, BETON_STAGE_ALL,
			  o->part_size ? part : out, NULL) &&
	    o->part_size) {
		pair.own = pair.other = part;
		pipeline_pair(p, w, i, &pair, out);
	}
	free(out);
	free(part);
}

static void run_all(const struct pipeline *p)
{
	struct pipeline_worker *w;

	if (pipeline_worker_open(p, &w))
		return;
	for (size_t i = 0; i < pipeline_num_outputs(p); i++)
		run_output(p, w, i);
	pipeline_worker_close(w);
}

/* Sizes of four digits are right, and slow. */
static bool is_quick(const char *text)
{
	size_t digits = 0;

	for (; *text && digits < 3; text++)
		digits = *text >= '0' && *text <= '9' ? digits + 1 : 0;
	return digits < 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[200], *text = malloc(size + 1);
	struct phases *p;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (!phases_parse(text, fields, ARRAY_LEN(fields), &p, error,
			  sizeof(error))) {
		for (size_t i = 0; is_quick(text) && phases_row(p, i); i++)
			run_all(phases_row(p, i));
		phases_close(p);
	} else if (!error[0]) {
		abort(); /* refused without a word */
	}
	free(text);
	return 0;
}

#ifdef FUZZ_MAIN
static int replay(const char *path)
{
	uint8_t *data = malloc(ROW_MAX);
	FILE *f = fopen(path, "rb");
	size_t size = f && data ? fread(data, 1, ROW_MAX, f) : 0;

	if (f)
		fclose(f);
	if (f && data)
		LLVMFuzzerTestOneInput(data, size);
	free(data);
	return f && data ? 0 : 1;
}

int main(int argc, char **argv)
{
	int r = 0;

	for (int i = 1; i < argc; i++)
		r |= replay(argv[i]);
	return r;
}
#endif
