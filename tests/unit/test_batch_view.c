/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fs/base/util/crc32c.h"
#include "fs/data/engine/batch.h"
#include "loader/run/feed/batch_view.h"
#include "tests/unit/made.h"

/* A batch file of all types, and a copy to hurt. */
static uint8_t *good, *hurt;
static uint64_t size;
static char why[BATCH_VIEW_WHY_SIZE];

static void make_good(void)
{
	struct dataset *ds = made_open(9, NULL);
	const struct spec spec = { .order = BETON_ORDER_SEQUENTIAL,
				   .batch = 9,
				   .end = 9 };
	const struct batch_key key = { ds, &spec, 0, 0 };
	struct batch *b;
	bool failed;

	CHECK(!batch_open(&key, NULL, &b));
	size = b->vfile.size;
	good = aligned_alloc(64, align_up(size, 64));
	hurt = aligned_alloc(64, align_up(size, 64));
	CHECK(good && hurt && !batch_collate(b, NULL, good, &failed));
	memcpy(hurt, good, size);
	batch_put(&b);
	dataset_close(ds);
}

/* In an exact block, so that a sanitizer sees what reads past it. */
static int try(uint64_t n)
{
	uint8_t *exact = malloc(n ? n : 1);
	struct batch_view v;
	int r;

	CHECK(exact);
	memcpy(exact, hurt, n);
	why[0] = '\0';
	r = batch_view_init(&v, exact, n, why);
	CHECK(!r || why[0]);
	free(exact);
	return r;
}

static void seal(void)
{
	struct beton_batch_header *h = (void *)hurt;

	h->crc = 0;
	h->crc = crc32c(0, hurt, h->spec_off + h->spec_size);
}

static void a_good_file_is_accepted(void)
{
	CHECK(!try(size));
}

static void no_prefix_is_accepted(void)
{
	CHECK(try(0) == -BETON_ENOTBETON);
	CHECK(try(7) == -BETON_ENOTBETON);
	for (uint64_t n = 8; n < size; n++)
		CHECK(try(n) < 0);
}

