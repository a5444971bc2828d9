/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/writer/writer.h"
#include "tests/unit/t.h"

enum { PAGE = 2 << 20, HEADER = 24, DESCRIPTOR = 1041 };

static char folder[] = "/tmp/test_writer.XXXXXX";
static char target[64];

/* --- helpers ------------------------------------------------------------- */

static unsigned files_in_directory(void)
{
	DIR *dir = opendir(folder);
	unsigned n = 0;

	CHECK(dir);
	for (struct dirent *e; (e = readdir(dir));)
		n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
	closedir(dir);
	return n;
}

/* The whole file; the caller's. */
static uint8_t *contents(size_t *size)
{
	FILE *f = fopen(target, "rb");
	uint8_t *bytes;
	struct stat st;

	CHECK(f && fstat(fileno(f), &st) == 0);
	*size = (size_t)st.st_size;
	bytes = malloc(*size + 1);
	CHECK(bytes && fread(bytes, 1, *size, f) == *size);
	fclose(f);
	return bytes;
}

static struct writer *open_writer(const struct writer_field *fields, size_t n,
				  uint64_t samples)
{
	struct writer *w = NULL;

	CHECK(writer_open(target, fields, n, samples, PAGE, NULL, &w) == 0);
	return w;
}

static const struct writer_field all_types[] = {
	{ .name = "i", .type = BETON_TYPE_INT },
	{ .name = "f", .type = BETON_TYPE_FLOAT },
	{ .name = "image", .type = BETON_TYPE_IMAGE },
	{ .name = "sixteen_letters_", .type = BETON_TYPE_IMAGE },
	{ .name = "b", .type = BETON_TYPE_BYTES },
	{ .name = "j", .type = BETON_TYPE_JSON },
	{ .name = "a",
	  .type = BETON_TYPE_NDARRAY,
	  .dtype = "<f4",
	  .ndim = 2,
	  .shape = { 2, 3 } },
	{ .name = "t",
	  .type = BETON_TYPE_TENSOR,
	  .dtype = "|u1",
	  .ndim = 1,
	  .shape = { 5 } },
};

static const struct writer_value a_sample[] = {
	{ .integer = -2 },
	{ .real = 1.5 },
	{ .bytes = "JPEG", .size = 4, .width = 300, .height = 200 },
	{ .bytes = "RGBrgb",
	  .size = 6,
	  .mode = BETON_MODE_RAW,
	  .width = 2,
	  .height = 1 },
	{ .bytes = "bytes", .size = 5 },
	{ .bytes = "{}", .size = 2 },
	{ .bytes = "................................", .size = 24 },
	{ .bytes = "12345", .size = 5 },
};

/* --- tests --------------------------------------------------------------- */

static void every_type_has_its_place_in_the_record(void)
{
	struct writer *w = open_writer(all_types, 8, 1);
	size_t size = 0;
	uint8_t *f, *record, *page = NULL;

	CHECK(writer_append(w, a_sample) == 0);
	CHECK(writer_finish(&w) == 0 && !w);
	f = contents(&size);
	CHECK(load16(f) == 2 && load16(f + 2) == 8 && load32(f + 4) == PAGE);
	CHECK(load64(f + 8) == 1 && load64(f + 16) == 2 * PAGE);
	record = f + HEADER + 8 * DESCRIPTOR;
	page = f + PAGE;
	CHECK(load64(record) == (uint64_t)-2);
	CHECK(memcmp(record + 8, &(double){ 1.5 }, 8) == 0);
	CHECK(record[16] == 0 && load16(record + 17) == 300);
	CHECK(load16(record + 19) == 200 && load64(record + 21) == PAGE);
	CHECK(record[29] == 1 && load64(record + 34) == PAGE + 4);
	CHECK(load64(record + 42) == PAGE + 10 && load64(record + 50) == 5);
	CHECK(load64(record + 58) == PAGE + 15 && load64(record + 66) == 3);
	CHECK(load64(record + 80) == PAGE + 18);
	CHECK(load64(record + 88) == PAGE + 42);
	CHECK(memcmp(page, "JPEGRGBrgbbytes{}\0....", 22) == 0);
	CHECK(memcmp(page + 42, "12345\0\0", 7) == 0);
	CHECK(size == 2 * PAGE + 6 * 24);
	free(f);
}

