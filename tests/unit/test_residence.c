/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a loader with large batches: how much it has while batches are
   taken, what goes back to the system afterwards, and that no value changes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "beton/loader.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/crc32c.h"
#include "tests/unit/t.h"

/* The last batch of an epoch is smaller. The thread sanitizer makes all work
   slow. */
#if defined(__SANITIZE_THREAD__)
#	define SAMPLES "360"
enum { STEPS = 3 };
#else
#	define SAMPLES "1000"
enum { STEPS = 8 };
#endif

enum {
	ALL = 3 * STEPS,
	BATCH = 128,
	ROW = 3 * 224 * 224 * sizeof(float),
	HELD_MAX = 3,
	PAGE = 4096,
	PART = 64,
	KEPT = 80,
	WAIT_MS = 30,
	REST_MS = 20000,
	DEADLINE_S = 300,
};

static const uint64_t MIB = 1 << 20;
static const uint64_t BYTES = (uint64_t)BATCH * ROW;

static const char source[] =
	"synthetic(" SAMPLES ", image=\"uint8[32,32,3]\", label=\"int64<10\")";
static const char resize[] = "image | resize(224) | float | chw; label";
static const char mixup[] =
	"image | resize(224) | mixup(0.2) | float | chw; label | int64";

static uint32_t sums_resized[ALL];

static struct beton_loader *open_loader(const char *pipeline, uint32_t prefetch,
					uint64_t epochs)
{
	struct beton_loader_options o = {
		.size = sizeof(o),
		.spec = "batch=128,order=random,seed=3,drop_last=0",
		.source = source,
		.pipeline = pipeline,
		.workers = 2,
		.prefetch = prefetch,
		.epochs = epochs,
	};
	struct beton_loader *l;

	CHECK(!beton_loader_open("", &o, &l));
	return l;
}

/* Returns the bytes of large private mappings that are in memory, or 0 with the
   thread sanitizer, whose own mappings look the same. */
static uint64_t resident(void)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long long begin, end, kib, size = 0;
	uint64_t sum = 0;
	char line[512];

	CHECK(f);
#if defined(__SANITIZE_THREAD__)
	fclose(f);
	return 0;
#endif
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx ", &begin, &end) == 2)
			size = end - begin;
		if (sscanf(line, "Anonymous: %llu kB", &kib) == 1 &&
		    size >= 16 * MIB && size <= 2 * BYTES)
			sum += kib << 10;
	}
	fclose(f);
	return sum;
}

static bool is_near(uint64_t batches_in_tenths)
{
	return resident() <= BYTES / 10 * batches_in_tenths;
}

/* Returns a sum of some bytes of each page, because memory moves by pages. */
static uint32_t sum_of(const struct beton_batch *b)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < b->num_outputs; i++) {
		const struct beton_tensor *t = &b->outputs[i];

		for (uint64_t at = 0; at + PART <= t->size; at += PAGE)
			sum = crc32c(sum, (const uint8_t *)t->data + at, PART);
	}
	return crc32c(sum, b->ids, b->num_samples * sizeof(*b->ids));
}

/* The sums of all batches of three epochs, each released at once. */
static void sum_all(const char *pipeline, uint32_t sums[ALL])
{
	struct beton_loader *l = open_loader(pipeline, 5, 0);
	const struct beton_batch *b;

	for (unsigned i = 0; i < ALL; i++) {
		if (i && i % STEPS == 0)
			CHECK(beton_loader_next(l, &b) == -ENODATA);
		CHECK(!beton_loader_next(l, &b));
		sums[i] = sum_of(b);
		beton_loader_release(l, b);
	}
	beton_loader_close(l);
}

static void wait_ms(unsigned ms)
{
	usleep(ms * 1000);
}

/* How a program takes batches: how many it holds while it works, and whether it
   releases the oldest of them before or after it takes another one. */
struct how {
	unsigned holds;
	bool releases_after;
	unsigned works_ms;
};

/* Takes three epochs and returns the least memory after the first one, while the
   program worked. On a busy machine there can be more for a while. */
static uint64_t take_all(const char *pipeline, const uint32_t sums[ALL],
			 const struct how *how)
{
	struct beton_loader *l = open_loader(pipeline, 0, 0);
	const struct beton_batch *held[HELD_MAX + 1] = { NULL };
	uint64_t least = UINT64_MAX;
	unsigned n = 0;

	for (unsigned i = 0; i < ALL; i++) {
		if (!how->releases_after && n == how->holds)
			beton_loader_release(l, held[--n]);
		if (i && i % STEPS == 0)
			CHECK(beton_loader_next(l, &held[n]) == -ENODATA);
		memmove(held + 1, held, n * sizeof(*held));
		CHECK(!beton_loader_next(l, &held[0]));
		if (++n > how->holds)
			beton_loader_release(l, held[--n]);
		wait_ms(how->works_ms);
		if (i >= STEPS)
			least = min_u64(least, resident());
		CHECK(sum_of(held[n - 1]) == sums[i - (n - 1)]);
	}
	beton_loader_close(l);
	return least;
}

static void memory_is_that_of_two_batches_and_a_head(void)
{
	const struct how c = { 1, false, WAIT_MS };
	const struct how python = { 1, true, WAIT_MS };
	const struct how fast = { 1, true, 0 };

	CHECK(take_all(resize, sums_resized, &c) < BYTES / 10 * 25);
	CHECK(take_all(resize, sums_resized, &python) < BYTES / 10 * 25);
	CHECK(take_all(resize, sums_resized, &fast) < BYTES / 10 * 25);
}

