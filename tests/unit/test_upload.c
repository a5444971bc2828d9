/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads under consumers of all kinds, with every byte that these read
 * compared, and everything that must be ordered watched by the stand-in.
 */
#include <pthread.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/base/util/thread.h"
#include "loader/run/gpu/upload.h"
#include "tests/unit/gpu.h"

enum {
#ifdef __SANITIZE_THREAD__
	SCHEDULES = 300, /* takes its time */
#else
	SCHEDULES = 1000,
#endif
	REAL_SCHEDULES = 100, /* the real driver opens more slowly */
	ROUNDS = 12,
	SLOTS = 4,
	PARTS = 3,
	STREAMS = 6,
	SMALL = 6000,
	LARGE = 2500000, /* three pieces of what is not pinned */
	READS = ROUNDS * PARTS * 4,
};

static struct gpu gpu;
static const struct standin *standin;

/* A batch's bytes: different ones in every round and part. */
static uint8_t byte_of(uint32_t seed, size_t i)
{
	return (uint8_t)(seed * 31 + i * 7 + (i >> 8) * 13);
}

/* Values that a consumer copied back; the test compares them at the end. */
struct read {
	uint8_t *bytes;
	uint32_t size;
	uint32_t seed;
	uint8_t plus;
};

struct batch {
	struct upload_slot *slot;
	bool held;
	uint32_t seed;
	uint32_t sizes[PARTS];
	uint8_t plus; /* of part 0 */
	uint32_t acquired;
	struct cuda_stream *streams[2];
};

