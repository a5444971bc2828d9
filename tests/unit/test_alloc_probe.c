/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/data/dataset/alloc_probe.h"
#include "fs/data/dataset/alloc_table.h"
#include "fs/source/object/open.h"
#include "fs/source/object/tables.h"
#include "tests/unit/far.h"

enum {
	LARGE = 1000000,
	QUIET = 20 * 1000 * 1000, /* ns */
	MIB = 1 << 20,
};

static char path[] = "/tmp/test_alloc_probe.XXXXXX";
static uint64_t seed;

static uint64_t draw(uint64_t n)
{
	return rng_mix(++seed) % n;
}

static void write_table(const struct format_entry *e, size_t n)
{
	cleanup_fd int fd = open(path, O_RDWR | O_TRUNC);
	size_t size = n * sizeof(*e);

	CHECK(fd >= 0 && write(fd, e, size) == (ssize_t)size);
}

static struct format format_of(size_t n)
{
	return (struct format){
		.file_size = n * FORMAT_ENTRY_SIZE,
		.table_entries = n,
		.sample_entries = 1000,
	};
}

/*
 * Like several writers: pages in turn, runs one after another. Some samples
 * have an empty value at the offset of the next one.
 */
static void fill(struct format_entry *e, size_t n, size_t runs)
{
	size_t per = (n + runs - 1) / runs, k, run;
	uint64_t size;

	for (size_t i = 0; i < n; i++) {
		run = i / per;
		k = i % per;
		size = rng_mix(i) % 7 ? 1 + rng_mix(i) % 60 : 0;
		e[i] = (struct format_entry){
			.sample = i,
			.off = ((k / 100 * runs + run) * 100 + k % 100) * 64 +
			       (size ? 0 : 64),
			.size = size,
		};
	}
}

struct table {
	struct source *source;
	struct format format;
	struct alloc *alloc;
};

static void table_open(struct table *t, const struct format_entry *e, size_t n)
{
	write_table(e, n);
	t->format = format_of(n);
	CHECK(!source_open(path, NULL, NULL, &t->source));
	CHECK(!alloc_open(t->source, &t->format, 1, NULL, &t->alloc));
}

static void table_close(struct table *t)
{
	alloc_close(t->alloc);
	source_close(t->source);
}

/* Returns whether the entry is found. Then the whole table has the same size.
 */
static bool is_found(const struct table *t, const struct format_entry *e)
{
	uint64_t size = 77, whole;
	int r = alloc_probe(t->source, &t->format, e->sample, e->off, &size);

	CHECK(!r || r == -ENOENT);
	CHECK(r || (!alloc_size(t->alloc, e->off, &whole) && whole == size));
	return !r;
}

static void sound_tables_have_every_entry(size_t n, size_t runs)
{
	struct format_entry *e = calloc(n, sizeof(*e)), none;
	struct table t;

	CHECK(e);
	fill(e, n, runs);
	table_open(&t, e, n);
	for (size_t i = 0; i < n; i += 1 + n / 500)
		CHECK(is_found(&t, &e[i]) == (e[i].size > 0));
	CHECK(is_found(&t, &e[n - 1]) == (e[n - 1].size > 0));
	for (size_t i = 0; i < n; i += 1 + n / 50) {
		none = e[i];
		none.off++;
		CHECK(!is_found(&t, &none));
		none.off = e[i].off;
		none.sample += 2;
		CHECK(!is_found(&t, &none));
	}
	table_close(&t);
	free(e);
}

/* The offsets stay different, whatever else is damaged. */
static void damage(struct format_entry *e, size_t n)
{
	struct format_entry *a, *b, swapped;

	for (uint64_t k = draw(n / 4); k; k--) {
		a = &e[draw(n)];
		b = &e[draw(n)];
		swapped = *a;
		*a = *b;
		*b = swapped;
		if (!draw(4) && a->size)
			a->size = rng_mix(k) >> draw(64);
		if (!draw(4))
			a->sample = draw(n);
		if (!draw(8))
			a->off = UINT64_MAX - 64 * ++seed;
	}
}