/* By a program that looks at it for a while. */
static void the_first_batch_can_be_kept(void)
{
	struct beton_loader *l = open_loader(resize, 0, 0);
	const struct beton_batch *b, *last = NULL, *first;
	uint64_t least = UINT64_MAX;
	unsigned n = 0;

	CHECK(!beton_loader_next(l, &first));
	wait_ms(2 * WAIT_MS);
	while (n < KEPT) {
		int r = beton_loader_next(l, &b);

		CHECK(!r || r == -ENODATA);
		if (r)
			continue;
		if (last)
			beton_loader_release(l, last);
		last = b;
		if (++n > KEPT / 2)
			least = min_u64(least, resident());
	}
	CHECK(least < BYTES / 10 * 35);
	CHECK(sum_of(first) == sums_resized[0]);
	beton_loader_close(l);
}

static void any_number_of_batches_can_be_held(void)
{
	const struct how how = { 3, true, WAIT_MS };

	CHECK(take_all(resize, sums_resized, &how) < BYTES / 10 * 45);
}

/* Mixing has twice the memory. */
static void mixed_samples_are_right(void)
{
	const struct how how = { 1, true, WAIT_MS };
	uint32_t sums[ALL];

	sum_all(mixup, sums);
	CHECK(take_all(mixup, sums, &how) < BYTES / 10 * 50);
}

/* A batch by name gets memory while a later one waits for it, and the program
   releases none. */
static void batches_by_name_need_no_release(void)
{
	struct beton_loader *l = open_loader(resize, 0, 0);
	const struct beton_batch *b;

	CHECK(!beton_loader_next(l, &b));
	wait_ms(10 * WAIT_MS);
	for (unsigned i = 0; i < STEPS; i++) {
		CHECK(!beton_loader_make(l, 0, i, &b));
		CHECK(sum_of(b) == sums_resized[i]);
	}
	beton_loader_close(l);
}

/* Waits until the memory is at most so many tenths of a batch. */
static bool goes_down_to(uint64_t tenths)
{
	int64_t end = clock_ns() + REST_MS * INT64_C(1000000);

	while (!is_near(tenths) && clock_ns() < end)
		wait_ms(20);
	return is_near(tenths);
}

static void an_idle_loader_has_only_the_batches_that_are_held(void)
{
	struct beton_loader *l = open_loader(resize, 0, 0);
	const struct beton_batch *a, *b;
	const uint32_t *sums = sums_resized;
	char state[2][4096];

	CHECK(!beton_loader_next(l, &a) && !beton_loader_next(l, &b));
	beton_loader_release(l, a);
	CHECK(!beton_loader_state(l, state[0], sizeof(state[0])));
	CHECK(goes_down_to(11));
	CHECK(sum_of(b) == sums[1]);
	beton_loader_release(l, b);
	CHECK(goes_down_to(1));
	CHECK(!beton_loader_state(l, state[1], sizeof(state[1])));
	CHECK(!strcmp(state[0], state[1]));
	for (unsigned i = 2; i < STEPS; i++) {
		CHECK(!beton_loader_next(l, &b));
		CHECK(sum_of(b) == sums[i]);
		beton_loader_release(l, b);
	}
	CHECK(beton_loader_next(l, &b) == -ENODATA);
	CHECK(goes_down_to(1));
	CHECK(!beton_loader_next(l, &b) && sum_of(b) == sums[STEPS]);
	beton_loader_close(l);
}

static void a_finished_loader_has_none(void)
{
	struct beton_loader *l = open_loader(resize, 4, 1);
	const struct beton_batch *b;

	for (unsigned i = 0; i < STEPS; i++) {
		CHECK(!beton_loader_next(l, &b));
		beton_loader_release(l, b);
	}
	CHECK(beton_loader_next(l, &b) == -ENODATA);
	CHECK(goes_down_to(1));
	CHECK(beton_loader_next(l, &b) == -ENODATA);
	beton_loader_close(l);
}

/* A program that takes a batch each second keeps the prefetched ones. */
static void a_slow_program_does_not_make_a_loader_rest(void)
{
	struct beton_loader *l = open_loader(resize, 0, 0);
	const struct beton_batch *b;

	for (unsigned i = 0; i < 3; i++) {
		CHECK(!beton_loader_next(l, &b));
		beton_loader_release(l, b);
		wait_ms(i < 2 ? 600 : 1600);
	}
	CHECK(!beton_loader_wait(l, 0));
	beton_loader_close(l);
}

/* Nor does one that polls. */
static void a_polled_batch_stays(void)
{
	struct beton_loader *l = open_loader(resize, 0, 0);

	while (beton_loader_wait(l, 0) == -EAGAIN)
		wait_ms(1);
	for (unsigned i = 0; i < 8; i++) {
		CHECK(!beton_loader_wait(l, 0));
		wait_ms(250);
	}
	beton_loader_close(l);
}

int main(void)
{
	alarm(DEADLINE_S);
	sum_all(resize, sums_resized);
	memory_is_that_of_two_batches_and_a_head();
	the_first_batch_can_be_kept();
	any_number_of_batches_can_be_held();
	mixed_samples_are_right();
	batches_by_name_need_no_release();
	an_idle_loader_has_only_the_batches_that_are_held();
	a_finished_loader_has_none();
	a_slow_program_does_not_make_a_loader_rest();
	a_polled_batch_stays();
	return 0;
}
