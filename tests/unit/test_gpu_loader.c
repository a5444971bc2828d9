/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaders with outputs in a GPU's memory, under consumers of all kinds and
 * under bad luck: every byte that these read is that of a loader without
 * cuda(), and everything that must be ordered is watched by the stand-in.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "beton/loader.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/base/util/thread.h"
#include "fs/data/writer/writer.h"
#include "tests/unit/gpu.h"

enum {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	SCHEDULES = 80, /* takes its time */
#else
	SCHEDULES = 200,
#endif
	REAL_SCHEDULES = 40, /* the real driver opens more slowly */
	ACTIONS = 30,
	SAMPLES = 13,
	BATCH = 4,
	STEPS = 4,
	EPOCHS = 5,
	OUTPUTS = 5,
	PIPELINES = 3,
	ERRORS = 3, /* enum beton_on_error */
	STREAMS = 5,
	HELD = 7, /* more than any ring has */
	READS = 120,
	READ_MAX = BATCH * 3 * 12 * 12 * 4,
	BAD = 6, /* the sample that is no JPEG */
	PIXELS_MAX = 40 * 40 * 3,
};

static const char SPEC[] = "order=random,batch=4,seed=7,drop_last=0";

static const char *const pipelines[PIPELINES] = {
	"image | random_resized_crop(12) | flip | brightness(0.5, 1) | cuda(0) "
	"| saturation(0.4, 1) | normalize(imagenet) | half | chw; "
	"label | cuda(0)",
	"image | random_resized_crop(\"0=9,1=12,3=7\") | flip | cuda(0) | "
	"normalize(imagenet) | float | chw; view = image | center_crop(9) | "
	"cuda(0); label | cuda(0)",
	("image | center_crop(8) | cuda(0); label | int32; "
	 "vec | half | cuda(0)"),
};

/* The expected values of a batch, from a loader without cuda(). */
struct want {
	int error;
	uint32_t rows;
	uint64_t ids[BATCH];
	uint8_t valid[BATCH];
	struct {
		uint8_t *bytes;
		uint64_t size;
	} outputs[OUTPUTS];
};

static struct gpu gpu;
static const struct standin *standin;
static char path[] = "/tmp/test_gpu_loader.XXXXXX";
static char cache[] = "/tmp/test_gpu_loader.XXXXXX";
static char error[1024];
static struct want wanted[PIPELINES][ERRORS][EPOCHS][STEPS];

/* Messages of loaders; written with the log's lock held. */
static struct heard {
	atomic_uint errors, warnings;
	char last[1100];
} heard;

static void hear(void *arg, enum beton_log_level level, const char *message)
{
	struct heard *h = arg;

	h->errors += level == BETON_LOG_ERROR;
	h->warnings += level == BETON_LOG_WARNING;
	snprintf(h->last, sizeof(h->last), "%s", message);
}

/* --- the dataset --- */

static void append(struct writer *w, struct rng *rng, uint32_t i)
{
	static uint8_t pixels[PIXELS_MAX];
	float vec[6];
	struct writer_value v[4] = {
		{ .bytes = pixels,
		  .mode = i == BAD ? BETON_MODE_JPG : BETON_MODE_RAW,
		  .width = (uint16_t)(20 + i % 20),
		  .height = (uint16_t)(40 - i % 7) },
		{ .integer = (int64_t)i * i - 9 },
		{ .bytes = (uint8_t *)vec, .size = sizeof(vec) },
		{ .bytes = pixels, .size = i % 5 },
	};

	for (size_t k = 0; k < sizeof(pixels); k++)
		pixels[k] = (uint8_t)rng_next(rng);
	for (size_t k = 0; k < 6; k++)
		vec[k] = (float)i / (float)(k + 1);
	v[0].size = 3 * (uint64_t)v[0].width * v[0].height;
	CHECK(!writer_append(w, v));
}

static void write_dataset(void)
{
	static const struct writer_field f[] = {
		{ .name = "image", .type = BETON_TYPE_IMAGE },
		{ .name = "label", .type = BETON_TYPE_INT },
		{ .name = "vec",
		  .type = BETON_TYPE_NDARRAY,
		  .dtype = "<f4",
		  .ndim = 2,
		  .shape = { 2, 3 } },
		{ .name = "blob", .type = BETON_TYPE_BYTES },
	};
	struct rng rng = { .key = 3 };
	struct writer *w;
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	CHECK(!writer_open(path, f, ARRAY_LEN(f), SAMPLES, 2 << 20, NULL, &w));
	for (uint32_t i = 0; i < SAMPLES; i++)
		append(w, &rng, i);
	CHECK(!writer_finish(&w));
}

