/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/value.h"
#include "fs/mount/namespace/shard_layout.h"

#include "fs/base/util/cleanup.h"
#include "tests/unit/made.h"

/* Endings of the files of made.h's fields; two contain the field's name. */
static const char *const endings[MADE_FIELDS] = {
	"cls", "txt",  "jpg.jpg",   "raw.ppm",
	"bin", "json", "array.npy", "tensor.npy",
};

static uint8_t *read_whole(struct vfile *file)
{
	uint8_t *bytes = malloc(file->size + 1);

	CHECK(vfile_read(file, bytes, file->size + 1, 0, NULL, NULL) ==
	      (ssize_t)file->size);
	return bytes;
}

/* The member at `at` is this value; where the next one is. */
static uint64_t check_member(struct dataset *ds, const uint8_t *tar,
			     uint64_t at, uint64_t sample, uint32_t field)
{
	char name[TAR_NAME_MAX + 1];
	struct sample_file file;
	struct value v;
	cleanup_free uint8_t *want = NULL;

	CHECK(!dataset_value_at(ds, field, sample, &v));
	sample_file_init(&file, ds, field, &v);
	want = read_whole(&file.vfile);
	snprintf(name, sizeof(name), "%06u.%s", (unsigned)sample,
		 endings[field]);
	CHECK(!strcmp((const char *)tar + at, name));
	CHECK(strtoull((const char *)tar + at + 124, NULL, 8) ==
	      file.vfile.size);
	at += TAR_BLOCK;
	CHECK(!memcmp(tar + at, want, file.vfile.size));
	for (at += file.vfile.size; at % TAR_BLOCK; at++)
		CHECK(!tar[at]);
	return at;
}

static void test_members_are_the_files(void)
{
	enum { N = SHARD_SAMPLES + 3 };
	struct dataset *ds = made_open(N, NULL);
	struct shard *s;

	CHECK(shard_count(ds) == 2);
	for (uint64_t index = 0; index < 2; index++) {
		struct shard_file file;
		cleanup_free uint8_t *tar = NULL;
		uint64_t at = 0, sample = index * SHARD_SAMPLES;

		CHECK(!shard_open(ds, index, &s));
		shard_file_init(&file, s);
		tar = read_whole(&file.vfile);
		for (; sample < min_u64(N, (index + 1) * SHARD_SAMPLES);
		     sample++)
			for (uint32_t f = 0; f < MADE_FIELDS; f++)
				at = check_member(ds, tar, at, sample, f);
		CHECK(file.vfile.size == at + TAR_END_SIZE);
		for (; at < file.vfile.size; at++)
			CHECK(!tar[at]);
		CHECK(shard_bytes(s) >=
		      s->num_members * sizeof(struct shard_member));
		shard_close(s);
	}
	dataset_close(ds);
}

static void test_any_piece_is_a_piece_of_the_whole(void)
{
	struct dataset *ds = made_open(20, NULL);
	struct shard_file file;
	struct shard *s;
	uint8_t piece[700];
	cleanup_free uint8_t *tar = NULL;

	CHECK(!shard_open(ds, 0, &s));
	shard_file_init(&file, s);
	tar = read_whole(&file.vfile);
	for (uint64_t at = 0; at < file.vfile.size; at += 61) {
		uint64_t size = 1 + at % sizeof(piece);
		ssize_t got =
			vfile_read(&file.vfile, piece, size, at, NULL, NULL);

		CHECK(got == (ssize_t)min_u64(size, file.vfile.size - at));
		CHECK(!memcmp(piece, tar + at, (size_t)got));
	}
	shard_close(s);
	shard_close(NULL);
	dataset_close(ds);
}

static void test_damaged_values_are_left_out(void)
{
	struct dataset *ds = made_open(3, NULL);
	const struct format *f = &ds->format;
	struct shard_file file;
	struct shard *s;
	cleanup_free uint8_t *tar = NULL;
	uint64_t at = 0;

	for (uint32_t i = MADE_JPG; i < MADE_FIELDS; i++)
		made_poke(ds, f->meta_off + f->itemsize + f->fields[i].meta_off,
			  "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	CHECK(!shard_open(ds, 0, &s));
	shard_file_init(&file, s);
	tar = read_whole(&file.vfile);
	for (uint64_t sample = 0; sample < 3; sample++)
		for (uint32_t i = 0; i < MADE_FIELDS; i++) {
			/* Nothing is nowhere: it may point anywhere. */
			if (sample == 1 && i >= MADE_JPG)
				continue;
			at = check_member(ds, tar, at, sample, i);
		}
	CHECK(file.vfile.size == at + TAR_END_SIZE);
	shard_close(s);
	dataset_close(ds);
}

static void test_a_dataset_without_samples_has_none(void)
{
	struct dataset *ds = made_open(0, NULL);

	CHECK(shard_count(ds) == 0);
	ds->format.samples = 1;
	CHECK(shard_count(ds) == 1);
	ds->format.samples = SHARD_SAMPLES;
	CHECK(shard_count(ds) == 1);
	ds->format.samples = FORMAT_SAMPLES_MAX;
	CHECK(shard_count(ds) == FORMAT_SAMPLES_MAX / SHARD_SAMPLES + 1);
	dataset_close(ds);
}

int main(void)
{
	test_members_are_the_files();
	test_any_piece_is_a_piece_of_the_whole();
	test_damaged_values_are_left_out();
	test_a_dataset_without_samples_has_none();
	return 0;
}
