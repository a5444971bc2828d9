/* SPDX-License-Identifier: Apache-2.0 */
/* <beton/dataset.h>: every value as it was written, and none that is not there.
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "beton/dataset.h"
#include "fs/data/dataset/value.h"
#include "fs/data/writer/writer.h"
#include "loader/image/codec/codec.h"
#include "tests/unit/crafted.h"
#include "tests/unit/t.h"

enum { SAMPLES = 20, SIDE = 24, PIXELS = 3 * SIDE * SIDE };

static char path[] = "/tmp/access.XXXXXX";

static void paint(uint8_t *pixels, uint64_t sample)
{
	for (size_t i = 0; i < PIXELS; i++)
		pixels[i] = (uint8_t)(i / 9 + 5 * sample);
}

static const uint8_t no_jpeg[] = { 0xff, 0xd8, 0xff, 0, 1, 2, 3 };

/* Raw, JPEG, raw, ... and the last one damaged. */
static void write_dataset(struct codec *codec)
{
	const struct writer_field fields[] = {
		{ .name = "image", .type = BETON_TYPE_IMAGE },
		{ .name = "label", .type = BETON_TYPE_INT },
		{ .name = "score", .type = BETON_TYPE_FLOAT },
		{ .name = "text", .type = BETON_TYPE_JSON },
	};
	uint8_t pixels[PIXELS], *jpeg;
	struct writer *w;

	CHECK(!writer_open(path, fields, 4, SAMPLES, 2 << 20, NULL, &w));
	for (uint64_t i = 0; i < SAMPLES; i++) {
		const struct image image = { pixels, SIDE, SIDE, 3 * SIDE };
		struct writer_value v[4] = {
			{ .bytes = pixels,
			  .size = PIXELS,
			  .mode = BETON_MODE_RAW,
			  .width = SIDE,
			  .height = SIDE },
			{ .integer = -(int64_t)i },
			{ .real = (double)i / 4 },
			{ .bytes = "[1]", .size = 3 },
		};

		paint(pixels, i);
		jpeg = NULL;
		if (i % 2) {
			size_t size;

			CHECK(!codec_encode(codec, &image, 90, &jpeg, &size));
			v[0].mode = BETON_MODE_JPG;
			v[0].bytes = i == SAMPLES - 1 ? no_jpeg : jpeg;
			v[0].size = i == SAMPLES - 1 ? sizeof(no_jpeg) : size;
		}
		CHECK(!writer_append(w, v));
		free(jpeg);
	}
	CHECK(!writer_finish(&w));
}

static struct beton_dataset *open_dataset(void)
{
	const struct beton_dataset_options o = { .size = sizeof(o) };
	struct beton_dataset *ds;

	CHECK(!beton_dataset_open(path, &o, &ds));
	CHECK(beton_dataset_samples(ds) == SAMPLES);
	return ds;
}

static void images_are_decoded(struct codec *codec)
{
	struct beton_dataset *ds = open_dataset();
	uint8_t want[PIXELS], got[PIXELS], stored[PIXELS];
	struct image image = { want, SIDE, SIDE, 3 * SIDE };
	const struct rect whole = { 0, 0, SIDE, SIDE };

	for (uint64_t i = 0; i + 1 < SAMPLES; i++) {
		struct beton_value v;

		CHECK(!beton_dataset_value(ds, 0, i, &v));
		CHECK(v.width == SIDE && v.height == SIDE);
		CHECK(v.size <= sizeof(stored));
		CHECK(!beton_dataset_read(ds, &v, stored));
		if (i % 2)
			CHECK(!codec_decode(codec, stored, v.size, &whole,
					    &image));
		else
			paint(want, i);
		CHECK(!beton_dataset_decode(ds, &v, got));
		CHECK(!memcmp(got, want, PIXELS));
	}
	beton_dataset_close(ds);
}

static void scalars_and_texts_are_read(void)
{
	struct beton_dataset *ds = open_dataset();
	struct beton_value v;
	int64_t labels[SAMPLES];
	char text[3];

	for (uint64_t i = 0; i < SAMPLES; i++) {
		CHECK(!beton_dataset_value(ds, 1, i, &v));
		CHECK(v.integer == -(int64_t)i);
		CHECK(beton_dataset_read(ds, &v, text) == -EINVAL);
		CHECK(!beton_dataset_value(ds, 2, i, &v));
		CHECK(v.real == (double)i / 4);
		CHECK(!beton_dataset_value(ds, 3, i, &v) && v.size == 3);
		CHECK(beton_dataset_decode(ds, &v, text) == -EINVAL);
		CHECK(!beton_dataset_read(ds, &v, text));
		CHECK(!memcmp(text, "[1]", 3));
	}
	CHECK(!beton_dataset_column(ds, 1, 3, SAMPLES - 3, labels));
	for (int64_t i = 3; i < SAMPLES; i++)
		CHECK(labels[i - 3] == -i);
	CHECK(!beton_dataset_column(ds, 1, SAMPLES, 0, labels));
	beton_dataset_close(ds);
}

