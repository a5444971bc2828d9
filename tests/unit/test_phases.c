/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that change with the epoch: what a text means when, and a loader that
   goes from one meaning to the next. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beton/loader.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/data/writer/writer.h"
#include "loader/run/transform/phases.h"
#include "tests/unit/fields.h"
#include "tests/unit/t.h"

enum { SAMPLES = 13, BATCH = 4, EPOCHS = 7, PIXELS_MAX = 40 * 40 * 3 };

static const struct pipeline_field fields[] = {
	FIELD_IMAGE(40, 30),
	FIELD_LABEL,
};

static char error[600];

static int parse(const char *text, struct phases **out)
{
	return phases_parse(text, fields, ARRAY_LEN(fields), out, error,
			    sizeof(error));
}

static size_t count(const struct phases *p)
{
	size_t n = 0;

	while (phases_row(p, n))
		n++;
	return n;
}

static void check_shape(const struct phases *p, uint64_t epoch, size_t output,
			uint64_t height, uint64_t width)
{
	const struct pipeline_output *o =
		pipeline_output_at(phases_at(p, epoch), output);

	CHECK(o->ndim == 3 && o->shape[0] == height && o->shape[1] == width);
	CHECK(o->row_size % (height * width * 3) == 0);
}

static void a_text_without_epochs_has_one_phase(void)
{
	struct phases *p;

	CHECK(!parse("center_crop(8) | flip", &p));
	CHECK(count(p) == 1 && phases_at(p, 0) == phases_at(p, UINT64_MAX - 1));
	phases_close(p);
	CHECK(!parse(NULL, &p) && count(p) == 1);
	phases_close(p);
	CHECK(!parse("flip(\"0=0.5\")", &p) && count(p) == 1);
	phases_close(p);
}

static void all_arguments_make_the_phases_together(void)
{
	struct phases *p;

	CHECK(!parse("a = image | random_resized_crop(\"0=16,10=19,14=22\") "
		     "| brightness(\"0=0,12=0.4\"); "
		     "b = image | resize(\"0=9,10=8,12\") | float",
		     &p));
	CHECK(count(p) == 4);
	for (uint64_t epoch = 0; epoch < 30; epoch++) {
		size_t i = (epoch >= 10) + (epoch >= 12) + (epoch >= 14);

		CHECK(phases_at(p, epoch) == phases_row(p, i));
	}
	CHECK(phases_at(p, INT64_MAX) == phases_row(p, 3));
	check_shape(p, 0, 0, 16, 16);
	check_shape(p, 13, 0, 19, 19);
	check_shape(p, 14, 0, 22, 22);
	check_shape(p, 9, 1, 9, 12);
	check_shape(p, 10, 1, 8, 12);
	phases_close(p);
}

static void check_error(const char *text, const char *want)
{
	struct phases *p;

	CHECK(parse(text, &p) == -EINVAL);
	if (strncmp(error, want, strlen(want)) != 0)
		fprintf(stderr, "%s: %s\n", text, error);
	CHECK(!strncmp(error, want, strlen(want)));
}

/* A schedule of so many sizes. */
static char *sizes(size_t n)
{
	char *text = malloc(32 + 16 * n);
	size_t used;

	CHECK(text);
	used = (size_t)sprintf(text, "resize(\"0=8");
	for (size_t i = 1; i < n; i++)
		used += (size_t)sprintf(text + used, ",%zu=%zu", 3 * i, i + 8);
	sprintf(text + used, "\")");
	return text;
}

static void late_mistakes_are_found_at_once(void)
{
	struct phases *p;
	char *text;

	check_error("flip; b = image | flip(\"0=1,900=2\")",
		    "column 33: p of flip takes");
	check_error("random_resized_crop(8, scale=\"0=0.1,1,7=1,0.5\")",
		    "column 1: random_resized_crop: the least scale");
	check_error("normalize(\"0=0.5,3=0.5,0.5\", 1)",
		    "column 1: normalize takes one number, or");
	text = sizes(PHASES_MAX);
	CHECK(!parse(text, &p) && count(p) == PHASES_MAX);
	phases_close(p);
	free(text);
	text = sizes(PHASES_MAX + 1);
	check_error(text, "column 1: epoch 192 brings other numbers again; "
			  "they can change 63 times");
	free(text);
}

