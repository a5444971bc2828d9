/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/sums.h"
#include "fs/source/object/open.h"

#include <errno.h>
#include <sys/stat.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/crc32c.h"
#include "loader/tools/fsck/sums.h"
#include "tests/unit/heard.h"
#include "tests/unit/made.h"
#include "tests/unit/write_file.h"

enum { SAMPLES = 9000 };

static char path[] = "/tmp/beton_unit.XXXXXX";
static char side[sizeof(path) + 5];

static uint8_t *whole_file(const char *name, size_t *size)
{
	struct stat st;
	uint8_t *bytes;
	FILE *f = fopen(name, "r");

	CHECK(f && !stat(name, &st));
	*size = (size_t)st.st_size;
	bytes = malloc(*size + 1);
	CHECK(bytes && fread(bytes, 1, *size, f) == *size && !fclose(f));
	return bytes;
}

static void poke(uint64_t off, uint8_t mask)
{
	int fd = open(path, O_RDWR);
	uint8_t byte;

	CHECK(fd >= 0 && pread(fd, &byte, 1, (off_t)off) == 1);
	byte ^= mask;
	CHECK(pwrite(fd, &byte, 1, (off_t)off) == 1 && !close(fd));
}

static struct sums *sums_of_path(unsigned threads)
{
	struct sums *s;

	CHECK(!sums_of_file(path, threads, NULL, NULL, NULL, &s));
	return s;
}

static bool is_same(const struct sums *a, const struct sums *b)
{
	return a->size == b->size && a->num == b->num &&
	       !memcmp(a->fingerprint, b->fingerprint,
		       sizeof(a->fingerprint)) &&
	       !memcmp(a->crc, b->crc, a->num * sizeof(*a->crc));
}

/* --- making --- */

static void pieces_of_any_size_make_the_same_sums(void)
{
	static const size_t pieces[] = { 1 << 20, 999, 3000001, 1 << 21 };
	struct sums *whole = sums_of_path(1), *s;
	size_t size, n;
	uint8_t *bytes = whole_file(path, &size);

	CHECK(whole->size == size && whole->num > 4);
	CHECK(whole->num == (size + SUMS_BLOCK - 1) / SUMS_BLOCK);
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		CHECK(!sums_new(&s));
		for (size_t at = 0; at < size; at += n) {
			n = min_u64(pieces[i], size - at);
			CHECK(!sums_add(s, bytes + at, n));
		}
		memcpy(s->fingerprint, whole->fingerprint,
		       sizeof(s->fingerprint));
		CHECK(is_same(s, whole));
		sums_free(s);
	}
	for (unsigned threads = 0; threads < 5; threads++) {
		s = sums_of_path(threads);
		CHECK(is_same(s, whole));
		sums_free(s);
	}
	sums_free(whole);
	free(bytes);
}

static int end_at_two(void *arg, uint64_t block, uint32_t crc)
{
	(void)crc;
	atomic_fetch_add((atomic_uint *)arg, 1);
	return block == 2 ? -ECANCELED : 0;
}

static void a_scan_can_be_ended(void)
{
	atomic_uint calls = 0;
	struct sums *s = NULL;

	CHECK(sums_of_file(path, 1, end_at_two, &calls, NULL, &s) ==
	      -ECANCELED);
	CHECK(!s && calls == 3);
	CHECK(sums_of_file(path, 3, end_at_two, &calls, NULL, &s) ==
	      -ECANCELED);
	CHECK(!s);
}

static int take(void *arg, uint64_t block, uint32_t crc)
{
	(void)arg, (void)block, (void)crc;
	return 0;
}

/* Replaces the dataset by an equal one, as a copy does. */
static void replace_file(void)
{
	char other[sizeof(path) + 4];

	snprintf(other, sizeof(other), "%s.new", path);
	made_write(other, SAMPLES);
	CHECK(!rename(other, path));
}

static int replace_at_two(void *arg, uint64_t block, uint32_t crc)
{
	(void)arg, (void)crc;
	if (block == 2)
		replace_file();
	return 0;
}

/* Sums of two files would report damage. */
static void the_file_must_not_change_meanwhile(void)
{
	struct log log;
	struct target target = { .log = &log };
	struct sums_check *check = NULL;
	struct sums *s = NULL;
	bool written = true;

	log_init(&log, NULL, NULL);
	CHECK(sums_of_file(path, 1, replace_at_two, NULL, NULL, &s) == -ESTALE);
	CHECK(!s);

	CHECK(!source_open(path, NULL, &log, &target.source));
	CHECK(!sums_check_open(&target, SUMS_RENEW, &check) && check);
	CHECK(!sums_check_bytes(check, (const uint8_t *)"some", 4));
	replace_file();
	CHECK(sums_check_save(check, &written) == -ESTALE && !written);
	CHECK(access(side, F_OK));
	sums_check_close(check);
	source_close(target.source);
}

