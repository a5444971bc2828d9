/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measurements of the script beside this file, each as one line of
 * JSON. SIZE is in bytes.
 *
 *   bench_gpu facts
 *       the device
 *   bench_gpu rate SIZE COPIES
 *       bytes per second of so many copies to the device: queued one after the
 *       other on one stream, and through the loader's upload path
 *   bench_gpu overlap SIZE KERNELS MS
 *       ns of so many kernels of about MS each, alone and with copies running
 *       all the time; kernels that only calculate, and such that only move SIZE
 *       bytes within the device's memory
 *   bench_gpu load FILE PIPELINE SPEC WORKERS MS LOADERS
 *       so many loaders at once, each with a thread that takes batches and
 *       never waits for the device. Prints "ready", waits for a line, counts
 *       for MS, after a quarter of that.
 *   bench_gpu pixels FILE PIPELINE HOST_PIPELINE SPEC WORKERS BATCHES
 *       sums of the first output of each batch, by a consumer that never
 *       waits, against those of a loader without a GPU
 *
 * It ends with 2 where there is no GPU, and with 3 where there is no NVRTC.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "beton/loader.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/log.h"
#include "loader/run/gpu/cuda.h"
#include "loader/run/gpu/nvrtc.h"
#include "loader/run/gpu/upload.h"

enum {
	NO_GPU = 2,
	NO_COMPILER = 3,
	SLOTS = 4, /* as a ring has with the default prefetch, and one kept */
	BLOCK = 256,
	SUM_BLOCKS = 64,
	SUMS = SUM_BLOCKS * BLOCK,
	STREAMS = 2,
	LOADERS_MAX = 64,
	SLOW_MS = 3,
};

#define NAME "bench_gpu"

static void fail(const char *what, int error)
{
	fprintf(stderr, NAME ": %s: %s\n", what, strerror(-error));
	exit(1);
}

static void must(int r, const char *what)
{
	if (r)
		fail(what, r);
}

/* Information is left out. */
static void say(void *arg, enum beton_log_level level, const char *message)
{
	(void)arg;
	if (level <= BETON_LOG_WARNING)
		fprintf(stderr, NAME ": %s\n", message);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (*end || !n)
		fail(text, -EINVAL);
	return n;
}

static struct cuda *open_gpu(struct log *log)
{
	struct cuda *cuda;

	log_init(log, say, NULL);
	if (cuda_open(0, log, &cuda))
		exit(NO_GPU);
	return cuda;
}

static struct cuda_stream *make_stream(struct cuda *cuda)
{
	struct cuda_stream *stream;

	must(cuda_stream_create(cuda, &stream), "stream");
	return stream;
}

static uint64_t device_memory(struct cuda *cuda, uint64_t size)
{
	uint64_t address;

	must(cuda_device_alloc(cuda, size, &address), "memory of the device");
	return address;
}

static void *host_memory(struct cuda *cuda, uint64_t size)
{
	void *p;

	must(cuda_host_alloc(cuda, size, &p), "pinned memory");
	return p;
}

static int facts(char **argv)
{
	struct log log;
	struct cuda *cuda = open_gpu(&log);
	const struct cuda_facts *f = cuda_facts(cuda);

	(void)argv;
	printf("{\"name\": \"%s\", \"capability\": \"%d.%d\", \"driver\": %d, \"memory\": %" PRIu64
	       ", \"multiprocessors\": %d, \"copy_engines\": %d, \"link_speed\": \"%s\", \"link_width\": %d, \"numa_node\": %d}\n",
	       f->name, f->major, f->minor, f->driver, f->memory,
	       f->multiprocessors, f->copy_engines, f->link_speed,
	       f->link_width, f->numa_node);
	cuda_close(cuda);
	log_fini(&log);
	return 0;
}

/* --- copies through the upload path --- */

struct uploader {
	struct cuda *cuda;
	struct upload *upload;
	struct upload_slot *slots[SLOTS];
	struct cuda_stream *consumer;
	uint64_t size;
	uint64_t count; /* of copies; guarded by nothing, read when joined */
	atomic_bool stopping;
	atomic_uint_fast64_t started;
};

