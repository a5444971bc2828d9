/* SPDX-License-Identifier: Apache-2.0 */
/* The page cache together with the plan that decides what it evicts. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/order/order.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/value.h"
#include "fs/data/engine/plan.h"
#include "tests/unit/made.h"

enum {
	SAMPLES = 600,
	MEAN = 20000,
	BATCH = 10,
	BATCHES = SAMPLES / BATCH,
	EPOCHS = 4,
	FRAME = 4096,
	LIMIT = 4 << 20, /* a third of the dataset */
};

/* The clock, so many seconds later. */
static _Atomic time_t later_s;

int clock_gettime(clockid_t clock, struct timespec *t)
{
	long r = syscall(SYS_clock_gettime, clock, t);

	t->tv_sec += atomic_load(&later_s);
	return (int)r;
}

static const struct writer_field fields[] = {
	{ .name = "id", .type = BETON_TYPE_INT },
	{ .name = "bytes", .type = BETON_TYPE_BYTES },
};

static uint64_t size_of(uint64_t sample)
{
	return MEAN / 2 + sample * 7919 % MEAN;
}

static uint8_t byte_of(uint64_t sample, uint64_t i)
{
	return (uint8_t)(sample * 131 + i * 29 + (i >> 8) * 7);
}

static struct dataset *open_dataset(void)
{
	char path[] = "/tmp/beton_unit.XXXXXX";
	static uint8_t bytes[2 * MEAN];
	struct writer_value v[2];
	struct dataset *ds;
	struct writer *w;
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	CHECK(!writer_open(path, fields, 2, SAMPLES, 2 << 20, NULL, &w));
	for (uint64_t i = 0; i < SAMPLES; i++) {
		memset(v, 0, sizeof(v));
		v[0].integer = (int64_t)i;
		v[1].bytes = bytes;
		v[1].size = size_of(i);
		for (uint64_t k = 0; k < v[1].size; k++)
			bytes[k] = byte_of(i, k);
		CHECK(!writer_append(w, v));
	}
	CHECK(!writer_finish(&w));
	CHECK(!dataset_open(path, NULL, NULL, &ds));
	unlink(path);
	return ds;
}

struct fixture {
	struct dataset *ds;
	struct plan *plan;
	struct cache *cache;
	struct cache_file *file;
	struct spec spec;
};

static void set_up(struct fixture *f, enum beton_order order, uint64_t cold,
		   bool ahead)
{
	f->ds = open_dataset();
	f->spec = (struct spec){
		.order = order,
		.batch = BATCH,
		.drop_last = 1,
		.end = SAMPLES,
		.block = order == BETON_ORDER_QUASI_RANDOM ? 8 : 0,
		.window = order == BETON_ORDER_QUASI_RANDOM ? 100 : 0,
	};
	CHECK(!plan_open(1 << 20, &f->plan));
	CHECK(!cache_open(&(struct cache_options){ .limit = LIMIT,
						   .cold = cold,
						   .next_use = plan_next_use,
						   .read_done = plan_read_done,
						   .wasted = plan_wasted,
						   .arg = f->plan },
			  &f->cache));
	CHECK(!cache_add(f->cache, f->ds));
	f->file = (struct cache_file *)f->ds->payloads;
	CHECK(f->file->per == 1);
	plan_set_room(f->plan, LIMIT);
	if (ahead)
		CHECK(!plan_start(f->plan, f->cache, LIMIT));
}

static void tear_down(struct fixture *f)
{
	plan_stop(f->plan);
	cache_close(f->cache);
	plan_close(f->plan);
	dataset_close(f->ds);
}

static void check_batch(const struct batch *b, const uint8_t *bytes)
{
	const struct batch_column *c = &b->columns[1];

	for (uint32_t row = 0; row < b->samples; row++) {
		const struct beton_batch_value *v = &c->values[row];

		CHECK(v->size == size_of(b->ids[row]));
		for (uint64_t k = 0; k < v->size; k++)
			CHECK(bytes[v->offset + k] == byte_of(b->ids[row], k));
	}
}

