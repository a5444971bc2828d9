/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeated batches: they have the numbers, ids, lengths and ends of the batches
 * that would have come, and the values of the first. Nothing is read for them.
 * The dataset is synthetic, so that there are real batches to compare with.
 */
#include <errno.h>
#include <string.h>

#include "beton/loader.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "tests/unit/gpu.h"
#include "tests/unit/t.h"

#define DATA                                                                   \
	"synthetic(50, image=\"uint8[9,12,3]\", label=\"int64<9\", "           \
	"blob=\"bytes[7]\", vec=\"float32[3]\")"
#define TEXT "random_resized_crop(\"0=4,2=6\") | flip | float"
#define CUDA(how)                                                              \
	"random_resized_crop(\"0=4,2=6\") | flip | cuda(0" how ") | "          \
	"normalize(imagenet) | half | chw; label; vec | cuda(0)"

enum { BATCH = 8, STEPS = 7, EPOCHS = 4, PREFETCH = 2, HELD_MAX = 9 };

static struct gpu gpu;
static char error[1024];

struct how {
	const char *source;
	const char *text;
	const char *spec; /* NULL: all samples, in batches of BATCH */
	uint32_t workers;
	uint32_t rank, world_size;
	uint64_t epoch;
};

static struct beton_loader *open_loader(const struct how *how)
{
	const struct beton_loader_options o = {
		.size = sizeof(o),
		.spec = how->spec ? how->spec : "batch=8,drop_last=0",
		.pipeline = how->text ? how->text : TEXT,
		.source = how->source,
		.workers = how->workers ? how->workers : 2,
		.prefetch = PREFETCH,
		.rank = how->rank,
		.world_size = how->world_size,
		.epoch = how->epoch,
		.error = error,
		.error_size = sizeof(error),
	};
	struct beton_loader *l;
	int r = beton_loader_open("/nowhere", &o, &l);

	if (r)
		fprintf(stderr, "%s: %s\n", how->source, error);
	CHECK(!r);
	return l;
}

static uint64_t items(struct beton_loader *l, const char *stage)
{
	struct beton_stage_stats s[16];
	size_t n = beton_loader_stats(l, s, ARRAY_LEN(s));

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(s[i].name, stage))
			return s[i].items;
	}
	return 0;
}

/* --- batches that were seen --- */

struct output {
	uint64_t shape[5];
	uint32_t ndim;
	uint64_t size;
	uint8_t *bytes;
	int64_t *offsets;
};

struct seen {
	uint64_t epoch, number;
	uint32_t rows, num_outputs;
	uint64_t ids[BATCH];
	uint8_t valid[BATCH];
	struct output outputs[4];
};

static struct seen look(struct beton_loader *l, const struct beton_batch *b)
{
	struct seen s = { .epoch = b->epoch,
			  .number = b->number,
			  .rows = b->num_samples,
			  .num_outputs = b->num_outputs };

	CHECK(b->num_samples <= BATCH && b->num_outputs <= 4);
	memcpy(s.ids, b->ids, b->num_samples * sizeof(s.ids[0]));
	memcpy(s.valid, b->valid, b->num_samples);
	for (uint32_t i = 0; i < b->num_outputs; i++) {
		const struct beton_tensor *t = &b->outputs[i];
		struct output *o = &s.outputs[i];

		CHECK(t->ndim <= 5);
		o->ndim = t->ndim;
		memcpy(o->shape, t->shape, t->ndim * sizeof(o->shape[0]));
		o->size = t->size;
		o->bytes = malloc(t->size + 1);
		CHECK(!beton_loader_read(l, b, i, o->bytes));
		if (!t->offsets)
			continue;
		o->offsets = malloc((b->num_samples + 1) * sizeof(*o->offsets));
		memcpy(o->offsets, t->offsets,
		       (b->num_samples + 1) * sizeof(*o->offsets));
	}
	return s;
}