static void damaged_tables_have_no_other_answer(void)
{
	enum { N = 5000 };
	struct format_entry *e = calloc(N, sizeof(*e));
	struct table t;
	size_t n;

	CHECK(e);
	for (int i = 0; i < 60; i++) {
		n = 1 + draw(N);
		fill(e, n, 1 + draw(40));
		damage(e, n);
		table_open(&t, e, n);
		for (int k = 0; k < 200; k++)
			is_found(&t, &e[draw(n)]);
		table_close(&t);
	}
	free(e);
}

/* Any bytes, with offsets so close that many are equal or overlap. */
static void random_tables_do_no_harm(void)
{
	enum { N = 9000 };
	struct format_entry *e = calloc(N, sizeof(*e));
	struct format format = format_of(N);
	struct source *source;
	uint64_t size;
	int r;

	CHECK(e);
	for (int i = 0; i < 20; i++) {
		for (size_t k = 0; k < N; k++)
			e[k] = (struct format_entry){ draw(9), draw(100),
						      rng_mix(k) >> draw(64) };
		write_table(e, N);
		CHECK(!source_open(path, NULL, NULL, &source));
		for (int k = 0; k < 100; k++) {
			r = alloc_probe(source, &format, draw(9), draw(110),
					&size);
			CHECK(!r || r == -ENOENT);
		}
		source_close(source);
	}
	free(e);
}

/* Two entries side by side claim the same bytes. */
static void neighbors_that_overlap_need_the_whole_table(void)
{
	struct format_entry e[] = {
		{ 0, 100, 50 }, { 1, 150, 50 }, { 2, 190, 50 },
		{ 3, 190, 7 },	{ 4, 300, 10 }, { 5, 310, 1 },
	};
	struct table t;

	table_open(&t, e, ARRAY_LEN(e));
	CHECK(is_found(&t, &e[0]) && is_found(&t, &e[5]));
	CHECK(!is_found(&t, &e[1]));
	CHECK(!is_found(&t, &e[2]) && !is_found(&t, &e[3]));
	table_close(&t);
}

static void an_empty_table_has_nothing(void)
{
	struct format format = format_of(0);
	uint64_t size;

	CHECK(alloc_probe(NULL, &format, 0, 0, &size) == -ENOENT);
}

static void few_round_trips_suffice(size_t runs, unsigned most)
{
	const struct source_range range = { 0, LARGE * FORMAT_ENTRY_SIZE };
	struct far_counts counts = { .quiet_ns = QUIET };
	struct format_entry *e = calloc(LARGE, sizeof(*e));
	struct format format = format_of(LARGE);
	struct source *file, *s;
	uint64_t size, i = LARGE / 3;

	CHECK(e);
	fill(e, LARGE, runs);
	while (!e[i].size)
		i++;
	write_table(e, LARGE);
	CHECK(!source_open(path, NULL, NULL, &file));
	CHECK(!tables_open(far_open(file, &counts), 64 * MIB, NULL, &s));
	source_note_tables(s, &range, 1);
	CHECK(!alloc_probe(s, &format, i, e[i].off, &size));
	CHECK(size == e[i].size);
	CHECK(far_waves(&counts) <= most);
	source_close(s);
	free(e);
}

int main(void)
{
	CHECK(close(mkstemp(path)) == 0);
	an_empty_table_has_nothing();
	neighbors_that_overlap_need_the_whole_table();
	for (size_t n = 1; n < 40000; n = n * 3 + 1)
		sound_tables_have_every_entry(n, 1);
	sound_tables_have_every_entry(60000, 4);
	sound_tables_have_every_entry(60000, 16);
	sound_tables_have_every_entry(300000, 12);
	damaged_tables_have_no_other_answer();
	random_tables_do_no_harm();
	few_round_trips_suffice(1, 3);
	few_round_trips_suffice(16, 4);
	unlink(path);
	return 0;
}