static void read_as(struct fixture *f, const struct spec *spec, uint64_t epoch,
		    uint64_t number, const struct batch_share *share)
{
	const struct batch_key key = { f->ds, spec, epoch, number };
	struct batch *b;
	uint8_t *bytes;
	bool failed;

	plan_note(f->plan, &key, share, NULL, 0);
	CHECK(!batch_open(&key, NULL, &b));
	plan_fetch(f->plan, b);
	bytes = malloc(b->vfile.size);
	CHECK(bytes && !batch_collate(b, NULL, bytes, &failed) && !failed);
	check_batch(b, bytes);
	plan_done(f->plan, b);
	free(bytes);
	batch_put(&b);
}

static void read_batch(struct fixture *f, const struct spec *spec,
		       uint64_t epoch, uint64_t number)
{
	read_as(f, spec, epoch, number, NULL);
}

static void read_epochs(struct fixture *f)
{
	for (uint64_t e = 0; e < EPOCHS; e++) {
		for (uint64_t b = 0; b < BATCHES; b++)
			read_batch(f, &f->spec, e, b);
	}
}

static uint64_t frames_of(const struct fixture *f, uint64_t sample)
{
	struct value v;

	CHECK(!dataset_value_at(f->ds, 1, sample, &v));
	return (v.off + v.size + FRAME - 1) / FRAME - v.off / FRAME;
}

/* --- an optimal cache, simulated --- */

/* When a sample is used next after position `at` of all epochs. */
static uint64_t use_after(const struct order *orders, uint64_t sample,
			  uint64_t at)
{
	for (uint64_t e = at / SAMPLES; e < EPOCHS + 2; e++) {
		uint64_t use =
			e * SAMPLES + order_position(&orders[e], sample, 0);

		if (use > at)
			return use;
	}
	return UINT64_MAX;
}

/* Bytes that Belady's algorithm reads with so many frames. */
static uint64_t belady(const struct fixture *f, uint64_t frames)
{
	static uint64_t held[SAMPLES]; /* frames of a sample that is there */
	struct order orders[EPOCHS + 3];
	uint64_t used = 0, bytes = 0, worst, latest, s, use;

	for (uint64_t e = 0; e < EPOCHS + 3; e++)
		orders[e] = order_init(&f->spec, e);
	memset(held, 0, sizeof(held));
	for (uint64_t at = 0; at < EPOCHS * SAMPLES; at++) {
		s = order_sample(&orders[at / SAMPLES], at % SAMPLES);
		if (held[s])
			continue;
		held[s] = frames_of(f, s);
		used += held[s];
		bytes += held[s] * FRAME;
		for (; used > frames; used -= held[worst], held[worst] = 0) {
			worst = latest = 0;
			for (uint64_t i = 0; i < SAMPLES; i++) {
				use = held[i] ? use_after(orders, i, at) : 0;
				if (use > latest) {
					latest = use;
					worst = i;
				}
			}
		}
	}
	return bytes;
}

static void random_is_close_to_belady(bool ahead)
{
	struct cache_stats stats;
	struct fixture f;
	uint64_t best;

	set_up(&f, BETON_ORDER_RANDOM, 0, ahead);
	read_epochs(&f);
	cache_stats(f.cache, &stats);
	best = belady(&f, (LIMIT - LIMIT / 32) / FRAME);
	CHECK(stats.bypassed == 0);
	CHECK(stats.read_bytes >= best - BATCH * 2 * MEAN);
	/* Reading ahead takes room that an optimal cache would use: a
	   megabyte of four. */
	CHECK(stats.read_bytes <= best + best * (ahead ? 20 : 5) / 100);
	tear_down(&f);
}

/* Every byte once an epoch, but for the pages in which blocks meet. */
static void quasi_random_reads_once(bool ahead)
{
	struct cache_stats stats;
	struct fixture f;
	uint64_t data = 0;

	for (uint64_t i = 0; i < SAMPLES; i++)
		data += size_of(i);
	set_up(&f, BETON_ORDER_QUASI_RANDOM, 0, ahead);
	read_epochs(&f);
	cache_stats(f.cache, &stats);
	CHECK(stats.read_bytes <= EPOCHS * (data + (SAMPLES / 8 + 20) * FRAME));
	CHECK(stats.bypassed == 0 && stats.wasted_bytes <= data / 20);
	tear_down(&f);
}

