/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a dataset: opened, described, some values of some samples read
 * as files, and a batch put together, which must be one.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "fs/base/order/spec_text.h"
#include "fs/base/util/bytes.h"
#include "fs/data/dataset/value.h"
#include "fs/data/engine/batch.h"
#include "loader/run/feed/batch_view.h"
#include "tests/fuzz/fuzz.h"

enum {
	SAMPLES = 4,
	FIELDS = 16,
	PIECE = 4096,
	BATCH_MAX = 1 << 20,
};

static void read_ends(const struct vfile *file)
{
	static uint8_t piece[PIECE];
	ssize_t n = vfile_read(file, piece, PIECE, 0, NULL, NULL);

	MUST(n < 0 || (uint64_t)n == min_u64(PIECE, file->size));
	vfile_read(file, piece, PIECE, file->size / 2, NULL, NULL);
	vfile_read(file, piece, PIECE, file->size - min_u64(9, file->size),
		   NULL, NULL);
	MUST(vfile_read(file, piece, 1, file->size, NULL, NULL) == 0);
}

static void read_value(struct dataset *ds, uint32_t field, uint64_t sample)
{
	struct sample_file file;
	struct value v;

	if (dataset_value_at(ds, field, sample, &v))
		return;
	/* A value that is accepted lies in the file. */
	MUST(field_is_scalar(&ds->format.fields[field]) || !v.size ||
	     range_ok(v.off, v.size, ds->format.file_size));
	sample_file_init(&file, ds, field, &v);
	MUST(file.vfile.size == sample_file_size(ds, field, &v));
	read_ends(&file.vfile);
}

static void read_values(struct dataset *ds)
{
	const struct format *f = &ds->format;
	struct column_file column;

	for (uint32_t i = 0; i < min_u64(f->num_fields, FIELDS); i++) {
		for (uint64_t s = 0; s < min_u64(f->samples, SAMPLES); s++)
			read_value(ds, i, s);
		if (f->samples)
			read_value(ds, i, f->samples - 1);
		if (!field_is_scalar(&f->fields[i]) || f->fields[i].unusable)
			continue;
		column_file_init(&column, ds, i);
		read_ends(&column.vfile);
	}
}

static void check_batch(const struct batch *b)
{
	uint8_t *bytes = malloc(b->vfile.size);
	char why[BATCH_VIEW_WHY_SIZE];
	struct batch_view v;
	bool failed;

	MUST(bytes && !batch_collate(b, NULL, bytes, &failed));
	MUST(!batch_view_init(&v, bytes, b->vfile.size, why));
	for (uint32_t f = 0; f < v.header->num_fields; f++) {
		for (uint32_t row = 0; row < v.header->num_samples; row++)
			batch_view_at(&v, f, row);
	}
	free(bytes);
}

static void put_batch_together(struct dataset *ds)
{
	const struct spec_facts facts = {
		.samples = ds->format.samples,
		.data_bytes = dataset_data_bytes(ds),
	};
	char why[SPEC_WHY_SIZE];
	struct spec spec;
	struct batch *b;

	MUST(!spec_parse("batch=5,drop_last=0", &facts, &spec, why));
	if (batch_open(&(struct batch_key){ ds, &spec, 0, 0 }, NULL, &b))
		return;
	if (b->vfile.size <= BATCH_MAX)
		check_batch(b);
	batch_put(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dataset *ds;
	char path[32], *text;
	int fd = memfd_create("fuzz", 0);

	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!dataset_open(path, NULL, NULL, &ds)) {
		MUST(!dataset_json(ds, &text));
		free(text);
		read_values(ds);
		put_batch_together(ds);
		dataset_close(ds);
	}
	close(fd);
	return 0;
}