struct schedule {
	struct rng rng;
	struct cuda *cuda;
	struct upload *upload;
	struct batch batches[SLOTS];
	struct cuda_stream *own[STREAMS];     /* to be destroyed */
	struct cuda_stream *streams[STREAMS]; /* of the consumers */
	struct cuda_module *module;
	struct cuda_kernel *kernel; /* NULL: none */
	uint32_t max;
	uint32_t rounds;
	uint8_t *results;
	uint64_t results_used, results_size;
	struct read reads[READS];
	size_t num_reads;
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

static void schedule_begin(struct schedule *s, uint64_t seed)
{
	static const uint64_t budgets[] = { 0, 40000, 64 << 20 };
	bool defaults = seed % 4 == 3;
	struct upload_options o = { .log = &gpu.log };
	void *p;

	*s = (struct schedule){ .rng = { .key = seed } };
	if (standin) {
		standin->reset(seed);
		standin->allow_default(defaults);
	}
	s->max = seed % 250 == 0 ? LARGE : SMALL;
	CHECK(!cuda_open(0, &gpu.log, &s->cuda));
	o.cuda = s->cuda;
	o.pinned = budgets[draw(s, 3)];
	CHECK(!upload_open(&o, &s->upload));
	make_streams(s, defaults);
	for (size_t i = 0; i < SLOTS; i++)
		CHECK(!upload_slot_open(s->upload, PARTS, &s->batches[i].slot));
	s->results_size = (uint64_t)s->max * READS;
	s->results_size = min_u64(s->results_size, 40 << 20);
	CHECK(!cuda_host_alloc(s->cuda, s->results_size, &p));
	s->results = p;
	if (gpu_load_kernel(&gpu, s->cuda, &s->module, &s->kernel))
		s->kernel = NULL;
}

static int add_one(void *arg, struct cuda *cuda, struct cuda_stream *stream)
{
	struct schedule *s = ((void **)arg)[0];
	struct batch *b = ((void **)arg)[1];

	b->plus = 1;
	return gpu_launch_add_one(cuda, s->kernel, upload_device(b->slot, 0),
				  b->sizes[0], stream);
}

static void write_batch(struct schedule *s, struct batch *b)
{
	b->seed = ++s->rounds * PARTS;
	b->plus = 0;
	b->acquired = 0;
	for (uint32_t p = 0; p < PARTS; p++) {
		b->sizes[p] = 1 + draw(s, draw(s, 3) ? s->max / 8 : s->max);
		CHECK(!upload_reserve(b->slot, p, b->sizes[p], b->sizes[p]));
		for (size_t i = 0; i < b->sizes[p]; i++)
			((uint8_t *)upload_host(b->slot, p))[i] =
				byte_of(b->seed + p, i);
	}
}

static void start_batch(struct schedule *s, struct batch *b)
{
	struct upload_copy copies[PARTS + 1];
	void *arg[] = { s, b };

	/* The last part in two, and a copy of nothing. */
	for (uint32_t p = 0; p < PARTS; p++)
		copies[p] =
			(struct upload_copy){ .part = p, .size = b->sizes[p] };
	copies[PARTS] = copies[PARTS - 1];
	copies[PARTS].offset = copies[PARTS - 1].size /= 2;
	copies[PARTS].size -= copies[PARTS].offset;
	CHECK(!upload_start(b->slot, copies, PARTS + 1,
			    s->kernel && draw(s, 2) ? add_one : NULL, arg));
}

static void acquire_batch(struct schedule *s, struct batch *b)
{
	b->acquired = 1 + draw(s, 2);
	for (uint32_t i = 0; i < b->acquired; i++) {
		b->streams[i] = s->streams[draw(s, STREAMS)];
		CHECK(!upload_acquire(b->slot, b->streams[i]));
	}
	b->held = true;
}

/* The consumer's work: copies some part back, by a stream that acquired it. */
static void use_batch(struct schedule *s, struct batch *b)
{
	uint32_t p = draw(s, PARTS);
	struct cuda_stream *stream = b->streams[draw(s, b->acquired)];
	struct read *r = &s->reads[s->num_reads];

	if (s->num_reads == READS ||
	    s->results_used + b->sizes[p] > s->results_size)
		return;
	*r = (struct read){ .bytes = s->results + s->results_used,
			    .size = b->sizes[p],
			    .seed = b->seed + p,
			    .plus = p ? 0 : b->plus };
	CHECK(!cuda_copy_to_host(s->cuda, r->bytes, upload_device(b->slot, p),
				 r->size, stream));
	s->results_used += r->size;
	s->num_reads++;
}

static void release_batch(struct schedule *s, struct batch *b)
{
	b->held = false;
	switch (draw(s, 4)) {
	case 0:
		CHECK(!upload_release(b->slot, b->streams[0]));
		return;
	case 1:
		CHECK(!upload_release(b->slot, s->streams[draw(s, STREAMS)]));
		return;
	case 2:
		CHECK(!upload_release(b->slot, UPLOAD_NO_STREAM));
		return;
	default:
		for (uint32_t i = 0; i < b->acquired; i++)
			CHECK(!cuda_stream_synchronize(s->cuda, b->streams[i]));
		upload_release_done(b->slot);
	}
}

static void run_round(struct schedule *s)
{
	struct batch *b = &s->batches[draw(s, SLOTS)];
	uint32_t end = draw(s, 10);

	/* Kept for some time, used in between. */
	if (b->held) {
		use_batch(s, b);
		release_batch(s, b);
	}
	CHECK(!upload_begin(b->slot));
	write_batch(s, b);
	/* A loader that goes elsewhere has no use for what is under way. */
	if (end == 0) {
		CHECK(!upload_release(b->slot, UPLOAD_NO_STREAM));
		return;
	}
	start_batch(s, b);
	if (end == 1) {
		upload_release_done(b->slot);
		return;
	}
	acquire_batch(s, b);
	for (uint32_t n = draw(s, 4); n > 0; n--)
		use_batch(s, b);
	if (draw(s, 3))
		release_batch(s, b);
}

static void check_reads(const struct schedule *s)
{
	for (size_t i = 0; i < s->num_reads; i++) {
		const struct read *r = &s->reads[i];

		for (size_t k = 0; k < r->size; k++)
			CHECK(r->bytes[k] ==
			      (uint8_t)(byte_of(r->seed, k) + r->plus));
	}
}

/* Nothing is waited for before the end, and slots go first. */
static void schedule_end(struct schedule *s)
{
	for (size_t i = 0; i < SLOTS; i++)
		upload_slot_close(s->batches[i].slot);
	upload_close(s->upload);
	for (size_t i = 0; i < STREAMS; i++)
		CHECK(!cuda_stream_synchronize(s->cuda, s->streams[i]));
	check_reads(s);
	for (size_t i = 0; i < STREAMS; i++)
		CHECK(!cuda_stream_synchronize(s->cuda, s->own[i]));
	for (size_t i = 0; i < STREAMS; i++)
		cuda_stream_destroy(s->cuda, s->own[i]);
	cuda_module_unload(s->cuda, s->module);
	cuda_host_free(s->cuda, s->results);
	cuda_close(s->cuda);
	if (!standin)
		return;
	CHECK(!standin->violations() && !standin->living());
	CHECK(!standin->pushed());
}

static void test_schedules(void)
{
	static struct schedule s;
	size_t reads = 0;

	for (uint64_t seed = 0; seed < (standin ? SCHEDULES : REAL_SCHEDULES);
	     seed++) {
		schedule_begin(&s, seed);
		for (size_t i = 0; i < ROUNDS; i++)
			run_round(&s);
		reads += s.num_reads;
		schedule_end(&s);
	}
	CHECK(reads > REAL_SCHEDULES * ROUNDS / 2);
}

/* --- one slot, one part --- */

struct single {
	struct cuda *cuda;
	struct upload *upload;
	struct upload_slot *slot;
	struct cuda_stream *streams[2];
	uint8_t *result;
	uint32_t seed;
};

static struct single single_begin(uint64_t pinned)
{
	struct single s = { .seed = 0 };
	struct upload_options o = { .log = &gpu.log, .pinned = pinned };
	void *p;

