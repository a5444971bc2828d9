/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/source/object/ahead.h"
#include "fs/source/object/open.h"
#include "fs/source/object/tables.h"
#include "tests/unit/far.h"

enum {
	KIB = 1 << 10,
	MIB = 1 << 20,
	SIZE = 24 * MIB + 1234,
	QUIET = 10 * 1000 * 1000, /* ns */
};

static char path[] = "/tmp/test_tables.XXXXXX";
static uint8_t *bytes; /* of the file */

static void write_bytes(void)
{
	cleanup_fd int fd = mkstemp(path);

	bytes = malloc(SIZE);
	CHECK(fd >= 0 && bytes);
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)rng_mix(i);
	CHECK(write(fd, bytes, SIZE) == SIZE);
}

static struct source *open_tables(struct far_counts *counts, uint64_t memory)
{
	struct source *file, *s;

	CHECK(!source_open(path, NULL, NULL, &file));
	CHECK(!tables_open(far_open(file, counts), memory, NULL, &s));
	return s;
}

/* Reads, compares, and returns the number of waves. */
static unsigned waves_of_read(struct source *s, struct far_counts *counts,
			      uint64_t off, size_t size)
{
	cleanup_free uint8_t *buf = malloc(size);
	unsigned before = far_waves(counts);

	CHECK(buf && !source_read(s, buf, size, off));
	CHECK(!memcmp(buf, bytes + off, size));
	return far_waves(counts) - before;
}

static void wait_for_background(struct source *s, uint64_t least)
{
	struct tables_stats stats;
	int64_t end = clock_ns() + 10 * 1000000000LL;

	do {
		usleep(1000);
		CHECK(tables_stats(s, &stats) && clock_ns() < end);
	} while (stats.bytes < least);
}

static void scans_are_recognized(void)
{
	struct ahead a = { .clock = 0 };
	uint64_t from, to;

	CHECK(!ahead_note(&a, 1000, 100, 1 << 20, 1 << 16, &from, &to));
	CHECK(from == to);
	CHECK(!ahead_note(&a, 500000, 100, 1 << 20, 1 << 16, &from, &to));
	CHECK(ahead_note(&a, 1100, 100, 1 << 20, 1 << 16, &from, &to));
	CHECK(from == 1200 && to == 1400);
	CHECK(ahead_note(&a, 1200, 150, 1 << 20, 1 << 16, &from, &to));
	CHECK(from == 1400 && to == 1750);
	/* Enough is requested. */
	CHECK(ahead_note(&a, 1350, 10, 1 << 20, 1 << 16, &from, &to));
	CHECK(from == to);
	for (uint64_t at = 1360; at + 1000 <= 1 << 20; at += 1000) {
		CHECK(ahead_note(&a, at, 1000, 1 << 20, 1 << 16, &from, &to));
		CHECK(from <= to && to <= 1 << 20);
		CHECK(to <= max_u64(from, at + 1000 + (1 << 16)));
	}
}

static void a_block_is_read_once(void)
{
	struct far_counts counts = { .quiet_ns = QUIET };
	struct source *s = open_tables(&counts, 0);

	CHECK(waves_of_read(s, &counts, 5000, 100) == 1);
	CHECK(waves_of_read(s, &counts, 4097, 1000) == 0);
	CHECK(waves_of_read(s, &counts, SIZE - 10, 10) == 1);
	CHECK(counts.requests == 2);
	source_close(s);
}

static void prefetched_blocks_arrive_together(void)
{
	struct far_counts counts = { .quiet_ns = QUIET };
	struct source *s = open_tables(&counts, 0);

	for (uint64_t i = 0; i < 100; i++)
		source_prefetch(s, i * 200000, 32);
	source_prefetch(s, SIZE - 1, UINT64_MAX);
	source_prefetch(s, UINT64_MAX, 1);
	for (uint64_t i = 0; i < 100; i++)
		waves_of_read(s, &counts, i * 200000, 32);
	CHECK(counts.waves == 1 && counts.requests == 101);
	source_close(s);
}

