/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "fs/base/util/rng.h"
#include "fs/base/util/thread.h"
#include "fs/data/engine/engine.h"
#include "tests/unit/gate.h"
#include "tests/unit/made.h"

enum { SAMPLES = 96, THREADS = 8, BATCH = 8, BATCHES = SAMPLES / BATCH };

struct fixture {
	struct dataset *ds;
	struct engine *engine;
	struct spec spec;
	struct stream *stream;
	uint8_t *truth[BATCHES]; /* every batch, collated alone */
};

static void set_up(struct fixture *f, uint64_t slot_bytes, unsigned threads)
{
	const struct engine_options options = { .threads = threads,
						.slot_bytes = slot_bytes,
						.datasets = &f->ds,
						.num_datasets = 1 };
	struct batch *b;
	bool failed;

	f->ds = made_open(SAMPLES, NULL);
	f->spec = (struct spec){ .order = BETON_ORDER_RANDOM,
				 .batch = BATCH,
				 .drop_last = 1,
				 .end = SAMPLES };
	CHECK(!engine_open(&options, &f->engine));
	CHECK(!engine_start(f->engine));
	CHECK(!stream_open(f->engine, f->ds, &f->spec, 0, &f->stream));
	for (uint64_t i = 0; i < BATCHES; i++) {
		CHECK(!stream_batch(f->stream, i, false, &b));
		f->truth[i] = malloc(b->vfile.size);
		CHECK(f->truth[i] &&
		      !batch_collate(b, NULL, f->truth[i], &failed));
		batch_put(&b);
	}
}

static void tear_down(struct fixture *f)
{
	for (uint64_t i = 0; i < BATCHES; i++)
		free(f->truth[i]);
	stream_close(f->stream);
	engine_close(f->engine);
	dataset_close(f->ds);
}

/* --- waiting for one submission --- */

struct answer {
	struct source_wait wait;
	int result;
	struct slot *slot;
};

static void answer_init(struct answer *a)
{
	*a = (struct answer){ .result = 1 };
	source_wait_init(&a->wait);
	source_wait_add(&a->wait);
}

static void on_done(void *arg, int result, struct slot *slot)
{
	struct answer *a = arg;

	a->result = result;
	a->slot = slot;
	source_wait_done(&a->wait);
}

/* Submits one batch, with a slot or with memory of its own, and compares. */
static void fetch(struct fixture *f, uint64_t number, bool own)
{
	struct ticket *ticket;
	struct answer answer;
	struct dest dest = { NULL, 0 };
	struct batch *b;

	CHECK(!stream_batch(f->stream, number, true, &b));
	if (own) {
		dest = (struct dest){ malloc(b->vfile.size), b->vfile.size };
		CHECK(dest.bytes);
	}
	answer_init(&answer);
	CHECK(!stream_submit(f->stream, b, &dest, on_done, &answer, &ticket));
	source_wait_idle(&answer.wait);
	ticket_close(&ticket);
	CHECK(!ticket && !answer.result && !answer.slot == own);
	CHECK(!memcmp(own ? dest.bytes : slot_bytes(answer.slot),
		      f->truth[number], b->vfile.size));
	slot_put(&answer.slot);
	source_wait_fini(&answer.wait);
	batch_put(&b);
	free(dest.bytes);
}

struct reader {
	struct fixture *f;
	uint64_t key;
};

static void *read_at_random(void *arg)
{
	struct reader *r = arg;
	struct rng rng = { .key = r->key };

	for (int i = 0; i < 150; i++)
		fetch(r->f, rng_next(&rng) % BATCHES, rng_next(&rng) % 2);
	return NULL;
}

