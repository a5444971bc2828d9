/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic datasets: a loader delivers what the text describes. */
#include <errno.h>
#include <string.h>

#include "beton/loader.h"
#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

#define FIELDS                                                                 \
	"image=\"uint8[6,8,3]\", label=\"int64<7\", vec=\"float32[2, 3]\", "   \
	"flag=bool, x=float64, near=\"int16[9000]<300\", blob=\"bytes[5]\", "  \
	"note=\"json[9]\", none=json, \"a field\"=\"uint8[3]\""

enum { N = 50, BATCH = 8, EPOCHS = 2 };

static char error[1024];
static char said[1024]; /* the last line of what went wrong, and */
static unsigned lines;	/* how many there were */

static void note(void *arg, enum beton_log_level level, const char *message)
{
	(void)arg;
	if (level != BETON_LOG_ERROR && level != BETON_LOG_WARNING)
		return;
	snprintf(said, sizeof(said), "%s", message);
	lines++;
}

static int try_open(const char *source, const char *pipeline,
		    struct beton_loader **out)
{
	const struct beton_loader_options o = {
		.size = sizeof(o),
		.spec = "batch=8,drop_last=0",
		.pipeline = pipeline,
		.source = source,
		.workers = 2,
		.epochs = EPOCHS,
		.log = note,
		.error = error,
		.error_size = sizeof(error),
	};

	lines = 0;
	said[0] = '\0';
	error[0] = '\0';
	return beton_loader_open("/nowhere/at.all", &o, out);
}

static struct beton_loader *open_synthetic(const char *source,
					   const char *pipeline)
{
	struct beton_loader *l;
	int r = try_open(source, pipeline, &l);

	if (r)
		fprintf(stderr, "%s\n", error);
	CHECK(!r);
	return l;
}

/* --- fields --- */

static const struct {
	const char *name, *dtype;
	bool ragged;
	uint32_t ndim;
	uint64_t shape[3];
} outputs[] = {
	{ "image", "|u1", false, 3, { 6, 8, 3 } },
	{ "label", "<i8", false, 0, { 0 } },
	{ "vec", "<f4", false, 2, { 2, 3 } },
	{ "flag", "|b1", false, 0, { 0 } },
	{ "x", "<f8", false, 0, { 0 } },
	{ "near", "<i2", false, 1, { 9000 } },
	{ "blob", "|u1", true, 0, { 0 } },
	{ "note", "|u1", true, 0, { 0 } },
	{ "none", "|u1", true, 0, { 0 } },
	{ "a%20field", "|u1", false, 1, { 3 } },
};

static void fields_are_as_promised(void)
{
	struct beton_loader *l =
		open_synthetic("synthetic(50, " FIELDS ")", NULL);
	struct beton_loader_info info;
	struct beton_output o;

	beton_loader_info(l, &info);
	CHECK(!strcmp(info.source, "synthetic") && info.samples == N);
	CHECK(info.batches == (N + BATCH - 1) / BATCH);
	CHECK(info.num_outputs == ARRAY_LEN(outputs) && !lines);
	for (uint32_t i = 0; i < ARRAY_LEN(outputs); i++) {
		CHECK(!beton_loader_output(l, i, &o));
		CHECK(!strcmp(o.name, outputs[i].name));
		CHECK(!strcmp(o.dtype, outputs[i].dtype));
		CHECK(o.ragged == outputs[i].ragged);
		if (o.ragged)
			continue;
		CHECK(o.ndim == outputs[i].ndim);
		CHECK(!memcmp(o.shape, outputs[i].shape, 8 * o.ndim));
	}
	beton_loader_close(l);
}

/* --- values --- */

static const void *row_of(const struct beton_tensor *t, uint32_t row,
			  uint64_t *size)
{
	const uint8_t *bytes = t->data;

	*size = t->offsets ? (uint64_t)(t->offsets[row + 1] - t->offsets[row])
			   : t->size / t->shape[0];
	return bytes + (t->offsets ? (uint64_t)t->offsets[row] : row * *size);
}

static double mean_of_bytes(const uint8_t *bytes, uint64_t size)
{
	double sum = 0;

	for (uint64_t i = 0; i < size; i++)
		sum += bytes[i];
	return sum / (double)size;
}

static void check_row(const struct beton_batch *b, uint32_t row)
{
	const struct beton_tensor *t = b->outputs;
	uint64_t size;
	const int64_t *label = row_of(&t[1], row, &size);
	const float *vec = row_of(&t[2], row, &size);
	const uint8_t *flag = row_of(&t[3], row, &size);
	const double *x = row_of(&t[4], row, &size);
	const int16_t *near = row_of(&t[5], row, &size);

	CHECK(*label >= 0 && *label < 7);
	for (unsigned i = 0; i < 6; i++)
		CHECK(vec[i] >= 0 && vec[i] <= 1);
	CHECK(*flag <= 1 && *x >= 0 && *x < 1);
	for (unsigned i = 0; i < 9000; i++)
		CHECK(near[i] >= 0 && near[i] < 300);
	row_of(&t[6], row, &size);
	CHECK(size == 5);
	CHECK(!memcmp(row_of(&t[7], row, &size), "{}       ", 9) && size == 9);
	CHECK(!memcmp(row_of(&t[8], row, &size), "{}", 2) && size == 2);
	CHECK(b->valid[row]);
}