/* Writes the message into arg, of 200 bytes. */
static void listen(void *arg, enum beton_log_level level, const char *message)
{
	(void)level;
	snprintf(arg, 200, "%s", message);
}

static void missing_samples_are_refused(void)
{
	char said[200] = "", why[200] = "";
	struct beton_dataset_options o = { .size = sizeof(o),
					   .log = listen,
					   .log_arg = said,
					   .error = why,
					   .error_size = sizeof(why) };
	struct beton_dataset *ds;
	struct beton_value v;
	struct beton_field f;
	uint8_t pixels[PIXELS];

	CHECK(beton_dataset_open("/proc/nonexistent/x", &o, &ds) == -ENOENT);
	CHECK(strstr(why, "/proc/nonexistent/x"));
	CHECK(!beton_dataset_open(path, &o, &ds));
	CHECK(!beton_dataset_field(ds, 3, &f) && !strcmp(f.kind, "json"));
	CHECK(beton_dataset_field(ds, 4, &f) == -ENOENT);
	CHECK(beton_dataset_value(ds, 4, 0, &v) == -ENOENT);
	CHECK(beton_dataset_value(ds, 0, SAMPLES, &v) == -ENOENT);
	CHECK(beton_dataset_column(ds, 0, 0, 1, pixels) == -EINVAL);
	CHECK(beton_dataset_column(ds, 1, 1, SAMPLES, pixels) == -ENOENT);
	CHECK(beton_dataset_column(ds, 1, 1, UINT64_MAX, pixels) == -ENOENT);
	CHECK(!beton_dataset_value(ds, 0, SAMPLES - 1, &v));
	CHECK(beton_dataset_decode(ds, &v, pixels) == -EBADMSG);
	CHECK(strstr(said, "sample 19 field image"));
	beton_dataset_close(ds);
	o.size--;
	CHECK(beton_dataset_open(path, &o, &ds) == -EINVAL);
}

/* A custom field, whose size nothing shows, and one of each kind. */
static uint8_t unusable_field(uint32_t i, char name[FORMAT_NAME_SIZE + 1])
{
	static const uint8_t types[] = { BETON_TYPE_CUSTOM, BETON_TYPE_INT,
					 BETON_TYPE_FLOAT, BETON_TYPE_IMAGE,
					 BETON_TYPE_BYTES };

	snprintf(name, FORMAT_NAME_SIZE + 1, "f%u", i);
	return types[i];
}

static void unusable_fields_have_no_values(void)
{
	enum { FIELDS = 5 };
	const struct crafted unknown = { .samples = 3,
					 .num_fields = FIELDS,
					 .field = unusable_field,
					 /* No record has one byte. */
					 .table_off =
						 crafted_meta(FIELDS) + 3 };
	struct beton_dataset_options o = { .size = sizeof(o) };
	struct beton_dataset *ds;
	struct beton_field f;
	struct beton_value v;
	uint64_t numbers[3];

	craft(path, &unknown);
	CHECK(!beton_dataset_open(path, &o, &ds));
	for (uint32_t i = 0; i < FIELDS; i++) {
		const struct beton_value made_up = { .field = i };

		CHECK(!beton_dataset_field(ds, i, &f) && f.unusable);
		CHECK(beton_dataset_value(ds, i, 0, &v) == -EOPNOTSUPP);
		CHECK(beton_dataset_column(ds, i, 0, 3, numbers) ==
		      (i == 1 || i == 2 ? -EOPNOTSUPP : -EINVAL));
		CHECK(beton_dataset_read(ds, &made_up, numbers) == -EINVAL);
		CHECK(beton_dataset_decode(ds, &made_up, numbers) == -EINVAL);
	}
	beton_dataset_close(ds);
}

int main(void)
{
	struct codec *codec;
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !close(fd) && !codec_open(&codec));
	write_dataset(codec);
	images_are_decoded(codec);
	scalars_and_texts_are_read();
	missing_samples_are_refused();
	unusable_fields_have_no_values();
	codec_close(codec);
	CHECK(!unlink(path));
	return 0;
}