static struct beton_loader_options options_of(const char *pipeline)
{
	return (struct beton_loader_options){
		.size = sizeof(struct beton_loader_options),
		.spec = SPEC,
		.pipeline = pipeline,
		.workers = 1,
		.log = hear,
		.log_arg = &heard,
		.error = error,
		.error_size = sizeof(error),
	};
}

static struct beton_loader *load(const struct beton_loader_options *o)
{
	struct beton_loader *l;
	int r = beton_loader_open(path, o, &l);

	if (r)
		fprintf(stderr, "%s: %s\n", o->pipeline, error);
	CHECK(!r);
	return l;
}

/* --- what batches must be --- */

static void remove_all(char *text, const char *what)
{
	char *at;

	while ((at = strstr(text, what)))
		memmove(at, at + strlen(what), strlen(at + strlen(what)) + 1);
}

static void keep(struct want *w, const struct beton_batch *b)
{
	CHECK(b->num_samples <= BATCH && b->num_outputs <= OUTPUTS);
	w->rows = b->num_samples;
	memcpy(w->ids, b->ids, b->num_samples * sizeof(*b->ids));
	memcpy(w->valid, b->valid, b->num_samples);
	for (uint32_t i = 0; i < b->num_outputs; i++) {
		w->outputs[i].size = b->outputs[i].size;
		w->outputs[i].bytes = malloc(b->outputs[i].size + 1);
		CHECK(w->outputs[i].bytes);
		memcpy(w->outputs[i].bytes, b->outputs[i].data,
		       b->outputs[i].size);
	}
}

static void want_all(size_t pipeline, enum beton_on_error on_error)
{
	char text[400];
	struct beton_loader_options o = options_of(text);
	struct beton_loader *l;
	const struct beton_batch *b;

	snprintf(text, sizeof(text), "%s", pipelines[pipeline]);
	remove_all(text, " | cuda(0)");
	o.on_error = on_error;
	l = load(&o);
	for (size_t e = 0; e < EPOCHS; e++) {
		for (size_t i = 0; i < STEPS; i++) {
			struct want *w = &wanted[pipeline][on_error][e][i];

			w->error = beton_loader_next(l, &b);
			CHECK(!w->error || w->error == -EIO);
			if (w->error)
				continue;
			keep(w, b);
			beton_loader_release(l, b);
		}
		CHECK(beton_loader_next(l, &b) == -ENODATA);
	}
	beton_loader_close(l);
}

static void forget_wanted(void)
{
	struct want *w = &wanted[0][0][0][0];

	for (size_t i = 0; i < PIPELINES * ERRORS * EPOCHS * STEPS; i++) {
		for (size_t k = 0; k < OUTPUTS; k++)
			free(w[i].outputs[k].bytes);
	}
}

static void check_facts(const struct beton_batch *b, const struct want *w)
{
	CHECK(b->num_samples == w->rows);
	CHECK(!memcmp(b->ids, w->ids, b->num_samples * sizeof(*b->ids)));
	CHECK(!memcmp(b->valid, w->valid, b->num_samples));
	for (uint32_t i = 0; i < b->num_outputs; i++) {
		const struct beton_tensor *t = &b->outputs[i];

		CHECK(t->size == w->outputs[i].size && !t->device_id);
		CHECK(t->device_type == BETON_DEVICE_CUDA ||
		      !memcmp(t->data, w->outputs[i].bytes, t->size));
	}
}

/* --- consumers --- */

struct held {
	const struct beton_batch *batch;
	const struct want *want;
	uint32_t num_streams;
	struct cuda_stream *streams[3];
};

/* Values that a consumer copied back; the test compares them at the end. */
struct copied {
	uint8_t *bytes;
	const uint8_t *want;
	uint64_t size;
};

/* A release by another thread. */
struct parting {
	pthread_t thread;
	struct beton_loader *loader;
	const struct beton_batch *batch;
	struct cuda_stream *stream;
};

struct schedule {
	struct rng rng;
	struct cuda *cuda;
	struct beton_loader *loader;
	const struct want (*want)[STEPS]; /* by epoch */
	uint32_t epoch, step;		  /* of the next batch */
	struct cuda_stream *own[STREAMS]; /* to be destroyed */
	struct cuda_stream *streams[STREAMS];
	struct held held[HELD];
	uint32_t num_held;
	struct copied copied[READS];
	uint32_t num_copied;
	uint8_t *results;
	struct parting partings[ACTIONS];
	uint32_t num_partings;
	bool unlucky; /* calls may fail */
};

static uint32_t draw(struct schedule *s, uint32_t below)
{
	return (uint32_t)(rng_next(&s->rng) % below);
}