static void forget(struct seen *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < s[i].num_outputs; k++) {
			free(s[i].outputs[k].bytes);
			free(s[i].outputs[k].offsets);
		}
	}
}

/* Takes the next batch, and gives it back. */
static struct seen step(struct beton_loader *l)
{
	const struct beton_batch *b;
	struct seen s;

	CHECK(!beton_loader_next(l, &b));
	s = look(l, b);
	beton_loader_release(l, b);
	return s;
}

/* All epochs; as many steps as there are. */
static size_t run(struct beton_loader *l, struct seen *out, size_t max)
{
	const struct beton_batch *b;
	size_t n = 0;
	int r;

	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
		while (!(r = beton_loader_next(l, &b))) {
			CHECK(n < max);
			out[n++] = look(l, b);
			beton_loader_release(l, b);
		}
		CHECK(r == -ENODATA);
	}
	return n;
}

/* All but the values are the batch's own. */
static void check_frame(const struct seen *got, const struct seen *real)
{
	CHECK(got->epoch == real->epoch && got->number == real->number);
	CHECK(got->rows == real->rows);
	CHECK(!memcmp(got->ids, real->ids, sizeof(got->ids)));
	CHECK(!memcmp(got->valid, real->valid, sizeof(got->valid)));
	CHECK(got->num_outputs == real->num_outputs);
	for (uint32_t i = 0; i < got->num_outputs; i++) {
		const struct output *a = &got->outputs[i];
		const struct output *b = &real->outputs[i];

		CHECK(a->ndim == b->ndim && a->size == b->size);
		CHECK(!memcmp(a->shape, b->shape, sizeof(a->shape)));
	}
}

/* The values are the first rows' of another. */
static bool has_values(const struct seen *got, const struct seen *of)
{
	for (uint32_t i = 0; i < got->num_outputs; i++) {
		const struct output *a = &got->outputs[i];
		const struct output *b = &of->outputs[i];

		if (a->size > b->size || memcmp(a->bytes, b->bytes, a->size))
			return false;
		if (a->offsets &&
		    memcmp(a->offsets, b->offsets, (got->rows + 1) * 8))
			return false;
	}
	return true;
}

/* --- epochs --- */

/* Shapes are others from epoch 2 on: as many are kept of these. */
static void check_epochs(const struct how *real, const char *source,
			 size_t kept)
{
	struct how how = *real;
	struct seen want[EPOCHS * STEPS], got[EPOCHS * STEPS];
	struct beton_loader *l = open_loader(real);
	size_t n = run(l, want, ARRAY_LEN(want)), per = n / EPOCHS;

	beton_loader_close(l);
	how.source = source;
	l = open_loader(&how);
	CHECK(run(l, got, ARRAY_LEN(got)) == n);
	for (size_t i = 0; i < n; i++) {
		size_t first = i < 2 * per ? 0 : 2 * per;
		size_t of = first + (i - first) % kept;

		check_frame(&got[i], &want[i]);
		CHECK(has_values(&got[i], &want[of]));
		/* They do differ. */
		CHECK(i == of || !has_values(&got[i], &want[i]));
	}
	/* There are two kinds of epochs; the values are those of the coming
	   kind. */
	CHECK(items(l, "read") == 2 * kept);
	CHECK(items(l, "transform") == 2 * kept * BATCH);
	beton_loader_close(l);
	forget(want, n);
	forget(got, n);
}

static void one_batch_is_given_indefinitely(void)
{
	const struct how real = { .source = DATA };

	check_epochs(&real, DATA " | constant", 1);
}

/* By default as many as the ring has in use. */
static void some_batches_go_round(void)
{
	const struct how real = { .source = DATA };

	check_epochs(&real, DATA " | memory", PREFETCH + 1);
}