static void uploader_open(struct uploader *u, struct cuda *cuda,
			  struct log *log, uint64_t size)
{
	struct upload_options options = { .cuda = cuda,
					  .pinned = 2 * SLOTS * size,
					  .log = log };

	memset(u, 0, sizeof(*u));
	u->cuda = cuda;
	u->size = size;
	u->consumer = make_stream(cuda);
	must(upload_open(&options, &u->upload), "upload");
	for (size_t i = 0; i < SLOTS; i++) {
		struct upload_slot **slot = &u->slots[i];

		must(upload_slot_open(u->upload, 1, slot), "slot");
		must(upload_begin(*slot), "slot");
		must(upload_reserve(*slot, 0, size, size), "slot");
		memset(upload_host(*slot, 0), (int)i, size);
		upload_release_done(*slot);
	}
}

static void uploader_close(struct uploader *u)
{
	for (size_t i = 0; i < SLOTS; i++)
		upload_slot_close(u->slots[i]);
	upload_close(u->upload);
	cuda_stream_destroy(u->cuda, u->consumer);
}

/* A batch and its consumer, which queues nothing of its own. */
static void upload_one(struct uploader *u, struct upload_slot *slot)
{
	struct upload_copy copy = { .size = u->size };

	must(upload_begin(slot), "begin");
	must(upload_start(slot, &copy, 1, NULL, NULL), "start");
	must(upload_acquire(slot, u->consumer), "acquire");
	must(upload_release(slot, u->consumer), "release");
}

static double uploader_rate(struct uploader *u, uint64_t copies)
{
	int64_t start = clock_ns();

	for (uint64_t i = 0; i < copies; i++)
		upload_one(u, u->slots[i % SLOTS]);
	must(cuda_stream_synchronize(u->cuda, u->consumer), "consumer");
	return (double)(copies * u->size) * 1e9 / (double)(clock_ns() - start);
}

static void *upload_on(void *arg)
{
	struct uploader *u = arg;

	for (u->count = 0; !u->stopping; u->count++) {
		upload_one(u, u->slots[u->count % SLOTS]);
		u->started++;
	}
	must(cuda_stream_synchronize(u->cuda, u->consumer), "consumer");
	return NULL;
}

/* --- copies as fast as they can be --- */

struct plain {
	struct cuda *cuda;
	struct cuda_stream *stream;
	void *from[SLOTS];
	uint64_t to[SLOTS];
	uint64_t size;
};

static void plain_open(struct plain *p, struct cuda *cuda, uint64_t size)
{
	*p = (struct plain){ .cuda = cuda,
			     .stream = make_stream(cuda),
			     .size = size };
	for (size_t i = 0; i < SLOTS; i++) {
		p->from[i] = host_memory(cuda, size);
		memset(p->from[i], (int)i, size);
		p->to[i] = device_memory(cuda, size);
	}
}

static void plain_close(struct plain *p)
{
	for (size_t i = 0; i < SLOTS; i++) {
		cuda_host_free(p->cuda, p->from[i]);
		cuda_device_free(p->cuda, p->to[i]);
	}
	cuda_stream_destroy(p->cuda, p->stream);
}

static double plain_rate(struct plain *p, uint64_t copies)
{
	int64_t start = clock_ns();

	for (uint64_t i = 0; i < copies; i++)
		must(cuda_copy_to_device(p->cuda, p->to[i % SLOTS],
					 p->from[i % SLOTS], p->size,
					 p->stream),
		     "copy");
	must(cuda_stream_synchronize(p->cuda, p->stream), "copies");
	return (double)(copies * p->size) * 1e9 / (double)(clock_ns() - start);
}

/* Each way twice, in the order A B B A, after a short one of each. */
static int rate(char **argv)
{
	uint64_t size = number(argv[0]), copies = number(argv[1]);
	struct log log;
	struct cuda *cuda = open_gpu(&log);
	struct uploader u;
	struct plain p;
	double plain, upload;

	uploader_open(&u, cuda, &log, size);
	plain_open(&p, cuda, size);
	plain_rate(&p, SLOTS);
	uploader_rate(&u, SLOTS);
	plain = plain_rate(&p, copies);
	upload = uploader_rate(&u, copies);
	upload = 2 / (1 / upload + 1 / uploader_rate(&u, copies));
	plain = 2 / (1 / plain + 1 / plain_rate(&p, copies));
	printf("{\"plain\": %.0f, \"upload\": %.0f}\n", plain, upload);
	plain_close(&p);
	uploader_close(&u);
	cuda_close(cuda);
	log_fini(&log);
	return 0;
}