static void descriptors_report_name_dtype_and_shape(void)
{
	struct writer *w = open_writer(all_types, 8, 1);
	const uint8_t *d;
	size_t size = 0;
	uint8_t *f;

	CHECK(writer_append(w, a_sample) == 0 && writer_finish(&w) == 0);
	f = contents(&size);
	d = f + HEADER + 3 * DESCRIPTOR;
	CHECK(d[0] == BETON_TYPE_IMAGE);
	CHECK(memcmp(d + 1, "sixteen_letters_", 17) == 0);
	d = f + HEADER + 6 * DESCRIPTOR;
	CHECK(d[0] == BETON_TYPE_NDARRAY && memcmp(d + 1, "a\0", 2) == 0);
	CHECK(load64(d + 17) == 2 && load64(d + 25) == 3);
	CHECK(load64(d + 33) == 0 && load64(d + 17 + 256) == 13);
	CHECK(memcmp(d + 17 + 264, "[[\"\", \"<f4\"]]", 14) == 0);
	free(f);
}

static void the_table_is_sorted_and_complete(void)
{
	struct writer *w = open_writer(all_types, 8, 100);
	size_t size = 0;
	uint64_t last = 0;
	uint8_t *f, *e;

	for (int i = 0; i < 100; i++)
		CHECK(writer_append(w, a_sample) == 0);
	CHECK(writer_finish(&w) == 0);
	f = contents(&size);
	e = f + load64(f + 16);
	CHECK(size == load64(f + 16) + 100 * 6 * 24);
	for (uint64_t i = 0; i < 100 * 6; i++, e += 24) {
		CHECK(load64(e) == i / 6 && load64(e + 8) > last);
		last = load64(e + 8);
	}
	free(f);
}

static const struct writer_field two_blobs[] = {
	{ .name = "x", .type = BETON_TYPE_BYTES },
	{ .name = "y", .type = BETON_TYPE_BYTES },
};

static void a_sample_does_not_cross_pages(void)
{
	enum { SIZE = PAGE / 5 };
	static char blob[SIZE];
	struct writer_value v[] = { { .bytes = blob, .size = SIZE },
				    { .bytes = blob, .size = SIZE } };
	struct writer *w = open_writer(two_blobs, 2, 5);
	size_t size = 0;
	uint8_t *f, *record;

	memset(blob, 'x', SIZE);
	for (int i = 0; i < 5; i++)
		CHECK(writer_append(w, v) == 0);
	CHECK(writer_finish(&w) == 0);
	f = contents(&size);
	CHECK(load64(f + 16) == 4 * PAGE);
	record = f + HEADER + 2 * DESCRIPTOR;
	for (uint64_t i = 0; i < 5; i++, record += 32) {
		CHECK(load64(record) == (1 + i / 2) * PAGE + i % 2 * 2 * SIZE);
		CHECK(load64(record + 16) == load64(record) + SIZE);
	}
	for (size_t i = PAGE + 4 * SIZE; i < 2 * PAGE; i++)
		CHECK(f[i] == 0);
	free(f);
}

static void a_whole_page_fits_and_one_byte_more_does_not(void)
{
	char *blob = calloc(1, PAGE);
	struct writer_value v[] = { { .bytes = blob, .size = PAGE - 1 },
				    { .bytes = blob, .size = 1 } };
	struct writer *w = open_writer(two_blobs, 2, 3);
	size_t size = 0;
	uint8_t *f;

	CHECK(blob);
	CHECK(writer_append(w, v) == 0);
	v[1].size = 2;
	CHECK(writer_append(w, v) == -BETON_ETOOLARGE);
	v[1].size = 1;
	CHECK(writer_append(w, v) == 0);
	CHECK(writer_finish(&w) == 0);
	f = contents(&size);
	CHECK(load64(f + 8) == 2 && load64(f + 16) == 3 * PAGE);
	free(f);
	free(blob);
}

/* FFCV finds a value's size by its offset. */
static void empty_values_have_offsets_of_their_own(void)
{
	struct writer_value v[] = { { .bytes = "" }, { .bytes = "full", 4 } };
	struct writer *w = open_writer(two_blobs, 2, 1);
	size_t size = 0;
	uint8_t *f, *record;

	CHECK(writer_append(w, v) == 0 && writer_finish(&w) == 0);
	f = contents(&size);
	record = f + HEADER + 2 * DESCRIPTOR;
	CHECK(load64(record) == PAGE && load64(record + 8) == 0);
	CHECK(load64(record + 16) == PAGE + 1 && load64(record + 24) == 4);
	CHECK(memcmp(f + PAGE, "\0full", 6) == 0);
	free(f);
}