static void a_size_reports_how_many(void)
{
	const struct how big = { .source = DATA " | memory(1MiB)" };
	const struct how small = { .source = DATA " | memory(1)" };
	struct seen seen[EPOCHS * STEPS];
	struct beton_loader *l = open_loader(&big);
	size_t n = run(l, seen, ARRAY_LEN(seen));

	forget(seen, n);
	/* All whole ones, and every short one; they all fit. */
	CHECK(items(l, "read") >= 4 * (STEPS - 1));
	beton_loader_close(l);
	l = open_loader(&small);
	n = run(l, seen, ARRAY_LEN(seen));
	forget(seen, n);
	CHECK(items(l, "read") == 2);
	beton_loader_close(l);
}

/* Ranks have batches of their own, of which the last may be padding. */
static void ranks_are_as_ever(void)
{
	for (uint32_t rank = 0; rank < 3; rank++) {
		const struct how real = { .source = DATA,
					  .rank = rank,
					  .world_size = 3 };

		check_epochs(&real, DATA " | constant", 1);
	}
}

/* A rank that has short batches alone gets them as they are. */
static void short_batches_are_not_kept(void)
{
	struct how how = { .source = DATA,
			   .rank = STEPS - 1,
			   .world_size = STEPS };
	struct seen want[EPOCHS], got[EPOCHS];
	struct beton_loader *l = open_loader(&how);

	CHECK(run(l, want, EPOCHS) == EPOCHS);
	beton_loader_close(l);
	how.source = DATA " | constant";
	l = open_loader(&how);
	CHECK(run(l, got, EPOCHS) == EPOCHS);
	for (size_t i = 0; i < EPOCHS; i++) {
		CHECK(want[i].rows == 50 % BATCH);
		check_frame(&got[i], &want[i]);
		CHECK(has_values(&got[i], &want[i]));
	}
	CHECK(items(l, "read") >= EPOCHS);
	beton_loader_close(l);
	forget(want, EPOCHS);
	forget(got, EPOCHS);
}

/* --- consumers that hold, seek and resume --- */

struct play {
	struct rng rng;
	struct beton_loader *real, *l;
	const struct beton_batch *held[HELD_MAX];
	struct seen seen[HELD_MAX];
	size_t num_held;
};

static uint64_t draw(struct play *p, uint64_t below)
{
	return rng_next(&p->rng) % below;
}

static void take(struct play *p)
{
	struct seen *s = &p->seen[p->num_held];
	const struct beton_batch *b;
	int r = beton_loader_next(p->l, &b);
	struct seen want;

	if (r) {
		CHECK(r == -ENODATA);
		CHECK(beton_loader_next(p->real, &b) == -ENODATA);
		return;
	}
	*s = look(p->l, b);
	want = step(p->real);
	check_frame(s, &want);
	forget(&want, 1);
	p->held[p->num_held++] = b;
}

/* It is still what it was. */
static void put(struct play *p, bool on_stream)
{
	size_t i = draw(p, p->num_held), last = --p->num_held;
	struct seen now = look(p->l, p->held[i]);

	check_frame(&now, &p->seen[i]);
	CHECK(has_values(&now, &p->seen[i]));
	forget(&now, 1);
	forget(&p->seen[i], 1);
	if (on_stream)
		CHECK(!beton_loader_release_on(p->l, p->held[i], NULL));
	else
		beton_loader_release(p->l, p->held[i]);
	p->held[i] = p->held[last];
	p->seen[i] = p->seen[last];
}

static void jump(struct play *p)
{
	uint64_t epoch = draw(p, 5);
	char state[4096];

	if (draw(p, 2)) {
		CHECK(!beton_loader_seek(p->real, epoch));
		CHECK(!beton_loader_seek(p->l, epoch));
		return;
	}
	CHECK(!beton_loader_state(p->l, state, sizeof(state)));
	CHECK(!beton_loader_load(p->real, state));
	CHECK(!beton_loader_load(p->l, state));
}