static void failed_scans_are_logged(void)
{
	struct heard heard = HEARD_NOTHING;
	struct stat st;
	struct log log;

	CHECK(!stat(path, &st));
	log_init(&log, hear, &heard);
	CHECK(sums_scan(path, (uint64_t)st.st_size + 1, 1, take, NULL, &log) ==
	      -EIO);
	CHECK(heard.lines == 1 && strstr(heard.last, "become shorter"));
	CHECK(sums_scan("/tmp", 1, 1, take, NULL, &log) == -EINVAL);
	CHECK(heard.lines == 2 && strstr(heard.last, "regular"));
	CHECK(sums_scan("/nonexistent", 1, 1, take, NULL, &log) == -ENOENT);
	CHECK(heard.lines == 3);
	log_fini(&log);
}

/* --- the side file --- */

static void a_side_file_is_read_back(void)
{
	struct sums *s = sums_of_path(0), *back;
	struct dataset *ds;
	size_t size;
	uint8_t *bytes;

	CHECK(!dataset_open(path, NULL, NULL, &ds));
	CHECK(sums_open(ds, NULL, NULL, &back) == -ENOENT);
	CHECK(!sums_save(s, path, NULL));
	CHECK(!sums_open(ds, NULL, NULL, &back));
	CHECK(is_same(s, back));
	sums_free(back);
	CHECK(!sums_load(path, NULL, NULL, &back));
	CHECK(is_same(s, back));
	sums_free(back);

	bytes = whole_file(side, &size);
	CHECK(size == 44 + 4 * s->num && !memcmp(bytes, "betonsum", 8));
	CHECK(load32(bytes + 8) == 1 && load32(bytes + 12) == 1 << 16);
	CHECK(load64(bytes + 16) == s->size);
	CHECK(!memcmp(bytes + 24, ds->fingerprint, 16));
	for (uint64_t i = 0; i < s->num; i++)
		CHECK(load32(bytes + 40 + 4 * i) == s->crc[i]);
	CHECK(load32(bytes + size - 4) == crc32c(0, bytes, size - 4));
	free(bytes);
	sums_free(s);
	dataset_close(ds);
}

/* Every bit and every length: none is read as sums. */
static void damaged_side_files_are_refused(void)
{
	struct heard heard = HEARD_NOTHING;
	char why[SUMS_WHY_SIZE];
	struct sums *s;
	struct log log;
	size_t size;
	uint8_t *bytes = whole_file(side, &size);

	log_init(&log, hear, &heard);
	log.every = true;
	for (size_t bit = 0; bit < 8 * size; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		why[0] = '\0';
		CHECK(sums_parse(bytes, size, &s, why) == -BETON_ECORRUPT);
		CHECK(why[0]);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t n = 0; n < size; n++) {
		write_file(side, bytes, n);
		heard.lines = 0;
		CHECK(sums_load(path, NULL, &log, &s) == -BETON_ECORRUPT);
		CHECK(heard.lines == 1 && strstr(heard.last, side));
	}
	bytes[size] = 0;
	CHECK(sums_parse(bytes, size + 1, &s, why) == -BETON_ECORRUPT);
	write_file(side, bytes, size);
	CHECK(!sums_load(path, NULL, &log, &s));
	sums_free(s);
	free(bytes);

	heard.lines = 0;
	CHECK(!truncate(side, (off_t)1 << 40));
	CHECK(sums_load(path, NULL, &log, &s) == -BETON_ECORRUPT);
	CHECK(!unlink(side) && !mkdir(side, 0700));
	CHECK(sums_load(path, NULL, &log, &s) == -BETON_ECORRUPT);
	CHECK(!rmdir(side) && !symlink("beton_nowhere/x", side));
	CHECK(sums_load(path, NULL, &log, &s) == -ENOENT);
	CHECK(!unlink(side) && heard.lines == 2);
	log_fini(&log);
}

