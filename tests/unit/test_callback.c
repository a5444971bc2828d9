/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch callbacks: the loader's threads run them once per batch, several
 * batches at a time. The tests also interrupt, move and end loaders meanwhile.
 */
#include <errno.h>
#include <string.h>

#include "beton/loader.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/util/stages.h"
#include "tests/unit/gpu.h"
#include "tests/unit/made.h"
#include "tests/unit/t.h"

#define DATA                                                                   \
	"synthetic(50, image=\"uint8[9,12,3]\", label=\"int64<9\", "           \
	"blob=\"bytes[7]\", vec=\"float32[3]\")"

enum {
	BATCH = 8,
	STEPS = 7,
	EPOCHS = 3,
	EPOCHS_MAX = 8,
	NUMBERS_MAX = 64,
	ADDED = 1000
};

static struct gpu gpu;

/* The callback's arguments, and what it found in the batches. */
struct seen {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned calls[EPOCHS_MAX][NUMBERS_MAX];
	unsigned inside, most; /* batches at a time */
	unsigned gather;       /* it waits until so many have been inside */
	bool may_end;	       /* else it waits */
	int error;	       /* of batches with odd numbers */
	const char *why;
	uint64_t busy_ns;
	pthread_t user;
};

static struct seen seen_new(void)
{
	return (struct seen){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
		.may_end = true,
		.user = pthread_self(),
	};
}

/* The labels in CPU memory, or NULL. */
static int64_t *labels_of(const struct beton_batch *b)
{
	for (uint32_t i = 0; i < b->num_outputs; i++) {
		const struct beton_tensor *t = &b->outputs[i];

		if (!strcmp(t->name, "label") &&
		    t->device_type == BETON_DEVICE_CPU)
			return (int64_t *)t->data;
	}
	return NULL;
}

static void enter(struct seen *s, const struct beton_batch *b)
{
	scoped_lock(&s->lock);
	CHECK(b->epoch < EPOCHS_MAX && b->number < NUMBERS_MAX);
	s->calls[b->epoch][b->number]++;
	s->inside++;
	s->most = s->inside > s->most ? s->inside : s->most;
	pthread_cond_broadcast(&s->changed);
	while (s->most < s->gather || !s->may_end)
		pthread_cond_wait(&s->changed, &s->lock);
}

static void leave(struct seen *s, uint64_t begin)
{
	scoped_lock(&s->lock);
	s->inside--;
	s->busy_ns += stage_now_ns() - begin;
}

/* Adds to each label what no label has. */
static int add(void *arg, const struct beton_batch *b, char *why, size_t size)
{
	struct seen *s = arg;
	uint64_t begin = stage_now_ns();
	int64_t *labels = labels_of(b);

	CHECK(!pthread_equal(pthread_self(), s->user));
	enter(s, b);
	for (uint32_t i = 0; labels && i < b->num_samples; i++)
		labels[i] += ADDED;
	leave(s, begin);
	if (!s->error || b->number % 2 == 0)
		return 0;
	if (s->why)
		snprintf(why, size, "%s", s->why);
	return s->error;
}

struct how {
	const char *path;
	const char *source;
	const char *spec;
	const char *text;
	uint32_t workers, prefetch, rank, world_size;
	enum beton_stage until;
	enum beton_on_error on_error;
	bool plain; /* opened without a callback */
};

static struct beton_loader *load(const struct how *how)
{
	char error[1024];
	const struct beton_loader_options o = {
		.size = sizeof(o),
		.spec = how->spec ? how->spec : "batch=8,drop_last=0",
		.pipeline = how->text,
		.source = how->path	? NULL
			  : how->source ? how->source
					: DATA,
		.workers = how->workers ? how->workers : 2,
		.prefetch = how->prefetch,
		.rank = how->rank,
		.world_size = how->world_size,
		.until = how->until,
		.on_error = how->on_error,
		.callback = !how->plain,
		.error = error,
		.error_size = sizeof(error),
	};
	struct beton_loader *l;
	int r = beton_loader_open(how->path ? how->path : "/nowhere", &o, &l);

	if (r)
		fprintf(stderr, "%s\n", error);
	CHECK(!r);
	return l;
}

