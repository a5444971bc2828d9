/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users of a loader that take, hold, release, seek and ask in any order, while its
 * ring checks its invariants before each release of its lock (Makefile).
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "beton/loader.h"
#include "fs/base/util/rng.h"
#include "tests/unit/linked.h"
#include "tests/unit/t.h"

enum {
	STEPS = 400,
	HELD_MAX = 5,
	EPOCHS = 4,
	NAMES = 6,	/* of the 8 batches of an epoch */
	IDLE_MS = 1300, /* more than the ring takes to be idle */
	PAUSE_MAX = 3,
};

#define ORDER "order=random,seed=5,drop_last=0,"

/* A user, and the batches that it holds. */
struct user {
	const char *name;
	const char *path;
	const char *spec;
	const char *source;
	const char *pipeline;
	enum beton_stage until;
	uint32_t workers;
	uint32_t prefetch;
	bool on_demand;
	bool callback;
	bool goes_idle;

	struct beton_loader *loader;
	const struct beton_batch *held[HELD_MAX];
	unsigned num_held;
	struct rng rng;
};

static uint64_t below(struct user *u, uint64_t n)
{
	return rng_next(&u->rng) % n;
}

static int look(void *arg, const struct beton_batch *batch, char *why,
		size_t size)
{
	(void)arg;
	(void)batch;
	(void)why;
	(void)size;
	return 0;
}

static void open_loader(struct user *u)
{
	char error[500] = "";
	struct beton_loader_options o = {
		.size = sizeof(o),
		.spec = u->spec ? u->spec : ORDER "batch=40",
		.source = u->source,
		.pipeline = u->pipeline,
		.workers = u->workers,
		.prefetch = u->prefetch,
		.until = u->until,
		.on_error = BETON_ON_ERROR_SKIP,
		.on_demand = u->on_demand,
		.callback = u->callback,
		.error = error,
		.error_size = sizeof(error),
	};
	int r = beton_loader_open(u->path ? u->path : "", &o, &u->loader);

	if (r)
		fprintf(stderr, "%s: %s\n", u->name, error);
	CHECK(!r);
	if (u->callback)
		CHECK(!beton_loader_set_callback(u->loader, look, NULL));
}

static void release(struct user *u, unsigned i)
{
	beton_loader_release(u->loader, u->held[i]);
	u->held[i] = u->held[--u->num_held];
}

static int take(struct user *u, const struct beton_batch **out)
{
	if (u->on_demand)
		return beton_loader_make(u->loader, below(u, EPOCHS),
					 below(u, NAMES), out);
	return beton_loader_next(u->loader, out);
}

static void take_and_hold(struct user *u)
{
	const struct beton_batch *b;
	int r;

	if (u->num_held == HELD_MAX)
		release(u, (unsigned)below(u, HELD_MAX));
	r = take(u, &b);
	CHECK(!r || r == -ENODATA);
	if (!r)
		u->held[u->num_held++] = b;
}

static void seek_or_ask(struct user *u)
{
	int r;

	if (!u->on_demand) {
		CHECK(!beton_loader_seek(u->loader, below(u, EPOCHS)));
		return;
	}
	r = beton_loader_ask(u->loader, below(u, EPOCHS), below(u, NAMES),
			     (uint32_t)below(u, PAUSE_MAX));
	CHECK(!r || r == -EAGAIN);
}

static void wait_a_little(struct user *u)
{
	uint32_t ms = (uint32_t)below(u, PAUSE_MAX);
	int r = beton_loader_wait(u->loader, ms);

	CHECK(!r || r == -EAGAIN);
	usleep(ms * 1000);
}

static void act(struct user *u)
{
	switch (below(u, 12)) {
	case 0:
		seek_or_ask(u);
		break;
	case 1:
	case 2:
		wait_a_little(u);
		break;
	case 3:
	case 4:
	case 5:
	case 6:
		if (u->num_held)
			release(u, (unsigned)below(u, u->num_held));
		break;
	default:
		take_and_hold(u);
	}
}

static void use(struct user *u)
{
	u->rng = (struct rng){ .key = rng_key_of_text(u->name) };
	open_loader(u);
	for (unsigned i = 0; i < STEPS; i++) {
		act(u);
		if (u->goes_idle && i % (STEPS / 2) == STEPS / 4)
			usleep(IDLE_MS * 1000);
	}
	beton_loader_close(u->loader);
}

#define SMALL "synthetic(310, image=\"uint8[8,8,3]\", label=\"int64<10\")"

int main(void)
{
	char path[] = "/tmp/turns.XXXXXX";
	static const char values[] = "image | float | chw; label";
	/* 600 KB a sample: a head of 32 samples for two workers, and a body of
	   8. */
	static const char large[] = "image | resize(224) | float | chw; label";
	struct user users[] = {
		{ .name = "small batches",
		  .source = SMALL,
		  .pipeline = values,
		  .workers = 2,
		  .prefetch = 3 },
		{ .name = "one worker and one batch",
		  .source = SMALL,
		  .pipeline = values,
		  .workers = 1,
		  .prefetch = 1 },
		{ .name = "two rounds and a callback",
		  .source = SMALL,
		  .pipeline = "image | mixup(0.2) | float; label",
		  .workers = 3,
		  .prefetch = 2,
		  .callback = true },
		{ .name = "reads alone",
		  .source = SMALL,
		  .pipeline = values,
		  .workers = 2,
		  .until = BETON_STAGE_READ },
		{ .name = "batches by name",
		  .source = SMALL,
		  .pipeline = values,
		  .workers = 2,
		  .prefetch = 3,
		  .on_demand = true },
		{ .name = "replayed batches",
		  .source = SMALL " | memory",
		  .pipeline = values,
		  .workers = 2,
		  .prefetch = 3 },
		{ .name = "heads and bodies",
		  .source = SMALL,
		  .pipeline = large,
		  .workers = 2,
		  .goes_idle = true },
		/* Its head has 27 samples, but workers take 8 at a time. */
		{ .name = "a head that is no multiple",
		  .source = SMALL,
		  .pipeline = large,
		  .workers = 1 },
		{ .name = "a file with damaged samples",
		  .path = path,
		  .spec = ORDER "batch=8",
		  .pipeline = "image | resize(16); label; blob",
		  .workers = 2,
		  .prefetch = 3 },
		{ .name = "more complete batches",
		  .source = SMALL,
		  .pipeline = large,
		  .workers = 2,
		  .prefetch = 4 },
	};

	linked_write(path, true);
	for (size_t i = 0; i < sizeof(users) / sizeof(*users); i++)
		use(&users[i]);
	CHECK(!unlink(path));
	return 0;
}
