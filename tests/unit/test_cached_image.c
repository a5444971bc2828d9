/* SPDX-License-Identifier: Apache-2.0 */
/* cache(): the same bits, or the same failure, as a pipeline without it. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/image/codec/index.h"
#include "loader/run/transform/pipeline.h"
#include "loader/util/value_store.h"
#include "tests/unit/encoded.h"
#include "tests/unit/fields.h"
#include "tests/unit/jpegs.h"
#include "tests/unit/photos.h"
#include "tests/unit/t.h"

enum { EPOCHS = 4, TEXT_SIZE = 256, OUT_MAX = 8 << 20, SAMPLES_MAX = 64 };

static uint8_t want[OUT_MAX], got[OUT_MAX];
static char error[256];
static struct codec_indexer *indexer;
static unsigned indexed;

/* Where a cache may stand: %s. */
static const char *const texts[] = {
	"%s random_resized_crop(31) | flip",
	"%s random_resized_crop(\"17,40\", interpolation=bilinear) | flip",
	"decode(exact) | %s random_resized_crop(24) | flip | chw",
	/* Parts that are not resized at all, or so much that planes cannot. */
	"%s flip",
	"decode(exact) | %s flip | float",
	"%s resize(\"1,2\")",
	"%s random_resized_crop(1, scale=\"0.5,1\")",
	"%s center_crop(20, 0.5) | flip",
	/* The resized image is cached. */
	"resize(26) | %s random_resized_crop(20) | flip",
	"resize(\"30,22\", bilinear) | %s flip(0.5) | center_crop(9, 0.3)",
	"decode(exact) | resize(\"19,33\") | %s random_resized_crop(12)",
	"resize(40) | resize(30) | %s random_resized_crop(20) | flip",
	"center_crop(20, 0.9) | %s flip | normalize(imagenet) | half",
	"decode(draft) | resize(\"29,31\") | %s random_resized_crop(20) | flip",
};

static struct pipeline *parsed(const char *text, const char *cache,
			       const struct pipeline_value *v)
{
	const struct pipeline_field field = FIELD_IMAGE(v->width, v->height);
	struct pipeline *p;
	char whole[TEXT_SIZE];

	snprintf(whole, sizeof(whole), text, cache);
	if (pipeline_parse(whole, &field, 1, 0, &p, error, sizeof(error)))
		fprintf(stderr, "%s: %s\n", whole, error);
	CHECK(!error[0] && !pipeline_cache(p, NULL));
	CHECK(pipeline_output_at(p, 0)->row_size <= OUT_MAX);
	return p;
}

/* Two pipelines side by side. */
struct pair {
	struct pipeline *plain;
	struct pipeline *caching;
	struct pipeline_worker *workers[2];
	uint64_t failures;
};

static void pair_open(struct pair *p, const char *text, const char *cache,
		      const struct pipeline_value *v)
{
	*p = (struct pair){ 0 };
	p->plain = parsed(text, "", v);
	p->caching = parsed(text, cache, v);
	CHECK(!pipeline_worker_open(p->plain, &p->workers[0]));
	CHECK(!pipeline_worker_open(p->caching, &p->workers[1]));
}

static void pair_close(struct pair *p)
{
	pipeline_worker_close(p->workers[0]);
	pipeline_worker_close(p->workers[1]);
	pipeline_close(p->plain);
	pipeline_close(p->caching);
}

static struct value_store_stats pair_stats(const struct pair *p)
{
	struct value_store_stats s;

	pipeline_cached(p->caching, &s);
	return s;
}

static void pair_run(struct pair *p, const struct pipeline_value *v,
		     uint64_t id, uint64_t epoch)
{
	const struct pipeline_row row = { .seed = 1, .epoch = epoch, .id = id };
	uint64_t size = pipeline_output_at(p->plain, 0)->row_size;
	int a = pipeline_run(p->plain, p->workers[0], 0, v, &row,
			     BETON_STAGE_ALL, want, NULL);
	int b = pipeline_run(p->caching, p->workers[1], 0, v, &row,
			     BETON_STAGE_ALL, got, NULL);

	CHECK(a == b);
	CHECK(!strcmp(pipeline_worker_message(p->workers[0]),
		      pipeline_worker_message(p->workers[1])));
	p->failures += a != 0;
	if (!a)
		CHECK(!memcmp(want, got, size));
}