/* --- kernels --- */

/* No sum of a batch is a matter of order: each thread has its own. */
static const char text[] =
	"typedef unsigned long long u64;\n"
	"extern \"C\" __global__ void bench_calculate(float *to, const float *from, u64 n, unsigned passes)\n"
	"{\n"
	"	float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;\n"
	"	for (unsigned k = 0; k < passes; k++) {\n"
	"		for (int j = 0; j < 64; j++) {\n"
	"			a = a * 0.5f + 1; b = b * 0.5f + 2;\n"
	"			c = c * 0.5f + 3; d = d * 0.5f + 4;\n"
	"		}\n"
	"	}\n"
	"	u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;\n"
	"	if (i < n)\n"
	"		to[i] = a + b + c + d;\n"
	"}\n"
	"extern \"C\" __global__ void bench_move(float *to, const float *from, u64 n, unsigned passes)\n"
	"{\n"
	"	u64 first = blockIdx.x * (u64)blockDim.x + threadIdx.x;\n"
	"	u64 step = (u64)gridDim.x * blockDim.x;\n"
	"	for (unsigned k = 0; k < passes; k++)\n"
	"		for (u64 i = first; i < n; i += step)\n"
	"			to[i] = from[i] + k;\n"
	"}\n"
	"extern \"C\" __global__ void bench_sum(const unsigned *p, u64 n, u64 *out, u64 at)\n"
	"{\n"
	"	u64 first = blockIdx.x * (u64)blockDim.x + threadIdx.x;\n"
	"	u64 sum = 0;\n"
	"	for (u64 i = first; i < n; i += (u64)gridDim.x * blockDim.x)\n"
	"		sum += p[i] * (2 * i + 1);\n"
	"	out[at + first] = sum;\n"
	"}\n";

static struct cuda_module *load_kernels(struct cuda *cuda, struct log *log)
{
	struct nvrtc *compiler;
	struct cuda_module *module;
	struct cuda_image image;

	if (nvrtc_open(cuda_facts(cuda), log, &compiler)) {
		cuda_close(cuda);
		exit(NO_COMPILER);
	}
	must(nvrtc_run(compiler, NAME, text, NULL, 0, &image), "kernels");
	must(cuda_module_load(cuda, image.bytes, &module), "kernels");
	free(image.bytes);
	nvrtc_close(compiler);
	return module;
}

static struct cuda_kernel *
kernel_of(struct cuda *cuda, struct cuda_module *module, const char *name)
{
	struct cuda_kernel *kernel;

	must(cuda_module_kernel(cuda, module, name, &kernel), name);
	return kernel;
}

/* Something for the device to do, for about as long as one wants. */
struct work {
	struct cuda *cuda;
	struct cuda_kernel *kernel;
	struct cuda_stream *stream;
	uint64_t to, from;
	uint64_t n; /* floats */
	uint32_t passes;
};

static void work_queue(struct work *w)
{
	void *arguments[] = { &w->to, &w->from, &w->n, &w->passes };
	uint32_t all = (uint32_t)cuda_facts(w->cuda)->multiprocessors * 8;
	struct cuda_launch launch = { .kernel = w->kernel,
				      .grid = { all },
				      .block = { BLOCK },
				      .arguments = arguments };

	must(cuda_launch(w->cuda, &launch, w->stream), "kernel");
}

static int64_t work_time(struct work *w, uint64_t kernels)
{
	int64_t start = clock_ns();

	for (uint64_t i = 0; i < kernels; i++)
		work_queue(w);
	must(cuda_stream_synchronize(w->cuda, w->stream), "kernels");
	return clock_ns() - start;
}

static void work_open(struct work *w, struct cuda *cuda,
		      struct cuda_kernel *kernel, uint64_t size, uint64_t ms)
{
	int64_t wanted = (int64_t)ms * 1000000, t;