/* The values of each sample in the first epoch. */
struct known {
	uint8_t *bytes[ARRAY_LEN(outputs)];
};

static void compare_row(const struct beton_batch *b, uint32_t row,
			struct known *k)
{
	const void *bytes;
	uint64_t size;

	for (uint32_t i = 0; i < b->num_outputs; i++) {
		bytes = row_of(&b->outputs[i], row, &size);
		if (k->bytes[i]) {
			CHECK(!memcmp(k->bytes[i], bytes, size));
			continue;
		}
		k->bytes[i] = malloc(size);
		memcpy(k->bytes[i], bytes, size);
	}
}

/* Every sample once in an epoch, and with the same values in all of them. */
static void values_are_as_promised(void)
{
	struct beton_loader *l =
		open_synthetic("synthetic(50, " FIELDS ")", NULL);
	static struct known known[N];
	const struct beton_batch *b;
	uint64_t seen[N] = { 0 }, labels = 0, size;
	const uint8_t *image;
	int r;

	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
		while (!(r = beton_loader_next(l, &b))) {
			for (uint32_t row = 0; row < b->num_samples; row++) {
				CHECK(b->ids[row] < N);
				CHECK(seen[b->ids[row]]++ == epoch);
				check_row(b, row);
				compare_row(b, row, &known[b->ids[row]]);
				labels |= 1U << ((const int64_t *)b->outputs[1]
							 .data)[row];
			}
			image = row_of(&b->outputs[0], 0, &size);
			CHECK(mean_of_bytes(image, size) > 64 &&
			      mean_of_bytes(image, size) < 192);
			beton_loader_release(l, b);
		}
		CHECK(r == -ENODATA);
	}
	CHECK(labels == 127 && !beton_loader_failed_samples(l));
	beton_loader_close(l);
	for (size_t i = 0; i < N; i++) {
		for (size_t k = 0; k < ARRAY_LEN(outputs); k++)
			free(known[i].bytes[k]);
	}
}

/* A pipeline finds them as those of a dataset. */
static void pipelines_run(void)
{
	struct beton_loader *l =
		open_synthetic("synthetic(50, " FIELDS ")",
			       "random_resized_crop(4) | flip | float | chw; "
			       "label | int32; near | drop");
	const struct beton_batch *b;

	CHECK(!beton_loader_next(l, &b));
	CHECK(b->outputs[0].ndim == 4 && b->outputs[0].shape[1] == 3);
	CHECK(b->outputs[0].shape[2] == 4 && b->outputs[0].shape[3] == 4);
	CHECK(!strcmp(b->outputs[0].dtype, "<f4"));
	CHECK(!strcmp(b->outputs[1].dtype, "<i4"));
	beton_loader_release(l, b);
	CHECK(!beton_loader_failed_samples(l));
	beton_loader_close(l);
}

/* --- messages --- */