/* Some epochs of samples, in every text. */
static void compare(const struct pipeline_value *v, size_t n)
{
	struct pair p;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		pair_open(&p, texts[i], "cache(decoded, 8MiB) |", v);
		for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
			for (size_t k = 0; k < n; k++)
				pair_run(&p, &v[k], k, epoch);
		CHECK(!p.failures);
		CHECK(pair_stats(&p).values == n);
		CHECK(pair_stats(&p).hits == n * (EPOCHS - 1));
		pair_close(&p);
	}
}

/* Every other has an index of entry points, where there can be one. */
static struct pipeline_value value_of(const struct kind *kind)
{
	struct jpeg j = encode(kind), with;
	uint32_t step = kind->width % 5;

	if (kind->height % 2 && !codec_index(indexer, j.bytes, j.size, step,
					     &with.bytes, &with.size)) {
		free(j.bytes);
		j = with;
		indexed++;
	}
	return (struct pipeline_value){ j.bytes,	j.size,
					BETON_MODE_JPG, kind->width,
					kind->height,	NULL };
}

static void forget(const struct pipeline_value *v)
{
	free((void *)(uintptr_t)v->bytes);
}

static struct kind any_kind(struct rng *rng)
{
	static const int samplings[][2] = {
		{ 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 }
	};
	const int *sampling = samplings[below(rng, 4)];
	bool small = !below(rng, 3);

	return (struct kind){
		.width = 1 + below(rng, small ? 20 : 150),
		.height = 1 + below(rng, small ? 20 : 150),
		.components = below(rng, 5) ? 3 : 1,
		.across = sampling[0],
		.down = sampling[1],
		.quality = 1 + (int)below(rng, 100),
		.optimized = below(rng, 2),
		.restart = below(rng, 4) ? 0 : 1 + below(rng, 9),
		.noise = (int)below(rng, 256),
	};
}

static void ordinary_jpegs_of_all_kinds_are_the_same(void)
{
	struct rng rng = { .key = 4 };

	for (int i = 0; i < 100; i++) {
		struct kind kind = any_kind(&rng);
		struct pipeline_value v = value_of(&kind);

		compare(&v, 1);
		forget(&v);
	}
}

#define OTHER(bytes, width, height)                                            \
	{                                                                      \
		bytes, sizeof(bytes), BETON_MODE_JPG, width, height, NULL      \
	}

static void other_jpegs_are_the_same(void)
{
	static const struct pipeline_value others[] = {
		OTHER(JPEG_GRAY, 9, 21),  OTHER(JPEG_PROGRESSIVE, 41, 23),
		OTHER(JPEG_FULL, 19, 10), OTHER(JPEG_HALF, 35, 9),
		OTHER(JPEG_CMYK, 9, 9),
	};

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		compare(&others[i], 1);
}

/* Samples of one size, so that what is not resized has one too. */
static void make_samples(struct pipeline_value *v, size_t n)
{
	struct kind kind = KIND_PHOTO;

	kind.width = 73;
	kind.height = 58;
	for (size_t i = 0; i < n; i++) {
		kind.quality = 5 + (int)i;
		kind.across = 1 + i % 2;
		kind.down = 1 + i % 4 / 2;
		v[i] = value_of(&kind);
	}
}

static void samples_are_not_mixed_up(void)
{
	struct pipeline_value v[SAMPLES_MAX];

	make_samples(v, ARRAY_LEN(v));
	compare(v, ARRAY_LEN(v));
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		forget(&v[i]);
}

static void room_for_some_is_as_good_as_for_all(void)
{
	struct pipeline_value v[SAMPLES_MAX];
	struct value_store_stats s;
	struct pair p;

	make_samples(v, ARRAY_LEN(v));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		pair_open(&p, texts[i], "cache(decoded, 64KiB) |", v);
		for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
			for (size_t k = 0; k < ARRAY_LEN(v); k++)
				pair_run(&p, &v[k], k, epoch);
		s = pair_stats(&p);
		CHECK(!p.failures && s.values && s.values < ARRAY_LEN(v));
		CHECK(s.hits == s.values * (EPOCHS - 1));
		CHECK(s.used <= s.size && s.size == 64 << 10);
		pair_close(&p);
	}
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		forget(&v[i]);
}