	*w = (struct work){ .cuda = cuda,
			    .kernel = kernel,
			    .stream = make_stream(cuda),
			    .to = device_memory(cuda, size),
			    .from = device_memory(cuda, size),
			    .n = size / sizeof(float),
			    .passes = 1 };
	work_time(w, 1);
	while ((t = work_time(w, 1)) < wanted / 4 && w->passes < 1u << 24)
		w->passes *= 2;
	if (t < wanted)
		w->passes = (uint32_t)((double)w->passes * (double)wanted /
				       (double)t);
}

static void work_close(struct work *w)
{
	must(cuda_stream_synchronize(w->cuda, w->stream), "kernels");
	cuda_device_free(w->cuda, w->to);
	cuda_device_free(w->cuda, w->from);
	cuda_stream_destroy(w->cuda, w->stream);
}

/* --- kernels during copies --- */

static int64_t busy_time(struct work *w, struct uploader *u, uint64_t kernels,
			 double *rate)
{
	pthread_t thread;
	int64_t start, ns;
	uint64_t before;

	u->stopping = false;
	u->started = 0;
	must(-pthread_create(&thread, NULL, upload_on, u), "thread");
	while (u->started < SLOTS)
		sched_yield();
	before = u->started;
	start = clock_ns();
	ns = work_time(w, kernels);
	*rate = (double)((u->started - before) * u->size) * 1e9 /
		(double)(clock_ns() - start);
	u->stopping = true;
	pthread_join(thread, NULL);
	return ns;
}

static void overlap_kernel(const char *name, struct work *w, struct uploader *u,
			   uint64_t kernels)
{
	double rates[2];
	int64_t alone, busy;

	alone = work_time(w, kernels);
	busy = busy_time(w, u, kernels, &rates[0]);
	busy += busy_time(w, u, kernels, &rates[1]);
	alone += work_time(w, kernels);
	printf("\"%s\": {\"kernel_ns\": %.0f, \"alone_ns\": %" PRId64
	       ", \"busy_ns\": %" PRId64 ", \"rate\": %.0f}",
	       name, (double)alone / 2 / (double)kernels, alone, busy,
	       (rates[0] + rates[1]) / 2);
}

static int overlap(char **argv)
{
	static const char *const names[] = { "calculate", "move" };
	static const char *const kernel_names[] = { "bench_calculate",
						    "bench_move" };
	uint64_t size = number(argv[0]), kernels = number(argv[1]);
	struct log log;
	struct cuda *cuda = open_gpu(&log);
	struct cuda_module *module = load_kernels(cuda, &log);
	struct uploader u;
	struct work w;

	uploader_open(&u, cuda, &log, size);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		printf("%s", i ? ", " : "{");
		work_open(&w, cuda, kernel_of(cuda, module, kernel_names[i]),
			  size, number(argv[2]));
		overlap_kernel(names[i], &w, &u, kernels);
		work_close(&w);
	}
	printf("}\n");
	uploader_close(&u);
	cuda_module_unload(cuda, module);
	cuda_close(cuda);
	log_fini(&log);
	return 0;
}

/* --- loaders --- */

static struct beton_loader *open_loader(const char *file, const char *pipeline,
					const char *spec, uint32_t workers)
{
	char why[1024];
	struct beton_loader_options options = { .size = sizeof(options),
						.spec = spec,
						.pipeline = pipeline,
						.workers = workers,
						.log = say,
						.error = why,
						.error_size = sizeof(why) };
	struct beton_loader *loader;

	if (beton_loader_open(file, &options, &loader)) {
		fprintf(stderr, NAME ": %s\n", why);
		exit(1);
	}
	return loader;
}

/* From one epoch to the next. */
static const struct beton_batch *take(struct beton_loader *loader,
				      struct cuda_stream *stream)
{
	const struct beton_batch *batch;
	int r = beton_loader_next_on(loader, stream, &batch);

	if (r == -ENODATA)
		r = beton_loader_next_on(loader, stream, &batch);
	if (r) {
		fprintf(stderr, NAME ": %s\n", beton_loader_error(loader));
		exit(1);
	}
	return batch;
}

struct consumer {
	struct beton_loader *loader;
	struct cuda_stream *stream;
	pthread_barrier_t *barrier;
	int64_t ns;
	uint64_t images;
	uint64_t cpu_ns; /* of the process, meanwhile */
	int64_t took;
};

