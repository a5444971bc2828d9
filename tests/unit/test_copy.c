/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "fs/data/dataset/joined.h"
#include "fs/data/dataset/value.h"
#include "fs/data/writer/copy.h"
#include "tests/unit/made.h"

/* Bytes of three pages; the second part begins where no page does. */
enum { SAMPLES = 9000, PART = 4321 };

static char folder[] = "/tmp/test_copy.XXXXXX";
static char whole[64], first[64], second[64], target[64], expected[64];

/* The last message of the log, and the number of messages. */
struct heard {
	struct log log;
	unsigned messages;
	char last[256];
};

static void on_log(void *arg, enum beton_log_level level, const char *message)
{
	struct heard *h = arg;

	(void)level;
	h->messages++;
	snprintf(h->last, sizeof(h->last), "%s", message);
}

static struct heard heard;

/* --- helpers ------------------------------------------------------------- */

static uint8_t *contents(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes;

	CHECK(f && !fseek(f, 0, SEEK_END));
	*size = (size_t)ftell(f);
	rewind(f);
	bytes = malloc(*size + 1);
	CHECK(bytes && fread(bytes, 1, *size, f) == *size);
	fclose(f);
	return bytes;
}

static void check_same(const char *one, const char *other)
{
	size_t n = 0, m = 0;
	uint8_t *a = contents(one, &n), *b = contents(other, &m);

	CHECK(n == m && !memcmp(a, b, n));
	free(a);
	free(b);
}

static struct writer *open_writer(const char *path, uint64_t samples)
{
	struct writer *w = NULL;

	CHECK(!writer_open(path, made_fields, MADE_FIELDS, samples, MADE_PAGE,
			   &heard.log, &w));
	return w;
}

/* Writes a file of the samples [from, to) by appending them. */
static void write_file(const char *path, uint64_t from, uint64_t to)
{
	struct writer *w = open_writer(path, to - from);

	for (uint64_t i = from; i < to; i++)
		made_append(w, i);
	CHECK(!writer_finish(&w));
}

static struct dataset *open_file(const char *path)
{
	struct dataset *ds = NULL;

	CHECK(!joined_open(path, NULL, &heard.log, &ds));
	heard.messages = 0;
	return ds;
}

static void poke(const char *path, uint64_t off, const void *bytes, size_t size)
{
	int fd = open(path, O_WRONLY);

	CHECK(fd >= 0 && pwrite(fd, bytes, size, (off_t)off) == (ssize_t)size);
	close(fd);
}

/* --- tests --------------------------------------------------------------- */

static void a_copy_is_the_same_file(void)
{
	struct dataset *ds = open_file(whole);
	struct writer *w = open_writer(target, SAMPLES);
	struct copy *c;

	CHECK(!copy_open(w, &heard.log, &c) && !copy_from(c, ds, NULL));
	CHECK(!copy_range(c, 0, SAMPLES));
	copy_close(c);
	dataset_close(ds);
	CHECK(!writer_finish(&w));
	check_same(whole, target);
}

static void parts_become_the_whole(void)
{
	struct dataset *a = open_file(first), *b = open_file(second);
	struct writer *w = open_writer(target, SAMPLES + 100);
	struct copy *c;

	CHECK(!copy_open(w, &heard.log, &c) && !copy_from(c, a, NULL));
	CHECK(!copy_range(c, 0, PART));
	CHECK(!copy_from(c, b, NULL));
	dataset_close(a);
	CHECK(!copy_range(c, 0, SAMPLES - PART));
	copy_close(c);
	dataset_close(b);
	CHECK(!writer_finish(&w));
	check_same(whole, target);
}

static void a_dataset_of_several_files_can_be_copied(void)
{
	char pattern[160];
	struct dataset *ds;
	struct writer *w = open_writer(target, SAMPLES);
	struct copy *c;

	snprintf(pattern, sizeof(pattern), "{%s,%s}", first, second);
	ds = open_file(pattern);
	CHECK(ds->parts && !copy_open(w, &heard.log, &c));
	CHECK(!copy_from(c, ds, NULL) && !copy_range(c, 0, SAMPLES));
	copy_close(c);
	dataset_close(ds);
	CHECK(!writer_finish(&w));
	check_same(whole, target);
}

/* Any samples in any order, and values of the caller between them. */
static void any_order_is_as_if_appended(void)
{
	struct dataset *ds = open_file(whole);
	struct writer *w = open_writer(target, SAMPLES);
	struct writer *e = open_writer(expected, SAMPLES);
	struct copy *c;

	CHECK(!copy_open(w, &heard.log, &c) && !copy_from(c, ds, NULL));
	for (uint64_t i = 0; i < SAMPLES; i++) {
		uint64_t number = i * 7919 % SAMPLES;

		number = i % 3 ? number : i;
		if (i % 5)
			CHECK(!copy_sample(c, number));
		else
			made_append(w, number);
		made_append(e, number);
	}
	copy_close(c);
	dataset_close(ds);
	CHECK(!writer_finish(&w) && !writer_finish(&e));
	check_same(expected, target);
}