/* Bytes that one rank of many reads in an epoch, alone on its machine. */
static uint64_t bytes_of_rank(enum beton_order order, uint32_t rank,
			      uint32_t world_size, bool reports)
{
	const struct batch_share share = { rank, world_size };
	struct cache_stats stats;
	struct fixture f;

	set_up(&f, order, 0, true);
	for (uint64_t b = rank; b < BATCHES; b += world_size)
		read_as(&f, &f.spec, 0, b, reports ? &share : NULL);
	while (cache_reads(f.cache))
		sched_yield();
	cache_stats(f.cache, &stats);
	tear_down(&f);
	return stats.read_bytes;
}

/* All ranks together read no sample twice: in the first epoch, the plan reads
   neither the samples of other ranks nor the next epoch. */
static void ranks_read_their_samples(enum beton_order order,
				     uint32_t world_size, bool reports)
{
	uint64_t bytes = 0, samples = 0;
	struct fixture f;

	set_up(&f, order, 0, false);
	for (uint64_t i = 0; i < SAMPLES; i++)
		samples += frames_of(&f, i) * FRAME;
	tear_down(&f);
	for (uint32_t rank = 0; rank < world_size; rank++)
		bytes += bytes_of_rank(order, rank, world_size, reports);
	CHECK(bytes <= samples + samples / 100);
}

/* Readers that stopped after their first batches, at other seeds, do not narrow
   the window of the reader that continues. */
static void silent_readers_leave_their_share(void)
{
	struct cache_stats stats;
	struct fixture f;
	uint64_t data = 0;
	struct spec other;

	for (uint64_t i = 0; i < SAMPLES; i++)
		data += size_of(i);
	set_up(&f, BETON_ORDER_QUASI_RANDOM, 0, false);
	other = f.spec;
	for (other.seed = 1; other.seed < 60; other.seed++) {
		const struct batch_key key = { f.ds, &other, 0, 0 };

		plan_note(f.plan, &key, NULL, NULL, 0);
	}
	atomic_store(&later_s, 11);
	for (uint64_t b = 0; b < BATCHES; b++)
		read_batch(&f, &f.spec, 0, b);
	cache_stats(f.cache, &stats);
	CHECK(stats.read_bytes <= data + (SAMPLES / 8 + 20) * FRAME);
	tear_down(&f);
}

/* These bytes shrink: what is evicted comes back without a read. */
static void the_cold_tier_saves_reads(void)
{
	struct cache_stats stats;
	struct fixture f;

	set_up(&f, BETON_ORDER_RANDOM, 16 << 20, false);
	read_epochs(&f);
	cache_stats(f.cache, &stats);
	CHECK(stats.cold_hits > SAMPLES);
	CHECK(stats.read_bytes < 2 * (uint64_t)SAMPLES * (MEAN + FRAME));
	CHECK(stats.cold_used_bytes <= 16 << 20);
	tear_down(&f);
}

/* A lower limit holds at once, and the bytes stay right. */
static void a_lower_limit_evicts(void)
{
	struct cache_stats stats;
	struct fixture f;

	set_up(&f, BETON_ORDER_RANDOM, 0, false);
	for (uint64_t b = 0; b < BATCHES; b++)
		read_batch(&f, &f.spec, 0, b);
	cache_stats(f.cache, &stats);
	CHECK(stats.used_bytes > LIMIT / 2 && stats.used_bytes <= LIMIT);
	cache_set_limit(f.cache, LIMIT / 4);
	cache_stats(f.cache, &stats);
	CHECK(stats.used_bytes <= LIMIT / 4);
	for (uint64_t b = 0; b < BATCHES; b++)
		read_batch(&f, &f.spec, 1, b);
	cache_stats(f.cache, &stats);
	CHECK(stats.used_bytes <= LIMIT / 4);
	tear_down(&f);
}

/* --- what is evicted --- */

static uint64_t next_in_table(void *arg, const struct cache_file *file,
			      uint64_t chunk)
{
	const uint64_t *uses = arg;

	(void)file;
	return uses[chunk];
}

static void ignore_bytes(void *arg, uint64_t owner, uint64_t bytes)
{
	(void)arg;
	(void)owner;
	(void)bytes;
}

static void need_sample(struct cache *cache, struct cache_file *file,
			uint64_t sample)
{
	const struct cache_want want = {
		.first = sample,
		.end = sample + 1,
		.must = sample,
	};

	CHECK(!cache_fetch(file, &want));
	while (cache_reads(cache))
		sched_yield();
	CHECK(cache_has(file, sample));
}