static uint64_t cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static void consume(struct consumer *c, int64_t until)
{
	do {
		const struct beton_batch *batch = take(c->loader, c->stream);

		c->images += batch->num_samples;
		must(beton_loader_release_on(c->loader, batch, c->stream),
		     "release");
	} while (clock_ns() < until);
}

/* Uses up the prefetched batches before counting starts. */
static void *consumer_run(void *arg)
{
	struct consumer *c = arg;
	int64_t start;

	consume(c, 0);
	pthread_barrier_wait(c->barrier);
	pthread_barrier_wait(c->barrier);
	consume(c, clock_ns() + c->ns / 4);
	c->images = 0;
	start = clock_ns();
	c->cpu_ns = cpu_ns();
	consume(c, start + c->ns);
	c->took = clock_ns() - start;
	c->cpu_ns = cpu_ns() - c->cpu_ns;
	return NULL;
}

static void consumers_run(struct consumer *c, size_t n)
{
	pthread_t threads[LOADERS_MAX];
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, (unsigned)n + 1);
	for (size_t i = 0; i < n; i++) {
		c[i].barrier = &barrier;
		must(-pthread_create(&threads[i], NULL, consumer_run, &c[i]),
		     "thread");
	}
	pthread_barrier_wait(&barrier);
	printf("ready\n");
	fflush(stdout);
	getchar();
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
}

static void print_consumers(const struct consumer *c, size_t n)
{
	uint64_t images = 0;

	printf("{\"images_per_s\": [");
	for (size_t i = 0; i < n; i++) {
		printf("%s%.1f", i ? ", " : "",
		       (double)c[i].images * 1e9 / (double)c[i].took);
		images += c[i].images;
	}
	printf("], \"cpu_us_per_image\": %.2f}\n",
	       (double)c[0].cpu_ns / 1e3 / (double)images);
}

static int load(char **argv)
{
	struct consumer consumers[LOADERS_MAX] = { 0 };
	size_t n = number(argv[5]);
	struct log log;
	struct cuda *cuda = NULL;

	if (n > LOADERS_MAX)
		fail(argv[5], -EINVAL);
	if (strstr(argv[1], "cuda("))
		cuda = open_gpu(&log);
	for (size_t i = 0; i < n; i++) {
		consumers[i].loader = open_loader(argv[0], argv[1], argv[2],
						  (uint32_t)number(argv[3]));
		consumers[i].stream = cuda ? make_stream(cuda) : NULL;
		consumers[i].ns = (int64_t)number(argv[4]) * 1000000;
	}
	consumers_run(consumers, n);
	print_consumers(consumers, n);
	for (size_t i = 0; i < n; i++) {
		beton_loader_close(consumers[i].loader);
		if (cuda)
			cuda_stream_destroy(cuda, consumers[i].stream);
	}
	if (cuda) {
		cuda_close(cuda);
		log_fini(&log);
	}
	return 0;
}

/* --- the right pixels --- */

/* Sums on the host, equal to those of bench_sum. */
static uint64_t sum_of(const uint32_t *p, uint64_t n)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += p[i] * (2 * i + 1);
	return sum;
}

static void queue_sum(struct cuda *cuda, struct cuda_kernel *kernel,
		      const struct beton_tensor *t, uint64_t out, uint64_t at,
		      struct cuda_stream *stream)
{
	uint64_t p = (uintptr_t)t->data, n = t->size / sizeof(uint32_t);
	void *arguments[] = { &p, &n, &out, &at };
	struct cuda_launch launch = { .kernel = kernel,
				      .grid = { SUM_BLOCKS },
				      .block = { BLOCK },
				      .arguments = arguments };

	if (t->device_type != BETON_DEVICE_CUDA)
		fail("the first output is not the GPU's", -EINVAL);
	must(cuda_launch(cuda, &launch, stream), "kernel");
}

