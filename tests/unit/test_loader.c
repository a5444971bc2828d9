/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for batches a while only, stopping while some are held, and batches by
   name. */
#include <dirent.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "beton/loader.h"
#include "fs/base/util/rng.h"
#include "fs/data/writer/writer.h"
#include "tests/unit/t.h"

enum { SAMPLES = 40, BATCH = 4, STEPS = SAMPLES / BATCH };

static char path[] = "/tmp/loader.XXXXXX";

static void write_dataset(uint64_t samples)
{
	const struct writer_field f = { .name = "label",
					.type = BETON_TYPE_INT };
	struct writer *w;

	CHECK(!writer_open(path, &f, 1, samples, 2 << 20, NULL, &w));
	for (int64_t i = 0; i < (int64_t)samples; i++) {
		const struct writer_value v = { .integer = 3 * i };

		CHECK(!writer_append(w, &v));
	}
	CHECK(!writer_finish(&w));
}

static struct beton_loader *load(uint64_t epochs, const char *source)
{
	struct beton_loader_options o = {
		.size = sizeof(o),
		.spec = "order=random,batch=4,seed=3",
		.source = source,
		.workers = 2,
		.epochs = epochs,
	};
	struct beton_loader *l;

	CHECK(!beton_loader_open(path, &o, &l));
	return l;
}

/* The number of entries of /proc/self/`what`: "task" for threads, "fd" for open
   files. */