/* --- workers --- */

enum { THREADS = 4, SHARED = 24, ROW_SIZE = 31 * 31 * 3 };

struct shared {
	const struct pipeline *caching;
	const struct pipeline_value *v;
	uint8_t rows[EPOCHS][SHARED][ROW_SIZE];
};

struct shared_worker {
	const struct shared *shared;
	unsigned first;
};

static void *run_shared(void *arg)
{
	const struct shared_worker *me = arg;
	const struct shared *s = me->shared;
	struct pipeline_worker *w;
	static _Thread_local uint8_t out[ROW_SIZE];

	CHECK(!pipeline_worker_open(s->caching, &w));
	for (unsigned i = 0; i < EPOCHS * SHARED; i++) {
		unsigned id = (me->first + i) % SHARED, epoch = i / SHARED;
		struct pipeline_row row = { .seed = 1,
					    .epoch = epoch,
					    .id = id };

		CHECK(!pipeline_run(s->caching, w, 0, &s->v[id], &row,
				    BETON_STAGE_ALL, out, NULL));
		CHECK(!memcmp(out, s->rows[epoch][id], ROW_SIZE));
	}
	pipeline_worker_close(w);
	return NULL;
}

static void check_shared(struct shared *s, const char *text, const char *cache)
{
	struct shared_worker workers[THREADS];
	pthread_t threads[THREADS];
	struct pair p;

	pair_open(&p, text, cache, s->v);
	CHECK(pipeline_output_at(p.plain, 0)->row_size == ROW_SIZE);
	for (unsigned i = 0; i < EPOCHS * SHARED; i++) {
		struct pipeline_row row = { .seed = 1,
					    .epoch = i / SHARED,
					    .id = i % SHARED };

		CHECK(!pipeline_run(p.plain, p.workers[0], 0, &s->v[i % SHARED],
				    &row, BETON_STAGE_ALL,
				    s->rows[i / SHARED][i % SHARED], NULL));
	}
	s->caching = p.caching;
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct shared_worker){ s, i / 2 * SHARED / 2 };
		CHECK(!pthread_create(&threads[i], NULL, run_shared,
				      &workers[i]));
	}
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(pair_stats(&p).values && pair_stats(&p).hits);
	pair_close(&p);
}

static void workers_share_cached_images(void)
{
	static struct shared s;
	struct pipeline_value v[SHARED];

	make_samples(v, SHARED);
	s.v = v;
	check_shared(&s, texts[0], "cache(decoded, 8MiB) |");
	check_shared(&s, texts[0], "cache(decoded, 64KiB) |");
	check_shared(&s, "resize(40) | %s random_resized_crop(31) | flip",
		     "cache(decoded, 8MiB) |");
	for (size_t i = 0; i < SHARED; i++)
		forget(&v[i]);
}

static void raw_images_are_kept_when_they_were_resized(void)
{
	static uint8_t pixels[40 * 30 * 3];
	const struct pipeline_value v = {
		pixels, sizeof(pixels), BETON_MODE_RAW, 40, 30, NULL
	};
	struct pair p;

	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)(i * 7 + i / 90);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const char *cache = strstr(texts[i], "%s");
		const char *resize = strstr(texts[i], "resize(");
		const char *crop = strstr(texts[i], "center_crop(");
		bool resized =
			(resize && resize < cache) || (crop && crop < cache);

		pair_open(&p, texts[i], "cache(decoded, 1MiB) |", &v);
		for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
			pair_run(&p, &v, 0, epoch);
		CHECK(!p.failures);
		CHECK(pair_stats(&p).values == resized);
		pair_close(&p);
	}
}

/*
 * Damage of every place: what of the crops can be had is there, in all
 * qualities the same; what cannot fails alike. Undamaged rows above are planes,
 * whatever follows; the whole may be libjpeg's, or nothing.
 */