static void the_end_is_an_error(void)
{
	struct far_counts counts = { .quiet_ns = 1 };
	struct source *s = open_tables(&counts, 0);
	uint8_t buf[16];

	CHECK(source_read(s, buf, 16, SIZE - 15) == -EIO);
	CHECK(source_read(s, buf, 1, UINT64_MAX - 3) == -EIO);
	source_close(s);
}

static void a_failed_block_is_requested_again(void)
{
	struct far_counts counts = { .quiet_ns = 1, .fail = 1 };
	struct source *s = open_tables(&counts, 0);
	uint8_t buf[16];

	CHECK(source_read(s, buf, 16, 100) == -EIO);
	CHECK(source_read(s, buf, 16, 100) == -EIO);
	counts.fail = 0;
	CHECK(waves_of_read(s, &counts, 100, 16) == 1);
	source_close(s);
}

static void *read_second_piece(void *source)
{
	uint8_t buf[16];

	CHECK(!source_read(source, buf, 16, 700 * KIB));
	CHECK(!memcmp(buf, bytes + 700 * KIB, 16));
	return NULL;
}

static void piece_done(struct source_request *q, int result)
{
	CHECK(!result && !memcmp(q->buf, bytes + q->off, q->size));
	source_wait_done(q->arg);
}

static void *ask_second_piece(void *source)
{
	struct source_wait wait;
	uint8_t buf[16];
	struct source_request q = { .buf = buf,
				    .size = 16,
				    .off = 700 * KIB,
				    .done = piece_done,
				    .arg = &wait };

	source_wait_init(&wait);
	source_wait_add(&wait);
	source_submit(source, &q);
	source_wait_idle(&wait);
	source_wait_fini(&wait);
	return NULL;
}

static void wait_for_waits(struct source *s, uint64_t n)
{
	struct tables_stats stats;

	do {
		usleep(1000);
		CHECK(tables_stats(s, &stats));
	} while (stats.waits < n);
}

/* The second request fails, and the third is the one of the reader. */
static void a_reader_outlives_a_failure_in_the_background(bool is_async)
{
	struct far_counts counts = { .quiet_ns = 1, .fail = 2, .is_shut = 1 };
	const struct source_range table = { 0, MIB };
	struct source *s = open_tables(&counts, 8 * MIB);
	pthread_t thread;

	if (is_async)
		source_note_tables(s, &table, 1);
	source_prefetch(s, 0, MIB);
	CHECK(!thread_start(
		&thread, is_async ? ask_second_piece : read_second_piece, s));
	wait_for_waits(s, 1);
	pthread_mutex_lock(&counts.lock);
	counts.is_shut = false;
	pthread_mutex_unlock(&counts.lock);
	pthread_join(thread, NULL);
	source_close(s);
}

static void a_scan_runs_ahead(void)
{
	struct far_counts counts = { .quiet_ns = QUIET };
	struct source *s = open_tables(&counts, 64 * MIB);
	unsigned waves = 0;

	for (uint64_t at = 0; at + 64 * KIB <= SIZE; at += 64 * KIB)
		waves += waves_of_read(s, &counts, at, 64 * KIB);
	/* 385 reads; each wait doubles the window. */
	CHECK(waves <= 12);
	source_close(s);
}

/* A large read of a table is one wave, and a scan of tables stays in memory. */
static void tables_stay_and_pages_do_not_drop_them(void)
{
	const struct source_range table = { 100, 2 * MIB };
	struct far_counts counts = { .quiet_ns = QUIET };
	struct source *s = open_tables(&counts, 4 * MIB);
	unsigned requests;

	source_note_tables(s, &table, 1);
	CHECK(waves_of_read(s, &counts, 100, 2 * MIB) == 1);
	for (uint64_t at = 3 * MIB; at < 20 * MIB; at += 100000)
		waves_of_read(s, &counts, at, 100000);
	requests = counts.requests;
	CHECK(waves_of_read(s, &counts, 100, 2 * MIB) == 0);
	CHECK(counts.requests == requests);
	source_close(s);
}