static void mistakes_are_reported(void)
{
	static const struct {
		const char *text, *says;
	} table[] = {
		{ "elsewhere", "column 1: no source is called `elsewhere'" },
		{ "\"constant\"", "column 1: no source" },
		{ "\"a.c\".constant", "column 1: no source" },
		{ "constant(1)", "column 1: constant takes no arguments" },
		{ "constant | constant", "column 12: constant cannot come" },
		{ "constant | synthetic(1, a=bool)",
		  "column 12: synthetic cannot come" },
		{ "memory(0)", "column 1: memory takes one size" },
		{ "memory(1, 2)", "memory takes one size above 0" },
		{ "memory(size=1)", "memory takes one size above 0" },
		{ "constant; constant",
		  "column 11: a source is one statement" },
		{ "a = constant", "column 1: a source has no name" },
		{ "constant |", "column 11: an operation expected" },
		{ "synthetic", "column 1: samples and fields are missing" },
		{ "synthetic(9)", "column 1: samples and fields are missing" },
		{ "synthetic(a=bool, b=bool)",
		  "samples and fields are missing" },
		{ "synthetic(0, a=bool)",
		  "column 11: the number of samples is a whole " },
		{ "synthetic(x, a=bool)",
		  "column 11: the number of samples is a whole " },
		{ "synthetic(281474976710657, a=bool)",
		  "from 1 to 281474976710656, not `281474976710657'" },
		{ "synthetic(9, bool)", "column 14: a field is NAME=TYPE" },
		{ "synthetic(9, a=bool, a=bool)",
		  "column 22: a second field `a'" },
		{ "synthetic(9, abcdefghijklmnopq=bool)",
		  "column 14: a field's name" },
		{ "synthetic(9, \"\"=bool)", "column 14: a field's name" },
		{ "synthetic(9, a=int65)",
		  "column 16: no type is called `int65'" },
		{ "synthetic(9, a=\"int64[\")",
		  "column 16: a side of a shape is a whole number of " },
		{ "synthetic(9, a=\"int64[0]\")",
		  "column 16: a side of a shape is a whole number of " },
		{ "synthetic(9, a=\"int64[-1]\")",
		  "column 16: a side of a shape is a whole number of " },
		{ "synthetic(9, a=\"int64[2,]\")",
		  "column 16: a side of a shape is a whole number of " },
		{ "synthetic(9, a=\"int64[2\")", "column 16: `]' is missing" },
		{ "synthetic(9, a=\"int64[2]x\")", "TYPE[SHAPE]<LIMIT" },
		{ "synthetic(9, a=\"int64<0\")",
		  "column 16: a limit is a whole number of at least 1" },
		{ "synthetic(9, a=\"int64<\")",
		  "column 16: a limit is a whole number of at least 1" },
		{ "synthetic(9, a=\"uint8<257\")",
		  "the limit is above the type's" },
		{ "synthetic(9, a=\"float32<2\")",
		  "only integers have a limit" },
		{ "synthetic(9, a=\"bytes<2\")", "only integers have a limit" },
		{ "synthetic(9, a=\"bytes[2,2]\")", "bytes and JSON have one" },
		{ "synthetic(9, a=\"int64[65536,65536]\")", "at most 4 GiB" },
		{ "synthetic(9, a=\"uint8[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
		  "1,1,1,1,1,1,1,1,1,1,1,1,1]\")",
		  "so many sides" },
	};
	struct beton_loader *l;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		CHECK(try_open(table[i].text, NULL, &l) == -EINVAL);
		if (strncmp(error, "source: ", 8) != 0 ||
		    !strstr(error, table[i].says))
			fprintf(stderr, "%s: %s\n", table[i].text, error);
		CHECK(!strncmp(error, "source: ", 8));
		CHECK(strstr(error, table[i].says) && lines == 1);
	}
}

/* A program is run again as it is. */
static void the_environment_wins(void)
{
	struct beton_loader_info info;
	struct beton_loader *l;

	setenv("BETON_SYNTHETIC", "synthetic(20, a=\"int64<5\")", 1);
	for (unsigned i = 0; i < 2; i++) {
		l = open_synthetic(i ? "constant" : NULL, NULL);
		beton_loader_info(l, &info);
		CHECK(!strcmp(info.source, "synthetic") && info.samples == 20);
		CHECK(lines == 1 &&
		      strstr(said, "BETON_SYNTHETIC is `synthetic(20"));
		CHECK(strstr(said, "batches are synthetic"));
		beton_loader_close(l);
	}
	unsetenv("BETON_SYNTHETIC");
	setenv("BETON_SYNTHETIC", "fast", 1);
	CHECK(try_open("synthetic(20, a=bool)", NULL, &l) == -EINVAL &&
	      lines == 1);
	CHECK(strstr(error, "BETON_SYNTHETIC: column 1: no source is called"));
	setenv("BETON_SYNTHETIC", "", 1);
	l = open_synthetic("synthetic(30, a=bool)", NULL);
	beton_loader_info(l, &info);
	CHECK(info.samples == 30 && !lines);
	beton_loader_close(l);
	unsetenv("BETON_SYNTHETIC");
}

/* States of synthetic batches fit synthetic sources only. */
static void states_report_what_they_are_of(void)
{
	struct beton_loader *l =
		open_synthetic("synthetic(50, " FIELDS ")", NULL);
	const struct beton_batch *b;
	char state[4096];

	CHECK(!beton_loader_next(l, &b));
	beton_loader_release(l, b);
	CHECK(!beton_loader_state(l, state, sizeof(state)));
	CHECK(strstr(state, "\"source\": \"synthetic\""));
	CHECK(!beton_loader_load(l, state));
	CHECK(!beton_loader_next(l, &b) && b->number == 1);
	beton_loader_release(l, b);
	beton_loader_close(l);
	l = open_synthetic("synthetic(50, a=bool)", NULL);
	CHECK(beton_loader_load(l, state) == -ESTALE);
	CHECK(strstr(beton_loader_error(l), "another dataset"));
	beton_loader_close(l);
}

int main(void)
{
	unsetenv("BETON_SYNTHETIC");
	fields_are_as_promised();
	values_are_as_promised();
	pipelines_run();
	mistakes_are_reported();
	the_environment_wins();
	states_report_what_they_are_of();
	return 0;
}