static void make_streams(struct schedule *s, bool defaults)
{
	for (size_t i = 0; i < STREAMS; i++) {
		CHECK(!cuda_stream_create(s->cuda, &s->own[i]));
		s->streams[i] = s->own[i];
	}
	if (!defaults)
		return;
	s->streams[0] = NULL;
	s->streams[1] = CUDA_STREAM_LEGACY;
	s->streams[2] = CUDA_STREAM_PER_THREAD;
}

/* Objects that outlive the loader. */
static void consumer_begin(struct schedule *s, uint64_t seed, bool defaults)
{
	void *p;

	*s = (struct schedule){ .rng = { .key = seed } };
	heard.errors = heard.warnings = 0;
	if (standin) {
		standin->reset(seed);
		standin->allow_default(defaults);
	}
	CHECK(!cuda_open(0, &gpu.log, &s->cuda));
	make_streams(s, defaults);
	CHECK(!cuda_host_alloc(s->cuda, READS * READ_MAX, &p));
	s->results = p;
}

/* The consumer's work: copies an output back, by a stream that acquired it. */
static void use(struct schedule *s, const struct held *h)
{
	uint32_t i = draw(s, h->batch->num_outputs);
	const struct beton_tensor *t = &h->batch->outputs[i];
	struct copied *c = &s->copied[s->num_copied];
	int r;

	if (t->device_type != BETON_DEVICE_CUDA || s->num_copied == READS)
		return;
	CHECK(t->size <= READ_MAX);
	*c = (struct copied){ .bytes = s->results + s->num_copied * READ_MAX,
			      .want = h->want->outputs[i].bytes,
			      .size = t->size };
	r = cuda_copy_to_host(s->cuda, c->bytes, (uintptr_t)t->data, t->size,
			      h->streams[draw(s, h->num_streams)]);
	CHECK(!r || s->unlucky);
	s->num_copied += !r;
}

static void acquire(struct schedule *s, struct held *h)
{
	struct cuda_stream *stream = s->streams[draw(s, STREAMS)];
	int r;

	if (h->num_streams == ARRAY_LEN(h->streams))
		return;
	r = beton_loader_acquire(s->loader, h->batch, stream);
	CHECK(!r || s->unlucky);
	if (!r)
		h->streams[h->num_streams++] = stream;
}

static void go_to(struct schedule *s, uint32_t epoch)
{
	CHECK(!beton_loader_seek(s->loader, epoch));
	s->epoch = epoch;
	s->step = 0;
}

/* A consumer that waited on the host still has to acquire the batch for its
   streams. */
static int call_next(struct schedule *s, struct held *h)
{
	struct cuda_stream *stream = s->streams[draw(s, STREAMS)];
	bool waits = !draw(s, 4);
	int r = waits ? beton_loader_next(s->loader, &h->batch)
		      : beton_loader_next_on(s->loader, stream, &h->batch);

	CHECK(!r || r == -ENODATA || beton_loader_error(s->loader)[0]);
	h->streams[0] = stream;
	h->num_streams = !r;
	return !r && waits ? beton_loader_acquire(s->loader, h->batch, stream)
			   : r;
}

static void taken(struct schedule *s, struct held *h)
{
	CHECK(!h->want->error && h->batch->epoch == s->epoch &&
	      h->batch->number == s->step - 1);
	check_facts(h->batch, h->want);
	s->num_held++;
	for (uint32_t n = draw(s, 4); n > 0; n--)
		use(s, h);
}

static void take(struct schedule *s)
{
	struct held *h = &s->held[s->num_held];

	if (s->num_held == HELD)
		return;
	if (s->epoch == EPOCHS)
		go_to(s, draw(s, EPOCHS));
	if (s->step == STEPS) {
		CHECK(beton_loader_next_on(s->loader, s->own[0], &h->batch) ==
		      -ENODATA);
		s->epoch++;
		s->step = 0;
		return;
	}
	h->want = &s->want[s->epoch][s->step++];
	CHECK(call_next(s, h) == h->want->error);
	if (!h->want->error)
		taken(s, h);
}

/* Takes a batch from a loader whose calls may fail: the test continues at the
   batch that came. */
static void take_unluckily(struct schedule *s)
{
	struct held *h = &s->held[s->num_held];
	int r;

	if (s->num_held == HELD)
		return;
	r = call_next(s, h);
	if (r == -ENODATA && ++s->epoch == EPOCHS)
		go_to(s, 0);
	if (r)
		return;
	CHECK(h->batch->epoch < EPOCHS && h->batch->number < STEPS);
	s->epoch = (uint32_t)h->batch->epoch;
	s->step = (uint32_t)h->batch->number + 1;
	h->want = &s->want[s->epoch][s->step - 1];
	taken(s, h);
}

