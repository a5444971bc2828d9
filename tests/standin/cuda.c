/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/standin/cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

#define EXPORT __attribute__((visibility("default")))

enum {
	STREAMS = 64, /* of which the first are the devices' legacy ones */
	DEVICES = 2,
	CALLS = 64,
	REGISTERED = 8,
	PUSHED_MAX = 8,
	ARGUMENTS = 256, /* bytes of them */
	PAGE = 4096,
};

#define DEVICE_RANGE ((uint64_t)16 << 30)

/* CUresult. */
enum {
	OK = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	INVALID_IMAGE = 200,
	INVALID_CONTEXT = 201,
	INVALID_HANDLE = 400,
	NOT_FOUND = 500,
	NOT_READY = 600,
	CAPTURE_UNSUPPORTED = 900,
	CAPTURE_INVALIDATED = 901,
	CAPTURE_UNMATCHED = 903,
	PRETEND = STANDIN_PRETEND,
};

/* For each stream, up to which of its operations something comes after. */
struct moment {
	uint64_t of[STREAMS];
};

/* Something queued. */
struct op {
	struct op *next;
	uint64_t number; /* in its stream, from 1 */
	struct moment after;
	uint8_t *to; /* NULL: no copy */
	const uint8_t *from;
	uint64_t size;
	bool from_host;
	uint64_t hash;
	struct kernel *kernel; /* NULL: none */
	unsigned grid[3], block[3];
	_Alignas(16) uint8_t arguments[ARGUMENTS];
};

struct stream {
	bool lives;
	bool blocking; /* waits with the legacy default stream */
	bool held;     /* nothing of it runs */
	bool per_thread;
	pthread_t thread;
	int device;
	uint64_t generation; /* distinguishes handles at one address */
	uint64_t queued, done;
	struct moment now;  /* the next operation comes after it */
	struct moment past; /* the last one, and what it came after */
	struct op *ops;
};

struct event {
	struct event *prev, *next;
	int device;
	struct moment at; /* as it was last recorded */
};

struct memory {
	struct memory *prev, *next;
	uint8_t *bytes;
	uint64_t size;
	int device; /* -1: pinned memory of the host */
};

/* A range that an operation reads or writes. */
struct access {
	struct access *prev, *next;
	const uint8_t *begin, *end;
	bool write;
	int stream;
	uint64_t number;
};

struct kernel {
	struct kernel *next;
	const struct standin_kernel *code;
};

struct module {
	struct module *prev, *next;
	void *library; /* NULL: what was registered */
	int fd;
	struct kernel *kernels;
};

/* CUstreamCaptureMode. */
enum capture_mode { MODE_GLOBAL, MODE_THREAD, MODE_RELAXED };

/* The capture of a graph; one at a time. */
struct capture {
	void *stream; /* NULL: none */
	enum capture_mode mode;
	pthread_t thread;
	bool invalid;
};

struct device {
	unsigned retained;
	pthread_t thread;
	bool stopping;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct device devices[DEVICES];
static struct stream streams[STREAMS];
static struct event *events;
static struct memory *memories;
static struct access *accesses;
static struct module *modules;
static struct moment host; /* what the host has waited for */
static uint8_t *device_range;
static uint64_t device_used;
static uint64_t random_state = 1;
static bool initialized, paused, expecting, allowing;
static int num_devices = 1, version = 12040;
static int lost; /* the code that all calls return */
static unsigned num_violations;
static char last_violation[256];
static struct call {
	const char *name;
	unsigned calls, fail_at;
	int code;
} calls[CALLS];
static struct {
	const char *name;
	const struct standin_kernel *code;
} registered[REGISTERED];
static __thread int current[PUSHED_MAX];
static struct capture capture;
static __thread unsigned num_current;
static __thread enum capture_mode mode_of_thread;

static uint64_t random_below(uint64_t n)
{
	random_state =
		random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (random_state >> 33) % n;
}

__attribute__((format(printf, 1, 2))) static void violation(const char *format,
							    ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last_violation, sizeof(last_violation), format, args);
	va_end(args);
	num_violations++;
	if (expecting)
		return;
	fprintf(stderr, "stand-in for CUDA: %s\n", last_violation);
	abort();
}

/* --- calls --- */

static bool is_permanent(int code)
{
	return code == 214 || code == 700 || (code >= 714 && code <= 719) ||
	       code == 999;
}

static struct call *call_named(const char *name)
{
	struct call *c = calls;

	while (c->name && strcmp(c->name, name) != 0)
		c++;
	if (c == calls + CALLS - 1)
		abort();
	c->name = name;
	return c;
}