static void a_damaged_sample_leaves_nothing(void)
{
	static const uint8_t far[8] = { 0, 0, 0, 0, 0, 1 };
	struct dataset *ds = open_file(whole);
	uint64_t record = ds->format.meta_off + 17 * ds->format.itemsize;
	struct writer *w = open_writer(target, SAMPLES);
	struct writer *e = open_writer(expected, SAMPLES - 1);
	struct copy *c;

	poke(whole, record + ds->format.fields[MADE_JSON].meta_off, far, 8);
	CHECK(!copy_open(w, &heard.log, &c) && !copy_from(c, ds, NULL));
	CHECK(copy_range(c, 0, SAMPLES) == -BETON_ECORRUPT);
	CHECK(heard.messages == 1 && strstr(heard.last, "sample 17 field"));
	CHECK(!copy_range(c, 18, SAMPLES - 18));
	copy_close(c);
	dataset_close(ds);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		if (i != 17)
			made_append(e, i);
	}
	CHECK(!writer_finish(&w) && !writer_finish(&e));
	check_same(expected, target);
	write_file(whole, 0, SAMPLES);
}

/* The file is cut off behind its JSON: its NUL would be another page's. */
static void a_text_must_end_in_its_page(void)
{
	struct dataset *ds = open_file(whole);
	uint64_t record = ds->format.meta_off + 3 * ds->format.itemsize;
	uint64_t last[2] = { ds->format.first_page + MADE_PAGE - 4, 5 };
	struct writer *w = open_writer(target, SAMPLES);
	struct copy *c;

	poke(whole, record + ds->format.fields[MADE_JSON].meta_off, last, 16);
	CHECK(!copy_open(w, &heard.log, &c) && !copy_from(c, ds, NULL));
	CHECK(copy_sample(c, 3) == -BETON_ECORRUPT);
	CHECK(heard.messages == 1 && strstr(heard.last, "does not end inside"));
	copy_close(c);
	dataset_close(ds);
	writer_abort(&w);
	write_file(whole, 0, SAMPLES);
}

static int add_five(void *arg, uint32_t field, uint64_t sample, int64_t *value)
{
	CHECK(arg == &heard && field == 1);
	if (sample == 8)
		return -ERANGE;
	*value += 5;
	return 0;
}

static void fields_may_be_chosen_and_integers_changed(void)
{
	const struct writer_field fields[] = { made_fields[MADE_JSON],
					       made_fields[MADE_INT] };
	const uint32_t from[] = { MADE_JSON, MADE_INT };
	const uint32_t wrong[] = { MADE_BYTES, MADE_INT };
	const uint32_t none[] = { MADE_JSON, MADE_FIELDS };
	struct dataset *ds = open_file(whole);
	struct writer *w;
	struct copy *c;
	struct value v;

	CHECK(!writer_open(target, fields, 2, 9, MADE_PAGE, &heard.log, &w));
	CHECK(!copy_open(w, &heard.log, &c));
	CHECK(copy_from(c, ds, wrong) == -EINVAL && heard.messages == 1);
	CHECK(strstr(heard.last, "field 'bytes' has bytes, but 'json'"));
	CHECK(copy_from(c, ds, none) == -EINVAL && heard.messages == 2);
	CHECK(!copy_from(c, ds, from));
	copy_change_integers(c, add_five, &heard);
	CHECK(copy_range(c, 0, 10) == -ERANGE && !copy_sample(c, 9));
	copy_close(c);
	dataset_close(ds);
	CHECK(!writer_finish(&w));
	ds = open_file(target);
	CHECK(ds->format.samples == 9);
	CHECK(!dataset_value_at(ds, 1, 7, &v) && load64(v.scalar) == 49);
	CHECK(!dataset_value_at(ds, 1, 8, &v) && load64(v.scalar) == 81);
	dataset_close(ds);
}

/* Only JPEGs need the allocation table, which is cut off. */
static void a_source_that_shrinks_ends_the_copy(void)
{
	const uint32_t from[] = { MADE_RAW };
	struct dataset *ds = open_file(whole);
	struct writer *w = NULL;
	struct copy *c;

	CHECK(!writer_open(target, &made_fields[MADE_RAW], 1, SAMPLES,
			   MADE_PAGE, &heard.log, &w));
	CHECK(!copy_open(w, &heard.log, &c) && !copy_from(c, ds, from));
	CHECK(!truncate(whole, (off_t)ds->format.first_page + MADE_PAGE));
	CHECK(copy_range(c, 0, SAMPLES) == -EIO);
	CHECK(copy_sample(c, 0) == -EIO);
	copy_close(c);
	dataset_close(ds);
	CHECK(writer_finish(&w) == -EIO);
	CHECK(strstr(heard.last, whole));
	write_file(whole, 0, SAMPLES);
}

int main(void)
{
	CHECK(mkdtemp(folder));
	log_init(&heard.log, on_log, &heard);
	snprintf(whole, sizeof(whole), "%s/whole", folder);
	snprintf(first, sizeof(first), "%s/first", folder);
	snprintf(second, sizeof(second), "%s/second", folder);
	snprintf(target, sizeof(target), "%s/target", folder);
	snprintf(expected, sizeof(expected), "%s/expected", folder);
	write_file(whole, 0, SAMPLES);
	write_file(first, 0, PART);
	write_file(second, PART, SAMPLES);

	a_copy_is_the_same_file();
	parts_become_the_whole();
	a_dataset_of_several_files_can_be_copied();
	any_order_is_as_if_appended();
	a_damaged_sample_leaves_nothing();
	a_text_must_end_in_its_page();
	fields_may_be_chosen_and_integers_changed();
	a_source_that_shrinks_ends_the_copy();

	unlink(whole);
	unlink(first);
	unlink(second);
	unlink(target);
	unlink(expected);
	CHECK(!rmdir(folder));
	log_fini(&heard.log);
	return 0;
}