static unsigned count(const char *what)
{
	char name[40];
	unsigned n = 0;
	DIR *d;

	snprintf(name, sizeof(name), "/proc/self/%s", what);
	d = opendir(name);
	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void wait_for_batch(struct beton_loader *l)
{
	int r;

	while ((r = beton_loader_wait(l, 1)) == -EAGAIN)
		;
	CHECK(!r);
}

/* A wait ends if a batch, or either end of an epoch, is ready. */
static void a_batch_is_ready_after_the_wait(void)
{
	struct beton_loader *l = load(2, NULL);
	const struct beton_batch *b;

	for (unsigned epoch = 0; epoch < 2; epoch++) {
		for (unsigned i = 0; i < STEPS; i++) {
			wait_for_batch(l);
			CHECK(!beton_loader_wait(l, 0));
			CHECK(!beton_loader_next(l, &b));
			CHECK(b->epoch == epoch);
			beton_loader_release(l, b);
		}
		CHECK(!beton_loader_wait(l, 0));
		CHECK(beton_loader_next(l, &b) == -ENODATA);
	}
	CHECK(!beton_loader_wait(l, 0));
	CHECK(beton_loader_next(l, &b) == -ENODATA);
	beton_loader_close(l);
}

static void a_constant_batch_is_waited_for_too(void)
{
	struct beton_loader *l = load(0, "constant");
	const struct beton_batch *b;

	for (unsigned i = 0; i < STEPS; i++) {
		wait_for_batch(l);
		CHECK(!beton_loader_next(l, &b));
		beton_loader_release(l, b);
	}
	beton_loader_close(l);
}

/* The kernel shows a thread a moment longer than it can be joined. */
static void wait_for_threads(unsigned n)
{
	while (count("task") > n)
		sched_yield();
}

static bool is_right(const struct beton_batch *b)
{
	const int64_t *label = b->outputs[0].data;

	for (uint32_t i = 0; i < b->num_samples; i++) {
		if (label[i] != 3 * (int64_t)b->ids[i])
			return false;
	}
	return b->num_samples == BATCH;
}

/* Whether batches are in the making or not. */
static void held_batches_outlive_a_stop(void)
{
	unsigned threads = count("task"), files = count("fd");

	for (unsigned held = 0; held <= STEPS; held++) {
		struct beton_loader *l = load(0, NULL);
		const struct beton_batch *kept[STEPS], *b;

		for (unsigned i = 0; i < held; i++)
			CHECK(!beton_loader_next(l, &kept[i]));
		beton_loader_stop(l);
		wait_for_threads(threads);
		CHECK(count("fd") == files);
		CHECK(!beton_loader_wait(l, 0));
		if (held < STEPS)
			CHECK(beton_loader_next(l, &b) == -ECANCELED);
		for (unsigned i = 0; i < held; i++) {
			CHECK(is_right(kept[i]));
			if (i % 2)
				beton_loader_release(l, kept[i]);
		}
		beton_loader_stop(l);
		beton_loader_close(l);
	}
}

/* Asks, makes, iterates and seeks at random, and leaves batches that it asked
   for. */
static void names_mix_with_an_iteration(bool on_demand)
{
	struct beton_loader_options o = {
		.size = sizeof(o),
		.spec = "order=random,batch=4,seed=3",
		.workers = 2,
		.on_demand = on_demand,
	};
	struct rng rng = { .key = on_demand };
	const struct beton_batch *b, *held[8] = { NULL };
	struct beton_loader *l;

	CHECK(!beton_loader_open(path, &o, &l));
	for (unsigned i = 0; i < 4000; i++) {
		uint64_t epoch = rng_next(&rng) % 3;
		uint64_t number = rng_next(&rng) % STEPS;
		unsigned at = rng_next(&rng) % 8;
		int r;

		if (held[at])
			beton_loader_release(l, held[at]);
		held[at] = NULL;
		switch (rng_next(&rng) % (on_demand ? 4 : 7)) {
		case 0:
		case 1:
			r = beton_loader_ask(l, epoch, number, i % 3);
			CHECK(!r || r == -EAGAIN);
			break;
		case 2:
		case 3:
			CHECK(!beton_loader_make(l, epoch, number, &b));
			CHECK(b->epoch == epoch && b->number == number);
			CHECK(is_right(b));
			held[at] = b;
			break;
		case 4:
			CHECK(!beton_loader_seek(l, epoch));
			break;
		default:
			r = beton_loader_next(l, &b);
			CHECK(r == -ENODATA || (!r && is_right(b)));
			held[at] = r ? NULL : b;
		}
	}
	CHECK(beton_loader_make(l, 0, STEPS, &b) == -EINVAL);
	CHECK(strstr(beton_loader_error(l), "no batch 10 of epoch 0"));
	CHECK(beton_loader_ask(l, UINT64_MAX, 0, 0) == -EINVAL);
	for (unsigned i = 0; i < 100; i++)
		beton_loader_ask(l, i, i % STEPS, 0);
	beton_loader_stop(l);
	CHECK(beton_loader_make(l, 1000, 0, &b) == -ECANCELED);
	for (unsigned i = 0; i < 8; i++)
		CHECK(!held[i] || is_right(held[i]));
	beton_loader_close(l);
}

static void on_demand_there_is_no_next_batch(void)
{
	struct beton_loader_options o = { .size = sizeof(o), .on_demand = 1 };
	const struct beton_batch *b;
	struct beton_loader *l;

	CHECK(!beton_loader_open(path, &o, &l));
	CHECK(!beton_loader_wait(l, 1000));
	CHECK(beton_loader_next(l, &b) == -EINVAL);
	CHECK(strstr(beton_loader_error(l), "on_demand"));
	beton_loader_close(l);
}

static void hear(void *arg, enum beton_log_level level, const char *message)
{
	if (level == BETON_LOG_WARNING && strstr(message, "MiB each"))
		snprintf(arg, 600, "%s", message);
}

/* A batch has 4 TiB. The result depends on the machine. */
static void memory_that_is_not_there_is_reported_at_open(void)
{
	char heard[600] = "";
	struct beton_loader_options o = {
		.size = sizeof(o),
		.spec = "batch=1048576",
		.pipeline = "label | one_hot(1048576)",
		.workers = 1,
		.log = hear,
		.log_arg = heard,
	};
	struct beton_loader *l;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	printf("skipped, sanitizers refuse large memory: %s\n", __func__);
	return;
#endif
	write_dataset(1 << 20);
	CHECK(!beton_loader_open(path, &o, &l));
	beton_loader_close(l);
	CHECK(strstr(heard, "the batch in use and 1 prefetched with the "
			    "beginning of another, of 1048576 samples and "
			    "4194304 MiB each"));
	heard[0] = '\0';
	o.spec = "batch=4";
	CHECK(!beton_loader_open(path, &o, &l));
	beton_loader_close(l);
	o.spec = "batch=1048576";
	o.until = BETON_STAGE_READ;
	CHECK(!beton_loader_open(path, &o, &l));
	beton_loader_close(l);
	CHECK(!*heard);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !close(fd));
	write_dataset(SAMPLES);
	a_batch_is_ready_after_the_wait();
	a_constant_batch_is_waited_for_too();
	held_batches_outlive_a_stop();
	names_mix_with_an_iteration(false);
	names_mix_with_an_iteration(true);
	on_demand_there_is_no_next_batch();
	memory_that_is_not_there_is_reported_at_open();
	CHECK(!unlink(path));
	return 0;
}
