/* SPDX-License-Identifier: Apache-2.0 */
/* <beton/writer.h>: what was written is read, by <beton/dataset.h>. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "beton/dataset.h"
#include "beton/writer.h"
#include "fs/data/dataset/value.h"
#include "tests/unit/t.h"

enum { SAMPLES = 9, SIDE = 32, PIXELS = 3 * SIDE * SIDE };

static char path[] = "/tmp/writing.XXXXXX";
static const struct beton_writer_options options = { .size = sizeof(options) };

static void paint(uint8_t *pixels, uint64_t sample)
{
	for (size_t i = 0; i < PIXELS; i++)
		pixels[i] = (uint8_t)(i / 96 * 7 + sample);
}

/* Three ways by turns: raw, JPEG, raw of half the size. */
static void append(struct beton_writer *w, uint64_t i)
{
	const struct beton_writer_recipe recipes[] = {
		{ .mode = BETON_MODE_RAW },
		{ .mode = BETON_MODE_JPG, .quality = 95 },
		{ .mode = BETON_MODE_RAW, .max_resolution = SIDE / 2 },
	};
	uint8_t pixels[PIXELS];
	const struct beton_writer_image image = { pixels, SIDE, SIDE };
	const float vector[2] = { (float)i, 0.5F };
	struct beton_writer_value kept, v[3] = { 0 };

	paint(pixels, i);
	CHECK(!beton_writer_encode(&recipes[i % 3], &image, &v[0]));
	if (i % 3 == 1) {
		CHECK(!beton_writer_keep(v[0].bytes, v[0].size, &kept));
		CHECK(kept.bytes == v[0].bytes && kept.width == SIDE);
	}
	v[1].integer = (int64_t)i;
	v[2].bytes = vector;
	v[2].size = sizeof(vector);
	CHECK(!beton_writer_append(w, v));
	free((void *)v[0].bytes);
}

static void check_sample(struct beton_dataset *ds, uint64_t i)
{
	uint32_t side = i % 3 == 2 ? SIDE / 2 : SIDE;
	uint8_t want[PIXELS], got[PIXELS];
	struct beton_value v;
	float vector[2];

	paint(want, i);
	CHECK(!beton_dataset_value(ds, 0, i, &v));
	CHECK(v.width == side && v.height == side);
	CHECK(v.mode == (i % 3 == 1 ? BETON_MODE_JPG : BETON_MODE_RAW));
	CHECK(!beton_dataset_decode(ds, &v, got));
	for (size_t k = 0; i % 3 != 2 && k < PIXELS; k++)
		CHECK(abs(want[k] - got[k]) <= (i % 3 ? 24 : 0));
	CHECK(!beton_dataset_value(ds, 1, i, &v) && v.integer == (int64_t)i);
	CHECK(!beton_dataset_value(ds, 2, i, &v) && v.size == 8);
	CHECK(!beton_dataset_read(ds, &v, vector) && vector[0] == (float)i);
}

static void written_values_are_read_back(void)
{
	const struct beton_dataset_options o = { .size = sizeof(o) };
	const uint64_t two = 2;
	const struct beton_writer_field fields[] = {
		{ .name = "image", .type = BETON_TYPE_IMAGE },
		{ .name = "label", .type = BETON_TYPE_INT },
		{ .name = "vec",
		  .type = BETON_TYPE_NDARRAY,
		  .dtype = "<f4",
		  .ndim = 1,
		  .shape = &two },
	};
	struct beton_dataset *ds;
	struct beton_writer *w;

	CHECK(!beton_writer_open(path, fields, 3, SAMPLES, &options, &w));
	for (uint64_t i = 0; i < SAMPLES; i++)
		append(w, i);
	CHECK(!beton_writer_finish(w));
	CHECK(!beton_dataset_open(path, &o, &ds));
	CHECK(beton_dataset_samples(ds) == SAMPLES);
	for (uint64_t i = 0; i < SAMPLES; i++)
		check_sample(ds, i);
	beton_dataset_close(ds);
}