static void *part(void *arg)
{
	struct parting *p = arg;

	CHECK(!beton_loader_release_on(p->loader, p->batch, p->stream));
	return NULL;
}

/* However the consumer does it; h->batch is not its own after that. */
static void let_go(struct schedule *s, const struct held *h)
{
	struct parting *p = &s->partings[s->num_partings];
	int r;

	switch (draw(s, 4)) {
	case 0:
		for (uint32_t i = 0; i < h->num_streams; i++)
			CHECK(!cuda_stream_synchronize(s->cuda, h->streams[i]));
		beton_loader_release(s->loader, h->batch);
		return;
	case 1:
		*p = (struct parting){ .loader = s->loader,
				       .batch = h->batch,
				       .stream = h->streams[0] };
		CHECK(!thread_start(&p->thread, part, p));
		s->num_partings++;
		return;
	default:
		r = beton_loader_release_on(s->loader, h->batch,
					    s->streams[draw(s, STREAMS)]);
		CHECK(!r);
	}
}

static void drop(struct schedule *s)
{
	uint32_t i = draw(s, s->num_held);
	struct held h = s->held[i];

	s->held[i] = s->held[--s->num_held];
	if (draw(s, 2))
		use(s, &h);
	let_go(s, &h);
}

static void look(struct schedule *s, const struct held *h)
{
	static uint8_t bytes[READ_MAX];
	uint32_t i = draw(s, h->batch->num_outputs);

	CHECK(!beton_loader_read(s->loader, h->batch, i, bytes));
	CHECK(!memcmp(bytes, h->want->outputs[i].bytes,
		      h->batch->outputs[i].size));
}

static void act(struct schedule *s)
{
	uint32_t kind = draw(s, 20);
	struct held *h = s->num_held ? &s->held[draw(s, s->num_held)] : NULL;

	if (kind == 0)
		go_to(s, draw(s, EPOCHS));
	else if (kind < 11 || !h)
		take(s);
	else if (kind < 17)
		drop(s);
	else if (kind == 17)
		look(s, h);
	else if (kind == 18)
		acquire(s, h);
	else
		use(s, h);
}

static void check_copied(const struct schedule *s)
{
	for (uint32_t i = 0; i < s->num_copied; i++)
		CHECK(!memcmp(s->copied[i].bytes, s->copied[i].want,
			      s->copied[i].size));
}

/* Nothing is waited for before the end, and the loader goes first. */
static void consumer_end(struct schedule *s)
{
	bool is_lost = cuda_is_lost(s->cuda);

	for (uint32_t i = 0; i < s->num_partings; i++)
		pthread_join(s->partings[i].thread, NULL);
	beton_loader_close(s->loader);
	for (size_t i = 0; i < STREAMS; i++)
		is_lost = cuda_stream_synchronize(s->cuda, s->streams[i]) ||
			  is_lost;
	for (size_t i = 0; i < STREAMS; i++)
		is_lost =
			cuda_stream_synchronize(s->cuda, s->own[i]) || is_lost;
	CHECK(!is_lost || s->unlucky);
	if (!is_lost)
		check_copied(s);
	for (size_t i = 0; i < STREAMS; i++)
		cuda_stream_destroy(s->cuda, s->own[i]);
	cuda_host_free(s->cuda, s->results);
	cuda_close(s->cuda);
	if (standin)
		CHECK(!standin->living() && !standin->pushed());
}

static void schedule_begin(struct schedule *s, uint64_t seed)
{
	struct beton_loader_options o = options_of(NULL);
	uint32_t pipeline;

	consumer_begin(s, seed, seed % 4 == 3);
	pipeline = draw(s, PIPELINES);
	o.pipeline = pipelines[pipeline];
	o.on_error = (enum beton_on_error)draw(s, ERRORS);
	o.workers = draw(s, 2) ? 4 : 1;
	o.prefetch = draw(s, 2) ? 4 : 1;
	o.pinned = draw(s, 3) ? 0 : 1; /* 1: nothing is */
	s->want = wanted[pipeline][o.on_error];
	s->loader = load(&o);
}

static void test_schedules(void)
{
	static struct schedule s;
	uint64_t n = standin ? SCHEDULES : REAL_SCHEDULES;
	size_t reads = 0;

	for (uint64_t seed = 0; seed < n; seed++) {
		schedule_begin(&s, seed);
		for (size_t i = 0; i < ACTIONS; i++)
			act(&s);
		reads += s.num_copied;
		consumer_end(&s);
		CHECK(!standin || !standin->violations());
	}
	CHECK(reads > n * ACTIONS / 3);
}