/* Values in pages are read to the byte. */
static void other_reads_pass_through(void)
{
	const struct source_range table = { 0, 64 * KIB };
	struct far_counts counts = { .quiet_ns = 1 };
	struct source *s = open_tables(&counts, 0);
	uint64_t before;

	source_note_tables(s, &table, 1);
	before = counts.bytes;
	waves_of_read(s, &counts, 5 * MIB + 3, 70001);
	CHECK(counts.bytes - before == 70001);
	/* A large one is several requests of one wave. */
	counts.quiet_ns = QUIET;
	CHECK(waves_of_read(s, &counts, 8 * MIB + 3, 7 * MIB) == 1);
	CHECK(counts.bytes - before == 70001 + 7 * MIB);
	source_close(s);
}

static void whole_tables_follow_the_first_read(void)
{
	const struct source_range tables[] = { { 7 * MIB + 9, 3 * MIB },
					       { 12 * MIB, 5 * MIB } };
	struct far_counts counts = { .quiet_ns = 1 };
	struct source *s = open_tables(&counts, 16 * MIB);
	unsigned requests;

	source_note_tables(s, tables, 2);
	waves_of_read(s, &counts, 12 * MIB, 24);
	wait_for_background(s, 8 * MIB);
	waves_of_read(s, &counts, 12 * MIB, 5 * MIB);
	requests = counts.requests;
	for (uint64_t i = 0; i < 3 * MIB; i += 10007)
		waves_of_read(s, &counts, 7 * MIB + 9 + i, 7);
	CHECK(counts.requests == requests);
	source_close(s);
}

static void too_large_tables_are_read_in_groups(void)
{
	const struct source_range table = { 0, 20 * MIB };
	struct far_counts counts = { .quiet_ns = 1 };
	struct source *s = open_tables(&counts, 4 * MIB);
	struct tables_stats stats;

	source_note_tables(s, &table, 1);
	for (uint64_t i = 0; i < 500; i++)
		waves_of_read(s, &counts, rng_mix(i) % (20 * MIB - 32), 32);
	CHECK(counts.bytes <= 502 * 64 * KIB);
	CHECK(tables_stats(s, &stats));
	CHECK(stats.limit <= 4 * MIB && stats.bytes <= stats.limit);
	source_close(s);
}

static void small_tables_count_as_they_are(void)
{
	const struct source_range table = { 10 * MIB, 100 * KIB };
	struct far_counts counts = { .quiet_ns = 1 };
	struct source *s = open_tables(&counts, 64 * MIB);
	struct tables_stats stats;

	source_note_tables(s, &table, 1);
	CHECK(tables_stats(s, &stats));
	CHECK(stats.limit >= 100 * KIB && stats.limit < 22 * MIB);
	for (uint64_t i = 0; i < 100; i++)
		waves_of_read(s, &counts, 10 * MIB + i * KIB, KIB);
	CHECK(tables_stats(s, &stats) && stats.bytes <= stats.limit);
	source_close(s);
}

static void stored_bytes_are_not_requested(void)
{
	struct far_counts counts = { .quiet_ns = 1 };
	struct source *s = open_tables(&counts, 0);

	tables_store(s, bytes, MIB + 5, 0);
	CHECK(waves_of_read(s, &counts, 0, MIB) == 0);
	CHECK(waves_of_read(s, &counts, MIB, 5) == 1);
	source_close(s);
	s = open_tables(&counts, 0);
	tables_store(s, bytes + 24 * MIB, 1234, 24 * MIB);
	CHECK(waves_of_read(s, &counts, 24 * MIB, 1234) == 0);
	source_close(s);
}

static void closing_ends_everything(void)
{
	const struct source_range table = { 0, 20 * MIB };
	struct far_counts counts = { .quiet_ns = 1, .is_shut = true };
	struct source *s = open_tables(&counts, 64 * MIB);

	source_note_tables(s, &table, 1);
	for (uint64_t i = 0; i < 100; i++)
		source_prefetch(s, i * 100000, 100);
	source_close(s);
}