/* The sample that is needed last comes to be needed first, after the cache had
   looked at it. */
static void a_sample_that_is_needed_soon_by_now_stays(void)
{
	static uint64_t uses[SAMPLES];
	const struct cache_options options = {
		.limit = LIMIT,
		.next_use = next_in_table,
		.read_done = ignore_bytes,
		.wasted = ignore_bytes,
		.arg = uses,
	};
	struct dataset *ds = open_dataset();
	struct cache_stats stats;
	struct cache_file *file;
	struct cache *cache;
	uint64_t n = 0;

	for (uint64_t i = 0; i < SAMPLES; i++)
		uses[i] = i + 2;
	CHECK(!cache_open(&options, &cache));
	CHECK(!cache_add(cache, ds));
	file = (struct cache_file *)ds->payloads;
	do {
		need_sample(cache, file, n++);
		cache_stats(cache, &stats);
	} while (!stats.evicted_bytes);
	/* The one before it was evicted, as the last of all. */
	CHECK(!cache_has(file, n - 2) && cache_has(file, n - 3));
	uses[n - 1] = 1;
	uses[n - 3] = 1;
	for (uint64_t i = n; i < n + 10; i++) {
		uses[i] = 2;
		need_sample(cache, file, i);
	}
	CHECK(cache_has(file, n - 3) && !cache_has(file, n - 4));
	cache_close(cache);
	dataset_close(ds);
}

struct slow_plan {
	atomic_uint asked;
};

static uint64_t next_slowly(void *arg, const struct cache_file *file,
			    uint64_t chunk)
{
	struct slow_plan *p = arg;

	(void)file;
	atomic_fetch_add(&p->asked, 1);
	usleep(200);
	return chunk + 2;
}

/* Each new reader makes all keys stale, and readers may come without end. */
static void new_keys_take_a_part_of_the_time(void)
{
	struct slow_plan plan = { 0 };
	const struct cache_options options = {
		.limit = LIMIT,
		.next_use = next_slowly,
		.read_done = ignore_bytes,
		.wasted = ignore_bytes,
		.arg = &plan,
	};
	enum { READERS = 40 };
	struct dataset *ds = open_dataset();
	struct cache_stats stats;
	struct cache_file *file;
	struct cache *cache;
	uint64_t n = SAMPLES;
	unsigned all;

	CHECK(!cache_open(&options, &cache));
	CHECK(!cache_add(cache, ds));
	file = (struct cache_file *)ds->payloads;
	do {
		need_sample(cache, file, --n);
		cache_stats(cache, &stats);
	} while (!stats.evicted_bytes);
	all = (unsigned)(SAMPLES - n);
	plan.asked = 0;
	for (int i = 0; i < READERS; i++) {
		cache_rekey(cache);
		need_sample(cache, file, --n);
	}
	CHECK(plan.asked < READERS * all / 4);
	cache_close(cache);
	dataset_close(ds);
}

/* --- what is counted for readers --- */

/* The counts of the only one. */
static struct cache_counts counts_of(struct plan *plan)
{
	struct plan_reader reader = { .opened = 0 };

	CHECK(plan_readers(plan, &reader, 1) == 1);
	return reader.counts;
}

/* Nothing is read ahead, and one sample at a time: there is no late. */
static void values_are_there_or_missed(void)
{
	struct cache_stats stats;
	struct cache_counts own;
	struct fixture f;

	set_up(&f, BETON_ORDER_RANDOM, 0, false);
	for (uint64_t b = 0; b < BATCHES; b++)
		read_batch(&f, &f.spec, 0, b);
	cache_stats(f.cache, &stats);
	CHECK(stats.misses == SAMPLES && !stats.hits && !stats.stalled);
	for (uint64_t b = 0; b < BATCHES; b++)
		read_batch(&f, &f.spec, 1, b);
	cache_stats(f.cache, &stats);
	CHECK(stats.misses + stats.hits == 2 * SAMPLES && !stats.stalled);
	CHECK(stats.hits > SAMPLES / 8 && !stats.bypassed);
	/* The plan counts a read after the threads that waited for it may have
	   continued. */
	cache_close(steal(f.cache));
	own = counts_of(f.plan);
	CHECK(own.misses == stats.misses && own.hits == stats.hits);
	CHECK(own.delivered_bytes == stats.delivered_bytes);
	CHECK(own.reads >= stats.reads && own.reads > SAMPLES);
	CHECK(own.read_bytes >= stats.read_bytes);
	CHECK(own.read_bytes >= own.delivered_bytes / 2);
	CHECK(!own.stalled && !own.bypassed && !own.wasted_bytes);
	tear_down(&f);
}

