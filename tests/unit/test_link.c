/* SPDX-License-Identifier: Apache-2.0 */
/* A trainer with makers delivers the batches of a loader that is alone. */
#include "tests/unit/gpu.h"
#include "tests/unit/linked.h"

enum { EPOCHS = 3 };

static char path[] = "/tmp/test_link.XXXXXX";
static char damaged[] = "/tmp/test_link.XXXXXX";
static char cache[] = "/tmp/test_link.XXXXXX";
static char subset[] = "/tmp/test_link.XXXXXX";
static char subset_option[100];
static struct gpu gpu;

struct set {
	const char *spec;
	const char *pipeline;
	bool has_subset;
};

#define SPEC "order=random,batch=8,seed=7,drop_last=0"

static const struct set sets[] = {
	{ .spec = SPEC,
	  .pipeline = "image | random_resized_crop(20) | flip | "
		      "normalize(imagenet) | float | chw; label" },
	/* Outputs in another order than the fields, and fields without one. */
	{ .spec = SPEC,
	  .pipeline = "label; view = image | center_crop(17); image | drop; "
		      "score | drop; vec; blob | drop" },
	{ .spec = SPEC,
	  .pipeline = "text; image | random_resized_crop(12) | half | chw; "
		      "small = image | center_crop(8); vec | half; blob" },
	{ .spec = SPEC,
	  .pipeline = "image | random_resized_crop(\"0=9,1=12,2=7\") | flip | "
		      "brightness(0.5, 1) | normalize(imagenet) | float" },
	{ .spec = SPEC,
	  .pipeline =
		  "image | resize(\"16,16\") | cutmix(1) | normalize(imagenet) | "
		  "float; label | one_hot(9) | cutmix(1)" },
	{ .spec = SPEC,
	  .pipeline = "image | resize(\"16,16\") | mixup(0.4); label" },
	{ .spec = SPEC,
	  .pipeline = "image | multi_crop(12, views=3) | float | chw; label" },
	{ .spec = SPEC,
	  .pipeline = "image | drop; text | json(float32, row=2); label; "
		      "more = text | json(float32, row=2) | pad_to(batch); "
		      "few = text | json(float32, row=2) | pack(20); "
		      "five = text | json(float64, row=2) | pad_to(5)" },
	{ .spec = "order=sequential,batch=7",
	  .pipeline = "blob; text; image | center_crop(9) | cutout(3)" },
	{ .spec = "order=weighted,subset=few,batch=8,seed=3",
	  .pipeline = "image | random_resized_crop(9) | flip; label",
	  .has_subset = true },
};

static struct beton_loader_options options_of(const struct set *s)
{
	return (struct beton_loader_options){
		.spec = s->spec,
		.pipeline = s->pipeline,
		.subset = s->has_subset ? subset_option : NULL,
		.prefetch = 6,
	};
}

static void compare_with_makers(const char *of,
				const struct beton_loader_options *o,
				const struct linked_records *want,
				unsigned makers, bool spare)
{
	struct linked_records got = { .n = 0 };
	struct linked_team t;
	char what[600];

	snprintf(what, sizeof(what), "%s, %u makers, %s workers", o->pipeline,
		 makers, spare ? "spare" : "own");
	linked_open_trainer(&t, of, o, spare);
	for (unsigned i = 0; i < makers; i++)
		linked_add(&t, of, o, NULL);
	linked_await(&t, makers);
	linked_drain(t.trainer, EPOCHS, &got);
	CHECK(!spare || linked_stats(t.trainer).batches);
	CHECK(linked_stats(t.trainer).refused || !linked_stats(t.trainer).lost);
	linked_close(&t);
	for (unsigned i = 0; i < makers; i++)
		CHECK(!t.makers[i].served &&
		      (t.makers[i].attached == -ECANCELED ||
		       t.makers[i].attached == -EREMOTEIO));
	linked_compare(&got, want, what);
}

static void batches_are_those_of_a_loader_alone(void)
{
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		struct beton_loader_options o = options_of(&sets[i]);
		struct linked_records want;

		linked_alone(path, &o, EPOCHS, &want);
		CHECK(want.n && !want.failed);
		for (unsigned makers = 1; makers <= 3; makers++)
			for (unsigned spare = 0; spare < 2; spare++)
				compare_with_makers(path, &o, &want, makers,
						    spare);
	}
}