/* --- many threads --- */

enum { THREADS = 6, STEPS = 400, LARGEST = 300 * KIB };

struct step {
	struct source_wait wait;
	struct source_request request;
	int result;
};

static void step_done(struct source_request *q, int result)
{
	struct step *step = q->arg;

	step->result = result;
	source_wait_done(&step->wait);
}

struct worker {
	struct source *source;
	uint64_t seed;
	bool may_fail;
	pthread_t thread;
};

static uint64_t draw(struct worker *w, uint64_t n)
{
	return rng_mix(++w->seed) % n;
}

static void check_result(const struct worker *w, const uint8_t *buf,
			 uint64_t off, size_t size, int r)
{
	CHECK(!r || r == -ECANCELED || (w->may_fail && r == -EIO));
	CHECK(r || !memcmp(buf, bytes + off, size));
}

static void submit_step(struct worker *w, uint8_t *buf, uint64_t off,
			size_t size)
{
	struct step step = { .request = { .size = size,
					  .off = off,
					  .direct = draw(w, 2),
					  .done = step_done,
					  .arg = &step } };
	const struct iovec iov[] = { { buf, size / 3 },
				     { buf + size / 3, size - size / 3 } };

	if (draw(w, 2)) {
		step.request.iov = iov;
		step.request.iovcnt = 2;
	} else {
		step.request.buf = buf;
	}
	source_wait_init(&step.wait);
	source_wait_add(&step.wait);
	source_submit(w->source, &step.request);
	if (!draw(w, 3))
		source_cancel(w->source, &step.request);
	source_wait_idle(&step.wait);
	source_wait_fini(&step.wait);
	check_result(w, buf, off, size, step.result);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	cleanup_free uint8_t *buf = malloc(LARGEST);
	uint64_t off = 0;
	size_t size;

	CHECK(buf);
	for (int i = 0; i < STEPS; i++) {
		size = 1 + draw(w, draw(w, 4) ? 5000 : LARGEST);
		if (draw(w, 3) || off + size > SIZE)
			off = draw(w, SIZE - size);
		switch (draw(w, 4)) {
		case 0:
			source_prefetch(w->source, off, draw(w, LARGEST));
			break;
		case 1:
			submit_step(w, buf, off, size);
			break;
		default:
			check_result(w, buf, off, size,
				     source_read(w->source, buf, size, off));
		}
		off += size;
	}
	return NULL;
}

static void threads_read_the_bytes_of_the_file(unsigned fail, uint64_t memory)
{
	const struct source_range tables[] = { { 5000, 3 * MIB },
					       { 20 * MIB, 2 * MIB } };
	struct far_counts counts = { .quiet_ns = 1, .fail = fail };
	struct source *s = open_tables(&counts, memory);
	struct worker workers[THREADS];
	struct tables_stats stats;

	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ s, i << 32 | fail, fail > 0, 0 };
		CHECK(!thread_start(&workers[i].thread, work, &workers[i]));
		if (i == 2)
			source_note_tables(s, tables, 2);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	CHECK(tables_stats(s, &stats) && stats.bytes <= stats.limit + MIB);
	source_close(s);
}

int main(void)
{
	write_bytes();
	scans_are_recognized();
	a_block_is_read_once();
	prefetched_blocks_arrive_together();
	the_end_is_an_error();
	a_failed_block_is_requested_again();
	a_reader_outlives_a_failure_in_the_background(false);
	a_reader_outlives_a_failure_in_the_background(true);
	a_scan_runs_ahead();
	tables_stay_and_pages_do_not_drop_them();
	other_reads_pass_through();
	whole_tables_follow_the_first_read();
	too_large_tables_are_read_in_groups();
	small_tables_count_as_they_are();
	stored_bytes_are_not_requested();
	closing_ends_everything();
	threads_read_the_bytes_of_the_file(0, 0);
	threads_read_the_bytes_of_the_file(0, 64 * MIB);
	threads_read_the_bytes_of_the_file(17, 8 * MIB);
	free(bytes);
	unlink(path);
	return 0;
}