	gpu_clear_log(&gpu);
	CHECK(!cuda_open(0, &gpu.log, &s.cuda));
	o.cuda = s.cuda;
	CHECK(!upload_open(&o, &s.upload));
	CHECK(!upload_slot_open(s.upload, 1, &s.slot));
	for (size_t i = 0; i < 2; i++)
		CHECK(!cuda_stream_create(s.cuda, &s.streams[i]));
	CHECK(!cuda_host_alloc(s.cuda, SMALL, &p));
	s.result = p;
	return s;
}

static void single_end(struct single *s)
{
	upload_slot_close(s->slot);
	upload_close(s->upload);
	for (size_t i = 0; i < 2; i++) {
		cuda_stream_synchronize(s->cuda, s->streams[i]);
		cuda_stream_destroy(s->cuda, s->streams[i]);
	}
	cuda_host_free(s->cuda, s->result);
	cuda_close(s->cuda);
}

static int write_single(struct single *s)
{
	int r = upload_begin(s->slot);

	if (!r)
		r = upload_reserve(s->slot, 0, SMALL, SMALL);
	s->seed++;
	for (size_t i = 0; i < SMALL && !r; i++)
		((uint8_t *)upload_host(s->slot, 0))[i] = byte_of(s->seed, i);
	return r;
}

static int start_single(struct single *s)
{
	struct upload_copy copy = { .size = SMALL };

	return upload_start(s->slot, &copy, 1, NULL, NULL);
}

static int use_single(struct single *s, struct cuda_stream *stream)
{
	return cuda_copy_to_host(s->cuda, s->result, upload_device(s->slot, 0),
				 SMALL, stream);
}

static int check_if_done(struct single *s, struct cuda_stream *stream)
{
	int r = cuda_stream_synchronize(s->cuda, stream);

	for (size_t i = 0; i < SMALL && !r; i++)
		CHECK(s->result[i] == byte_of(s->seed, i));
	return r;
}

static void check_single(struct single *s, struct cuda_stream *stream)
{
	CHECK(!check_if_done(s, stream));
}

/* Calls that break the header's contract are refused, and change nothing. */
static void test_misuse(void)
{
	struct single s = single_begin(1 << 20);
	struct upload_copy copy = { .size = SMALL };
	struct upload_copy beyond = { .offset = 1 << 20, .size = 1 };
	struct upload_copy none = { .part = 1, .size = 1 };

	CHECK(upload_host(s.slot, 0) == NULL && !upload_device(s.slot, 0));
	CHECK(upload_start(s.slot, &copy, 1, NULL, NULL) == -EINVAL);
	CHECK(upload_reserve(s.slot, 0, 1, 1) == -EINVAL);
	CHECK(upload_acquire(s.slot, s.streams[0]) == -EINVAL);
	CHECK(upload_release(s.slot, s.streams[0]) == -EINVAL);
	CHECK(upload_wait(s.slot) == -EINVAL);
	CHECK(!write_single(&s));
	CHECK(upload_reserve(s.slot, 1, 1, 1) == -EINVAL);
	CHECK(upload_reserve(s.slot, 0, UINT64_MAX, 1) == -ENOMEM);
	CHECK(upload_start(s.slot, &beyond, 1, NULL, NULL) == -EINVAL);
	CHECK(upload_start(s.slot, &none, 1, NULL, NULL) == -EINVAL);
	CHECK(!start_single(&s));
	CHECK(upload_begin(s.slot) == -EBUSY);
	CHECK(upload_acquire(s.slot, UPLOAD_NO_STREAM) == -EINVAL);
	CHECK(!upload_wait(s.slot));
	CHECK(!upload_acquire(s.slot, s.streams[0]));
	CHECK(!use_single(&s, s.streams[0]));
	CHECK(!upload_release(s.slot, s.streams[0]));
	CHECK(upload_release(s.slot, s.streams[0]) == -EINVAL);
	check_single(&s, s.streams[0]);
	single_end(&s);
}

/* Memory is pinned up to the budget; the test checks the messages, too. */
static void test_budget(void)
{
	struct single s = single_begin(SMALL);
	struct upload_stats stats;

	if (standin)
		standin->reset(1);
	CHECK(!write_single(&s) && !start_single(&s));
	CHECK(!upload_acquire(s.slot, s.streams[0]));
	CHECK(!use_single(&s, s.streams[0]));
	CHECK(!upload_release(s.slot, s.streams[0]));
	check_single(&s, s.streams[0]);
	upload_get_stats(s.upload, &stats);
	CHECK(stats.batches == 1 && stats.bytes == SMALL);
	CHECK(stats.staged == SMALL && !stats.pinned);
	CHECK(stats.ordinary >= SMALL && stats.device >= SMALL);
	CHECK(gpu.lines == 1 && strstr(gpu.logged, "may be pinned"));
	single_end(&s);
	s = single_begin(1 << 20);
	CHECK(!write_single(&s) && !start_single(&s));
	upload_get_stats(s.upload, &stats);
	CHECK(!stats.staged && stats.pinned >= SMALL && !stats.ordinary);
	CHECK(!gpu.lines);
	/* In flight, and not acquired. */
	single_end(&s);
}

/* Uploads the contents of another slot, pinned or not, any number of times. */
static void upload_again(uint64_t pinned)
{
	struct single s = single_begin(pinned);
	struct upload_copy copy = { .size = SMALL, .from = s.slot };
	struct upload_copy beyond = { .size = SMALL, .from = s.slot };
	struct single other = s;

	CHECK(!write_single(&s) && !start_single(&s));
	other.seed = s.seed;
	CHECK(!upload_slot_open(s.upload, 1, &other.slot));
	beyond.offset = 1 << 20;
	for (size_t round = 0; round < 3; round++) {
		CHECK(!upload_begin(other.slot));
		CHECK(!upload_reserve(other.slot, 0, 0, SMALL));
		CHECK(!upload_host(other.slot, 0));
		CHECK(upload_start(other.slot, &beyond, 1, NULL, NULL) ==
		      -EINVAL);
		CHECK(!upload_start(other.slot, &copy, 1, NULL, NULL));
		CHECK(!upload_acquire(other.slot, s.streams[0]));
		memset(s.result, 0, SMALL);
		CHECK(!use_single(&other, s.streams[0]));
		CHECK(!upload_release(other.slot, UPLOAD_NO_STREAM));
		check_single(&other, s.streams[0]);
	}
	upload_slot_close(other.slot);
	single_end(&s);
}

static void test_upload_again(void)
{
	upload_again(0);
	upload_again(1 << 20);
}

/* --- what only the stand-in can show --- */

static const char *const costly[] = {
	"cuMemHostAlloc",      "cuMemFreeHost",	    "cuMemAlloc_v2",
	"cuMemFree_v2",	       "cuStreamCreate",    "cuStreamDestroy_v2",
	"cuEventCreate",       "cuEventDestroy_v2", "cuEventSynchronize",
	"cuStreamSynchronize",
};

/* The device stands still, and the host goes through rounds of all slots: it
   neither waits nor allocates. */
static void test_hot_path(void)
{
	enum { N = 3 };
	struct single s[N];

	if (!gpu_has_standin(&gpu, "the host neither waits nor allocates"))
		return;
	standin->reset(1);
	for (size_t i = 0; i < N; i++)
		s[i] = single_begin(1 << 20);
	for (size_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < N; i++)
			CHECK(!write_single(&s[i]));
		standin->reset(round);
		standin->pause(true);
		for (size_t i = 0; i < N; i++) {
			CHECK(!start_single(&s[i]));
			CHECK(!upload_acquire(s[i].slot, s[i].streams[0]));
			CHECK(!upload_acquire(s[i].slot, s[i].streams[1]));
			CHECK(!use_single(&s[i], s[i].streams[0]));
			CHECK(!upload_release(s[i].slot, s[i].streams[1]));
		}
		for (size_t i = 0; round && i < ARRAY_LEN(costly); i++)
			CHECK(!standin->calls(costly[i]));
		CHECK(!standin->violations());
		standin->pause(false);
		for (size_t i = 0; i < N; i++)
			check_single(&s[i], s[i].streams[0]);
	}
	for (size_t i = 0; i < N; i++)
		single_end(&s[i]);
}