/* --- what must hold for one --- */

static const struct beton_batch *next_on(struct beton_loader *l, void *stream)
{
	const struct beton_batch *b;
	int r = beton_loader_next_on(l, stream, &b);

	if (r)
		fprintf(stderr, "%d: %s\n", r, beton_loader_error(l));
	CHECK(!r);
	return b;
}

/* Copies the first output back; checked at the end. */
static void copy_back(struct schedule *s, const struct beton_batch *b,
		      const struct want *w, struct cuda_stream *stream)
{
	struct copied *c = &s->copied[s->num_copied];

	*c = (struct copied){ .bytes = s->results + s->num_copied++ * READ_MAX,
			      .want = w->outputs[0].bytes,
			      .size = w->outputs[0].size };
	CHECK(!cuda_copy_to_host(s->cuda, c->bytes,
				 (uintptr_t)b->outputs[0].data, c->size,
				 stream));
}

static void open_simply(struct schedule *s, uint32_t prefetch, uint64_t epochs)
{
	struct beton_loader_options o = options_of(pipelines[0]);

	consumer_begin(s, 1, false);
	o.on_error = BETON_ON_ERROR_ZERO;
	o.prefetch = prefetch;
	o.epochs = epochs;
	s->want = wanted[0][BETON_ON_ERROR_ZERO];
	s->loader = load(&o);
}

/* The stand-in detects an early reuse: the consumer waits for one stream and
   reads the batch on another one. */
static void test_an_early_reuse_is_seen(void)
{
	static struct schedule s;

	if (!gpu_has_standin(&gpu, __func__))
		return;
	open_simply(&s, 1, 0);
	standin->expect(true);
	for (size_t i = 0; i < STEPS; i++) {
		const struct beton_batch *b = next_on(s.loader, s.own[0]);

		/* The other stream did not acquire the batch. */
		CHECK(!cuda_stream_synchronize(s.cuda, s.own[0]));
		standin->hold(s.own[1], true);
		copy_back(&s, b, &s.want[0][i], s.own[1]);
		beton_loader_release(s.loader, b);
	}
	standin->hold(s.own[1], false);
	CHECK(standin->violations());
	s.num_copied = 0;
	consumer_end(&s);
}

/* Streams that acquired a batch still read it when it is released without one:
   the stand-in ends the program if the next batch is not ordered after them. */
static void test_release_waits_for_acquired_streams(void)
{
	static struct schedule s;

	open_simply(&s, 1, 0);
	for (size_t i = 0; i < STEPS; i++) {
		const struct beton_batch *b = next_on(s.loader, s.own[0]);

		CHECK(!beton_loader_acquire(s.loader, b, s.own[1]));
		copy_back(&s, b, &s.want[0][i], s.own[1]);
		copy_back(&s, b, &s.want[0][i], s.own[0]);
		beton_loader_release(s.loader, b);
	}
	consumer_end(&s);
}

/* Takes a batch on a stream that is gone when the batch is released. */
static const struct beton_batch *take_by_a_stream_that_ends(struct schedule *s,
							    size_t i)
{
	const struct beton_batch *b = next_on(s->loader, s->own[3]);

	copy_back(s, b, &s->want[i / STEPS][i % STEPS], s->own[3]);
	cuda_stream_destroy(s->cuda, s->own[3]);
	CHECK(beton_loader_release_on(s->loader, b, s->own[0]) == -EINVAL);
	CHECK(beton_loader_release_on(s->loader, b, s->own[3]) == -EINVAL);
	CHECK(!cuda_stream_create(s->cuda, &s->own[3]));
	s->streams[3] = s->own[3];
	return b;
}

/* The driver cannot record an event on a stream that is gone, so the device is
   waited for before the memory is used again. */
static void test_release_without_events(void)
{
	const struct beton_batch *b;
	static struct schedule s;
	unsigned violations;

	if (!gpu_has_standin(&gpu, __func__))
		return;
	open_simply(&s, 1, 0);
	standin->expect(true);
	for (size_t i = 0; i < STEPS; i++) {
		b = take_by_a_stream_that_ends(&s, i);
		CHECK(standin->calls("cuCtxSynchronize") == i);
		beton_loader_release(s.loader, b);
		CHECK(standin->calls("cuCtxSynchronize") == i + 1);
		CHECK(strstr(standin->violation(), "there is no stream"));
	}
	violations = standin->violations();
	CHECK(beton_loader_next(s.loader, &b) == -ENODATA);
	/* Memory that the driver cannot wait for is not used again. */
	b = take_by_a_stream_that_ends(&s, STEPS);
	standin->fail("cuCtxSynchronize", 1, 1);
	beton_loader_release(s.loader, b);
	CHECK(!beton_loader_acquire(s.loader, b, s.own[0]));
	beton_loader_release(s.loader, b);
	CHECK(beton_loader_acquire(s.loader, b, s.own[0]) == -EINVAL);
	CHECK(violations < standin->violations());
	CHECK(strstr(standin->violation(), "there is no stream"));
	consumer_end(&s);
}

