/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dataset with a field of every type, whose values are functions of the
 * sample's number, for tests that need one.
 */
#ifndef TESTS_UNIT_MADE_H
#define TESTS_UNIT_MADE_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/dataset.h"
#include "fs/data/writer/writer.h"
#include "tests/unit/t.h"

enum made_field {
	MADE_INT,
	MADE_FLOAT,
	MADE_JPG, /* images of many sizes; the bytes are no JPEG */
	MADE_RAW, /* all of one size */
	MADE_BYTES,
	MADE_JSON,
	MADE_ARRAY,
	MADE_TENSOR,
	MADE_FIELDS,
};

enum { MADE_VALUE_MAX = 4096, MADE_PAGE = 2 << 20 };

static const struct writer_field made_fields[MADE_FIELDS] = {
	{ .name = "int", .type = BETON_TYPE_INT },
	{ .name = "float", .type = BETON_TYPE_FLOAT },
	{ .name = "jpg", .type = BETON_TYPE_IMAGE },
	{ .name = "raw", .type = BETON_TYPE_IMAGE },
	{ .name = "bytes", .type = BETON_TYPE_BYTES },
	{ .name = "json", .type = BETON_TYPE_JSON },
	{ .name = "array",
	  .type = BETON_TYPE_NDARRAY,
	  .dtype = "<f4",
	  .ndim = 2,
	  .shape = { 2, 3 } },
	{ .name = "tensor",
	  .type = BETON_TYPE_TENSOR,
	  .dtype = "|u1",
	  .ndim = 1,
	  .shape = { 5 } },
};

static inline uint64_t made_size(enum made_field field, uint64_t sample)
{
	switch (field) {
	case MADE_JPG:
		return 20 + sample * 37 % 900;
	case MADE_RAW:
		return 18;
	case MADE_BYTES:
		return sample % 5;
	case MADE_JSON:
		return 4 + sample % 7;
	case MADE_ARRAY:
		return 24;
	case MADE_TENSOR:
		return 5;
	default:
		return 8;
	}
}

/* The bytes of a value, as a batch has them; their number. */
static inline uint64_t made_value(enum made_field field, uint64_t sample,
				  uint8_t *out)
{
	uint64_t n = made_size(field, sample);
	double real = (double)sample / 4;

	for (uint64_t k = 0; k < n; k++)
		out[k] = (uint8_t)(1 + (sample * 31 + k * 7 + field) % 250);
	if (field == MADE_INT)
		store64(out, sample * sample - 5);
	if (field == MADE_FLOAT)
		memcpy(out, &real, 8);
	return n;
}

static inline void made_append(struct writer *w, uint64_t sample)
{
	uint8_t bytes[MADE_FIELDS][MADE_VALUE_MAX];
	struct writer_value v[MADE_FIELDS];

	memset(v, 0, sizeof(v));
	for (unsigned f = 0; f < MADE_FIELDS; f++) {
		v[f].bytes = bytes[f];
		v[f].size = made_value(f, sample, bytes[f]);
	}
	v[MADE_INT].integer = (int64_t)(sample * sample - 5);
	v[MADE_FLOAT].real = (double)sample / 4;
	v[MADE_JPG].width = (uint16_t)(10 + sample % 3);
	v[MADE_JPG].height = 7;
	v[MADE_RAW].mode = BETON_MODE_RAW;
	v[MADE_RAW].width = 3;
	v[MADE_RAW].height = 2;
	CHECK(!writer_append(w, v));
}

static inline void made_write(const char *path, uint64_t samples)
{
	struct writer *w;

	CHECK(!writer_open(path, made_fields, MADE_FIELDS, samples, MADE_PAGE,
			   NULL, &w));
	for (uint64_t i = 0; i < samples; i++)
		made_append(w, i);
	CHECK(!writer_finish(&w));
}

/* The same, open; the file has no name any more. */
static inline struct dataset *made_open(uint64_t samples, struct log *log)
{
	char path[] = "/tmp/beton_unit.XXXXXX";
	struct dataset *ds;
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	made_write(path, samples);
	CHECK(!dataset_open(path, NULL, log, &ds));
	unlink(path);
	return ds;
}

/* Changes bytes of an open file: of a dataset that hurts itself. */
static inline void made_poke(struct dataset *ds, uint64_t off,
			     const void *bytes, size_t size)
{
	char path[64];
	ssize_t n = -1;

	/* The file has no name, but a process sees what it has open. */
	for (int fd = 3; fd < 64 && n < 0; fd++) {
		struct stat st;
		int w;

		if (fstat(fd, &st) || st.st_ino != ds->source->stat.st_ino ||
		    st.st_dev != ds->source->stat.st_dev)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		w = open(path, O_WRONLY);
		CHECK(w >= 0);
		n = pwrite(w, bytes, size, (off_t)off);
		close(w);
	}
	CHECK(n == (ssize_t)size);
}

#endif