/* A consumer that is stuck holds up its own loader and no other. */
static void test_independence(void)
{
	struct single s[2];

	if (!gpu_has_standin(&gpu, "two loaders on a device"))
		return;
	standin->reset(1);
	s[0] = single_begin(1 << 20);
	s[1] = single_begin(0);
	for (size_t i = 0; i < 2; i++)
		CHECK(!write_single(&s[i]) && !start_single(&s[i]));
	CHECK(!upload_acquire(s[0].slot, s[0].streams[0]));
	CHECK(!use_single(&s[0], s[0].streams[0]));
	standin->hold(s[0].streams[0], true);
	CHECK(!upload_release(s[0].slot, s[0].streams[0]));
	CHECK(!write_single(&s[0]) && !start_single(&s[0]));
	for (size_t i = 0; i < 20; i++) {
		CHECK(!upload_acquire(s[1].slot, s[1].streams[0]));
		CHECK(!use_single(&s[1], s[1].streams[0]));
		check_single(&s[1], s[1].streams[0]);
		CHECK(!upload_release(s[1].slot, s[1].streams[0]));
		CHECK(!write_single(&s[1]) && !start_single(&s[1]));
		CHECK(!upload_wait(s[1].slot));
	}
	standin->hold(s[0].streams[0], false);
	CHECK(!upload_acquire(s[0].slot, s[0].streams[1]));
	CHECK(!use_single(&s[0], s[0].streams[1]));
	check_single(&s[0], s[0].streams[1]);
	CHECK(!standin->violations());
	single_end(&s[1]);
	single_end(&s[0]);
}