/* Takes and releases the next batch. Returns the sum of its labels. */
static int64_t step(struct beton_loader *l, uint64_t *number)
{
	const struct beton_batch *b;
	int64_t sum = 0, *labels;

	CHECK(!beton_loader_next(l, &b));
	labels = labels_of(b);
	for (uint32_t i = 0; labels && i < b->num_samples; i++)
		sum += labels[i];
	*number = b->number;
	beton_loader_release(l, b);
	return sum;
}

/* --- each once --- */

/* Every batch has the values of a loader without a callback, plus the
   callback's additions. */
static void check_epochs(struct how how, unsigned steps)
{
	struct how plain = how;
	struct seen s = seen_new();
	struct beton_loader *l = load(&how), *other;
	const struct beton_batch *b, *want;
	unsigned calls = 0;

	plain.plain = true;
	other = load(&plain);
	CHECK(!beton_loader_set_callback(l, add, &s));
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
		for (unsigned i = 0; i < steps; i++) {
			CHECK(!beton_loader_next(l, &b));
			CHECK(!beton_loader_next(other, &want));
			CHECK(b->number == want->number);
			CHECK(b->num_samples == want->num_samples);
			CHECK(!memcmp(b->valid, want->valid, b->num_samples));
			for (uint32_t row = 0; row < b->num_samples; row++)
				CHECK(labels_of(b)[row] ==
				      labels_of(want)[row] + ADDED);
			calls += s.calls[b->epoch][b->number];
			beton_loader_release(l, b);
			beton_loader_release(other, want);
		}
		CHECK(beton_loader_next(l, &b) == -ENODATA);
		CHECK(beton_loader_next(other, &want) == -ENODATA);
	}
	CHECK(calls == EPOCHS * steps);
	beton_loader_close(l);
	beton_loader_close(other);
}

static void the_callback_sees_each_batch_once(void)
{
	check_epochs((struct how){ .source = DATA }, STEPS);
	check_epochs((struct how){ .workers = 1, .prefetch = 1 }, STEPS);
	check_epochs((struct how){ .workers = 8, .prefetch = 5 }, STEPS);
	/* The last of three ranks has padding. */
	check_epochs((struct how){ .rank = 2, .world_size = 3 }, 3);
	/* Rows that are taken many at a time. */
	check_epochs(
		(struct how){ .source = "synthetic(3000, label=\"int64<9\")",
			      .spec = "batch=700,drop_last=0",
			      .workers = 4 },
		5);
	/* Rows that are run twice. */
	check_epochs((struct how){ .text = "image | mixup(0.5); label" },
		     STEPS);
	check_epochs((struct how){ .until = BETON_STAGE_TRANSFORM }, STEPS);
}

/* A batch that is delivered repeatedly is changed only once. */
static void the_callback_sees_a_repeated_batch_once(void)
{
	static const char *const sources[] = { DATA " | constant",
					       DATA " | memory" };

	for (size_t k = 0; k < ARRAY_LEN(sources); k++) {
		struct how how = { .source = sources[k], .spec = "batch=8" };
		struct seen s = seen_new();
		struct beton_loader *l = load(&how);
		const struct beton_batch *b;
		unsigned calls = 0;

		CHECK(!beton_loader_set_callback(l, add, &s));
		for (unsigned i = 0; i < EPOCHS * STEPS; i++) {
			int r = beton_loader_next(l, &b);

			CHECK(!r || r == -ENODATA);
			if (r)
				continue;
			for (uint32_t row = 0; row < b->num_samples; row++)
				CHECK(labels_of(b)[row] / ADDED == 1);
			beton_loader_release(l, b);
		}
		beton_loader_close(l);
		for (unsigned n = 0; n < NUMBERS_MAX; n++)
			calls += s.calls[0][n] + s.calls[1][n] + s.calls[2][n];
		CHECK(calls == (k ? 3 : 1));
	}
}

static void the_callback_sees_tensors_only(void)
{
	static const enum beton_stage stages[] = { BETON_STAGE_READ,
						   BETON_STAGE_DECODE };

	for (size_t k = 0; k < ARRAY_LEN(stages); k++) {
		struct how how = { .until = stages[k] };
		struct seen s = seen_new();
		struct beton_loader *l = load(&how);
		const struct beton_batch *b;

		CHECK(!beton_loader_set_callback(l, add, &s));
		while (!beton_loader_next(l, &b))
			beton_loader_release(l, b);
		beton_loader_close(l);
		CHECK(!s.most);
	}
}

/* --- threads --- */

