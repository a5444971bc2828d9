/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/alloc_table.h"
#include "fs/source/object/open.h"
#include "tests/unit/t.h"

/* The table of a sparse file: nothing before it takes any room. */
#define TABLE_OFF ((uint64_t)1 << 40)

static char path[] = "/tmp/test_alloc_table.XXXXXX";

struct table {
	struct source *source;
	struct format format;
	struct alloc *alloc;
};

static int table_open(struct table *t, const struct format_entry *entries,
		      size_t n, struct log *log)
{
	int fd = open(path, O_RDWR | O_TRUNC);
	size_t size = n * sizeof(*entries);

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)(TABLE_OFF + size)));
	CHECK(pwrite(fd, entries, size, (off_t)TABLE_OFF) == (ssize_t)size);
	close(fd);
	CHECK(!source_open(path, NULL, NULL, &t->source));
	t->format = (struct format){
		.table_off = TABLE_OFF,
		.file_size = TABLE_OFF + size,
		.table_entries = n,
		.sample_entries = 2,
	};
	t->alloc = NULL;
	return alloc_open(t->source, &t->format, 1, log, &t->alloc);
}

static void table_close(struct table *t)
{
	alloc_close(t->alloc);
	source_close(t->source);
}

static uint64_t size_at(const struct table *t, uint64_t off)
{
	uint64_t size = UINT64_MAX;
	int r = alloc_size(t->alloc, off, &size);

	CHECK(r == 0 || r == -ENOENT);
	return r ? UINT64_MAX : size;
}

static void an_empty_table_has_nothing(void)
{
	struct table t;

	CHECK(!table_open(&t, NULL, 0, NULL));
	CHECK(size_at(&t, 0) == UINT64_MAX);
	CHECK(size_at(&t, UINT64_MAX) == UINT64_MAX);
	table_close(&t);
	alloc_close(NULL);
}

/* Ten tables keep together what one may keep. */
static void tables_share_the_memory(void)
{
	enum { N = ALLOC_KEEP_BYTES / FORMAT_ENTRY_SIZE / 5 };
	static struct format_entry entries[N];
	struct table t;

	for (size_t i = 0; i < N; i++)
		entries[i] = (struct format_entry){ i, 64 * i, i };
	for (size_t tables = 1; tables <= 10; tables += 9) {
		CHECK(!table_open(&t, entries, N, NULL));
		alloc_close(t.alloc);
		CHECK(!alloc_open(t.source, &t.format, tables, NULL, &t.alloc));
		CHECK((alloc_reads(t.alloc) == 0) == (tables == 1));
		CHECK(size_at(&t, 64 * 77) == 77);
		table_close(&t);
	}
}

static void the_largest_entry_at_an_offset_counts(void)
{
	static const struct format_entry entries[] = {
		{ 0, 500, 9 },	      { 1, 100, 0 }, { 1, 100, 40 },
		{ 2, 140, 0 },	      { 2, 140, 0 }, { 3, 100, 7 },
		{ 4, UINT64_MAX, 1 },
	};
	struct table t;

	CHECK(!table_open(&t, entries, ARRAY_LEN(entries), NULL));
	CHECK(alloc_reads(t.alloc) == 0);
	CHECK(size_at(&t, 500) == 9);
	CHECK(size_at(&t, 100) == 40);
	CHECK(size_at(&t, 140) == 0);
	CHECK(size_at(&t, UINT64_MAX) == 1);
	CHECK(size_at(&t, 101) == UINT64_MAX);
	CHECK(size_at(&t, 0) == UINT64_MAX);
	table_close(&t);
}

/* --- tables too large to be kept --- */

enum { RUNS = 7, PER_RUN = 9001, ENTRIES = RUNS * PER_RUN };

/* Like several writers: pages of 100 values in turn, runs one after another. */
static void fill(struct format_entry *e)
{
	for (size_t i = 0; i < ENTRIES; i++) {
		size_t run = i / PER_RUN, k = i % PER_RUN;

		e[i] = (struct format_entry){
			.sample = i,
			.off = ((k / 100 * RUNS + run) * 100 + k % 100) * 64,
			.size = 1 + i % 60,
		};
	}
}