static void play(const struct how *real, const char *source, uint64_t seed)
{
	struct play p = { .rng = { .key = seed } };
	struct how how = *real;

	p.real = open_loader(real);
	how.source = source;
	p.l = open_loader(&how);
	for (unsigned i = 0; i < 60; i++) {
		uint64_t what = draw(&p, 12);

		if (what == 0)
			jump(&p);
		else if (what < 7 && p.num_held < HELD_MAX)
			take(&p);
		else if (p.num_held)
			put(&p, what % 2);
	}
	/* Some are still held, and stay what they are. */
	if (draw(&p, 2))
		beton_loader_stop(p.l);
	for (size_t n = p.num_held / 2; n; n--)
		put(&p, n % 2);
	beton_loader_close(p.l);
	beton_loader_close(p.real);
	forget(p.seen, p.num_held);
}

static void batches_may_be_kept(void)
{
	static const char *const sources[] = { DATA " | constant",
					       DATA " | memory",
					       DATA " | memory(20K)" };
	const struct how real = { .source = DATA, .workers = 3 };

	for (uint64_t seed = 0; seed < 30; seed++)
		play(&real, sources[seed % ARRAY_LEN(sources)], seed);
}

/* --- a GPU --- */

static void play_on_gpu(const char *text)
{
	static const char *const sources[] = { DATA " | constant",
					       DATA " | memory" };
	const struct how real = { .source = DATA, .text = text };

	for (uint64_t seed = 0; seed < 6; seed++) {
		if (gpu.standin) {
			gpu.standin->reset(seed);
			gpu.standin->allow_default(true);
		}
		play(&real, sources[seed % ARRAY_LEN(sources)], seed);
		CHECK(!gpu.standin || !gpu.standin->living());
	}
}

/* The upload counts one repeated batch once, or all in use each time. */
static void uploads_are_counted(void)
{
	struct how how = { .source = DATA " | constant", .text = CUDA("") };
	struct seen seen[EPOCHS * STEPS];
	struct beton_loader *l = open_loader(&how);

	forget(seen, run(l, seen, ARRAY_LEN(seen)));
	CHECK(items(l, "upload") == 2 && items(l, "read") == 2);
	beton_loader_close(l);
	how.source = DATA " | memory";
	l = open_loader(&how);
	forget(seen, run(l, seen, ARRAY_LEN(seen)));
	CHECK(items(l, "upload") >= EPOCHS * STEPS);
	CHECK(items(l, "read") == 2 * (PREFETCH + 1));
	beton_loader_close(l);
}

static void gpus_are_fed(void)
{
	const struct how how = { .source = DATA, .text = CUDA("") };
	struct gpu nvrtc;

	gpu_begin(&gpu);
	if (gpu.standin) {
		gpu_find_standin(&nvrtc, "nvrtc");
		setenv("BETON_NVRTC_LIBRARY", nvrtc.path, 1);
		gpu.standin->reset(1);
		gpu.standin->allow_default(true);
	}
	check_epochs(&how, DATA " | constant", 1);
	check_epochs(&how, DATA " | memory", PREFETCH + 1);
	uploads_are_counted();
	play_on_gpu(CUDA(""));
	/* Each half of the batches as if it were all of them. */
	setenv("BETON_PLACEMENT", "turns", 1);
	play_on_gpu(CUDA(", auto"));
	gpu_end(&gpu);
}

int main(void)
{
	char cache[] = "/tmp/test_replay.XXXXXX", command[64];

	unsetenv("BETON_SYNTHETIC");
	CHECK(mkdtemp(cache));
	setenv("BETON_CACHE_DIR", cache, 1);
	one_batch_is_given_indefinitely();
	some_batches_go_round();
	a_size_reports_how_many();
	ranks_are_as_ever();
	short_batches_are_not_kept();
	batches_may_be_kept();
	gpus_are_fed();
	snprintf(command, sizeof(command), "rm -rf %s", cache);
	CHECK(!system(command));
	return 0;
}