/* A number of blocks that the side file's size cannot bear, its CRC right. */
static void hostile_numbers_are_refused(void)
{
	static const uint64_t sizes[] = { 1, 1 << 16, UINT64_MAX,
					  (uint64_t)1 << 63,
					  (uint64_t)1 << 44 };
	uint8_t bytes[44] = "betonsum";
	char why[SUMS_WHY_SIZE];
	struct sums *s;

	store32(bytes + 8, 1);
	store32(bytes + 12, 1 << 16);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		store64(bytes + 16, sizes[i]);
		store32(bytes + 40, crc32c(0, bytes, 40));
		CHECK(sums_parse(bytes, 44, &s, why) == -BETON_ECORRUPT);
	}
	store64(bytes + 16, 0);
	store32(bytes + 40, crc32c(0, bytes, 40));
	CHECK(!sums_parse(bytes, 44, &s, why) && !s->num);
	sums_free(s);
}

static int open_again(struct log *log, bool hostile)
{
	struct dataset *ds;
	struct sums *s = NULL;
	int r;

	CHECK(!dataset_open(path, NULL, NULL, &ds));
	if (hostile)
		ds->fingerprint[3] ^= 1;
	r = sums_open(ds, NULL, log, &s);
	CHECK(!s == !!r);
	sums_free(s);
	dataset_close(ds);
	return r;
}

static void sums_of_another_file_are_refused(void)
{
	struct heard heard = HEARD_NOTHING;
	struct sums *s = sums_of_path(0);
	struct log log;

	log_init(&log, hear, &heard);
	CHECK(!sums_save(s, path, NULL) && !open_again(&log, false));
	CHECK(!open_again(&log, true));
	CHECK(heard.lines == 1 && strstr(heard.last, "its header is right"));

	s->crc[0] ^= 1;
	CHECK(!sums_save(s, path, NULL));
	CHECK(open_again(&log, true) == -BETON_ECORRUPT);
	CHECK(heard.lines == 2 && strstr(heard.last, "damaged in its header"));
	s->crc[0] ^= 1;

	for (uint64_t i = 0; i < s->num; i++)
		s->crc[i] ^= 1;
	CHECK(!sums_save(s, path, NULL));
	CHECK(open_again(&log, true) == -ESTALE);
	CHECK(heard.lines == 3 && strstr(heard.last, "of another file"));

	s->size--;
	CHECK(!sums_save(s, path, NULL));
	CHECK(open_again(&log, false) == -ESTALE);
	CHECK(heard.lines == 4 &&
	      strstr(heard.last, "fsck.beton --update-sums"));
	CHECK(!unlink(side));
	sums_free(s);
	log_fini(&log);
}

/* --- checking --- */

static int note_bad(void *arg, uint64_t block, uint32_t crc)
{
	struct sums *s = arg;

	return crc == s->crc[block] ? 0 : (int)block + 1;
}

static void a_flipped_bit_is_found_and_named(void)
{
	struct sums *s = sums_of_path(0);
	char why[SUMS_WHY_SIZE], place[64];
	uint64_t off, at[] = { 0, SUMS_BLOCK - 1, SUMS_BLOCK, s->size - 1 };
	size_t size, n;
	uint8_t *bytes;

	CHECK(!sums_scan(path, s->size, 2, note_bad, s, NULL));
	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		poke(at[i], 0x20);
		CHECK(sums_scan(path, s->size, 2, note_bad, s, NULL) ==
		      (int)(at[i] / SUMS_BLOCK) + 1);
		bytes = whole_file(path, &size);
		for (uint64_t b = 0; b < s->num; b++) {
			off = b * SUMS_BLOCK;
			n = sums_block_size(s, b);
			CHECK(!sums_check(s, b, bytes + off, n) ==
			      (b != at[i] / SUMS_BLOCK));
			CHECK(sums_check(s, b, bytes + off, n - 1));
			sums_explain(s, b, crc32c(0, bytes + off, n), why);
			snprintf(place, sizeof(place), "bit 5 of byte %llu ",
				 (unsigned long long)at[i]);
			CHECK(!strstr(why, place) == (b != at[i] / SUMS_BLOCK));
		}
		free(bytes);
		poke(at[i], 0x20);
	}
	sums_free(s);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	snprintf(side, sizeof(side), "%s.sums", path);
	made_write(path, SAMPLES);
	pieces_of_any_size_make_the_same_sums();
	a_scan_can_be_ended();
	the_file_must_not_change_meanwhile();
	failed_scans_are_logged();
	a_side_file_is_read_back();
	damaged_side_files_are_refused();
	hostile_numbers_are_refused();
	sums_of_another_file_are_refused();
	a_flipped_bit_is_found_and_named();
	unlink(path);
	return 0;
}