static void every_bit_of_the_header_is_guarded(void)
{
	const struct beton_batch_header *h = (void *)good;
	uint64_t end = h->spec_off + h->spec_size;

	for (uint64_t bit = 0; bit < 8 * end; bit++) {
		hurt[bit / 8] ^= (uint8_t)(1 << bit % 8);
		CHECK(try(size) < 0);
		hurt[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void strangers_and_other_versions_are_no_batch_files(void)
{
	struct beton_batch_header *h = (void *)hurt;

	h->magic[0] = 'b';
	CHECK(try(size) == -BETON_ENOTBETON && strstr(why, "not a batch"));
	memcpy(hurt, good, size);
	h->version = 2;
	CHECK(try(size) == -BETON_ENOTBETON && strstr(why, "version 2"));
	memcpy(hurt, good, size);
	h->header_size++;
	CHECK(try(size) == -BETON_ENOTBETON && strstr(why, "with a header of"));
	memcpy(hurt, good, size);
}

/* Places that a right CRC does not make right. */
static void every_place_is_checked(void)
{
	static const uint64_t bad[] = { 1, 63, UINT64_MAX, UINT64_MAX - 63,
					(uint64_t)1 << 62 };
	struct beton_batch_header *h = (void *)hurt;
	struct beton_batch_field *f = (void *)(hurt + h->fields_off);
	struct beton_batch_value *values;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		h->ids_off = bad[i];
		seal();
		CHECK(try(size) == -BETON_ECORRUPT);
		memcpy(hurt, good, size);
		for (uint32_t k = 0; k < h->num_fields; k++) {
			f[k].column_off = bad[i];
			seal();
			CHECK(try(size) == -BETON_ECORRUPT);
			memcpy(hurt, good, size);
			f[k].error_off = bad[i];
			seal();
			CHECK(try(size) == -BETON_ECORRUPT);
			memcpy(hurt, good, size);
		}
		values = (void *)(hurt + f[MADE_JPG].column_off);
		values[3].offset = bad[i] == 1 || bad[i] == 63 ? size : bad[i];
		CHECK(try(size) == -BETON_ECORRUPT);
		memcpy(hurt, good, size);
		values[3].size = bad[i] < 64 ? size : bad[i];
		CHECK(try(size) == -BETON_ECORRUPT);
		memcpy(hurt, good, size);
	}
}

/* Error numbers reach the trainer, and strerror(3). */
static void every_error_is_an_error_number(void)
{
	static const int32_t bad[] = { INT32_MIN, -1, 4096, INT32_MAX };
	const struct beton_batch_header *h = (void *)hurt;
	struct beton_batch_field *f = (void *)(hurt + h->fields_off);

	for (uint32_t k = 0; k < h->num_fields; k++) {
		int32_t *errors = (void *)(hurt + f[k].error_off);

		errors[h->num_samples - 1] = 4095;
		CHECK(!try(size));
		for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
			errors[h->num_samples - 1] = bad[i];
			CHECK(try(size) == -BETON_ECORRUPT &&
			      strstr(why, "error"));
		}
		memcpy(hurt, good, size);
	}
}

static void every_count_is_checked(void)
{
	struct beton_batch_header *h = (void *)hurt;
	struct beton_batch_field *f = (void *)(hurt + h->fields_off);

	h->num_samples = UINT32_MAX;
	seal();
	CHECK(try(size) == -BETON_ECORRUPT);
	memcpy(hurt, good, size);
	h->num_fields = UINT32_MAX;
	CHECK(try(size) == -BETON_ECORRUPT);
	memcpy(hurt, good, size);
	f[0].stride = UINT64_MAX;
	seal();
	CHECK(try(size) == -BETON_ECORRUPT);
	memcpy(hurt, good, size);
	f[MADE_ARRAY].ndim = 33;
	seal();
	CHECK(try(size) == -BETON_ECORRUPT);
	memcpy(hurt, good, size);
	f[0].column = 3;
	seal();
	CHECK(try(size) == -BETON_ECORRUPT);
	memcpy(hurt, good, size);
}

/* Names are printed: they must end. */
static void every_text_ends(void)
{
	struct beton_batch_header *h = (void *)hurt;
	struct beton_batch_field *f = (void *)(hurt + h->fields_off);

	memset(f[0].name, 'x', sizeof(f[0].name));
	seal();
	CHECK(try(size) == -BETON_ECORRUPT);
	memcpy(hurt, good, size);
	memset(f[0].stem, 'x', sizeof(f[0].stem));
	seal();
	CHECK(try(size) == -BETON_ECORRUPT);
	memcpy(hurt, good, size);
	memset(f[0].dtype, 'x', sizeof(f[0].dtype));
	seal();
	CHECK(try(size) == -BETON_ECORRUPT);
	memcpy(hurt, good, size);
}

/* Texts are printed, also as JSON, which has no other bytes. */
static void every_text_is_ascii(void)
{
	struct beton_batch_header *h = (void *)hurt;
	struct beton_batch_field *f = (void *)(hurt + h->fields_off);
	char *const texts[] = { (char *)hurt + h->spec_off, f[0].name,
				f[0].stem, f[0].dtype };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		texts[i][0] = '\x80';
		seal();
		CHECK(try(size) == -BETON_ECORRUPT);
		memcpy(hurt, good, size);
	}
	/* A terminal would obey it. The name may be any ASCII. */
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		texts[i][0] = '\x1b';
		seal();
		CHECK(try(size) ==
		      (texts[i] == f[0].name ? 0 : -BETON_ECORRUPT));
		memcpy(hurt, good, size);
	}
}

int main(void)
{
	make_good();
	a_good_file_is_accepted();
	no_prefix_is_accepted();
	every_bit_of_the_header_is_guarded();
	strangers_and_other_versions_are_no_batch_files();
	every_place_is_checked();
	every_count_is_checked();
	every_error_is_an_error_number();
	every_text_ends();
	every_text_is_ascii();
	free(good);
	free(hurt);
	return 0;
}