/* A loader opens, makes its first batches, whose memory grows, and takes them
   back, while the program captures a graph. */
static void test_a_graph_is_captured_meanwhile(void)
{
	static struct schedule s;
	struct gpu_capture c;
	struct cuda_stream *captured;

	consumer_begin(&s, 1, false);
	CHECK(!cuda_stream_create(s.cuda, &captured));
	gpu_capture_begin(&gpu, captured, &c);
	s.loader = load(&(struct beton_loader_options){
		.size = sizeof(struct beton_loader_options),
		.spec = SPEC,
		.pipeline = pipelines[0],
		.on_error = BETON_ON_ERROR_ZERO,
		.workers = 2,
		.log = hear,
		.log_arg = &heard });
	for (size_t i = 0; i < STEPS; i++) {
		const struct beton_batch *b = next_on(s.loader, s.own[0]);

		copy_back(&s, b, &wanted[0][BETON_ON_ERROR_ZERO][0][i],
			  s.own[0]);
		CHECK(!beton_loader_release_on(s.loader, b, s.own[0]));
	}
	CHECK(!gpu_capture_end(&c));
	cuda_stream_destroy(s.cuda, captured);
	consumer_end(&s);
}

/* The consumer holds more batches than the ring has, and releases all of
   them. */
static void test_no_thread_waits_for_the_gpu(void)
{
	static const uint32_t prefetch[] = { 1, STEPS };
	const struct beton_batch *b[STEPS];
	static struct schedule s;

	if (!gpu_has_standin(&gpu, __func__))
		return;
	for (size_t k = 0; k < ARRAY_LEN(prefetch); k++) {
		open_simply(&s, prefetch[k], 1);
		standin->pause(true);
		for (size_t i = 0; i < STEPS; i++) {
			b[i] = next_on(s.loader, s.own[i]);
			copy_back(&s, b[i], &s.want[0][i], s.own[i]);
		}
		for (size_t i = 0; i < STEPS; i++)
			CHECK(!beton_loader_release_on(s.loader, b[i],
						       s.own[i]));
		CHECK(!standin->violations());
		standin->pause(false);
		consumer_end(&s);
	}
}

/* One batch is delivered any number of times, however it is released. */
static void test_a_constant_batch(void)
{
	struct beton_loader_options o = options_of(pipelines[0]);
	const struct want *w = &wanted[0][BETON_ON_ERROR_ZERO][0][0];
	static struct schedule s;
	const struct beton_batch *b;

	consumer_begin(&s, 2, false);
	o.source = "constant";
	o.on_error = BETON_ON_ERROR_ZERO;
	s.loader = load(&o);
	for (size_t i = 0; i < STEPS / 2; i++) {
		b = next_on(s.loader, s.own[i]);
		copy_back(&s, b, w, s.own[i]);
		CHECK(!beton_loader_release_on(s.loader, b, s.own[i]));
		CHECK(!beton_loader_next(s.loader, &b));
		copy_back(&s, b, w, s.own[0]);
		CHECK(!cuda_stream_synchronize(s.cuda, s.own[0]));
		beton_loader_release(s.loader, b);
	}
	consumer_end(&s);
}

/* Batches that are not held and invalid streams are refused. */
static void test_invalid_releases(void)
{
	static struct schedule s;
	const struct beton_batch *b;
	uint8_t bytes[READ_MAX];

	open_simply(&s, 2, 0);
	b = next_on(s.loader, s.own[0]);
	CHECK(beton_loader_acquire(s.loader, b, (void *)-1) == -EINVAL);
	CHECK(!beton_loader_release_on(s.loader, b, s.own[0]));
	CHECK(beton_loader_acquire(s.loader, b, s.own[0]) == -EINVAL);
	CHECK(beton_loader_release_on(s.loader, b, s.own[0]) == -EINVAL);
	CHECK(beton_loader_read(s.loader, b, 0, bytes) == -EINVAL);
	consumer_end(&s);
}