static void large_tables_find_their_entries(void)
{
	struct format_entry *e = calloc(ENTRIES, sizeof(*e));
	struct table t;

	CHECK(e);
	_Static_assert(ENTRIES * FORMAT_ENTRY_SIZE > ALLOC_KEEP_BYTES, "large");
	fill(e);
	CHECK(!table_open(&t, e, ENTRIES, NULL));
	CHECK(alloc_reads(t.alloc) == RUNS);
	for (size_t i = 0; i < ENTRIES; i += 5)
		CHECK(size_at(&t, e[i].off) == e[i].size);
	for (size_t i = 0; i < ENTRIES; i += 17)
		CHECK(size_at(&t, e[i].off + 1) == UINT64_MAX);
	table_close(&t);
	free(e);
}

/* Empty values share an offset: thousands of them across several strides. */
static void equal_offsets_may_fill_several_strides(void)
{
	struct format_entry *e = calloc(ENTRIES, sizeof(*e));
	struct table t;

	CHECK(e);
	for (size_t i = 0; i < ENTRIES; i++)
		e[i] = (struct format_entry){ i, i / 1000 * 64, 0 };
	/* The one that is not empty may be first, in the middle, or last. */
	e[0].size = 11;
	e[1500].size = 12;
	e[2999].size = 13;
	CHECK(!table_open(&t, e, ENTRIES, NULL));
	CHECK(size_at(&t, 0) == 11);
	CHECK(size_at(&t, 64) == 12);
	CHECK(size_at(&t, 128) == 13);
	CHECK(size_at(&t, 192) == 0);
	table_close(&t);
	free(e);
}

static void the_same_offset_in_two_runs_counts_once(void)
{
	struct format_entry *e = calloc(ENTRIES, sizeof(*e));
	struct table t;

	CHECK(e);
	fill(e);
	e[PER_RUN].off = e[10].off;
	e[PER_RUN].size = 1000;
	CHECK(!table_open(&t, e, ENTRIES, NULL));
	CHECK(size_at(&t, e[10].off) == 1000);
	table_close(&t);
	free(e);
}

/* Whichever run has it: the first, the last, or one between. */
static void the_largest_entry_of_all_runs_counts(void)
{
	struct format_entry *e = calloc(ENTRIES, sizeof(*e));
	struct table t;

	CHECK(e);
	for (size_t i = 0; i < ENTRIES; i++)
		e[i] = (struct format_entry){ i, i % PER_RUN * 64, 1 + i % 7 };
	for (size_t run = 0; run < RUNS; run++)
		e[run * PER_RUN + 100 + run].size = 50 + run;
	CHECK(!table_open(&t, e, ENTRIES, NULL));
	CHECK(alloc_reads(t.alloc) == RUNS);
	for (size_t run = 0; run < RUNS; run++)
		CHECK(size_at(&t, (100 + run) * 64) == 50 + run);
	table_close(&t);
	free(e);
}

struct heard {
	const char *word; /* of every line */
	unsigned lines;
};

static void hear(void *arg, enum beton_log_level level, const char *message)
{
	struct heard *heard = arg;

	(void)level;
	CHECK(strstr(message, path) && strstr(message, heard->word));
	heard->lines++;
}

static void check_refused(const struct format_entry *entries, size_t n,
			  const char *word)
{
	struct heard heard = { word, 0 };
	struct table t;
	struct log log;

	log_init(&log, hear, &heard);
	CHECK(table_open(&t, entries, n, &log) == -BETON_ECORRUPT);
	CHECK(heard.lines == 1);
	source_close(t.source);
	log_fini(&log);
}

/* Back to front. */
static struct format_entry *entries_without_order(size_t n)
{
	struct format_entry *e = calloc(n, sizeof(*e));

	CHECK(e);
	for (size_t i = 0; i < n; i++)
		e[i] = (struct format_entry){ i, (n - i) * 64, 1 + i % 60 };
	return e;
}

static void a_table_without_any_order_is_refused(void)
{
	enum { N = ALLOC_SORT_BYTES / FORMAT_ENTRY_SIZE + 1 };
	struct format_entry *e = entries_without_order(N);

	check_refused(e, N, "ascending runs");
	free(e);
}