/* Default streams of threads: released by one that did not acquire it. */
static void *acquire_as_thread(void *arg)
{
	struct single *s = arg;

	CHECK(!upload_acquire(s->slot, CUDA_STREAM_PER_THREAD));
	CHECK(!use_single(s, CUDA_STREAM_PER_THREAD));
	return NULL;
}

static void test_default_streams(void)
{
	struct single s;
	pthread_t thread;

	if (!gpu_has_standin(&gpu, "default streams of threads"))
		return;
	standin->reset(1);
	standin->allow_default(true);
	s = single_begin(1 << 20);
	for (size_t i = 0; i < 20; i++) {
		CHECK(!write_single(&s) && !start_single(&s));
		CHECK(!thread_start(&thread, acquire_as_thread, &s));
		pthread_join(thread, NULL);
		CHECK(!upload_release(s.slot, i % 2 ? CUDA_STREAM_PER_THREAD
						    : s.streams[0]));
	}
	check_single(&s, CUDA_STREAM_LEGACY);
	CHECK(!standin->violations());
	single_end(&s);
}

/* A stream of another device is refused, and the batch stays who has it. */
static void test_foreign_stream(void)
{
	struct cuda_stream *foreign;
	struct cuda *other;
	struct single s;

	if (!gpu_has_standin(&gpu, "streams of another device"))
		return;
	standin->reset(1);
	standin->set_devices(2, 12040);
	s = single_begin(1 << 20);
	CHECK(!cuda_open(1, &gpu.log, &other));
	CHECK(!cuda_stream_create(other, &foreign));
	CHECK(!write_single(&s) && !start_single(&s));
	CHECK(!upload_acquire(s.slot, s.streams[0]));
	CHECK(upload_release(s.slot, foreign) == -EINVAL);
	CHECK(gpu.lines == 1 && strstr(gpu.logged, "primary context"));
	CHECK(upload_begin(s.slot) == -EBUSY);
	CHECK(!use_single(&s, s.streams[0]));
	CHECK(!upload_release(s.slot, UPLOAD_NO_STREAM));
	check_single(&s, s.streams[0]);
	cuda_stream_destroy(other, foreign);
	cuda_close(other);
	single_end(&s);
}