static void test_descriptions_of_outputs(void)
{
	static struct schedule s;
	struct beton_output o;

	open_simply(&s, 2, 0);
	CHECK(!beton_loader_output(s.loader, 0, &o));
	CHECK(o.device_type == BETON_DEVICE_CUDA && !o.device_id);
	CHECK(!strcmp(o.dtype, "<f2") && o.ndim == 3 && o.shape[0] == 3);
	CHECK(!beton_loader_output(s.loader, 2, &o));
	CHECK(o.device_type == BETON_DEVICE_CPU);
	next_on(s.loader, s.own[0]);
	CHECK(!standin || standin->calls("cuLaunchKernel"));
	consumer_end(&s);
}

/* Each output but bytes, also without cuda(), and in each phase; a device that
   cuda() names as well is one device. */
static void test_a_device_of_all_outputs(void)
{
	static const char *const devices[] = { "cuda", "cuda:0" };
	struct beton_loader_options o =
		options_of("image | center_crop(\"0=8,1=9\"); label | cuda(0)");
	static struct schedule s;
	struct beton_output out;

	for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
		consumer_begin(&s, 1, false);
		o.device = devices[i];
		s.loader = load(&o);
		for (uint32_t k = 0; k < 4; k++) {
			CHECK(!beton_loader_output(s.loader, k, &out));
			CHECK((out.device_type == BETON_DEVICE_CUDA) ==
			      !!strcmp(out.name, "blob"));
		}
		CHECK(beton_loader_output(s.loader, 4, &out) == -ENOENT);
		consumer_end(&s);
	}
	o.device = "cpu";
	o.pipeline = "image | drop";
	s.loader = load(&o);
	CHECK(!beton_loader_output(s.loader, 0, &out));
	CHECK(out.device_type == BETON_DEVICE_CPU);
	beton_loader_close(s.loader);
}

/* --- bad luck --- */

static void refuse(const char *pipeline, int code, const char *says)
{
	struct beton_loader_options o = options_of(pipeline);
	struct beton_loader *l;

	error[0] = '\0';
	CHECK(beton_loader_open(path, &o, &l) == code);
	if (!strstr(error, says))
		fprintf(stderr, "%s: %s\n", pipeline, error);
	CHECK(strstr(error, says));
	if (standin)
		CHECK(!standin->living());
}

static void refuse_device(const char *device, const char *pipeline,
			  const char *says)
{
	struct beton_loader_options o = options_of(pipeline);
	struct beton_loader *l;

	o.device = device;
	CHECK(beton_loader_open(path, &o, &l) == -EINVAL);
	CHECK(strstr(error, says));
}

static void test_failed_opens(void)
{
	char *library = getenv("BETON_CUDA_LIBRARY");

	if (standin)
		standin->reset(1);
	refuse("image | drop | cuda(0)", -EINVAL, "drop");
	refuse("blob | cuda(0)", -EINVAL, "cuda");
	refuse("image | cuda(0) | center_crop(9)", -EINVAL, "center_crop");
	refuse("label | cuda(0) | cuda(0)", -EINVAL, "already");
	refuse("label | cuda(64)", -EINVAL, "64");
	refuse("label | cuda(0); vec | cuda(1)", -EINVAL, "vec");
	refuse("label | cuda(63)", -ENODEV, "63");
	refuse_device("cuda:1", "label | cuda(0)", "a loader serves one");
	refuse_device("cuda:64", NULL,
		      "'cuda:64'; there are cpu, cuda, and "
		      "cuda:0 to cuda:63");
	refuse_device("gpu", NULL, "there are cpu, cuda");
	refuse_device("cuda1", NULL, "there are cpu, cuda");
	if (!gpu_has_standin(&gpu, __func__))
		return;
	library = strdup(library);
	setenv("BETON_CUDA_LIBRARY", "/proc/nonexistent/libcuda.so", 1);
	refuse("label | cuda(0)", -ENOSYS, "/proc/nonexistent/libcuda.so");
	setenv("BETON_CUDA_LIBRARY", library, 1);
	free(library);
	standin->set_devices(0, 12040);
	refuse("label | cuda(0)", -ENODEV, "GPU");
	standin->set_devices(1, 10020);
	refuse("label | cuda(0)", -ENOSYS, "10.2");
}

/* The n-th call of a function fails. Then the loader delivers right bytes or
   logs an error, continues, and leaves nothing behind. Returns whether it
   failed. */
