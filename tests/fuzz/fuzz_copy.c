/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a dataset, whose samples are copied to a new one. The new file
 * is sound, and has the values of every sample that was copied.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/value.h"
#include "fs/data/writer/copy.h"
#include "fs/data/writer/rewrite.h"
#include "tests/fuzz/fuzz.h"

enum { SAMPLES = 32, PAGE = 2 << 20 };

/* The samples that were copied. */
struct copied {
	uint64_t numbers[SAMPLES];
	uint64_t num;
};

static void copy_samples(struct dataset *ds, struct writer *w,
			 struct copied *copied)
{
	uint64_t samples = ds->format.samples;
	struct copy *c;

	MUST(!copy_open(w, NULL, &c));
	MUST(!copy_from(c, ds, NULL));
	for (uint64_t i = 0; i < min_u64(samples, SAMPLES); i++) {
		uint64_t number = i % 2 ? samples - 1 - i / 2 : i / 2;

		if (!copy_sample(c, number))
			copied->numbers[copied->num++] = number;
	}
	copy_close(c);
}

static void check_value(struct dataset *ds, struct dataset *made,
			uint32_t field, uint64_t from, uint64_t to)
{
	cleanup_free char *a = NULL, *b = NULL;
	struct value v, w;

	MUST(!dataset_value_at(ds, field, from, &v));
	MUST(!dataset_value_at(made, field, to, &w));
	MUST(v.size == w.size && v.mode == w.mode && v.width == w.width);
	MUST(!memcmp(v.scalar, w.scalar, sizeof(v.scalar)));
	if (!field_has_payload(&ds->format.fields[field]) || !v.size)
		return;
	a = malloc(v.size);
	b = malloc(v.size);
	MUST(a && b && !source_read(ds->source, a, v.size, v.off));
	MUST(!source_read(made->source, b, v.size, w.off));
	MUST(!memcmp(a, b, v.size));
}

static void check_file(struct dataset *ds, const char *path,
		       const struct copied *copied)
{
	struct dataset *made;

	MUST(!dataset_open(path, NULL, NULL, &made));
	MUST(made->format.samples == copied->num);
	for (uint64_t i = 0; i < copied->num; i++) {
		for (uint32_t f = 0; f < ds->format.num_fields; f++)
			check_value(ds, made, f, copied->numbers[i], i);
	}
	dataset_close(made);
}

static void copy_dataset(struct dataset *ds)
{
	cleanup_free struct writer_field *fields = NULL;
	cleanup_fd int fd = memfd_create("made", 0);
	struct copied copied = { .num = 0 };
	struct writer *w = NULL;
	char path[32];

	if (rewrite_fields(ds, &fields))
		return;
	MUST(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (writer_open_to(fd, "made", fields, ds->format.num_fields, SAMPLES,
			   PAGE, NULL, &w))
		return;
	copy_samples(ds, w, &copied);
	if (!writer_finish(&w))
		check_file(ds, path, &copied);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_fd int fd = memfd_create("fuzz", 0);
	struct dataset *ds;
	char path[32];

	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (dataset_open(path, NULL, NULL, &ds))
		return 0;
	copy_dataset(ds);
	dataset_close(ds);
	return 0;
}