static int fail_to_run(void *arg, struct cuda *cuda, struct cuda_stream *stream)
{
	(void)arg;
	(void)cuda;
	(void)stream;
	return -ENOEXEC;
}

/* Queued copies have read the host's memory before it is written again. */
static void test_failed_start(void)
{
	struct upload_copy copy = { .size = SMALL };
	struct single s;

	if (!gpu_has_standin(&gpu, "a start that fails half way"))
		return;
	standin->reset(1);
	s = single_begin(1 << 20);
	CHECK(!write_single(&s));
	CHECK(upload_start(s.slot, &copy, 1, fail_to_run, NULL) == -ENOEXEC);
	CHECK(standin->calls("cuStreamSynchronize") == 1);
	CHECK(!write_single(&s) && !start_single(&s));
	CHECK(!upload_acquire(s.slot, s.streams[0]));
	CHECK(!use_single(&s, s.streams[0]));
	CHECK(!upload_release(s.slot, UPLOAD_NO_STREAM));
	check_single(&s, s.streams[0]);
	single_end(&s);
}

/* --- planted mistakes are caught --- */

static void planted_round(struct single *s, bool waits)
{
	CHECK(!write_single(s) && !start_single(s));
	CHECK(!upload_acquire(s->slot, s->streams[0]));
	CHECK(!use_single(s, s->streams[0]));
	/* For the copies, not for the consumer. */
	CHECK(!waits || !upload_wait(s->slot));
	CHECK(!upload_release(s->slot, s->streams[0]));
}

/* Two rounds with a call that does nothing, and what is seen then; the device
   stands still, so that the host comes first wherever it may. */
static void planted_pretence(const char *function, unsigned n, const char *text)
{
	struct single s = single_begin(1 << 20);

	planted_round(&s, true);
	standin->reset(1);
	standin->expect(true);
	standin->fail(function, n, STANDIN_PRETEND);
	standin->pause(true);
	planted_round(&s, false);
	if (!strcmp(function, "cuEventQuery")) {
		CHECK(!upload_begin(s.slot));
		memset(upload_host(s.slot, 0), 0x77, SMALL);
	}
	standin->pause(false);
	cuda_stream_synchronize(s.cuda, s.streams[0]);
	upload_slot_close(s.slot);
	s.slot = NULL;
	CHECK(standin->violations());
	CHECK(strstr(standin->violation(), text));
	single_end(&s);
}

/* A consumer that does not keep to the protocol. */
static void planted_consumer(bool acquires, const char *text)
{
	struct single s = single_begin(1 << 20);

	standin->reset(1);
	standin->expect(true);
	standin->pause(true);
	CHECK(!write_single(&s) && !start_single(&s));
	if (acquires)
		CHECK(!upload_acquire(s.slot, s.streams[0]));
	CHECK(!use_single(&s, s.streams[0]));
	upload_release_done(s.slot);
	CHECK(acquires == !standin->violations());
	standin->pause(false);
	CHECK(!write_single(&s) && !start_single(&s));
	CHECK(standin->violations());
	CHECK(strstr(standin->violation(), text));
	single_end(&s);
}