static void batches_come_by_together(void)
{
	struct how how = { .workers = 3, .prefetch = 4 };
	struct seen s = seen_new();
	struct beton_loader *l;
	uint64_t number;

	s.gather = 3;
	l = load(&how);
	CHECK(!beton_loader_set_callback(l, add, &s));
	for (unsigned i = 0; i < STEPS; i++)
		step(l, &number);
	beton_loader_close(l);
	CHECK(s.most >= 3);
}

static struct beton_stage_stats stats_of(struct beton_loader *l,
					 const char *stage)
{
	struct beton_stage_stats all[16];
	size_t n = beton_loader_stats(l, all, ARRAY_LEN(all));

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(all[i].name, stage))
			return all[i];
	}
	CHECK(false);
	return all[0];
}

static void its_time_is_that_of_transform(void)
{
	struct how how = { .prefetch = 1 };
	struct seen s = seen_new();
	struct beton_loader *l = load(&how);
	struct beton_stage_stats transform;
	uint64_t number;

	CHECK(!beton_loader_set_callback(l, add, &s));
	for (unsigned i = 0; i < STEPS; i++)
		step(l, &number);
	beton_loader_stop(l);
	transform = stats_of(l, "transform");
	CHECK(transform.busy_ns >= s.busy_ns && s.busy_ns);
	/* Rows, each once. */
	CHECK(transform.items >= 50 && transform.items <= 50 + BATCH);
	beton_loader_close(l);
}

static void *wait_and_say(void *arg)
{
	struct seen *s = arg;

	scoped_lock(&s->lock);
	while (!s->inside)
		pthread_cond_wait(&s->changed, &s->lock);
	s->may_end = true;
	pthread_cond_broadcast(&s->changed);
	return NULL;
}

/* Before it is known what to do, and in the middle of it. */
static void a_loader_may_end_at_any_time(void)
{
	for (unsigned i = 0; i < 60; i++) {
		struct how how = { .workers = 1 + i % 4, .prefetch = 3 };
		struct seen s = seen_new();
		struct beton_loader *l = load(&how);
		const struct beton_batch *b;
		pthread_t thread;
		bool known = i % 3;

		s.may_end = i % 3 == 1;
		if (known)
			CHECK(!beton_loader_set_callback(l, add, &s));
		CHECK(!pthread_create(&thread, NULL, wait_and_say, &s));
		if (!known)
			for (unsigned k = 0; k < i % 7; k++)
				CHECK(beton_loader_wait(l, 1) == -EAGAIN);
		if (i % 2) {
			beton_loader_stop(l);
			CHECK(beton_loader_next(l, &b) == -ECANCELED);
			CHECK(!s.inside);
		}
		beton_loader_close(l);
		CHECK(!s.inside);
		/* In case that no batch came by. */
		pthread_mutex_lock(&s.lock);
		s.inside++;
		pthread_cond_broadcast(&s.changed);
		pthread_mutex_unlock(&s.lock);
		pthread_join(thread, NULL);
	}
}

/* After a move, callbacks that were running belong to no batch: each batch gets
   its own call. */
static void a_loader_may_be_moved_meanwhile(void)
{
	struct how how = { .workers = 2, .prefetch = 3 };
	struct seen s = seen_new();
	struct beton_loader *l = load(&how);
	const struct beton_batch *b;

	s.may_end = false;
	CHECK(!beton_loader_set_callback(l, add, &s));
	pthread_mutex_lock(&s.lock);
	while (s.inside < 2)
		pthread_cond_wait(&s.changed, &s.lock);
	pthread_mutex_unlock(&s.lock);
	CHECK(!beton_loader_seek(l, 2));
	pthread_mutex_lock(&s.lock);
	s.may_end = true;
	pthread_cond_broadcast(&s.changed);
	pthread_mutex_unlock(&s.lock);
	for (unsigned i = 0; i < STEPS; i++) {
		CHECK(!beton_loader_next(l, &b));
		CHECK(b->epoch == 2 && b->number == i);
		CHECK(s.calls[2][i] == 1);
		for (uint32_t row = 0; row < b->num_samples; row++)
			CHECK(labels_of(b)[row] / ADDED == 1);
		beton_loader_release(l, b);
	}
	beton_loader_close(l);
}

/* --- errors --- */