/* --- a loader --- */

static char path[] = "/tmp/test_phases-XXXXXX";

static const char scheduled[] =
	"random_resized_crop(\"0=8,2=16,5,4=40,5=3\") | flip(\"0=0.5,3=1\") | "
	"brightness(\"0=0,1=0.4\") | float | chw; view = image | "
	"center_crop(\"0=9,6=7,9\")";

static const char *const plain[EPOCHS] = {
	"random_resized_crop(8) | flip(0.5) | brightness(0)",
	"random_resized_crop(8) | flip(0.5) | brightness(0.4)",
	"random_resized_crop(\"16,5\") | flip(0.5) | brightness(0.4)",
	"random_resized_crop(\"16,5\") | flip(1) | brightness(0.4)",
	"random_resized_crop(40) | flip(1) | brightness(0.4)",
	"random_resized_crop(3) | flip(1) | brightness(0.4)",
	"random_resized_crop(3) | flip(1) | brightness(0.4)",
};

static void write_dataset(void)
{
	static const struct writer_field f[] = {
		{ .name = "image", .type = BETON_TYPE_IMAGE },
		{ .name = "label", .type = BETON_TYPE_INT },
	};
	static uint8_t pixels[PIXELS_MAX];
	struct rng rng = { .key = 3 };
	struct writer *w;

	CHECK(!writer_open(path, f, 2, SAMPLES, 2 << 20, NULL, &w));
	for (uint32_t i = 0; i < SAMPLES; i++) {
		struct writer_value v[2] = {
			{ .bytes = pixels,
			  .mode = BETON_MODE_RAW,
			  .width = (uint16_t)(20 + i % 20),
			  .height = (uint16_t)(40 - i % 7) },
			{ .integer = i },
		};

		for (size_t k = 0; k < sizeof(pixels); k++)
			pixels[k] = (uint8_t)rng_next(&rng);
		v[0].size = 3 * (uint64_t)v[0].width * v[0].height;
		CHECK(!writer_append(w, v));
	}
	CHECK(!writer_finish(&w));
}

static struct beton_loader *load(const char *pipeline, uint64_t epoch,
				 uint32_t workers)
{
	struct beton_loader_options o = {
		.size = sizeof(o),
		.spec = "order=random,batch=4,seed=7,drop_last=0",
		.pipeline = pipeline,
		.epoch = epoch,
		.workers = workers,
		.prefetch = 9, /* more than two epochs */
		.error = error,
		.error_size = sizeof(error),
	};
	struct beton_loader *l;
	int r = beton_loader_open(path, &o, &l);

	if (r)
		fprintf(stderr, "%s: %s\n", pipeline, error);
	CHECK(!r);
	return l;
}

/* A loader with the values that the schedule has for this epoch. */
static struct beton_loader *load_plain(uint64_t epoch)
{
	char text[300];

	snprintf(text, sizeof(text),
		 "%s | float | chw; view = image | center_crop(%s)",
		 plain[epoch], epoch < 6 ? "9" : "\"7,9\"");
	return load(text, epoch, 2);
}

static void check_tensor(const struct beton_tensor *a,
			 const struct beton_tensor *b)
{
	CHECK(!strcmp(a->name, b->name) && !strcmp(a->dtype, b->dtype));
	CHECK(a->ndim == b->ndim && a->size == b->size);
	CHECK(!memcmp(a->shape, b->shape, a->ndim * sizeof(*a->shape)));
	CHECK(!memcmp(a->data, b->data, a->size));
}

static void check_batch(const struct beton_batch *a,
			const struct beton_batch *b)
{
	CHECK(a->epoch == b->epoch && a->number == b->number);
	CHECK(a->num_samples == b->num_samples &&
	      a->num_outputs == b->num_outputs);
	CHECK(!memcmp(a->ids, b->ids, a->num_samples * sizeof(*a->ids)));
	for (uint32_t i = 0; i < a->num_outputs; i++)
		check_tensor(&a->outputs[i], &b->outputs[i]);
}