static void test_planted(void)
{
	if (!gpu_has_standin(&gpu, "planted mistakes"))
		return;
	/* In consecutive rounds: the copies wait for the consumer, then the
	   consumer for the copies. */
	planted_pretence("cuStreamWaitEvent", 1, "a write of");
	planted_pretence("cuStreamWaitEvent", 2, "a read of");
	planted_pretence("cuEventQuery", 2, "changed before");
	planted_consumer(true, "a write of");
	planted_consumer(false, "a");
	standin->reset(1);
}

/* --- errors --- */

/* Rounds in which any call may fail. If a call returns success, its copies have
   to be right. */
static void rounds_with_errors(struct single *s)
{
	for (size_t i = 0; i < 4; i++) {
		if (write_single(s))
			continue;
		if (start_single(s) && start_single(s)) {
			upload_release_done(s->slot);
			continue;
		}
		for (size_t k = 0; k < 2; k++) {
			if (!upload_acquire(s->slot, s->streams[k]) &&
			    !use_single(s, s->streams[k]))
				check_if_done(s, s->streams[k]);
		}
		if (upload_release(s->slot, s->streams[1]) &&
		    upload_release(s->slot, UPLOAD_NO_STREAM))
			upload_release_done(s->slot);
	}
}

static void with_failure(const char *function, unsigned n, int code,
			 uint64_t pinned)
{
	struct single s;
	bool lost;

	standin->reset(n);
	s = single_begin(pinned);
	standin->fail(function, n, code);
	rounds_with_errors(&s);
	standin->fail(function, 0, 0); /* if it has not come to that */
	lost = cuda_is_lost(s.cuda);
	CHECK(!lost || code == 700);
	if (lost) {
		CHECK(upload_begin(s.slot) == -EIO);
		CHECK(gpu.lines <= 2);
	} else {
		/* All is well again. */
		CHECK(!write_single(&s) && !start_single(&s));
		CHECK(!upload_wait(s.slot));
	}
	single_end(&s);
	CHECK(!standin->violations() && !standin->pushed());
	CHECK(!standin->living());
}