static void its_failure_is_the_batchs(void)
{
	static const struct {
		int error;
		const char *why, *want;
	} cases[] = {
		{ -EIO, "no label is 7", "epoch 0 batch 1: no label is 7" },
		{ -ENOMEM, NULL, "batch 1: Cannot allocate memory" },
	};

	for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
		struct how how = { .workers = 2 };
		struct seen s = seen_new();
		struct beton_loader *l = load(&how);
		const struct beton_batch *b;

		s.error = cases[k].error;
		s.why = cases[k].why;
		CHECK(!beton_loader_set_callback(l, add, &s));
		for (unsigned i = 0; i < STEPS; i++) {
			int r = beton_loader_next(l, &b);

			CHECK(r == (i % 2 ? s.error : 0));
			if (i == 1)
				CHECK(strstr(beton_loader_error(l),
					     cases[k].want));
			if (!r)
				beton_loader_release(l, b);
		}
		CHECK(beton_loader_next(l, &b) == -ENODATA);
		CHECK(!beton_loader_failed_samples(l));
		beton_loader_close(l);
	}
}

/* No image of the dataset is one. */
static void batches_that_failed_do_not_come_by(void)
{
	char path[] = "/tmp/callback.XXXXXX";
	struct how how = { .path = path, .text = "jpg; int" };
	const struct beton_batch *b;
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !close(fd));
	made_write(path, 3 * BATCH);
	for (unsigned skips = 0; skips < 2; skips++) {
		struct seen s = seen_new();
		struct beton_loader *l;

		how.on_error =
			skips ? BETON_ON_ERROR_SKIP : BETON_ON_ERROR_RAISE;
		l = load(&how);
		CHECK(!beton_loader_set_callback(l, add, &s));
		for (unsigned i = 0; i < 3; i++) {
			CHECK(beton_loader_next(l, &b) == (skips ? 0 : -EIO));
			CHECK(s.calls[0][i] == skips);
		}
		beton_loader_close(l);
	}
	CHECK(!unlink(path));
}

static void it_is_reported_once(void)
{
	struct how how = { .plain = true };
	struct seen s = seen_new();
	struct beton_loader *l = load(&how);
	uint64_t number;

	CHECK(beton_loader_set_callback(l, add, &s) == -EINVAL);
	step(l, &number);
	beton_loader_close(l);
	how.plain = false;
	l = load(&how);
	CHECK(!beton_loader_set_callback(l, NULL, NULL));
	CHECK(beton_loader_set_callback(l, add, &s) == -EINVAL);
	CHECK(step(l, &number) < ADDED);
	beton_loader_close(l);
	CHECK(!s.most);
}

/* --- a GPU --- */

/* The callback changes the values in CPU memory, before the upload to the
   GPU. */
static void a_gpu_gets_its_part_after_it(void)
{
	struct how how = { .text = "image | cuda(0); label; vec | cuda(0)" };
	struct how plain = { .text = "image; label; vec", .plain = true };
	struct seen s = seen_new();
	struct beton_loader *l = load(&how), *other = load(&plain);
	const struct beton_batch *b, *want;
	uint8_t bytes[BATCH * 9 * 12 * 3];

	CHECK(!beton_loader_set_callback(l, add, &s));
	for (unsigned i = 0; i < STEPS; i++) {
		CHECK(!beton_loader_next(l, &b));
		CHECK(!beton_loader_next(other, &want));
		for (uint32_t k = 0; k < b->num_outputs; k++) {
			const struct beton_tensor *t = &b->outputs[k];

			CHECK(!beton_loader_read(l, b, k, bytes));
			if (t->device_type == BETON_DEVICE_CPU)
				CHECK(labels_of(b)[0] ==
				      labels_of(want)[0] + ADDED);
			else
				CHECK(!memcmp(bytes, want->outputs[k].data,
					      t->size));
		}
		CHECK(s.calls[0][i] == 1);
		beton_loader_release(l, b);
		beton_loader_release(other, want);
	}
	beton_loader_close(l);
	beton_loader_close(other);
}

int main(void)
{
	gpu_begin(&gpu);
	the_callback_sees_each_batch_once();
	the_callback_sees_a_repeated_batch_once();
	the_callback_sees_tensors_only();
	batches_come_by_together();
	its_time_is_that_of_transform();
	a_loader_may_end_at_any_time();
	a_loader_may_be_moved_meanwhile();
	its_failure_is_the_batchs();
	batches_that_failed_do_not_come_by();
	it_is_reported_once();
	a_gpu_gets_its_part_after_it();
	gpu_end(&gpu);
	return 0;
}
