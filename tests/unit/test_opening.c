/* SPDX-License-Identifier: Apache-2.0 */
/* How often a reader of a remote dataset waits for the link. */
#include "fs/base/memory/budget.h"
#include "fs/base/util/rng.h"
#include "fs/data/dataset/group.h"
#include "fs/data/dataset/value.h"
#include "fs/data/engine/batch.h"
#include "fs/data/engine/engine.h"
#include "fs/source/object/open.h"
#include "fs/source/object/tables.h"
#include "tests/unit/far.h"
#include "tests/unit/made.h"

enum {
	SAMPLES = 20000,
	SOME = 30, /* samples whose blocks fit into the least memory */
	QUIET = 20 * 1000 * 1000, /* ns */
	MIB = 1 << 20,
};

static char path[] = "/tmp/test_opening.XXXXXX";

static struct dataset *open_far(struct far_counts *counts, uint64_t memory)
{
	struct source *file, *s;
	struct dataset *ds;

	CHECK(!source_open(path, NULL, NULL, &file));
	CHECK(!tables_open(far_open(file, counts), memory, NULL, &s));
	CHECK(!dataset_open_source(s, NULL, &ds));
	return ds;
}

/* The head, then all the rest. */
static void opening_waits_twice(void)
{
	struct far_counts counts = { .quiet_ns = QUIET };
	struct dataset *ds = open_far(&counts, 64 * MIB), *same;

	CHECK(counts.waves == 2);
	CHECK(counts.bytes <= 64 << 10);
	CHECK(!dataset_open(path, NULL, NULL, &same));
	CHECK(!memcmp(ds->fingerprint, same->fingerprint,
		      sizeof(ds->fingerprint)));
	dataset_close(same);
	dataset_close(ds);
}

/* The size of a JPEG takes some entries of the allocation table. */
static void one_sample_waits_once_or_twice(void)
{
	struct far_counts counts = { .quiet_ns = QUIET };
	struct dataset *ds = open_far(&counts, 64 * MIB);
	struct value v;

	CHECK(!dataset_value_at(ds, MADE_BYTES, 0, &v));
	CHECK(counts.waves == 2);
	CHECK(!dataset_value_at(ds, MADE_BYTES, SAMPLES / 3, &v));
	CHECK(counts.waves <= 3);
	CHECK(!dataset_value_at(ds, MADE_JPG, SAMPLES / 3, &v));
	CHECK(counts.waves <= 5);
	dataset_close(ds);
}

/* Then the whole allocation table is read: many more look-ups are likely. */
static void the_first_sizes_need_a_part_of_the_table(void)
{
	struct far_counts counts = { .quiet_ns = 1 };
	struct dataset *ds = open_far(&counts, 0);
	struct value v;

	for (uint64_t i = 0; i < SAMPLES; i += SAMPLES / 20) {
		CHECK((ds->alloc != NULL) == (i / (SAMPLES / 20) > 8));
		CHECK(!dataset_value_at(ds, MADE_JPG, i, &v));
		CHECK(v.size == made_size(MADE_JPG, i));
	}
	dataset_close(ds);
}

/* More tables than memory: records, then sizes. */
static void many_samples_wait_as_often_as_one(void)
{
	struct far_counts counts = { .quiet_ns = QUIET };
	struct dataset *ds = open_far(&counts, 0);
	cleanup_free uint8_t *record = malloc(ds->format.itemsize);
	uint64_t samples[SOME];
	struct value v;
	size_t reads;
	unsigned before;

	CHECK(!dataset_size_reads(ds, &reads) && reads);
	before = counts.waves;
	for (int i = 0; i < SOME; i++)
		samples[i] = rng_mix((uint64_t)i) % SAMPLES;
	dataset_prefetch(ds, samples, SOME);
	for (int i = 0; i < SOME; i++) {
		CHECK(!dataset_records(ds, samples[i], 1, record));
		CHECK(!dataset_value(ds, MADE_JPG, samples[i], record, &v));
		CHECK(v.size == made_size(MADE_JPG, samples[i]));
	}
	CHECK(counts.waves - before <= 2);
	dataset_close(ds);
}

static void grouping_waits_a_few_times(uint64_t memory)
{
	struct far_counts counts = { .quiet_ns = QUIET };
	struct dataset *ds = open_far(&counts, memory);
	unsigned before = counts.waves;
	struct group *g;

	CHECK(!group_open(ds, MADE_INT, &g));
	CHECK(g->num == SAMPLES);
	CHECK(counts.waves - before <= 3);
	group_close(g);
	dataset_close(ds);
}

/* The plan requests the records of more samples than it examines in a row. */
static void the_plan_requests_many_records_at_once(void)
{
	struct far_counts counts = { .quiet_ns = QUIET };
	struct dataset *ds = open_far(&counts, 0);
	const struct spec spec = { .order = BETON_ORDER_RANDOM,
				   .batch = 4,
				   .end = SAMPLES };
	const struct engine_options options = {
		.threads = 1,
		.choice = { .mode = CACHE_PROCESS, .cache_size = 64 * MIB },
		.datasets = &ds,
		.num_datasets = 1,
	};
	struct budget_stats budget;
	struct engine *engine;
	struct stream *stream;
	struct slot *slot;
	struct batch *b;

	counts.head = ds->format.first_page;
	CHECK(!engine_open(&options, &engine) && !engine_start(engine));
	engine_budget_stats(engine, &budget);
	CHECK(budget.used[BUDGET_REMOTE] == dataset_memory(ds));
	CHECK(budget.used[BUDGET_REMOTE] > 3 * MIB);
	CHECK(!stream_open(engine, ds, &spec, 0, &stream));
	for (uint64_t i = 0; i < 6; i++) {
		stream_note(stream, i);
		CHECK(!stream_batch(stream, i, true, &b));
		CHECK(!stream_slot(stream, b, &slot));
		slot_put(&slot);
		batch_put(&b);
	}
	usleep(10 * QUIET / 1000);
	stream_close(stream);
	engine_close(engine);
	CHECK(counts.largest_of_head > 30);
	dataset_close(ds);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !close(fd));
	made_write(path, SAMPLES);
	opening_waits_twice();
	one_sample_waits_once_or_twice();
	the_first_sizes_need_a_part_of_the_table();
	many_samples_wait_as_often_as_one();
	grouping_waits_a_few_times(0);
	grouping_waits_a_few_times(64 * MIB);
	the_plan_requests_many_records_at_once();
	unlink(path);
	return 0;
}