static void unused_reads_count_as_waste(void)
{
	struct cache_want want = { .must = CACHE_NEVER, .owner = 1 };
	struct cache_stats stats;
	struct fixture f;

	set_up(&f, BETON_ORDER_SEQUENTIAL, 0, false);
	read_batch(&f, &f.spec, 0, 0);
	want.first = 10 * BATCH;
	want.end = want.first + 1;
	CHECK(!cache_has(f.file, want.first));
	CHECK(!cache_fetch(f.file, &want));
	while (cache_reads(f.cache))
		sched_yield();
	CHECK(cache_has(f.file, want.first));
	cache_set_limit(f.cache, 0);
	CHECK(!cache_has(f.file, want.first));
	cache_stats(f.cache, &stats);
	CHECK(stats.wasted_bytes >= size_of(want.first));
	CHECK(counts_of(f.plan).wasted_bytes == stats.wasted_bytes);
	tear_down(&f);
}

/* --- datasets and options at their limits --- */

static void open_with_limit(uint64_t limit, struct cache **out)
{
	const struct cache_options options = {
		.limit = limit,
		.next_use = plan_next_use,
		.read_done = plan_read_done,
		.wasted = plan_wasted,
	};
	int r;

	*out = NULL;
	r = cache_open(&options, out);
	CHECK(!r || (r == -ENOMEM && !*out));
}

static void any_limit_is_an_answer(void)
{
	static const uint64_t limits[] = { 0, 1, (uint64_t)1 << 40,
					   (uint64_t)1 << 63, UINT64_MAX - 1 };
	struct cache *cache;

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		open_with_limit(limits[i], &cache);
		cache_close(cache);
	}
}

/* Many small samples are one chunk, but for their metadata. */
static void large_records_are_looked_at_one_by_one(void)
{
	struct dataset *ds = open_dataset();
	const struct format before = ds->format;
	const struct cache_file *file;
	struct cache *cache;

	ds->format.samples = (uint64_t)1 << 30;
	for (uint64_t size = 64; size <= 1 << 22; size *= 8) {
		open_with_limit(LIMIT, &cache);
		ds->format.itemsize = size;
		CHECK(!cache_add(cache, ds));
		file = (const struct cache_file *)ds->payloads;
		CHECK(file->per == 1 || file->per * size <= 1 << 20);
		CHECK(size > 1 << 10 || file->per == 1024);
		cache_close(cache);
	}
	ds->format = before;
	dataset_close(ds);
}

/* A run of chunks takes more than one read of the metadata. */
static void long_runs_are_located_in_pieces(void)
{
	struct cache_want want = { .end = CACHE_RUN, .must = CACHE_NEVER };
	struct cache_file *file;
	struct fixture f;
	uint8_t byte;

	set_up(&f, BETON_ORDER_SEQUENTIAL, 0, false);
	file = f.file;
	/* A thousand times what a record has: the file ends before. */
	f.ds->format.itemsize *= 1 << 14;
	CHECK(cache_fetch(file, &want) == -EIO);
	f.ds->format.itemsize /= 1 << 14;
	want.end = 100;
	CHECK(!cache_fetch(file, &want));
	for (uint64_t i = 0; i < 100; i++) {
		struct value v;

		CHECK(cache_has(file, i));
		CHECK(!dataset_value_at(f.ds, 1, i, &v));
		CHECK(!f.ds->payloads->ops->read(
			f.ds->payloads,
			&(struct payload_read){ .sample = i,
						.off = v.off + v.size - 1,
						.size = 1,
						.buf = &byte }));
		CHECK(byte == byte_of(i, v.size - 1));
	}
	tear_down(&f);
}