static void test_failures(void)
{
	static const struct {
		const char *function;
		bool passing; /* may fail without ending the upload */
	} rows[] = {
		{ "cuMemHostAlloc", true },
		{ "cuMemAlloc_v2", true },
		{ "cuEventCreate", true },
		{ "cuEventRecord", true },
		{ "cuEventQuery", true },
		{ "cuStreamWaitEvent", true },
		{ "cuMemcpyHtoDAsync_v2", true },
		{ "cuMemcpyDtoHAsync_v2", true },
		{ "cuEventSynchronize", false },
		{ "cuStreamSynchronize", false },
		{ "cuCtxPushCurrent_v2", false },
		{ "cuCtxPopCurrent_v2", false },
	};

	if (!gpu_has_standin(&gpu, "failures of every call"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (unsigned n = 1; n < 24; n++) {
			uint64_t pinned = n % 2 << 20;

			with_failure(rows[i].function, n, 700, pinned);
			if (rows[i].passing)
				with_failure(rows[i].function, n, 2, pinned);
		}
	}
	standin->reset(1);
}

/* Opening fails at each of its calls. */
static void test_failures_to_open(void)
{
	struct upload_options o = { .log = &gpu.log, .pinned = 1 << 20 };
	struct upload_slot *slot = NULL;
	struct upload *upload = NULL;
	struct cuda *cuda;

	if (!gpu_has_standin(&gpu, "failures to open"))
		return;
	for (unsigned n = 1; n <= 6; n++) {
		standin->reset(n);
		CHECK(!cuda_open(0, &gpu.log, &cuda));
		o.cuda = cuda;
		standin->fail(n == 1  ? "cuStreamCreate"
			      : n < 4 ? "cuMemHostAlloc"
				      : "cuEventCreate",
			      n == 1  ? 1
			      : n < 4 ? n - 1
				      : n - 3,
			      2);
		if (n < 6) {
			CHECK(upload_open(&o, &upload) == -ENOMEM && !upload);
		} else {
			CHECK(!upload_open(&o, &upload));
			standin->fail("cuEventCreate", 2, 2);
			CHECK(upload_slot_open(upload, 1, &slot) == -ENOMEM);
			upload_close(upload);
		}
		cuda_close(cuda);
		CHECK(!standin->living());
	}
	standin->reset(1);
}

/* --- threads --- */

/* A loader: one thread writes batches, another consumes them. */
struct loader {
	struct single single;
	struct upload_slot *slots[SLOTS];
	uint32_t seeds[SLOTS];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t written, consumed; /* batches; batch n is in slot n % SLOTS */
};

enum { THREADED_ROUNDS = 60 };

static void *write_all(void *arg)
{
	struct loader *l = arg;
	struct upload_copy copy = { .size = SMALL };

	for (uint32_t n = 0; n < THREADED_ROUNDS; n++) {
		struct upload_slot *slot = l->slots[n % SLOTS];

		pthread_mutex_lock(&l->lock);
		while (l->consumed + SLOTS <= n)
			pthread_cond_wait(&l->changed, &l->lock);
		pthread_mutex_unlock(&l->lock);
		CHECK(!upload_begin(slot));
		CHECK(!upload_reserve(slot, 0, SMALL, SMALL));
		for (size_t i = 0; i < SMALL; i++)
			((uint8_t *)upload_host(slot, 0))[i] = byte_of(n, i);
		CHECK(!upload_start(slot, &copy, 1, NULL, NULL));
		pthread_mutex_lock(&l->lock);
		l->written++;
		pthread_cond_broadcast(&l->changed);
		pthread_mutex_unlock(&l->lock);
	}
	return NULL;
}

static void *consume_all(void *arg)
{
	struct loader *l = arg;
	struct single *s = &l->single;

	for (uint32_t n = 0; n < THREADED_ROUNDS; n++) {
		struct cuda_stream *stream = s->streams[n / 2 % 2];

		pthread_mutex_lock(&l->lock);
		while (l->written <= n)
			pthread_cond_wait(&l->changed, &l->lock);
		pthread_mutex_unlock(&l->lock);
		s->slot = l->slots[n % SLOTS];
		s->seed = n;
		CHECK(!upload_acquire(s->slot, stream));
		CHECK(!use_single(s, stream));
		CHECK(!upload_release(s->slot, stream));
		check_single(s, stream);
		pthread_mutex_lock(&l->lock);
		l->consumed++;
		pthread_cond_broadcast(&l->changed);
		pthread_mutex_unlock(&l->lock);
	}
	return NULL;
}

static void loader_begin(struct loader *l, uint64_t pinned)
{
	*l = (struct loader){ .single = single_begin(pinned) };
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	l->slots[0] = l->single.slot;
	for (size_t i = 1; i < SLOTS; i++)
		CHECK(!upload_slot_open(l->single.upload, 1, &l->slots[i]));
}

static void loader_end(struct loader *l)
{
	for (size_t i = 0; i < SLOTS; i++)
		upload_slot_close(l->slots[i]);
	upload_close(l->single.upload);
	for (size_t i = 0; i < 2; i++)
		cuda_stream_destroy(l->single.cuda, l->single.streams[i]);
	cuda_host_free(l->single.cuda, l->single.result);
	cuda_close(l->single.cuda);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
}

static void test_threads(void)
{
	static struct loader loaders[2];
	pthread_t threads[4];

	if (standin)
		standin->reset(11);
	for (size_t i = 0; i < 2; i++)
		loader_begin(&loaders[i], i << 20);
	for (size_t i = 0; i < 4; i++)
		CHECK(!thread_start(&threads[i],
				    i % 2 ? write_all : consume_all,
				    &loaders[i / 2]));
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < 2; i++)
		loader_end(&loaders[i]);
	CHECK(!standin || (!standin->violations() && !standin->living()));
}

int main(void)
{
	static void (*const tests[])(void) = {
		test_misuse,	       test_budget,
		test_upload_again,     test_hot_path,
		test_independence,     test_planted,
		test_default_streams,  test_failures,
		test_threads,	       test_schedules,
		test_failures_to_open, test_foreign_stream,
		test_failed_start,
	};

	gpu_begin(&gpu);
	standin = gpu.standin;
	for (size_t i = 0; i < ARRAY_LEN(tests); i++) {
		tests[i]();
		CHECK(!standin || !standin->living());
	}
	gpu_end(&gpu);
	return 0;
}