static void so_are_those_of_ranks_and_their_padding(void)
{
	struct beton_loader_options o = options_of(&sets[0]);

	for (unsigned i = 0; i < 6; i++) {
		struct linked_records want;

		o.prefetch = 2;
		o.world_size = 3;
		o.rank = i % 3;
		o.no_padding = i / 3;
		linked_alone(path, &o, EPOCHS, &want);
		compare_with_makers(path, &o, &want, 2, i % 2);
	}
}

static void so_are_damaged_samples(void)
{
	static const size_t with[] = { 0, 2, 4, 7 };

	for (size_t i = 0; i < ARRAY_LEN(with); i++) {
		struct beton_loader_options o = options_of(&sets[with[i]]);

		for (int e = 0; e <= BETON_ON_ERROR_ZERO; e++) {
			struct linked_records want;

			o.epochs = EPOCHS;
			o.on_error = (enum beton_on_error)e;
			linked_alone(damaged, &o, EPOCHS, &want);
			CHECK(want.failed);
			compare_with_makers(damaged, &o, &want, 1, e % 2);
			compare_with_makers(damaged, &o, &want, 2, true);
		}
	}
}

static void so_are_those_on_a_gpu(void)
{
	static const char *const pipelines[] = {
		"image | random_resized_crop(12) | flip | brightness(0.5, 1) | "
		"cuda(0) | saturation(0.4, 1) | normalize(imagenet) | half | "
		"chw; label | cuda(0)",
		"image | random_resized_crop(12) | float | cuda(0); blob; "
		"vec | cuda(0); text | json(float32, row=2)",
		"image | resize(\"12,12\") | cutmix(1) | cuda(0) | "
		"normalize(imagenet) | float; label | one_hot(9) | cutmix(1)",
		"image | random_resized_crop(\"0=9,1=12\") | cuda(0, auto) | "
		"normalize(imagenet) | float | chw",
	};

	for (size_t i = 0; i < ARRAY_LEN(pipelines); i++) {
		struct beton_loader_options o = { .spec = SPEC,
						  .pipeline = pipelines[i],
						  .prefetch = 6 };
		struct linked_records want;

		linked_alone(path, &o, EPOCHS, &want);
		for (unsigned makers = 1; makers <= 2; makers++)
			for (unsigned spare = 0; spare < 2; spare++)
				compare_with_makers(path, &o, &want, makers,
						    spare);
	}
}

/* --- positions, and the user's callback --- */

static void seeks_and_states_count_as_alone(void)
{
	struct beton_loader_options o = options_of(&sets[0]);
	struct beton_loader *alone = linked_open(path, &o), *later;
	struct linked_records want = { .n = 0 }, got = { .n = 0 };
	struct linked_team t;
	struct rng rng = { .key = 5 };
	char state[2][4096];

	linked_open_trainer(&t, path, &o, false);
	linked_add(&t, path, &o, NULL);
	linked_add(&t, path, &o, NULL);
	linked_await(&t, 2);
	for (unsigned i = 0; i < 40; i++) {
		uint64_t epoch = rng_next(&rng) % 9;
		unsigned steps = rng_next(&rng) % 6;

		want.n = got.n = 0;
		if (i % 2) {
			CHECK(!beton_loader_seek(alone, epoch));
			CHECK(!beton_loader_seek(t.trainer, epoch));
		} else if (i) {
			CHECK(!beton_loader_load(alone, state[1]));
			CHECK(!beton_loader_load(t.trainer, state[0]));
		}
		for (unsigned k = 0; k < steps; k++)
			CHECK(linked_take(alone, &want) ==
			      linked_take(t.trainer, &got));
		if (i % 3 == 1)
			linked_sleep(2);
		linked_compare(&got, &want, "after a seek");
		CHECK(!beton_loader_state(alone, state[0], sizeof(*state)));
		CHECK(!beton_loader_state(t.trainer, state[1], sizeof(*state)));
		CHECK(!strcmp(state[0], state[1]));
	}
	want.n = got.n = 0;
	later = linked_open(path, &o);
	CHECK(!beton_loader_load(later, state[1]));
	linked_drain(later, 1, &got);
	linked_drain(alone, 1, &want);
	linked_compare(&got, &want, "without makers");
	beton_loader_close(later);
	beton_loader_close(alone);
	linked_close(&t);
}