/* The streams take turns, and are kept late by work of their own. */
static void queue_sums(struct beton_loader *loader, struct cuda *cuda,
		       struct cuda_module *module, struct work *works,
		       const uint64_t *out, uint64_t batches)
{
	struct cuda_kernel *kernel = kernel_of(cuda, module, "bench_sum");

	for (uint64_t i = 0; i < batches; i++) {
		struct work *w = &works[i % STREAMS];
		const struct beton_batch *batch = take(loader, w->stream);

		if (i % 3 != 2)
			work_queue(w);
		queue_sum(cuda, kernel, &batch->outputs[0], out[i % STREAMS],
			  i / STREAMS * SUMS, w->stream);
		must(beton_loader_release_on(loader, batch, w->stream),
		     "release");
	}
}

/* Reads the sums of a stream back; the first time that anything is waited for.
 */
static void collect(struct work *w, uint64_t from, size_t first,
		    uint64_t batches, uint64_t *sums)
{
	uint64_t each = (batches + STREAMS - 1) / STREAMS;
	uint64_t *parts = host_memory(w->cuda, each * SUMS * sizeof(*parts));

	must(cuda_copy_to_host(w->cuda, parts, from,
			       each * SUMS * sizeof(*parts), w->stream),
	     "sums");
	must(cuda_stream_synchronize(w->cuda, w->stream), "sums");
	for (uint64_t i = first; i < batches; i += STREAMS) {
		sums[i] = 0;
		for (size_t k = 0; k < SUMS; k++)
			sums[i] += parts[i / STREAMS * SUMS + k];
	}
	cuda_host_free(w->cuda, parts);
}

static void sums_by_gpu(char **argv, uint64_t batches, uint64_t *sums)
{
	uint64_t each = (batches + STREAMS - 1) / STREAMS, out[STREAMS];
	struct log log;
	struct cuda *cuda = open_gpu(&log);
	struct cuda_module *module = load_kernels(cuda, &log);
	struct beton_loader *loader = open_loader(argv[0], argv[1], argv[3],
						  (uint32_t)number(argv[4]));
	struct work works[STREAMS];

	for (size_t i = 0; i < STREAMS; i++) {
		out[i] = device_memory(cuda, each * SUMS * sizeof(uint64_t));
		work_open(&works[i], cuda,
			  kernel_of(cuda, module, "bench_calculate"), 1 << 16,
			  SLOW_MS);
	}
	queue_sums(loader, cuda, module, works, out, batches);
	for (size_t i = 0; i < STREAMS; i++)
		collect(&works[i], out[i], i, batches, sums);
	beton_loader_close(loader);
	for (size_t i = 0; i < STREAMS; i++) {
		cuda_device_free(cuda, out[i]);
		work_close(&works[i]);
	}
	cuda_module_unload(cuda, module);
	cuda_close(cuda);
	log_fini(&log);
}

static uint64_t count_wrong(char **argv, uint64_t batches, const uint64_t *sums)
{
	struct beton_loader *loader = open_loader(argv[0], argv[2], argv[3],
						  (uint32_t)number(argv[4]));
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < batches; i++) {
		const struct beton_batch *batch = take(loader, NULL);
		const struct beton_tensor *t = &batch->outputs[0];

		wrong += sums[i] != sum_of(t->data, t->size / sizeof(uint32_t));
		beton_loader_release(loader, batch);
	}
	beton_loader_close(loader);
	return wrong;
}

static int pixels(char **argv)
{
	uint64_t batches = number(argv[5]);
	uint64_t *sums = calloc(batches, sizeof(*sums));

	if (!sums)
		fail("sums", -ENOMEM);
	sums_by_gpu(argv, batches, sums);
	printf("{\"batches\": %" PRIu64 ", \"wrong\": %" PRIu64 "}\n", batches,
	       count_wrong(argv, batches, sums));
	free(sums);
	return 0;
}

static const struct {
	const char *name;
	int arguments;
	int (*run)(char **argv);
} rows[] = {
	{ "facts", 0, facts },	   { "rate", 2, rate },
	{ "overlap", 3, overlap }, { "load", 6, load },
	{ "pixels", 6, pixels },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (argc == rows[i].arguments + 2 &&
		    !strcmp(argv[1], rows[i].name))
			return rows[i].run(argv + 2);
	}
	fprintf(stderr,
		"usage: " NAME " facts|rate|overlap|load|pixels ARGUMENTS\n");
	return 1;
}