static void run_threads(struct fixture *f, void *(*body)(void *))
{
	struct reader readers[THREADS];
	pthread_t threads[THREADS];

	for (uint64_t i = 0; i < THREADS; i++) {
		readers[i] = (struct reader){ f, i };
		CHECK(!pthread_create(&threads[i], NULL, body, &readers[i]));
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void eight_threads_get_right_bytes(void)
{
	struct fixture f;

	set_up(&f, 0, 3);
	run_threads(&f, read_at_random);
	tear_down(&f);
}

/* Room for two slots: they are taken over all the time. */
static void reused_slots_hold_right_bytes(void)
{
	struct fixture f;

	set_up(&f, 4 << 20, 2);
	run_threads(&f, read_at_random);
	tear_down(&f);
}

/* Slots that are held are not taken over, whatever the budget. */
static void held_slots_keep_their_bytes(void)
{
	struct slot *slots[BATCHES];
	struct batch *b;
	struct fixture f;

	set_up(&f, 1, 2);
	for (uint64_t i = 0; i < BATCHES; i++) {
		CHECK(!stream_batch(f.stream, i, false, &b));
		CHECK(!stream_slot(f.stream, b, &slots[i]));
		batch_put(&b);
	}
	for (uint64_t i = 0; i < BATCHES; i++) {
		CHECK(!stream_batch(f.stream, i, false, &b));
		CHECK(!memcmp(slot_bytes(slots[i]), f.truth[i], b->vfile.size));
		batch_put(&b);
		slot_put(&slots[i]);
		CHECK(!slots[i]);
	}
	tear_down(&f);
}

static void one_slot_serves_all_its_readers(void)
{
	struct slot *a, *b;
	struct batch *batch;
	struct fixture f;

	set_up(&f, 0, 1);
	CHECK(!stream_batch(f.stream, 0, false, &batch));
	CHECK(!stream_slot(f.stream, batch, &a));
	CHECK(!stream_slot(f.stream, batch, &b));
	CHECK(slot_bytes(a) == slot_bytes(b));
	slot_put(&a);
	slot_put(&b);
	slot_put(&b);
	batch_put(&batch);
	tear_down(&f);
}

/* Many requests read one file: even above the budget it is collated once. */
static void the_last_batch_stays_whatever_the_budget(void)
{
	struct batch *batch;
	struct fixture f;
	struct slot *slot;
	uint64_t id = 0;

	set_up(&f, 1, 1);
	CHECK(!stream_batch(f.stream, 0, false, &batch));
	for (int i = 0; i < 3; i++) {
		CHECK(!stream_slot(f.stream, batch, &slot));
		CHECK(slot_capacity(slot) >= batch->vfile.size);
		CHECK(!i || slot_id(slot) == id);
		id = slot_id(slot);
		slot_put(&slot);
	}
	batch_put(&batch);
	tear_down(&f);
}

/* --- giving up --- */

static void count_done(void *arg, int result, struct slot *slot)
{
	atomic_fetch_add((atomic_uint *)arg, 1);
	CHECK(!result);
	slot_put(&slot);
}

static void *submit_and_give_up(void *arg)
{
	struct reader *r = arg;
	struct rng rng = { .key = r->key };
	struct ticket *tickets[6];
	struct batch *b;
	atomic_uint done;

	for (int i = 0; i < 60; i++) {
		atomic_init(&done, 0);
		for (size_t k = 0; k < ARRAY_LEN(tickets); k++) {
			CHECK(!stream_batch(r->f->stream,
					    rng_next(&rng) % BATCHES, false,
					    &b));
			CHECK(!stream_submit(r->f->stream, b,
					     &(struct dest){ NULL, 0 },
					     count_done, &done, &tickets[k]));
			batch_put(&b);
		}
		/* Afterwards no thread touches `done` any more. */
		for (size_t k = 0; k < ARRAY_LEN(tickets); k++)
			ticket_close(&tickets[k]);
		CHECK(atomic_load(&done) <= ARRAY_LEN(tickets));
	}
	return NULL;
}

static void tickets_may_be_given_up_at_any_time(void)
{
	struct ticket *none = NULL;
	struct fixture f;

	ticket_close(&none);
	set_up(&f, 4 << 20, 2);
	run_threads(&f, submit_and_give_up);
	/* A batch that one thread abandons half way is complete for the
	   next. */
	for (uint64_t i = 0; i < BATCHES; i++)
		fetch(&f, i, false);
	tear_down(&f);
}

static void keep_batch(void *arg, int result, struct batch *batch)
{
	struct batch **out = arg;

	CHECK(!result);
	*out = batch;
}

/* One thread, whose disk is slow: the second ticket waits for it. */
static void work_that_has_begun_is_not_waited_for(void)
{
	struct ticket *running, *queued;
	struct batch *b = NULL, *none = NULL;
	struct fixture f;
	struct gate gate;

	set_up(&f, 0, 1);
	stream_close(f.stream);
	CHECK(!stream_open(f.engine, f.ds, &f.spec, 1, &f.stream));
	CHECK(!stream_cached(f.stream, 0, &b));
	gate_shut(&gate, f.ds, 0, SAMPLES);
	CHECK(!stream_lay_out(f.stream, 0, keep_batch, &b, &running));
	gate_wait(&gate, 1);
	CHECK(!stream_lay_out(f.stream, 1, keep_batch, &none, &queued));
	CHECK(ticket_try_close(&queued) && !queued);
	CHECK(!ticket_try_close(&running) && running);
	gate_open(&gate);
	ticket_close(&running);
	CHECK(b && !none && !running);
	CHECK(stream_cached(f.stream, 0, &none) && none == b);
	batch_put(&none);
	batch_put(&b);
	engine_stop(f.engine);
	gate_remove(&gate);
	tear_down(&f);
}

/* Slots are found by their layouts: two for one batch would be two slots. */
static void two_threads_make_one_layout(void)
{
	struct ticket *tickets[2];
	struct batch *batches[2];
	struct fixture f;
	struct gate gate;

	set_up(&f, 0, 2);
	stream_close(f.stream);
	CHECK(!stream_open(f.engine, f.ds, &f.spec, 1, &f.stream));
	gate_shut(&gate, f.ds, 0, SAMPLES);
	for (size_t i = 0; i < 2; i++)
		CHECK(!stream_lay_out(f.stream, 0, keep_batch, &batches[i],
				      &tickets[i]));
	gate_wait(&gate, 2);
	gate_open(&gate);
	for (size_t i = 0; i < 2; i++)
		ticket_close(&tickets[i]);
	CHECK(batches[0] == batches[1]);
	for (size_t i = 0; i < 2; i++)
		batch_put(&batches[i]);
	engine_stop(f.engine);
	gate_remove(&gate);
	tear_down(&f);
}

static void count_layout(void *arg, int result, struct batch *batch)
{
	CHECK(!result);
	batch_put(&batch);
	atomic_fetch_add((atomic_uint *)arg, 1);
}

/* Layouts of all batches of an epoch. */
struct layouts {
	struct ticket *tickets[BATCHES];
	atomic_uint done;
};

static void lay_out(struct layouts *l, struct fixture *f, struct dataset *ds,
		    uint64_t epoch, uint64_t user)
{
	struct stream *stream;

	atomic_init(&l->done, 0);
	CHECK(!stream_open(f->engine, ds, &f->spec, epoch, &stream));
	stream_set_user(stream, user);
	for (uint64_t i = 0; i < BATCHES; i++)
		CHECK(!stream_lay_out(stream, i, count_layout, &l->done,
				      &l->tickets[i]));
	stream_close(stream);
}

static void expect_layouts(struct layouts *l)
{
	for (int i = 0; i < 1000 && atomic_load(&l->done) < BATCHES; i++)
		usleep(10000);
	CHECK(atomic_load(&l->done) == BATCHES);
	for (size_t i = 0; i < BATCHES; i++)
		ticket_close(&l->tickets[i]);
}

/* The disk of one dataset does not answer. Two threads of each user wait for
   it; another dataset is served meanwhile. */
static void a_slow_disk_stops_no_other_dataset(void)
{
	struct layouts slow[2], other;
	struct dataset *ds = made_open(SAMPLES, NULL);
	struct fixture f;
	struct gate gate;

	set_up(&f, 0, 2);
	gate_shut(&gate, ds, 0, SAMPLES);
	lay_out(&slow[0], &f, ds, 1, 1);
	lay_out(&slow[1], &f, ds, 1, 2);
	gate_wait(&gate, 4);
	lay_out(&other, &f, f.ds, 1, 1);
	expect_layouts(&other);
	CHECK(!atomic_load(&slow[0].done) && !atomic_load(&slow[1].done));
	gate_open(&gate);
	expect_layouts(&slow[0]);
	expect_layouts(&slow[1]);
	engine_stop(f.engine);
	gate_remove(&gate);
	tear_down(&f);
	dataset_close(ds);
}

/* All samples of the batches of one user are on a bad part of the disk. */
static void a_slow_user_stops_no_other_user(void)
{
	struct layouts slow, other;
	struct fixture f;
	struct gate gate;

	set_up(&f, 0, 2);
	f.spec.order = BETON_ORDER_SEQUENTIAL;
	f.spec.end = SAMPLES / 2;
	f.spec.batch = BATCH / 2;
	gate_shut(&gate, f.ds, 0, SAMPLES / 2);
	lay_out(&slow, &f, f.ds, 1, 1);
	gate_wait(&gate, 2);
	f.spec.first = SAMPLES / 2;
	f.spec.end = SAMPLES;
	lay_out(&other, &f, f.ds, 1, 2);
	expect_layouts(&other);
	CHECK(!atomic_load(&slow.done));
	gate_open(&gate);
	expect_layouts(&slow);
	engine_stop(f.engine);
	gate_remove(&gate);
	tear_down(&f);
}

static void memory_that_is_too_small_is_refused(void)
{
	struct ticket *ticket;
	uint8_t byte;
	struct batch *b;
	struct fixture f;

	set_up(&f, 0, 1);
	CHECK(!stream_batch(f.stream, 0, false, &b));
	CHECK(stream_submit(f.stream, b, &(struct dest){ &byte, 1 }, on_done,
			    NULL, &ticket) == -EINVAL);
	batch_put(&b);
	tear_down(&f);
}

/* --- streams --- */

static void streams_end_and_epochs_differ(void)
{
	struct stream *next;
	struct batch *a, *b;
	struct fixture f;

	set_up(&f, 0, 1);
	CHECK(stream_batch(f.stream, BATCHES, false, &a) == -ENOENT);
	CHECK(!stream_open(f.engine, f.ds, &f.spec, 1, &next));
	CHECK(!stream_batch(f.stream, 0, false, &a));
	CHECK(!stream_batch(next, 0, false, &b));
	CHECK(memcmp(a->ids, b->ids, BATCH * sizeof(*a->ids)));
	batch_put(&a);
	batch_put(&b);
	stream_close(next);
	tear_down(&f);
}

static void two_engines_do_not_meet(void)
{
	struct fixture f, g;

	set_up(&f, 0, 1);
	set_up(&g, 0, 1);
	fetch(&f, 3, false);
	tear_down(&f);
	fetch(&g, 3, false);
	tear_down(&g);
	engine_close(NULL);
}

static unsigned count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned n = 0;

	CHECK(tasks);
	while (readdir(tasks))
		n++;
	closedir(tasks);
	return n;
}

/* A process that opened an engine may still confine itself as a whole. */
static void no_thread_runs_before_the_start(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	const struct engine_options options = {
		.threads = 3,
		.choice = { .mode = CACHE_PROCESS, .cache_size = 32 << 20 },
		.datasets = &ds,
		.num_datasets = 1,
	};
	unsigned before = count_threads();
	struct engine *engine;

	CHECK(!engine_open(&options, &engine));
	CHECK(count_threads() <= before);
	CHECK(!engine_start(engine));
	CHECK(count_threads() >= before + 3);
	engine_close(engine);
	CHECK(!engine_open(&options, &engine));
	engine_close(engine);
	dataset_close(ds);
}

/* The owner of a sampling spec's subsets may close them after engine_stop():
   the threads that collate and prefetch batches have ended, even if requests
   were left. */
static void nothing_continues_after_the_stop(void)
{
	struct subset subset = { .n = SAMPLES };
	struct spec spec = { .order = BETON_ORDER_RANDOM,
			     .batch = 2,
			     .end = SAMPLES,
			     .subset = &subset };
	struct engine_options options = {
		.prefetch = 8,
		.choice = { .mode = CACHE_PROCESS, .cache_size = 32 << 20 },
		.num_datasets = 1,
	};
	struct engine_stats before, after;
	struct engine *engine;
	struct stream *stream;
	struct dataset *ds = made_open(SAMPLES, NULL);

	subset.ids = malloc(SAMPLES * sizeof(*subset.ids));
	CHECK(subset.ids);
	for (uint64_t i = 0; i < SAMPLES; i++)
		subset.ids[i] = i;
	options.datasets = &ds;
	CHECK(!engine_open(&options, &engine));
	CHECK(!engine_start(engine));
	CHECK(!stream_open(engine, ds, &spec, 0, &stream));
	for (uint64_t i = 0; i < 4; i++)
		stream_note(stream, i);
	engine_stop(engine);
	engine_stats(engine, &before);
	free(subset.ids);
	subset.ids = NULL;
	stream_close(stream);
	engine_stop(engine);
	engine_stats(engine, &after);
	CHECK(after.slots.collated == before.slots.collated);
	engine_close(engine);
	engine_stop(NULL);
	dataset_close(ds);
}

static void *stop_engine(void *engine)
{
	engine_stop(engine);
	return NULL;
}

/* The last batch that is read ahead is still being laid out when the engine is
   stopped. */
static void a_stop_ends_a_thread_that_reads_ahead(void)
{
	struct spec spec = { .order = BETON_ORDER_SEQUENTIAL,
			     .batch = BATCH,
			     .end = SAMPLES };
	struct dataset *ds = made_open(SAMPLES, NULL);
	const struct engine_options options = {
		.threads = 1, .prefetch = 1, .datasets = &ds, .num_datasets = 1
	};
	struct engine *engine;
	struct stream *stream;
	struct gate gate;
	pthread_t stopper;

	CHECK(!engine_open(&options, &engine));
	CHECK(!engine_start(engine));
	CHECK(!stream_open(engine, ds, &spec, 0, &stream));
	gate_shut(&gate, ds, 0, SAMPLES);
	for (uint64_t i = 0; i < 2; i++)
		stream_note(stream, i);
	gate_wait(&gate, 1);
	CHECK(!pthread_create(&stopper, NULL, stop_engine, engine));
	usleep(50000);
	gate_open(&gate);
	CHECK(thread_joins_in(stopper, 10000));
	gate_remove(&gate);
	stream_close(stream);
	engine_close(engine);
	dataset_close(ds);
}

/* --- failures --- */

static void a_batch_with_a_failure_is_tried_again_when_asked(void)
{
	char path[] = "/tmp/test_engine.XXXXXX";
	struct engine_options options = { .threads = 1 };
	struct spec spec = { .order = BETON_ORDER_SEQUENTIAL,
			     .batch = 10,
			     .end = 10 };
	const struct beton_batch_field *fields;
	const int32_t *errors;
	struct engine *engine;
	struct stream *stream;
	struct dataset *ds;
	struct batch *b;
	struct slot *slot;
	uint8_t *whole;
	struct stat st;
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	made_write(path, 10);
	close(fd);
	fd = open(path, O_RDWR);
	CHECK(!fstat(fd, &st) && (whole = malloc((size_t)st.st_size)));
	CHECK(pread(fd, whole, (size_t)st.st_size, 0) == st.st_size);
	CHECK(!dataset_open(path, NULL, NULL, &ds));
	CHECK(!engine_open(&options, &engine));
	CHECK(!engine_start(engine));
	CHECK(!stream_open(engine, ds, &spec, 0, &stream));
	CHECK(!stream_batch(stream, 0, false, &b));
	/* The pages are missing while it is collated for the first time. */
	CHECK(!ftruncate(fd, MADE_PAGE));
	for (int attempt = 0; attempt < 2; attempt++) {
		CHECK(!stream_slot(stream, b, &slot));
		fields = (const void *)((const uint8_t *)slot_bytes(slot) +
					sizeof(struct beton_batch_header));
		errors = (const void *)((const uint8_t *)slot_bytes(slot) +
					fields[MADE_RAW].error_off);
		CHECK(errors[0] == (attempt ? 0 : EIO));
		CHECK((slot_marks(slot) != 0) == !attempt);
		slot_put(&slot);
		batch_put(&b);
		CHECK(pwrite(fd, whole, (size_t)st.st_size, 0) == st.st_size);
		CHECK(!stream_batch(stream, 0, true, &b));
	}
	batch_put(&b);
	stream_close(stream);
	engine_close(engine);
	dataset_close(ds);
	free(whole);
	close(fd);
	unlink(path);
}

int main(void)
{
	eight_threads_get_right_bytes();
	reused_slots_hold_right_bytes();
	held_slots_keep_their_bytes();
	one_slot_serves_all_its_readers();
	the_last_batch_stays_whatever_the_budget();
	tickets_may_be_given_up_at_any_time();
	work_that_has_begun_is_not_waited_for();
	two_threads_make_one_layout();
	a_slow_disk_stops_no_other_dataset();
	a_slow_user_stops_no_other_user();
	memory_that_is_too_small_is_refused();
	streams_end_and_epochs_differ();
	two_engines_do_not_meet();
	no_thread_runs_before_the_start();
	nothing_continues_after_the_stop();
	a_stop_ends_a_thread_that_reads_ahead();
	a_batch_with_a_failure_is_tried_again_when_asked();
	return 0;
}