/* Fails for every fourth batch. */
static int change(void *arg, const struct beton_batch *b, char *why,
		  size_t size)
{
	uint8_t *bytes = (uint8_t *)b->outputs[0].data;

	(void)arg;
	for (uint64_t i = 0; i < b->outputs[0].size; i++)
		bytes[i] ^= (uint8_t)(b->number + i);
	if (b->number % 4)
		return 0;
	snprintf(why, size, "no");
	return -EDOM;
}

static void the_callback_gets_each_batch(void)
{
	for (size_t i = 0; i < 2; i++) {
		struct beton_loader_options o = options_of(&sets[i]);
		struct beton_loader *alone;
		struct linked_records want = { .n = 0 }, got = { .n = 0 };
		struct linked_team t;

		o.callback = true;
		alone = linked_open(path, &o);
		CHECK(!beton_loader_set_callback(alone, change, NULL));
		linked_drain(alone, EPOCHS, &want);
		beton_loader_close(alone);
		linked_open_trainer(&t, path, &o, true);
		CHECK(!beton_loader_set_callback(t.trainer, change, NULL));
		linked_add(&t, path, &o, NULL);
		linked_await(&t, 1);
		linked_drain(t.trainer, EPOCHS, &got);
		linked_close(&t);
		linked_compare(&got, &want, "with a callback");
	}
}

static void batches_by_name_need_no_makers(void)
{
	struct beton_loader_options o = options_of(&sets[0]);
	const struct beton_batch *b;
	struct linked_records want, got = { .n = 0 };
	struct linked_team t;

	linked_alone(path, &o, 1, &want);
	linked_open_trainer(&t, path, &o, true);
	linked_add(&t, path, &o, NULL);
	linked_await(&t, 1);
	for (uint64_t i = want.n; i--;) {
		CHECK(!beton_loader_make(t.trainer, 0, want.r[i].number, &b));
		CHECK(linked_crc(t.trainer, b) == want.r[i].crc);
		beton_loader_release(t.trainer, b);
		if (i % 2)
			linked_take(t.trainer, &got);
	}
	while (linked_take(t.trainer, &got))
		;
	linked_close(&t);
	linked_compare(&got, &want, "beside batches by name");
}

static void write_subset(void)
{
	int fd = mkstemp(subset);
	FILE *f = fdopen(fd, "w");

	CHECK(fd >= 0 && f);
	for (unsigned i = 0; i < LINKED_SAMPLES; i++)
		fprintf(f, "%u %u\n", i, 1 + i % 5);
	CHECK(!fclose(f));
	snprintf(subset_option, sizeof(subset_option), "few:%s", subset);
}

static void remove_cache(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s", cache);
	CHECK(!system(command));
}

int main(void)
{
	struct gpu nvrtc;

	alarm(LINKED_DEADLINE_S);
	gpu_begin(&gpu);
	gpu_find_standin(&nvrtc, "nvrtc");
	if (gpu.standin)
		setenv("BETON_NVRTC_LIBRARY", nvrtc.path, 1);
	CHECK(mkdtemp(cache));
	setenv("BETON_CACHE_DIR", cache, 1);
	setenv("BETON_JIT", "off", 1);
	linked_write(path, false);
	linked_write(damaged, true);
	write_subset();
	batches_are_those_of_a_loader_alone();
	so_are_those_of_ranks_and_their_padding();
	so_are_damaged_samples();
	seeks_and_states_count_as_alone();
	the_callback_gets_each_batch();
	batches_by_name_need_no_makers();
	so_are_those_on_a_gpu();
	CHECK(!unlink(path) && !unlink(damaged) && !unlink(subset));
	remove_cache();
	gpu_end(&gpu);
	return 0;
}