static void check_damaged(const struct pipeline_value *v, uint64_t *kept,
			  uint64_t *failures)
{
	struct pair p;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		pair_open(&p, texts[i], "cache(decoded, 1MiB) |", v);
		for (uint64_t epoch = 0; epoch < 2 * EPOCHS; epoch++)
			pair_run(&p, v, 5, epoch);
		*kept += pair_stats(&p).values;
		*failures += p.failures;
		pair_close(&p);
	}
}

static void damaged_jpegs_fail_and_do_not_fail_alike(void)
{
	struct rng rng = { .key = 9 };
	uint64_t kept = 0, failures = 0, runs = 0;

	for (int i = 0; i < 100; i++) {
		struct kind kind = any_kind(&rng);
		struct pipeline_value v;
		uint8_t *bytes;

		kind.width += 40;
		kind.height += 40;
		kind.restart = 0;
		v = value_of(&kind);
		bytes = (uint8_t *)(uintptr_t)v.bytes;
		if (i % 2)
			v.size -= below(&rng, (uint32_t)v.size / 3);
		else
			bytes[v.size - 1 - below(&rng, (uint32_t)v.size / 3)] ^=
				(uint8_t)(1 << below(&rng, 8));
		check_damaged(&v, &kept, &failures);
		runs += ARRAY_LEN(texts);
		forget(&v);
	}
	CHECK(kept && kept < runs && failures && failures < 2 * EPOCHS * runs);
}

/* A batch file that is not what it was a moment ago. */
static void another_value_of_a_sample_is_not_taken_for_it(void)
{
	struct kind kind = KIND_PHOTO;
	struct pipeline_value v[3];
	struct pair p;

	v[0] = value_of(&kind);
	kind.width = 31;
	v[1] = value_of(&kind);
	kind.width = 300;
	kind.height = 400;
	v[2] = value_of(&kind);
	pair_open(&p, texts[0], "cache(decoded, 1MiB) |", &v[0]);
	for (uint64_t i = 0; i < 3; i++)
		pair_run(&p, &v[i], 0, i);
	CHECK(!p.failures && pair_stats(&p).values == 1);
	pair_close(&p);
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		forget(&v[i]);
}

static void cached_images_are_not_decoded(void)
{
	static const enum beton_stage stages[] = { BETON_STAGE_ALL,
						   BETON_STAGE_DECODE };
	struct kind kind = KIND_PHOTO;
	struct pipeline_value v = value_of(&kind);
	struct pipeline_row row = { .seed = 1 };
	struct pair p;

	for (size_t i = 0; i < 2 * ARRAY_LEN(texts); i++) {
		uint64_t ns = 0, first = 0;

		pair_open(&p, texts[i / 2], "cache(decoded, 4MiB) |", &v);
		for (row.epoch = 0; row.epoch < EPOCHS; row.epoch++) {
			CHECK(!pipeline_run(p.caching, p.workers[1], 0, &v,
					    &row, stages[i % 2], got, &ns));
			first = row.epoch ? first : ns;
		}
		CHECK(first && ns == first);
		pair_close(&p);
	}
	forget(&v);
}

static void without_memory_nothing_is_kept(void)
{
	struct kind kind = KIND_PHOTO;
	struct pipeline_value v = value_of(&kind);
	struct pair p;

	/* An image of 90 KB does not fit. */
	pair_open(&p, texts[0], "cache(decoded, 64KiB) |", &v);
	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
		pair_run(&p, &v, 0, epoch);
	CHECK(!p.failures && !pair_stats(&p).values && !pair_stats(&p).hits);
	pair_close(&p);
	forget(&v);
}

static void code_is_that_of_the_pipeline_without_it(void)
{
	struct kind kind = KIND_PHOTO;
	struct pipeline_value v = value_of(&kind);
	struct pair p;

	pair_open(&p, "%s random_resized_crop(8) | flip | half | chw",
		  "cache(decoded, 1MiB) |", &v);
	CHECK(!strcmp(pipeline_engine(p.plain, 0), "prebuilt"));
	CHECK(!strcmp(pipeline_engine(p.caching, 0), "prebuilt"));
	pair_close(&p);
	forget(&v);
}

