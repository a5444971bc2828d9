/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the value of a bytes field that has arrays: the header is
 * checked, and every operation on lists runs on what passes.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader/run/transform/pipeline.h"
#include "tests/fuzz/fuzz.h"

enum { OUT_MAX = 1 << 20 };

static const char text[] =
	"a = rows | array; b = rows | truncate(3) | double;"
	"c = rows | length; d = rows | pad_to(5, 7);"
	"e = rows | half | pad_to(batch, 1, left);"
	"f = rows | excerpt(3) | gain(\"-9,9\", db);"
	"g = rows | resample(3, 7, width=2) | resample(9, 1);"
	"h = rows | json(int16); i = rows | json(row=\"2,3\");"
	"j = rows | tokenize(\"%s\", begin=a, end=b, unknown=a)";

static const char words[] = "a\nb\n##b\n##ab\nabba\n,\n##\n\xc3\xa9\n#\n";

/* The pipeline, with a file of words, which has no name. */
static const char *pipeline_of_words(void)
{
	static char made[sizeof(text) + 64];
	char path[64];
	int fd;

	if (*made)
		return made;
	fd = memfd_create("words", 0);
	MUST(write(fd, words, strlen(words)) == (ssize_t)strlen(words));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(made, sizeof(made), text, path);
	return made;
}

static void run_output(const struct pipeline *p, struct pipeline_worker *w,
		       size_t i, const struct pipeline_value *v)
{
	const struct pipeline_output *o = pipeline_output_at(p, i);
	struct pipeline_row row = { .id = i };
	uint64_t rows = 0, size = o->is_list ? pipeline_list_size(p, i, v->size)
					     : o->row_size;
	void *out = size <= OUT_MAX ? malloc(size ? size : 1) : NULL;
	int r = -1;

	if (out && o->is_list)
		r = pipeline_run_list(p, w, i, v, &row, BETON_STAGE_ALL, out,
				      &rows);
	else if (out)
		pipeline_run(p, w, i, v, &row, BETON_STAGE_ALL, out, NULL);
	MUST(r || rows * o->item_size <= size);
	free(out);
}

/* The field's arrays are as sample 0's, which may be another sample. */
static void run_all(const struct array *array, const struct pipeline_value *v)
{
	const struct pipeline_field field = { .name = "rows",
					      .stem = "rows",
					      .column = COLUMN_RAGGED,
					      .usable = true,
					      .dtype = "|u1",
					      .array = *array };
	struct pipeline_worker *w;
	struct pipeline *p;
	char error[200];

	if (pipeline_parse(pipeline_of_words(), &field, 1, 0, &p, error,
			   sizeof(error)))
		return;
	if (!pipeline_worker_open(p, &w)) {
		for (size_t i = 0; i < pipeline_num_outputs(p); i++)
			run_output(p, w, i, v);
		pipeline_worker_close(w);
	}
	pipeline_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct array ints = { .dtype = "<i4", .ndim = 1 };
	const struct pipeline_value v = { .bytes = data, .size = size };
	struct array own;

	run_all(&ints, &v);
	if (array_parse(data, size, size, &own))
		run_all(&own, &v);
	return 0;
}