static void more_datasets_than_there_are_places_are_refused(void)
{
	struct dataset *ds = open_dataset();
	struct cache *cache;

	open_with_limit(LIMIT, &cache);
	for (int i = 0; i < CACHE_FILES_MAX; i++)
		CHECK(!cache_add(cache, ds));
	CHECK(cache_add(cache, ds) == -E2BIG);
	cache_close(cache);
	dataset_close(ds);
}

/* --- reads at a time --- */

struct counted {
	struct fixture f;
	atomic_uint most; /* reads at a time */
};

static void count_reads(void *arg, uint64_t owner, uint64_t bytes)
{
	struct counted *c = arg;
	unsigned now = cache_reads(c->f.cache) + 1, most = 0;

	while (now > most &&
	       !atomic_compare_exchange_weak(&c->most, &most, now))
		;
	plan_read_done(c->f.plan, owner, bytes);
}

static uint64_t never(void *arg, const struct cache_file *file, uint64_t chunk)
{
	(void)arg;
	(void)file;
	(void)chunk;
	return CACHE_NEVER;
}

/* A read needs memory, and a batch may have any number of samples. */
static void a_large_batch_is_read_in_turns(void)
{
	struct counted c = { .most = 0 };
	struct fixture *f = &c.f;

	f->ds = open_dataset();
	f->spec = (struct spec){ .order = BETON_ORDER_RANDOM,
				 .batch = SAMPLES,
				 .end = SAMPLES };
	CHECK(!plan_open(1 << 20, &f->plan));
	CHECK(!cache_open(&(struct cache_options){ .limit = 8 * LIMIT,
						   .next_use = never,
						   .read_done = count_reads,
						   .wasted = ignore_bytes,
						   .arg = &c },
			  &f->cache));
	CHECK(!cache_add(f->cache, f->ds));
	f->file = (struct cache_file *)f->ds->payloads;
	plan_set_room(f->plan, 8 * LIMIT);
	read_batch(f, &f->spec, 0, 0);
	CHECK(atomic_load(&c.most) <= 256);
	tear_down(f);
}

/* --- threads --- */

struct job {
	struct fixture *f;
	struct spec spec;
	atomic_uint_fast64_t next;
};

static void *run_job(void *arg)
{
	struct job *job = arg;
	uint64_t b;

	while ((b = atomic_fetch_add(&job->next, 1)) < 3 * BATCHES)
		read_batch(job->f, &job->spec, b / BATCHES, b % BATCHES);
	return NULL;
}

/* Three threads of one job and two of another, with another seed. */
static void jobs_share_a_cache(void)
{
	struct fixture f;
	struct job jobs[2];
	pthread_t threads[5];

	set_up(&f, BETON_ORDER_RANDOM, 1 << 20, true);
	for (size_t i = 0; i < 2; i++) {
		jobs[i] = (struct job){ .f = &f, .spec = f.spec };
		jobs[i].spec.seed = i;
	}
	for (size_t i = 0; i < 5; i++)
		CHECK(!pthread_create(&threads[i], NULL, run_job,
				      &jobs[i % 2]));
	for (size_t i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
	tear_down(&f);
}

int main(void)
{
	random_is_close_to_belady(false);
	random_is_close_to_belady(true);
	quasi_random_reads_once(false);
	quasi_random_reads_once(true);
	the_cold_tier_saves_reads();
	a_lower_limit_evicts();
	a_sample_that_is_needed_soon_by_now_stays();
	new_keys_take_a_part_of_the_time();
	values_are_there_or_missed();
	unused_reads_count_as_waste();
	any_limit_is_an_answer();
	large_records_are_looked_at_one_by_one();
	long_runs_are_located_in_pieces();
	more_datasets_than_there_are_places_are_refused();
	jobs_share_a_cache();
	a_large_batch_is_read_in_turns();
	silent_readers_leave_their_share();
	for (unsigned reports = 0; reports < 2; reports++) {
		ranks_read_their_samples(BETON_ORDER_QUASI_RANDOM, 1, reports);
		ranks_read_their_samples(BETON_ORDER_QUASI_RANDOM, 8, reports);
		ranks_read_their_samples(BETON_ORDER_RANDOM, 4, reports);
		ranks_read_their_samples(BETON_ORDER_SEQUENTIAL, 4, reports);
	}
	return 0;
}