/* At the beginning of every function. */
static int note(const char *name)
{
	struct call *c = call_named(name);

	c->calls++;
	if (c->fail_at && --c->fail_at == 0) {
		if (is_permanent(c->code))
			lost = c->code;
		return c->code;
	}
	if (lost)
		return lost;
	return initialized ? OK : NOT_INITIALIZED;
}

/* Calls that could wait for captured work. They invalidate a capture. */
static bool is_unsafe(const char *name)
{
	static const char *const names[] = {
		"cuMemHostAlloc",      "cuMemFreeHost",
		"cuMemAlloc_v2",       "cuMemFree_v2",
		"cuStreamSynchronize", "cuEventQuery",
		"cuEventSynchronize",  "cuCtxSynchronize",
		"cuModuleLoadDataEx",  "cuModuleUnload",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

static bool disturbs_capture(const char *name)
{
	bool own = pthread_equal(capture.thread, pthread_self());

	if (!capture.stream || !is_unsafe(name) ||
	    capture.mode == MODE_RELAXED || mode_of_thread == MODE_RELAXED)
		return false;
	return own ||
	       (capture.mode == MODE_GLOBAL && mode_of_thread == MODE_GLOBAL);
}

/* That needs a context. */
static int note_within(const char *name)
{
	int code = note(name);

	if (disturbs_capture(name)) {
		capture.invalid = true;
		return CAPTURE_UNSUPPORTED;
	}
	if (!num_current) {
		violation("%s without a current context", name);
		return INVALID_CONTEXT;
	}
	return code;
}

static int here(void)
{
	return current[num_current - 1];
}

/* --- moments --- */

static void join(struct moment *m, const struct moment *other)
{
	for (size_t i = 0; i < STREAMS; i++)
		m->of[i] = max_u64(m->of[i], other->of[i]);
}

static bool has_come(const struct moment *m)
{
	for (size_t i = 0; i < STREAMS; i++) {
		if (m->of[i] > streams[i].done)
			return false;
	}
	return true;
}

/* --- streams --- */

static void *handle_of(const struct stream *s)
{
	return (void *)(uintptr_t)(0x57000000000 + (s->generation << 8) +
				   (uint64_t)(s - streams));
}

static struct stream *make_stream(int device, bool blocking)
{
	/* A place whose past is waited for, so that it hides no order. */
	for (size_t i = DEVICES; i < STREAMS; i++) {
		struct stream *s = &streams[i];

		if (s->lives || s->ops || host.of[i] < s->queued)
			continue;
		s->lives = true;
		s->blocking = blocking;
		s->per_thread = false;
		s->device = device;
		s->generation++;
		s->now = s->past = host;
		return s;
	}
	fprintf(stderr, "stand-in for CUDA: too many streams\n");
	abort();
}

static struct stream *per_thread_stream(void)
{
	struct stream *s;

	for (size_t i = DEVICES; i < STREAMS; i++) {
		if (streams[i].lives && streams[i].per_thread &&
		    streams[i].device == here() &&
		    pthread_equal(streams[i].thread, pthread_self()))
			return &streams[i];
	}
	s = make_stream(here(), true);
	s->per_thread = true;
	s->thread = pthread_self();
	return s;
}

/* NULL, after a violation: there is none. */
static struct stream *stream_of(void *handle)
{
	uint64_t h = (uintptr_t)handle;
	struct stream *s = &streams[h % 256 % STREAMS];

	if (h <= 1)
		return &streams[here()];
	if (h == 2)
		return per_thread_stream();
	if (!s->lives || handle_of(s) != handle) {
		violation("there is no stream %p", handle);
		return NULL;
	}
	return s;
}

static bool is_default(const struct stream *s)
{
	return s < streams + DEVICES || s->per_thread;
}

/* Updates the moment after which the next operation of the stream comes. */
static void look_around(struct stream *s)
{
	bool legacy = s < streams + DEVICES;

	join(&s->now, &host);
	for (size_t i = 0; i < STREAMS; i++) {
		struct stream *o = &streams[i];

		if (o->device != s->device ||
		    !(legacy ? o->lives && o->blocking
			     : s->blocking && i == (size_t)s->device))
			continue;
		join(&s->now, &o->past);
	}
}

static uint64_t append(struct stream *s, struct op *op)
{
	size_t i = (size_t)(s - streams);

	look_around(s);
	op->after = s->now;
	op->number = ++s->queued;
	s->now.of[i] = op->number;
	s->past = s->now;
	LL_APPEND(s->ops, op);
	pthread_cond_broadcast(&changed);
	return op->number;
}

/* --- memory --- */

static struct memory *memory_at(const void *p, uint64_t size)
{
	struct memory *m;

	DL_FOREACH(memories, m)
	{
		if ((const uint8_t *)p >= m->bytes &&
		    range_ok((uint64_t)((const uint8_t *)p - m->bytes), size,
			     m->size))
			return m;
	}
	return NULL;
}

static uint64_t hash(const uint8_t *p, uint64_t size)
{
	uint64_t h = 14695981039346656037ULL, i = 0;

	for (; i + 8 <= size; i += 8)
		h = (h ^ (h >> 32) ^ load64(p + i)) * 1099511628211ULL;
	for (; i < size; i++)
		h = (h ^ p[i]) * 1099511628211ULL;
	return h;
}

static bool overlap(const struct access *a, const uint8_t *begin,
		    const uint8_t *end)
{
	return a->begin < end && begin < a->end;
}

/* Operations that the host has waited for precede all later ones. */
static void forget_accesses(void)
{
	struct access *a, *next;

	DL_FOREACH_SAFE(accesses, a, next)
	{
		if (host.of[a->stream] < a->number)
			continue;
		DL_DELETE(accesses, a);
		free(a);
	}
}

/* Before append(). */
static void access_range(struct stream *s, const uint8_t *begin, uint64_t size,
			 bool write)
{
	struct access *a, *next;
	const uint8_t *end = begin + size;
	int i = (int)(s - streams);

	look_around(s);
	forget_accesses();
	DL_FOREACH_SAFE(accesses, a, next)
	{
		bool ordered = s->now.of[a->stream] >= a->number;

		if (!overlap(a, begin, end))
			continue;
		if (!ordered && (write || a->write))
			violation(
				"%s of %p by stream %d is not ordered after %s by stream %d",
				write ? "a write" : "a read", (void *)begin, i,
				a->write ? "a write" : "a read", a->stream);
		/* An operation after this access is also after the earlier
		   one. */
		if (ordered && begin <= a->begin && a->end <= end &&
		    (write || (!a->write && a->stream == i))) {
			DL_DELETE(accesses, a);
			free(a);
		}
	}
	a = calloc(1, sizeof(*a));
	*a = (struct access){ .begin = begin,
			      .end = end,
			      .write = write,
			      .stream = i,
			      .number = s->queued + 1 };
	DL_APPEND(accesses, a);
}

static void drain(void)
{
	paused = false;
	pthread_cond_broadcast(&changed);
	for (size_t i = 0; i < STREAMS; i++) {
		while (streams[i].ops)
			pthread_cond_wait(&changed, &lock);
		host.of[i] = streams[i].queued;
	}
}

static int free_memory(void *p, bool pinned)
{
	struct memory *m = memory_at(p, 1);
	struct access *a, *next;
	bool used = false;

	if (!m || m->bytes != p || pinned != (m->device < 0)) {
		violation("%p is freed, which is no memory", p);
		return INVALID_VALUE;
	}
	/* A device that is lost runs nothing any more. */
	if (lost)
		drain();
	forget_accesses();
	DL_FOREACH_SAFE(accesses, a, next)
	{
		if (!overlap(a, m->bytes, m->bytes + m->size))
			continue;
		violation("%p is freed while stream %d may use it", p,
			  a->stream);
		DL_DELETE(accesses, a);
		free(a);
		used = true;
	}
	/* The driver does this too, although no program should need it. */
	if (used)
		drain();
	DL_DELETE(memories, m);
	/* Pages of the device are not used again while others live, so who
	   uses them is seen. */
	if (pinned)
		free(m->bytes);
	else
		mprotect(m->bytes, align_up(m->size, PAGE), PROT_NONE);
	free(m);
	return OK;
}

/* --- running --- */

/* Takes as long as $STANDIN_CUDA_RATE demands, in bytes a second; without it,
   as long as the copy in memory. */
static void cross_link(uint64_t size)
{
	const char *text = getenv("STANDIN_CUDA_RATE");
	double rate = text ? atof(text) : 0;
	double s = rate > 0 ? (double)size / rate : 0;
	struct timespec t = { .tv_sec = (time_t)s };

	t.tv_nsec = (long)(1e9 * (s - (double)t.tv_sec));
	if (rate > 0)
		nanosleep(&t, NULL);
}

static void run(struct op *op)
{
	void *arguments[16];
	size_t at = 0;

	if (op->to) {
		cross_link(op->size);
		memcpy(op->to, op->from, op->size);
		if (op->from_host && hash(op->to, op->size) != op->hash) {
			pthread_mutex_lock(&lock);
			violation(
				"%llu bytes at %p changed before they were copied",
				(unsigned long long)op->size, (void *)op->from);
			pthread_mutex_unlock(&lock);
		}
	}
	if (!op->kernel)
		return;
	for (uint32_t i = 0; i < op->kernel->code->num_parameters; i++) {
		arguments[i] = op->arguments + at;
		at += align_up(op->kernel->code->parameters[i].size, 16);
	}
	op->kernel->code->run(arguments, op->grid, op->block);
}

/* At random; NULL: none may run. */
static struct stream *runnable(int device)
{
	struct stream *found[STREAMS];
	size_t n = 0;

	for (size_t i = 0; i < STREAMS; i++) {
		if (streams[i].device == device && streams[i].ops &&
		    !streams[i].held && has_come(&streams[i].ops->after))
			found[n++] = &streams[i];
	}
	return n && !paused ? found[random_below(n)] : NULL;
}

/* One stream gets ahead of the others for some time. */
static struct stream *choose(int device, struct stream *favorite)
{
	struct stream *s = runnable(device);

	if (s && favorite && favorite->ops && has_come(&favorite->ops->after) &&
	    random_below(8))
		return favorite;
	return s;
}

/* The caller holds the lock; it is released while the operation runs. */
static void run_first(struct stream *s)
{
	struct op *op = s->ops;
	useconds_t us = (useconds_t)(random_below(16) ? 0 : random_below(60));

	pthread_mutex_unlock(&lock);
	if (us)
		usleep(us);
	run(op);
	pthread_mutex_lock(&lock);
	LL_DELETE(s->ops, op);
	s->done = op->number;
	free(op);
	pthread_cond_broadcast(&changed);
}

static void *work(void *arg)
{
	int device = (int)(intptr_t)arg;
	struct stream *s = NULL;

	pthread_mutex_lock(&lock);
	/* Queued work is done even if its result is no longer needed. */
	while ((s = choose(device, s)) || !devices[device].stopping) {
		if (s)
			run_first(s);
		else
			pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* The host waits. */
static void wait_for(const struct moment *m, const char *who)
{
	if (paused && !has_come(m)) {
		violation("%s waits for a device that is paused", who);
		paused = false;
		pthread_cond_broadcast(&changed);
	}
	while (!has_come(m))
		pthread_cond_wait(&changed, &lock);
	join(&host, m);
}

/* --- the driver --- */

EXPORT int cuInit(unsigned flags)
{
	int code;

	scoped_lock(&lock);
	(void)flags;
	initialized = true;
	code = note("cuInit");
	if (code)
		return code;
	return num_devices ? OK : NO_DEVICE;
}

EXPORT int cuDriverGetVersion(int *out)
{
	scoped_lock(&lock);
	*out = version;
	return OK;
}

EXPORT int cuGetErrorName(int code, const char **out)
{
	(void)code;
	*out = "CUDA_ERROR_OF_THE_STANDIN";
	return OK;
}

EXPORT int cuGetErrorString(int code, const char **out)
{
	static __thread char text[32];

	snprintf(text, sizeof(text), "error %d", code);
	*out = text;
	return OK;
}

EXPORT int cuDeviceGetCount(int *out)
{
	scoped_lock(&lock);
	*out = num_devices;
	return note("cuDeviceGetCount");
}

EXPORT int cuDeviceGet(int *out, int ordinal)
{
	scoped_lock(&lock);
	*out = ordinal;
	return ordinal < num_devices ? note("cuDeviceGet") : INVALID_DEVICE;
}

EXPORT int cuDeviceGetName(char *name, int size, int device)
{
	snprintf(name, (size_t)size, "Stand-in %d", device);
	return OK;
}

EXPORT int cuDeviceGetAttribute(int *out, int attribute, int device)
{
	(void)device;
	switch (attribute) {
	case 75:
		*out = 9;
		return OK;
	case 76:
		*out = 0;
		return OK;
	case 16:
		*out = 4;
		return OK;
	case 40:
		*out = 2;
		return OK;
	default:
		return INVALID_VALUE;
	}
}

EXPORT int cuDeviceTotalMem_v2(size_t *out, int device)
{
	(void)device;
	*out = DEVICE_RANGE;
	return OK;
}

EXPORT int cuDeviceGetPCIBusId(char *id, int size, int device)
{
	snprintf(id, (size_t)size, "FFFF:FF:%02X.0", device);
	return OK;
}

EXPORT int cuDevicePrimaryCtxRetain(void **out, int device)
{
	int code;

	scoped_lock(&lock);
	code = note("cuDevicePrimaryCtxRetain");
	if (code)
		return code;
	if (!devices[device].retained++) {
		devices[device].stopping = false;
		streams[device].device = device;
		streams[device].lives = streams[device].blocking = true;
		pthread_create(&devices[device].thread, NULL, work,
			       (void *)(intptr_t)device);
	}
	*out = &devices[device];
	return OK;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
	int code;
	bool last;

	pthread_mutex_lock(&lock);
	code = note("cuDevicePrimaryCtxRelease_v2");
	last = !--devices[device].retained;
	devices[device].stopping = last;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	if (last)
		pthread_join(devices[device].thread, NULL);
	return code;
}

EXPORT int cuCtxPushCurrent_v2(void *context)
{
	int code;

	scoped_lock(&lock);
	code = note("cuCtxPushCurrent_v2");
	if (code && !lost)
		return code;
	if (num_current == PUSHED_MAX)
		abort();
	current[num_current++] = (int)((struct device *)context - devices);
	return OK;
}

EXPORT int cuCtxPopCurrent_v2(void **out)
{
	scoped_lock(&lock);
	if (!num_current) {
		violation("a context is popped, and there is none");
		return INVALID_CONTEXT;
	}
	*out = &devices[current[--num_current]];
	return note("cuCtxPopCurrent_v2");
}

EXPORT int cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
	struct memory *m;
	int code;

	scoped_lock(&lock);
	code = note_within("cuMemHostAlloc");
	if (code || !size || flags != 1)
		return code ? code : INVALID_VALUE;
	m = calloc(1, sizeof(*m));
	m->bytes = aligned_alloc(PAGE, align_up(size, PAGE));
	m->size = size;
	m->device = -1;
	memset(m->bytes, 0xaa, size);
	DL_APPEND(memories, m);
	*out = m->bytes;
	return OK;
}

/* Releases the memory even if the call reports an error. */
EXPORT int cuMemFreeHost(void *p)
{
	int code, freed;

	scoped_lock(&lock);
	code = note_within("cuMemFreeHost");
	freed = free_memory(p, true);
	return code ? code : freed;
}

EXPORT int cuMemAlloc_v2(uint64_t *out, size_t size)
{
	struct memory *m;
	int code;

	scoped_lock(&lock);
	code = note_within("cuMemAlloc_v2");
	if (code || !size)
		return code ? code : INVALID_VALUE;
	if (!device_range)
		device_range = mmap(NULL, DEVICE_RANGE, PROT_NONE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				    -1, 0);
	if (device_range == MAP_FAILED)
		abort();
	if (device_used + align_up(size, PAGE) + PAGE > DEVICE_RANGE)
		return OUT_OF_MEMORY;
	m = calloc(1, sizeof(*m));
	m->bytes = device_range + device_used;
	m->size = size;
	m->device = here();
	/* Followed by a page that may not be accessed. */
	device_used += align_up(size, PAGE) + PAGE;
	mprotect(m->bytes, align_up(size, PAGE), PROT_READ | PROT_WRITE);
	memset(m->bytes, 0xdd, size);
	DL_APPEND(memories, m);
	*out = (uintptr_t)m->bytes;
	return OK;
}

EXPORT int cuMemFree_v2(uint64_t address)
{
	int code, freed;

	scoped_lock(&lock);
	code = note_within("cuMemFree_v2");
	freed = free_memory((void *)(uintptr_t)address, false);
	return code ? code : freed;
}

EXPORT int cuStreamCreate(void **out, unsigned flags)
{
	int code;

	scoped_lock(&lock);
	code = note_within("cuStreamCreate");
	if (!code)
		*out = handle_of(make_stream(here(), !(flags & 1)));
	return code;
}

EXPORT int cuStreamDestroy_v2(void *handle)
{
	struct stream *s;
	int code;

	scoped_lock(&lock);
	code = note_within("cuStreamDestroy_v2");
	s = stream_of(handle);
	if (!s)
		return INVALID_HANDLE;
	s->lives = false;
	return code;
}

EXPORT int cuStreamSynchronize(void *handle)
{
	struct stream *s;
	struct moment m;
	int code;

	scoped_lock(&lock);
	code = note_within("cuStreamSynchronize");
	s = stream_of(handle);
	if (code || !s)
		return code ? code : INVALID_HANDLE;
	look_around(s);
	m = s->now;
	wait_for(&m, "cuStreamSynchronize");
	return lost;
}

static bool is_event(const struct event *e)
{
	struct event *o;

	DL_FOREACH(events, o)
	{
		if (o == e)
			return true;
	}
	violation("there is no event %p", (const void *)e);
	return false;
}

EXPORT int cuStreamWaitEvent(void *handle, struct event *e, unsigned flags)
{
	struct stream *s;
	int code;

	scoped_lock(&lock);
	(void)flags;
	code = note_within("cuStreamWaitEvent");
	if (code == PRETEND)
		return OK;
	s = stream_of(handle);
	if (code || !s || !is_event(e))
		return code ? code : INVALID_HANDLE;
	join(&s->now, &e->at);
	return OK;
}

EXPORT int cuEventCreate(struct event **out, unsigned flags)
{
	int code;

	scoped_lock(&lock);
	code = note_within("cuEventCreate");
	if (code)
		return code;
	if (!(flags & 2))
		violation("an event that takes times");
	*out = calloc(1, sizeof(**out));
	(*out)->device = here();
	DL_APPEND(events, *out);
	return OK;
}

EXPORT int cuEventDestroy_v2(struct event *e)
{
	int code;

	scoped_lock(&lock);
	code = note_within("cuEventDestroy_v2");
	if (!is_event(e))
		return INVALID_HANDLE;
	DL_DELETE(events, e);
	free(e);
	return code;
}

EXPORT int cuEventRecord(struct event *e, void *handle)
{
	struct stream *s;
	int code;

	scoped_lock(&lock);
	code = note_within("cuEventRecord");
	s = stream_of(handle);
	if (code || !s || !is_event(e))
		return code ? code : INVALID_HANDLE;
	if (e->device != s->device)
		return INVALID_HANDLE;
	append(s, calloc(1, sizeof(struct op)));
	e->at = s->now;
	return OK;
}

EXPORT int cuEventQuery(struct event *e)
{
	int code;

	scoped_lock(&lock);
	code = note_within("cuEventQuery");
	if (code == PRETEND)
		return OK;
	if (code || !is_event(e))
		return code ? code : INVALID_HANDLE;
	if (!has_come(&e->at))
		return NOT_READY;
	join(&host, &e->at);
	return OK;
}

EXPORT int cuEventSynchronize(struct event *e)
{
	struct moment m;
	int code;

	scoped_lock(&lock);
	code = note_within("cuEventSynchronize");
	if (code || !is_event(e))
		return code ? code : INVALID_HANDLE;
	m = e->at;
	wait_for(&m, "cuEventSynchronize");
	return lost;
}

EXPORT int cuCtxSynchronize(void)
{
	struct moment m = { { 0 } };
	int code;

	scoped_lock(&lock);
	code = note_within("cuCtxSynchronize");
	if (code)
		return code;
	for (size_t i = 0; i < STREAMS; i++) {
		if (streams[i].device == here())
			join(&m, &streams[i].past);
	}
	wait_for(&m, "cuCtxSynchronize");
	return lost;
}

EXPORT int cuThreadExchangeStreamCaptureMode(enum capture_mode *mode)
{
	enum capture_mode before = mode_of_thread;

	scoped_lock(&lock);
	note("cuThreadExchangeStreamCaptureMode");
	mode_of_thread = *mode;
	*mode = before;
	return OK;
}

EXPORT int cuStreamBeginCapture_v2(void *handle, enum capture_mode mode)
{
	int code;

	scoped_lock(&lock);
	code = note_within("cuStreamBeginCapture_v2");
	if (code || capture.stream || !stream_of(handle))
		return code ? code : INVALID_VALUE;
	capture = (struct capture){ .stream = handle,
				    .mode = mode,
				    .thread = pthread_self() };
	return OK;
}

/* There is no graph, for nothing is queued on the stream. */
EXPORT int cuStreamEndCapture(void *handle, void **graph)
{
	int code;

	scoped_lock(&lock);
	code = note_within("cuStreamEndCapture");
	if (code || capture.stream != handle)
		return code ? code : CAPTURE_UNMATCHED;
	capture.stream = NULL;
	*graph = NULL;
	return capture.invalid ? CAPTURE_INVALIDATED : OK;
}

/* One side is memory of this device, the other is pinned. */
static int copy(void *to, const void *from, uint64_t size, void *handle,
		bool from_host)
{
	struct stream *s = stream_of(handle);
	struct memory *t = memory_at(to, size), *f = memory_at(from, size);
	struct op *op;

	if (!s)
		return INVALID_HANDLE;
	if (!size || !(from_host ? t : f) ||
	    (from_host ? t : f)->device != s->device) {
		violation("a copy of %llu bytes, %p to %p, not all of a device",
			  (unsigned long long)size, from, to);
		return INVALID_VALUE;
	}
	if (!(from_host ? f : t) || (from_host ? f : t)->device >= 0)
		violation("%p is not pinned", from_host ? from : to);
	if (is_default(s) && !allowing)
		violation("a copy on a default stream");
	access_range(s, from, size, false);
	access_range(s, to, size, true);
	op = calloc(1, sizeof(*op));
	op->to = to;
	op->from = from;
	op->size = size;
	op->from_host = from_host;
	op->hash = from_host ? hash(from, size) : 0;
	append(s, op);
	return OK;
}

EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size,
				void *stream)
{
	int code;

	scoped_lock(&lock);
	code = note_within("cuMemcpyHtoDAsync_v2");
	return code ? code
		    : copy((void *)(uintptr_t)to, from, size, stream, true);
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size,
				void *stream)
{
	int code;

	scoped_lock(&lock);
	code = note_within("cuMemcpyDtoHAsync_v2");
	return code ? code
		    : copy(to, (const void *)(uintptr_t)from, size, stream,
			   false);
}

/* --- kernels --- */

/* A shared object, of which the size stands nowhere: up to the end of its table
   of sections. */
static int load_object(struct module *m, const uint8_t *image)
{
	uint64_t size = load64(image + 40) +
			(uint64_t)load16(image + 58) * load16(image + 60);
	char path[48];

	m->fd = memfd_create("standin", MFD_CLOEXEC);
	if (m->fd < 0 || write(m->fd, image, size) != (ssize_t)size)
		return INVALID_IMAGE;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", m->fd);
	m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return m->library ? OK : INVALID_IMAGE;
}

EXPORT int cuModuleLoadDataEx(struct module **out, const void *image,
			      unsigned n, int *options, void **values)
{
	struct module *m;
	int code;

	scoped_lock(&lock);
	(void)n;
	(void)options;
	(void)values;
	code = note_within("cuModuleLoadDataEx");
	if (code)
		return code;
	m = calloc(1, sizeof(*m));
	m->fd = -1;
	if (!memcmp(image, "\177ELF", 4))
		code = load_object(m, image);
	else if (strcmp(image, STANDIN_REGISTERED) != 0)
		code = INVALID_IMAGE;
	if (code) {
		if (m->fd >= 0)
			close(m->fd);
		free(m);
		return code;
	}
	DL_APPEND(modules, m);
	*out = m;
	return OK;
}

EXPORT int cuModuleUnload(struct module *m)
{
	struct kernel *k, *next;
	int code;

	scoped_lock(&lock);
	code = note_within("cuModuleUnload");
	LL_FOREACH_SAFE(m->kernels, k, next)
	{
		free(k);
	}
	if (m->library)
		dlclose(m->library);
	if (m->fd >= 0)
		close(m->fd);
	DL_DELETE(modules, m);
	free(m);
	return code;
}

static const struct standin_kernel *find_kernel(struct module *m,
						const char *name)
{
	char symbol[256];

	snprintf(symbol, sizeof(symbol), STANDIN_KERNEL "%s", name);
	if (m->library)
		return dlsym(m->library, symbol);
	for (size_t i = 0; i < REGISTERED && registered[i].name; i++) {
		if (!strcmp(registered[i].name, name))
			return registered[i].code;
	}
	return NULL;
}

EXPORT int cuModuleGetFunction(struct kernel **out, struct module *m,
			       const char *name)
{
	const struct standin_kernel *found;
	int code;

	scoped_lock(&lock);
	code = note_within("cuModuleGetFunction");
	if (code)
		return code;
	found = find_kernel(m, name);
	if (!found)
		return NOT_FOUND;
	*out = calloc(1, sizeof(**out));
	(*out)->code = found;
	LL_PREPEND(m->kernels, *out);
	return OK;
}

/* Records an access to the whole allocation that contains p. */
static void access_argument(struct stream *s, void *p, bool write)
{
	struct memory *m = memory_at(p, 0);

	if (!p)
		return;
	if (!m || m->device != s->device)
		violation(
			"a kernel is given %p, which is no memory of its device",
			p);
	else
		access_range(s, m->bytes, m->size, write);
}

EXPORT int cuLaunchKernel(struct kernel *k, unsigned gx, unsigned gy,
			  unsigned gz, unsigned bx, unsigned by, unsigned bz,
			  unsigned shared, void *handle, void **arguments,
			  void **extra)
{
	const struct standin_parameter *p;
	struct stream *s;
	struct op *op;
	size_t at = 0;
	int code;

	scoped_lock(&lock);
	(void)shared;
	(void)extra;
	code = note_within("cuLaunchKernel");
	s = stream_of(handle);
	if (code || !s)
		return code ? code : INVALID_HANDLE;
	if (is_default(s) && !allowing)
		violation("a kernel on a default stream");
	op = calloc(1, sizeof(*op));
	op->kernel = k;
	memcpy(op->grid, (unsigned[]){ gx, gy, gz }, sizeof(op->grid));
	memcpy(op->block, (unsigned[]){ bx, by, bz }, sizeof(op->block));
	for (uint32_t i = 0; i < k->code->num_parameters; i++) {
		p = &k->code->parameters[i];
		if (at + align_up(p->size, 16) > ARGUMENTS)
			abort();
		memcpy(op->arguments + at, arguments[i], p->size);
		if (p->is_pointer)
			access_argument(s, *(void **)arguments[i],
					!p->is_const);
		at += align_up(p->size, 16);
	}
	append(s, op);
	return OK;
}

/* --- for the tests --- */

static void forget(uint64_t seed)
{
	scoped_lock(&lock);
	random_state = seed * 2 + 1;
	paused = expecting = allowing = false;
	lost = 0;
	num_violations = 0;
	last_violation[0] = '\0';
	memset(calls, 0, sizeof(calls));
	num_devices = 1;
	version = 12040;
	if (!memories)
		device_used = 0;
	pthread_cond_broadcast(&changed);
}

static void set_devices(int n, int driver_version)
{
	scoped_lock(&lock);
	num_devices = n;
	version = driver_version;
}

static void set_paused(bool on)
{
	scoped_lock(&lock);
	paused = on;
	pthread_cond_broadcast(&changed);
}

static void hold(void *stream, bool on)
{
	struct stream *s;

	scoped_lock(&lock);
	s = stream_of(stream);
	if (s)
		s->held = on;
	pthread_cond_broadcast(&changed);
}

static void allow_default(bool on)
{
	scoped_lock(&lock);
	allowing = on;
}

static void set_failure(const char *function, unsigned n, int code)
{
	struct call *c;

	scoped_lock(&lock);
	c = call_named(function);
	c->fail_at = n;
	c->code = code;
}

static unsigned count_calls(const char *function)
{
	scoped_lock(&lock);
	return call_named(function)->calls;
}

static void set_expecting(bool on)
{
	scoped_lock(&lock);
	expecting = on;
}

static unsigned count_violations(void)
{
	scoped_lock(&lock);
	return num_violations;
}

static const char *report_violation(void)
{
	return last_violation;
}

static unsigned count_living(void)
{
	struct event *e;
	struct memory *m;
	struct module *o;
	unsigned n, all = 0;

	scoped_lock(&lock);
	DL_COUNT(events, e, n);
	all += n;
	DL_COUNT(memories, m, n);
	all += n;
	DL_COUNT(modules, o, n);
	all += n;
	for (size_t i = DEVICES; i < STREAMS; i++)
		all += streams[i].lives && !streams[i].per_thread;
	for (size_t i = 0; i < DEVICES; i++)
		all += devices[i].retained;
	return all;
}

static unsigned count_pushed(void)
{
	return num_current;
}

static void register_kernel(const char *name,
			    const struct standin_kernel *kernel)
{
	size_t i = 0;

	scoped_lock(&lock);
	while (registered[i].name && strcmp(registered[i].name, name) != 0)
		i++;
	if (i == REGISTERED - 1)
		abort();
	registered[i].name = name;
	registered[i].code = kernel;
}

static void *make_blocking_stream(void)
{
	scoped_lock(&lock);
	return handle_of(make_stream(here(), true));
}

/* Reports violations even if the test did not ask for them. */
__attribute__((destructor)) static void at_end(void)
{
	unsigned n = count_living();

	if (n)
		fprintf(stderr, "stand-in for CUDA: %u things were left\n", n);
	if (n)
		abort();
}

EXPORT extern const struct standin standin;
const struct standin standin = {
	.reset = forget,
	.set_devices = set_devices,
	.pause = set_paused,
	.hold = hold,
	.allow_default = allow_default,
	.fail = set_failure,
	.calls = count_calls,
	.expect = set_expecting,
	.violations = count_violations,
	.violation = report_violation,
	.living = count_living,
	.pushed = count_pushed,
	.register_kernel = register_kernel,
	.blocking_stream = make_blocking_stream,
};