static void without_allocations_there_are_no_pages(void)
{
	struct writer *w = open_writer(all_types, 2, 3);
	size_t size = 0;
	uint8_t *f;

	for (int i = 0; i < 3; i++)
		CHECK(writer_append(w, a_sample) == 0);
	CHECK(writer_finish(&w) == 0);
	f = contents(&size);
	CHECK(size == HEADER + 2 * DESCRIPTOR + 3 * 16);
	CHECK(load64(f + 16) == size);
	free(f);
}

/* 500000 records of 32 bytes reserve eight pages, two need one. */
static void pages_move_down_when_samples_are_fewer_than_announced(void)
{
	struct writer_value v[] = { { .bytes = "one", .size = 3 },
				    { .bytes = "three", .size = 5 } };
	struct writer *w = open_writer(two_blobs, 2, 500000);
	size_t size = 0;
	uint8_t *f, *record;

	CHECK(writer_append(w, v) == 0 && writer_append(w, v) == 0);
	CHECK(writer_finish(&w) == 0);
	f = contents(&size);
	record = f + HEADER + 2 * DESCRIPTOR;
	CHECK(load64(f + 8) == 2 && load64(f + 16) == 2 * PAGE);
	CHECK(load64(record) == PAGE && load64(record + 48) == PAGE + 11);
	CHECK(memcmp(f + PAGE, "onethreeonethree\0", 17) == 0);
	CHECK(load64(f + 2 * PAGE + 3 * 24 + 8) == PAGE + 11);
	CHECK(size == 2 * PAGE + 4 * 24);
	free(f);
}

/* Returns the file of `samples` samples, with a table of 1.4 MiB for 10000. The
   writer keeps neither records nor table in memory. */
static uint8_t *write_many(uint64_t samples, uint64_t announced, size_t *size)
{
	struct writer *w = open_writer(all_types, 8, announced);

	for (uint64_t i = 0; i < samples; i++)
		CHECK(writer_append(w, a_sample) == 0);
	CHECK(writer_finish(&w) == 0 && files_in_directory() == 1);
	return contents(size);
}

static void the_announced_number_does_not_change_the_file(void)
{
	enum { SAMPLES = 20000 };
	size_t size = 0, other_size = 0;
	uint8_t *f = write_many(SAMPLES, SAMPLES, &size);
	uint8_t *other = write_many(SAMPLES, 10 * SAMPLES, &other_size);
	const uint8_t *record = f + HEADER + 8 * DESCRIPTOR;
	const uint8_t *e = f + load64(f + 16);

	CHECK(size == other_size && memcmp(f, other, size) == 0);
	CHECK(size == load64(f + 16) + (size_t)SAMPLES * 6 * 24);
	for (uint64_t i = 0; i < SAMPLES; i++, record += 96, e += 6 * 24) {
		CHECK(load64(record) == (uint64_t)-2);
		CHECK(load64(e) == i && load64(e + 8) == load64(record + 21));
	}
	free(f);
	free(other);
}

static void more_samples_than_announced_are_refused(void)
{
	struct writer *w = open_writer(all_types, 8, 1);

	CHECK(writer_append(w, a_sample) == 0);
	CHECK(writer_append(w, a_sample) == -EINVAL);
	writer_abort(&w);
}

static void fields_that_ffcv_cannot_read_are_refused(void)
{
	static const struct writer_field bad[][2] = {
		{ { .name = "", .type = BETON_TYPE_INT } },
		{ { .name = "seventeen_letters", .type = BETON_TYPE_INT } },
		{ { .name = "\xc3\xa9", .type = BETON_TYPE_INT } },
		{ { .name = "c", .type = BETON_TYPE_CUSTOM } },
		{ { .name = "c", .type = (enum beton_type)77 } },
		{ { .name = "d", .type = BETON_TYPE_NDARRAY } },
		{ { .name = "d", .type = BETON_TYPE_NDARRAY, .dtype = "<f4" } },
		{ { .name = "d",
		    .type = BETON_TYPE_NDARRAY,
		    .dtype = "<f4",
		    .ndim = 2,
		    .shape = { 3, 0 } } },
		{ { .name = "d",
		    .type = BETON_TYPE_NDARRAY,
		    .dtype = "<f4",
		    .ndim = 2,
		    .shape = { UINT64_MAX, 2 } } },
		{ { .name = "d",
		    .type = BETON_TYPE_NDARRAY,
		    .dtype = "f\"4",
		    .ndim = 1,
		    .shape = { 1 } } },
	};
	static const struct writer_field twins[] = {
		{ .name = "x", .type = BETON_TYPE_INT },
		{ .name = "x", .type = BETON_TYPE_FLOAT },
	};
	struct writer *w = NULL;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(writer_open(target, bad[i], 1, 1, PAGE, NULL, &w) ==
		      -EINVAL);
	CHECK(writer_open(target, twins, 2, 1, PAGE, NULL, &w) == -EINVAL);
	CHECK(writer_open(target, twins, 0, 1, PAGE, NULL, &w) == -EINVAL);
	CHECK(!w);
}