static bool be_unlucky(const char *function, unsigned n, int code)
{
	struct beton_loader_options o = options_of(pipelines[1]);
	static struct schedule s;
	bool failed;
	int r;

	consumer_begin(&s, n, false);
	s.unlucky = true;
	o.on_error = BETON_ON_ERROR_SKIP;
	o.workers = 2;
	s.want = wanted[1][BETON_ON_ERROR_SKIP];
	standin->fail(function, n, code);
	error[0] = '\0';
	r = beton_loader_open(path, &o, &s.loader);
	CHECK(!r == !error[0]);
	if (r)
		s.loader = NULL;
	for (size_t i = 0; i < ACTIONS && !r; i++) {
		if (s.num_held && draw(&s, 2)) {
			s.num_held--;
			r = beton_loader_release_on(
				s.loader, s.held[s.num_held].batch, s.own[0]);
			CHECK(!r || heard.errors);
			r = 0;
		} else {
			take_unluckily(&s);
		}
	}
	failed = heard.errors || heard.warnings;
	consumer_end(&s);
	return failed;
}

static void test_any_call_may_fail(void)
{
	static const char *const functions[] = {
		"cuInit",
		"cuDevicePrimaryCtxRetain",
		"cuCtxPushCurrent_v2",
		"cuMemHostAlloc",
		"cuMemAlloc_v2",
		"cuStreamCreate",
		"cuEventCreate",
		"cuEventRecord",
		"cuEventQuery",
		"cuEventSynchronize",
		"cuStreamWaitEvent",
		"cuMemcpyHtoDAsync_v2",
		"cuModuleLoadDataEx",
		"cuModuleGetFunction",
		"cuLaunchKernel",
	};
	static const int codes[] = { 2, 1, 700 };

	if (!gpu_has_standin(&gpu, __func__))
		return;
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		unsigned failed = 0;

		for (unsigned n = 1; n < 40; n += 1 + n / 4) {
			/* Nothing ends where there is no context. */
			for (size_t k = strstr(functions[i], "Push") ? 2 : 0;
			     k < ARRAY_LEN(codes); k++)
				failed += be_unlucky(functions[i], n, codes[k]);
		}
		if (!failed)
			fprintf(stderr, "%s\n", functions[i]);
		CHECK(failed);
	}
}

/* Every call after the device was lost reports that, and so does the log. */
static void test_a_lost_device(void)
{
	static struct schedule s;
	const struct beton_batch *held, *b;
	uint8_t bytes[READ_MAX];
	size_t failed = 0;

	if (!gpu_has_standin(&gpu, __func__))
		return;
	open_simply(&s, 2, 0);
	s.unlucky = true;
	held = next_on(s.loader, s.own[0]);
	standin->fail("cuMemcpyHtoDAsync_v2", 1, 700);
	for (size_t i = 0; i < 3 * STEPS; i++) {
		int r = beton_loader_next_on(s.loader, s.own[0], &b);

		CHECK(!r || r == -EIO || r == -ENODATA);
		failed += r == -EIO;
		CHECK(r != -EIO ||
		      strstr(beton_loader_error(s.loader), "nothing more"));
	}
	CHECK(failed > STEPS);
	CHECK(beton_loader_read(s.loader, held, 0, bytes) == -EIO);
	CHECK(beton_loader_acquire(s.loader, held, s.own[1]) == -EIO);
	CHECK(beton_loader_release_on(s.loader, held, s.own[0]) == -EIO);
	/* It is released all the same. */
	CHECK(beton_loader_release_on(s.loader, held, s.own[0]) == -EINVAL);
	consumer_end(&s);
	CHECK(strstr(heard.last, "700"));
}

static void remove_cache(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s", cache);
	CHECK(!system(command));
}

int main(void)
{
	gpu_begin(&gpu);
	standin = gpu.standin;
	if (standin) {
		struct gpu nvrtc;

		gpu_find_standin(&nvrtc, "nvrtc");
		setenv("BETON_NVRTC_LIBRARY", nvrtc.path, 1);
	}
	CHECK(mkdtemp(cache));
	setenv("BETON_CACHE_DIR", cache, 1);
	setenv("BETON_JIT", "off", 1);
	write_dataset();
	for (size_t i = 0; i < PIPELINES; i++) {
		for (size_t e = 0; e < ERRORS; e++)
			want_all(i, (enum beton_on_error)e);
	}
	test_failed_opens();
	test_descriptions_of_outputs();
	test_a_device_of_all_outputs();
	test_invalid_releases();
	test_a_constant_batch();
	test_no_thread_waits_for_the_gpu();
	test_an_early_reuse_is_seen();
	test_release_waits_for_acquired_streams();
	test_release_without_events();
	test_a_graph_is_captured_meanwhile();
	test_schedules();
	test_any_call_may_fail();
	test_a_lost_device();
	forget_wanted();
	remove_cache();
	unlink(path);
	gpu_end(&gpu);
	return 0;
}