/* The next batch, after a check of its announced outputs. */
static const struct beton_batch *next(struct beton_loader *l)
{
	const struct beton_batch *b;
	struct beton_output o[2];
	int r;

	for (uint32_t i = 0; i < 2; i++)
		CHECK(!beton_loader_output(l, i, &o[i]));
	r = beton_loader_next(l, &b);
	if (r == -ENODATA)
		return NULL;
	CHECK(!r);
	for (uint32_t i = 0; i < 2; i++) {
		const struct beton_tensor *t = &b->outputs[i];

		CHECK(t->ndim == o[i].ndim + 1 &&
		      t->shape[0] == b->num_samples);
		CHECK(!memcmp(t->shape + 1, o[i].shape,
			      o[i].ndim * sizeof(*o[i].shape)));
	}
	return b;
}

/* The rest of an epoch, batch for batch, is that of a loader of its own. */
static void check_epoch(struct beton_loader *l, uint64_t epoch, size_t skip)
{
	struct beton_loader *alone = load_plain(epoch);
	const struct beton_batch *a, *b;

	for (size_t i = 0; i < skip; i++)
		beton_loader_release(alone, next(alone));
	while ((b = next(alone))) {
		a = next(l);
		CHECK(a && a->epoch == epoch);
		check_batch(a, b);
		beton_loader_release(l, a);
		beton_loader_release(alone, b);
	}
	CHECK(!next(l));
	beton_loader_close(alone);
}

static void each_epoch_is_that_of_its_numbers(void)
{
	for (uint32_t workers = 1; workers <= 4; workers *= 2) {
		struct beton_loader *l = load(scheduled, 0, workers);

		for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
			check_epoch(l, epoch, 0);
		beton_loader_close(l);
	}
}

/* Batches that are kept stay what they are while sizes change. */
static void kept_batches_stay(void)
{
	struct beton_loader *l = load(scheduled, 0, 2);
	const struct beton_batch *kept[EPOCHS], *b;

	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
		kept[epoch] = next(l);
		CHECK(kept[epoch] && kept[epoch]->epoch == epoch);
		while ((b = next(l)))
			beton_loader_release(l, b);
	}
	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
		struct beton_loader *alone = load_plain(epoch);

		check_batch(kept[epoch], next(alone));
		beton_loader_close(alone);
		beton_loader_release(l, kept[epoch]);
	}
	beton_loader_close(l);
}

/* In the middle of the epoch that is given. */
static void take_state(uint64_t epoch, char *state, size_t size)
{
	struct beton_loader *l = load(scheduled, epoch, 2);

	beton_loader_release(l, next(l));
	beton_loader_release(l, next(l));
	CHECK(!beton_loader_state(l, state, size));
	beton_loader_close(l);
}

static void a_loader_continues_with_the_numbers_of_its_epoch(void)
{
	struct beton_loader *l = load(scheduled, 0, 2);
	char state[4096];

	for (uint64_t epoch = EPOCHS; epoch--;) {
		take_state(epoch, state, sizeof(state));
		CHECK(!beton_loader_load(l, state));
		check_epoch(l, epoch, 2);
		if (epoch + 1 < EPOCHS)
			check_epoch(l, epoch + 1, 0);
		CHECK(!beton_loader_seek(l, epoch));
		check_epoch(l, epoch, 0);
	}
	beton_loader_close(l);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !close(fd));
	setenv("BETON_JIT", "off", 1);
	a_text_without_epochs_has_one_phase();
	all_arguments_make_the_phases_together();
	late_mistakes_are_found_at_once();
	write_dataset();
	each_epoch_is_that_of_its_numbers();
	kept_batches_stay();
	a_loader_continues_with_the_numbers_of_its_epoch();
	CHECK(!unlink(path));
	return 0;
}