static void page_sizes_out_of_range_are_refused(void)
{
	static const uint32_t bad[] = { 0, 1 << 20, 3 << 20, (2 << 20) + 1 };
	struct writer *w = NULL;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(writer_open(target, all_types, 1, 1, bad[i], NULL, &w) ==
		      -EINVAL);
	CHECK(writer_open(target, all_types, 1, 1, 1u << 31, NULL, &w) == 0);
	writer_abort(&w);
}

static void values_of_the_wrong_shape_are_refused(void)
{
	struct writer *w = open_writer(all_types, 8, 1);
	struct writer_value v[8];

	memcpy(v, a_sample, sizeof(v));
	v[3].size = 5;
	CHECK(writer_append(w, v) == -EINVAL);
	memcpy(v, a_sample, sizeof(v));
	v[2].width = 0;
	CHECK(writer_append(w, v) == -EINVAL);
	memcpy(v, a_sample, sizeof(v));
	v[6].size = 20;
	CHECK(writer_append(w, v) == -EINVAL);
	memcpy(v, a_sample, sizeof(v));
	v[5] = (struct writer_value){ .bytes = "{\0}", .size = 3 };
	CHECK(writer_append(w, v) == -EINVAL);
	writer_abort(&w);
}

/* A file that grows beyond this fails with EFBIG. */
static void limit_file_size(rlim_t size)
{
	struct rlimit limit;

	CHECK(!getrlimit(RLIMIT_FSIZE, &limit));
	limit.rlim_cur = size == RLIM_INFINITY ? limit.rlim_max : size;
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
}

/* Starts a writer in a directory without files, and appends until that
   fails. */
static struct writer *fill_writer(const char *blob)
{
	struct writer_value v[] = { { .bytes = blob, .size = PAGE - 1 },
				    { .bytes = blob, .size = 1 } };
	struct writer *w;
	int r = 0;

	unlink(target);
	w = open_writer(two_blobs, 2, 100);
	limit_file_size(5 * PAGE);
	for (int i = 0; i < 50 && !r; i++)
		r = writer_append(w, v);
	CHECK(r == -EFBIG);
	limit_file_size(RLIM_INFINITY);
	return w;
}

/* FAT has such a limit, too. A caller must not take it for a small page. */
static void the_limit_of_a_file_differs_from_that_of_a_page(void)
{
	cleanup_free char *blob = calloc(1, PAGE);
	struct writer *w = fill_writer(blob);

	writer_abort(&w);
	CHECK(files_in_directory() == 0);
}

/* The bytes that waited for the failed write are lost. */
static void after_a_failure_there_is_no_file(void)
{
	struct writer_value v[] = { { .bytes = "x", .size = 1 },
				    { .bytes = "y", .size = 1 } };
	cleanup_free char *blob = calloc(1, PAGE);
	struct writer *w = fill_writer(blob);

	CHECK(writer_append(w, v) == -EFBIG);
	CHECK(writer_finish(&w) == -EFBIG && !w);
	CHECK(files_in_directory() == 0);
	w = fill_writer(blob);
	CHECK(writer_finish(&w) == -EFBIG && !w);
	CHECK(files_in_directory() == 0);
}

static void after_a_bad_value_there_is_no_file(void)
{
	struct writer_value v[8];
	struct writer *w = open_writer(all_types, 8, 3);

	memcpy(v, a_sample, sizeof(v));
	v[2].width = 0;
	CHECK(writer_append(w, a_sample) == 0);
	CHECK(writer_append(w, v) == -EINVAL);
	CHECK(writer_append(w, a_sample) == -EINVAL);
	CHECK(writer_finish(&w) == -EINVAL && !w);
	CHECK(files_in_directory() == 0);
}

