/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/joined.h"
#include "fs/data/writer/writer.h"
#include "tests/unit/t.h"

enum { PAGE = 2 << 20 };

static const char *const names[] = { "cat", "dog", "eel" };

/* A file in memory of one sample, an integer with names of classes. */
static int made_file(size_t num_names)
{
	const struct writer_field field = {
		.name = "label",
		.type = BETON_TYPE_INT,
		.classes = num_names ? names : NULL,
		.num_classes = num_names,
	};
	const struct writer_value value = { .integer = 1 };
	int fd = memfd_create("part", MFD_CLOEXEC);
	struct writer *w;

	CHECK(fd >= 0);
	CHECK(!writer_open_to(fd, "part", &field, 1, 1, PAGE, NULL, &w));
	CHECK(!writer_append(w, &value));
	CHECK(!writer_finish(&w));
	return fd;
}

/* Opens both files as one dataset. */
static int join(int a, int b, struct dataset **out)
{
	char text[80];

	snprintf(text, sizeof(text), "{/proc/self/fd/%d,/proc/self/fd/%d}", a,
		 b);
	return joined_open(text, NULL, NULL, out);
}

/* Thousands of files may have a megabyte of names each. */
static void names_are_kept_once(void)
{
	static const size_t nums[][2] = { { 3, 3 }, { 2, 3 }, { 3, 2 },
					  { 0, 3 }, { 3, 0 }, { 3, 3 } };

	for (size_t i = 0; i < ARRAY_LEN(nums); i++) {
		int a = made_file(nums[i][0]), b = made_file(nums[i][1]);
		struct dataset *ds;
		const struct class_names *all;

		CHECK(!join(a, b, &ds));
		all = ds->format.fields[0].classes;
		CHECK(all && all->num == 3 && !strcmp(all->names[2], "eel"));
		for (size_t k = 0; k < ds->num_parts; k++)
			CHECK(!ds->parts[k].ds->format.fields[0].classes);
		dataset_close(ds);
		close(a);
		close(b);
	}
}

/* Makes it a file without samples whose pages end at its end. */
static int grown(uint64_t size)
{
	int fd = made_file(0);
	uint8_t head[16] = { 0 };

	store64(head + 8, size);
	CHECK(pwrite(fd, head, sizeof(head), 8) == sizeof(head));
	CHECK(!ftruncate(fd, (off_t)size));
	return fd;
}

/* Every byte of all files has a place that an off_t can be. */
static void files_that_are_too_large_together_are_refused(void)
{
	const uint64_t most = (uint64_t)INT64_MAX + 1 - PAGE, small = 8 * PAGE;
	const struct {
		uint64_t a, b;
		int r;
	} rows[] = {
		{ small, small, 0 },	 { small, most - small, 0 },
		{ small, most, -EFBIG }, { (uint64_t)1 << 61, most, -EFBIG },
		{ most, small, -EFBIG },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int a = grown(rows[i].a), b = grown(rows[i].b);
		struct dataset *ds = NULL;

		CHECK(join(a, b, &ds) == rows[i].r);
		CHECK(!ds == !!rows[i].r);
		CHECK(!ds || ds->source->stat.st_size > 0);
		dataset_close(ds);
		close(a);
		close(b);
	}
}

int main(void)
{
	names_are_kept_once();
	files_that_are_too_large_together_are_refused();
	return 0;
}