static void more_memory_than_there_is_is_refused(void)
{
	const struct pipeline_field field = FIELD_IMAGE(0, 0);
	struct pipeline *p;

	CHECK(!pipeline_parse("cache(decoded, 60T) | resize(\"8,8\")", &field,
			      1, 0, &p, error, sizeof(error)));
	CHECK(pipeline_cache(p, NULL) == -ENOMEM);
	pipeline_close(p);
}

struct mistake {
	const char *text;
	const char *error;
};

static const struct mistake mistakes[] = {
	{ "cache", "column 1: cache needs an argument: decoded" },
	{ "cache(decoded)", "column 1: cache needs `size'" },
	{ "cache(1GiB)", "column 7: what of cache takes decoded, not" },
	{ "cache(decoded, 1GB)",
	  "column 16: size of cache takes a size from 64KiB to 64TiB, "
	  "not `1GB'" },
	{ "cache(decoded, 65535)", "column 16: size of cache takes a size" },
	{ "cache(decoded, 1000T)", "column 16: size of cache takes a size" },
	{ "cache(decoded, -1)", "column 16: size of cache takes a size" },
	{ "flip | cache(decoded, 1GiB)",
	  "column 8: cache must stand before operations that draw random" },
	{ "resize(8) | random_resized_crop(8) | cache(decoded, 1GiB)",
	  "column 38: cache must stand before operations that draw random" },
	{ "cache(decoded, 1GiB) | cache(decoded, 1GiB)",
	  "column 24: cache is in this statement already" },
	{ "chw | cache(decoded, 1GiB)",
	  "column 7: cache must stand before chw" },
	{ "float | cache(decoded, 1GiB)",
	  "column 9: cache works on 8-bit images" },
	{ "invert | cache(decoded, 1GiB)",
	  "column 10: cache works on 8-bit images" },
	{ "label | cache(decoded, 1GiB)",
	  "column 9: cache works on images only" },
	{ "decode(draft) | cache(decoded, 1GiB)",
	  "column 17: cache stores whole images, which decode(draft) does not" },
	{ "cache(decoded, 1GiB) | decode(exact)",
	  "column 24: decode must be the first operation" },
};

static void mistakes_are_reported_with_their_column(void)
{
	const struct pipeline_field fields[] = {
		FIELD_IMAGE(0, 0),
		FIELD_LABEL,
	};
	struct pipeline *p;

	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		const struct mistake *m = &mistakes[i];

		CHECK(pipeline_parse(m->text, fields, 2, 0, &p, error,
				     sizeof(error)) == -EINVAL);
		if (strncmp(error, m->error, strlen(m->error)) != 0)
			fprintf(stderr, "%s: %s\n", m->text, error);
		CHECK(!strncmp(error, m->error, strlen(m->error)));
	}
}

static void compare_photo(void *arg, const uint8_t *bytes, size_t size)
{
	struct pipeline_value v = { bytes, size, BETON_MODE_JPG, 0, 0, NULL };
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr manager;

	jpeg.err = jpeg_std_error(&manager);
	jpeg_create_decompress(&jpeg);
	jpeg_mem_src(&jpeg, bytes, size);
	jpeg_read_header(&jpeg, TRUE);
	v.width = jpeg.image_width;
	v.height = jpeg.image_height;
	jpeg_destroy_decompress(&jpeg);
	compare(&v, 1);
	++*(int *)arg;
}

static void photographs_are_the_same(void)
{
	int n = 0;

	photos_each(100, compare_photo, &n);
}

int main(void)
{
	CHECK(!codec_indexer_open(&indexer));
	ordinary_jpegs_of_all_kinds_are_the_same();
	other_jpegs_are_the_same();
	samples_are_not_mixed_up();
	room_for_some_is_as_good_as_for_all();
	workers_share_cached_images();
	raw_images_are_kept_when_they_were_resized();
	damaged_jpegs_fail_and_do_not_fail_alike();
	another_value_of_a_sample_is_not_taken_for_it();
	cached_images_are_not_decoded();
	without_memory_nothing_is_kept();
	code_is_that_of_the_pipeline_without_it();
	more_memory_than_there_is_is_refused();
	mistakes_are_reported_with_their_column();
	photographs_are_the_same();
	CHECK(indexed > 50);
	codec_indexer_close(indexer);
	return 0;
}