static void invalid_arguments_are_refused(void)
{
	const struct beton_writer_recipe raw = { .mode = BETON_MODE_RAW };
	const struct beton_writer_recipe odd = { .mode = BETON_MODE_JPG,
						 .quality = 101 };
	const uint8_t pixels[3] = { 1, 2, 3 };
	const struct beton_writer_image none = { pixels, 0, 1 };
	const struct beton_writer_image one = { pixels, 1, 1 };
	const struct beton_writer_field field = { .name = "x",
						  .type = BETON_TYPE_NDARRAY,
						  .dtype = "<f4",
						  .ndim = 33 };
	struct beton_writer_options bad = options;
	struct beton_writer_value v;
	struct beton_writer *w;

	CHECK(beton_writer_encode(&raw, &none, &v) == -EINVAL);
	CHECK(beton_writer_encode(&odd, &one, &v) == -EINVAL);
	CHECK(beton_writer_keep(pixels, 3, &v) == -EBADMSG);
	CHECK(beton_writer_open(path, &field, 1, 1, &options, &w) == -EINVAL);
	bad.page_size = 3 << 20;
	CHECK(beton_writer_open(path, &field, 1, 1, &bad, &w) == -EINVAL);
	bad.size--;
	CHECK(beton_writer_open(path, &field, 1, 1, &bad, &w) == -EINVAL);
	beton_writer_abort(NULL);
}

struct merging {
	unsigned messages;
	uint64_t done;
	uint64_t total;
	int result; /* of count_samples() */
};

static void count_messages(void *arg, enum beton_log_level level,
			   const char *message)
{
	struct merging *m = arg;

	m->messages += level == BETON_LOG_ERROR && *message;
}

static int count_samples(void *arg, uint64_t done, uint64_t total)
{
	struct merging *m = arg;

	CHECK(done > m->done && done <= total);
	m->done = done;
	m->total = total;
	return m->result;
}

/* `path` has SAMPLES samples; appends them to themselves. */
static void files_are_merged(void)
{
	const struct beton_dataset_options o = { .size = sizeof(o) };
	const char *const paths[] = { path, path };
	struct merging m = { .messages = 0 };
	struct beton_merge_options merge = {
		.size = sizeof(merge),
		.log = count_messages,
		.log_arg = &m,
		.progress = count_samples,
		.progress_arg = &m,
	};
	struct beton_dataset *ds;
	uint64_t samples = 7;

	CHECK(beton_merge(paths, 0, path, &merge, &samples) == -EINVAL);
	merge.keep_numbers = 2;
	CHECK(beton_merge(paths, 1, path, &merge, &samples) == -EINVAL);
	merge.keep_numbers = 0;
	merge.page_size = 3 << 20;
	CHECK(beton_merge(paths, 1, path, &merge, NULL) == -EINVAL);
	CHECK(m.messages == 1 && samples == 7);
	merge.page_size = 0;
	m.result = -ECANCELED;
	CHECK(beton_merge(paths, 1, path, &merge, &samples) == -ECANCELED);
	CHECK(m.messages == 1 && samples == 7 && m.done == SAMPLES);
	m = (struct merging){ .messages = 0 };
	CHECK(!beton_merge(paths, 2, path, &merge, &samples));
	CHECK(!m.messages && samples == 2 * SAMPLES);
	CHECK(m.done == 2 * SAMPLES && m.total == 2 * SAMPLES);
	CHECK(!beton_dataset_open(path, &o, &ds));
	CHECK(beton_dataset_samples(ds) == 2 * SAMPLES);
	beton_dataset_close(ds);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !close(fd));
	written_values_are_read_back();
	files_are_merged();
	invalid_arguments_are_refused();
	CHECK(!unlink(path));
	return 0;
}