static void a_smaller_one_is_sorted(void)
{
	struct format_entry *e = entries_without_order(ENTRIES);
	struct table t;

	CHECK(!table_open(&t, e, ENTRIES, NULL));
	CHECK(alloc_reads(t.alloc) == 0);
	for (size_t i = 0; i < ENTRIES; i += 5)
		CHECK(size_at(&t, e[i].off) == e[i].size);
	CHECK(size_at(&t, 65) == UINT64_MAX);
	table_close(&t);
	free(e);
}

static const struct source_ops *real_ops;
static unsigned reads;

static int count_read(struct source *source, void *buf, size_t size,
		      uint64_t off)
{
	reads++;
	return real_ops->read(source, buf, size, off);
}

/* However many entries share an offset. */
static void a_look_up_reads_one_stride_per_run(void)
{
	struct format_entry *e = calloc(ENTRIES, sizeof(*e));
	struct source_ops counting;
	struct table t;

	CHECK(e);
	for (size_t i = 0; i < ENTRIES; i++)
		e[i] = (struct format_entry){ i, i % PER_RUN < 300 ? 64 : 128,
					      i % PER_RUN == 5000 };
	CHECK(!table_open(&t, e, ENTRIES, NULL));
	CHECK(alloc_reads(t.alloc) == RUNS);
	real_ops = t.source->ops;
	counting = *real_ops;
	counting.read = count_read;
	t.source->ops = &counting;
	reads = 0;
	CHECK(size_at(&t, 64) == 0 && reads == 0);
	CHECK(size_at(&t, 65) == UINT64_MAX && reads == RUNS);
	CHECK(size_at(&t, 128) == 1 && reads == 2 * RUNS);
	t.source->ops = real_ops;
	table_close(&t);
	free(e);
}

static void a_sample_has_few_entries_in_succession(void)
{
	struct format_entry *e = calloc(ENTRIES, sizeof(*e));
	struct table t;

	CHECK(e);
	for (size_t i = 0; i < ENTRIES; i++)
		e[i] = (struct format_entry){ i / 2, i * 64, 64 };
	CHECK(!table_open(&t, e, ENTRIES, NULL));
	CHECK(size_at(&t, (uint64_t)64 * (ENTRIES - 1)) == 64);
	table_close(&t);
	e[ENTRIES / 2].sample = e[ENTRIES / 2 - 1].sample;
	e[ENTRIES / 2 + 1].sample = e[ENTRIES / 2].sample;
	check_refused(e, ENTRIES, "more than 2 entries of one sample");
	free(e);
}

/* As a sparse file has it: it is not read to its end. */
static void a_table_of_zeros_is_refused_at_once(void)
{
	const struct format format = {
		.table_off = TABLE_OFF,
		.file_size = TABLE_OFF + ((uint64_t)1 << 42),
		.table_entries = ((uint64_t)1 << 42) / FORMAT_ENTRY_SIZE,
		.sample_entries = FORMAT_FIELDS_MAX + FORMAT_CUSTOM_ENTRIES,
	};
	struct source *source;
	struct alloc *alloc;

	CHECK(!truncate(path, 0) && !truncate(path, (off_t)format.file_size));
	CHECK(!source_open(path, NULL, NULL, &source));
	CHECK(alloc_open(source, &format, 1, NULL, &alloc) == -BETON_ECORRUPT);
	source_close(source);
}

static void a_table_that_cannot_be_read_fails(void)
{
	static const struct format_entry entries[] = { { 0, 1, 2 } };
	struct table t;
	struct alloc *again;

	CHECK(!table_open(&t, entries, 1, NULL));
	CHECK(!truncate(path, (off_t)TABLE_OFF + 5));
	CHECK(alloc_open(t.source, &t.format, 1, NULL, &again) == -EIO);
	table_close(&t);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	an_empty_table_has_nothing();
	tables_share_the_memory();
	the_largest_entry_at_an_offset_counts();
	large_tables_find_their_entries();
	equal_offsets_may_fill_several_strides();
	the_same_offset_in_two_runs_counts_once();
	the_largest_entry_of_all_runs_counts();
	a_table_without_any_order_is_refused();
	a_smaller_one_is_sorted();
	a_look_up_reads_one_stride_per_run();
	a_sample_has_few_entries_in_succession();
	a_table_of_zeros_is_refused_at_once();
	a_table_that_cannot_be_read_fails();
	unlink(path);
	return 0;
}