static void the_name_appears_only_at_the_end(void)
{
	struct writer *w;
	size_t size = 0;
	uint8_t *f;

	unlink(target);
	w = open_writer(all_types, 8, 1);
	CHECK(writer_append(w, a_sample) == 0);
	CHECK(access(target, F_OK) < 0);
	writer_abort(&w);
	CHECK(files_in_directory() == 0);

	w = open_writer(all_types, 2, 1);
	CHECK(writer_finish(&w) == 0 && files_in_directory() == 1);

	w = open_writer(all_types, 8, 1);
	CHECK(writer_append(w, a_sample) == 0);
	f = contents(&size);
	CHECK(load16(f + 2) == 2);
	free(f);
	CHECK(writer_finish(&w) == 0 && files_in_directory() == 1);
	f = contents(&size);
	CHECK(load16(f + 2) == 8);
	free(f);
}

static void a_target_that_is_no_file_is_refused(void)
{
	struct writer *w = NULL;
	char path[80];

	CHECK(writer_open(folder, all_types, 1, 1, PAGE, NULL, &w) == -EISDIR);
	CHECK(writer_open("/dev/null", all_types, 1, 1, PAGE, NULL, &w) ==
	      -EINVAL);
	snprintf(path, sizeof(path), "%s/no/such", folder);
	CHECK(writer_open(path, all_types, 1, 1, PAGE, NULL, &w) == -ENOENT);
	snprintf(path, sizeof(path), "%s/new/", folder);
	CHECK(writer_open(path, all_types, 1, 1, PAGE, NULL, &w) == -EISDIR);
	CHECK(!w);
}

static void a_link_is_followed(void)
{
	struct writer *w = NULL;
	struct stat st;
	char path[80];

	snprintf(path, sizeof(path), "%s/link", folder);
	CHECK(symlink(target, path) == 0);
	CHECK(writer_open(path, all_types, 2, 0, PAGE, NULL, &w) == 0);
	CHECK(writer_finish(&w) == 0);
	CHECK(lstat(path, &st) == 0 && S_ISLNK(st.st_mode));
	CHECK(stat(target, &st) == 0 && st.st_size == HEADER + 2 * DESCRIPTOR);
	unlink(path);
}

static char message[256];

static void keep_message(void *arg, enum beton_log_level level,
			 const char *text)
{
	(void)arg, (void)level;
	snprintf(message, sizeof(message), "%s", text);
}

static void messages_show_no_secret_of_a_url(void)
{
	const struct writer_field twice[] = {
		{ .name = "x", .type = BETON_TYPE_INT },
		{ .name = "x", .type = BETON_TYPE_INT },
	};
	struct writer *w = NULL;
	struct log log;

	log_init(&log, keep_message, NULL);
	CHECK(writer_open("https://u:secret@host/a?sig=secret", twice, 2, 1,
			  PAGE, &log, &w) == -EINVAL);
	CHECK(strstr(message, "https://host/a: field 'x'"));
	CHECK(!strstr(message, "secret"));
	log_fini(&log);
}

int main(void)
{
	CHECK(mkdtemp(folder));
	CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	snprintf(target, sizeof(target), "%s/out.beton", folder);
	every_type_has_its_place_in_the_record();
	descriptors_report_name_dtype_and_shape();
	the_table_is_sorted_and_complete();
	a_sample_does_not_cross_pages();
	a_whole_page_fits_and_one_byte_more_does_not();
	empty_values_have_offsets_of_their_own();
	without_allocations_there_are_no_pages();
	pages_move_down_when_samples_are_fewer_than_announced();
	the_announced_number_does_not_change_the_file();
	more_samples_than_announced_are_refused();
	fields_that_ffcv_cannot_read_are_refused();
	page_sizes_out_of_range_are_refused();
	values_of_the_wrong_shape_are_refused();
	the_limit_of_a_file_differs_from_that_of_a_page();
	after_a_failure_there_is_no_file();
	after_a_bad_value_there_is_no_file();
	the_name_appears_only_at_the_end();
	a_target_that_is_no_file_is_refused();
	a_link_is_followed();
	messages_show_no_secret_of_a_url();
	unlink(target);
	CHECK(rmdir(folder) == 0);
	return 0;
}
