/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/metrics/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "fs/base/files/place.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"

enum {
	EVENTS = 8192, /* in a track; a power of two */
	WRITE_MS = 200,
	PAGE = 4096,
	WINDOW = 1 << 20, /* bytes of the file that are mapped at a time */
	EVENT_TEXT = 512, /* more than any event takes */
	FILES_MAX = 99,
	PATH_SIZE = 4096,
	NAME_SIZE = 48,
};

/*
 * PyTorch's profiler counts from the beginning of a quarter of a year, so that
 * nanoseconds fit into a double. Counting from the same moment makes both
 * traces comparable without a calculation.
 */
#define QUARTER_NS (UINT64_C(7889238) * 1000000000)

static const char trailer[] = "]}";

enum { TRAILER = sizeof(trailer) - 1 };

static const struct {
	const char *name;
	const char *args[2]; /* NULL: none */
	bool is_counter;
} kinds[TRACE_KINDS] = {
	[TRACE_READ] = { .name = "read", .args = { "epoch", "batch" } },
	[TRACE_COLLATE] = { .name = "collate", .args = { "epoch", "batch" } },
	[TRACE_SAMPLES] = { .name = "samples", .args = { "batch", "first" } },
	[TRACE_DECODE] = { .name = "decode", .args = { "sample", "samples" } },
	[TRACE_TRANSFORM] = { .name = "transform",
			      .args = { "sample", "samples" } },
	[TRACE_UPLOAD] = { .name = "upload", .args = { "batch", "bytes" } },
	[TRACE_NEXT] = { .name = "next", .args = { "epoch", "batch" } },
	[TRACE_WAIT] = { .name = "wait", .args = { NULL } },
	[TRACE_TRAINER] = { .name = "trainer", .args = { "epoch", "batch" } },
	[TRACE_QUEUE] = { .name = "queue",
			  .args = { "ready" },
			  .is_counter = true },
};

struct event {
	uint64_t begin;
	uint64_t end;
	uint64_t args[2];
	uint32_t kind;
	uint32_t thread;
};

/* A ring of events. The traced thread advances `head`; the thread that writes
   the file advances `tail`. */
struct trace_track {
	struct trace_track *prev, *next;
	struct trace *trace;
	char name[NAME_SIZE];
	uint32_t thread; /* the traced one */
	uint32_t named;	 /* the thread that the file names */
	atomic_uint_fast64_t head;
	atomic_uint_fast64_t dropped;
	_Alignas(64) atomic_uint_fast64_t tail;
	struct event events[EVENTS];
};

struct trace {
	struct log *log;
	char path[PATH_SIZE];
	int fd;
	uint64_t to_unix_ns; /* offset from the monotonic clock */
	uint64_t base_ns;    /* zero of the times in the file */
	pthread_mutex_t lock;
	pthread_cond_t wake; /* a track is half full, or it is the end */
	bool stopping;
	struct trace_track *tracks;
	bool is_broken;
	/* The last page of the file, with the bytes that are to be written
	   there. */
	off_t page_at;
	size_t written; /* bytes in the file before the trailer */
	size_t used;
	char page[PAGE];
	char *window; /* a part of the file and a page; NULL: none */
	off_t window_at;
	pthread_t thread;
	bool has_thread;
};

/* --- the threads that are traced --- */

struct trace_track *trace_add(struct trace *trace, const char *format, ...)
{
	struct trace_track *t;
	va_list args;

	if (!trace)
		return NULL;
	t = aligned_alloc(_Alignof(struct trace_track), sizeof(*t));
	if (!t)
		return NULL;
	memset(t, 0, offsetof(struct trace_track, events));
	t->trace = trace;
	va_start(args, format);
	vsnprintf(t->name, sizeof(t->name), format, args);
	va_end(args);
	scoped_lock(&trace->lock);
	DL_APPEND(trace->tracks, t);
	return t;
}

void trace_here(struct trace_track *t)
{
	if (t)
		t->thread = (uint32_t)gettid();
}

static void add(struct trace_track *t, const struct event *event)
{
	uint64_t head = atomic_load_explicit(&t->head, memory_order_relaxed);
	uint64_t used =
		head - atomic_load_explicit(&t->tail, memory_order_acquire);

	if (used == EVENTS) {
		atomic_fetch_add_explicit(&t->dropped, 1, memory_order_relaxed);
		return;
	}
	t->events[head % EVENTS] = *event;
	atomic_store_explicit(&t->head, head + 1, memory_order_release);
	if (used == EVENTS / 2)
		pthread_cond_signal(&t->trace->wake);
}

void trace_span(struct trace_track *t, enum trace_kind kind, uint64_t begin,
		uint64_t end, uint64_t a, uint64_t b)
{
	if (t)
		add(t,
		    &(struct event){ begin, end, { a, b }, kind, t->thread });
}

void trace_count(struct trace_track *t, enum trace_kind kind, uint64_t now,
		 uint64_t value)
{
	trace_span(t, kind, now, now, value, 0);
}

/*
 * --- the file; with the lock held ---
 *
 * The file ends with a trailer, which closes the JSON. New events overwrite it,
 * followed by a new trailer. A process can be killed in the middle of a write,
 * but not within a page. Therefore no write crosses a page. If the trailer must
 * cross one, the thread stores it to the mapped file by a single instruction.
 */

/* Ends the file after an error, by writing the trailer at its last place, where
   there is room for it. */
static void end_early(struct trace *trace, int error)
{
	off_t end = trace->page_at + (off_t)trace->written;

	trace->is_broken = true;
	if (pwrite(trace->fd, trailer, TRAILER, end) != TRAILER ||
	    ftruncate(trace->fd, end + TRAILER))
		error = errno;
	log_warning(trace->log, "%s: the trace is incomplete: %s", trace->path,
		    strerror(error));
}

static void write_at(struct trace *trace, const char *text, size_t size,
		     off_t at)
{
	ssize_t n;

	while (size && !trace->is_broken) {
		n = pwrite(trace->fd, text, size, at);
		if (n < 0 && errno != EINTR)
			end_early(trace, errno);
		if (n < 0)
			continue;
		text += n;
		size -= (size_t)n;
		at += n;
	}
}

static void write_page(struct trace *trace)
{
	size_t from = trace->written;

	memcpy(trace->page + trace->used, trailer, TRAILER);
	write_at(trace, trace->page + from, trace->used + TRAILER - from,
		 trace->page_at + (off_t)from);
	trace->written = trace->used;
}

/* A word at any address, stored by one instruction. */
struct unaligned {
	uint32_t word;
} __attribute__((packed, may_alias));

static void unmap_window(struct trace *trace)
{
	if (trace->window)
		munmap(trace->window, WINDOW + PAGE);
	trace->window = NULL;
}

/* This page of the file and the page behind it; NULL: they cannot be mapped. */
static char *two_pages(struct trace *trace, off_t at)
{
	off_t window_at = at - at % WINDOW;
	void *window;

	if (!trace->window || trace->window_at != window_at) {
		unmap_window(trace);
		window = mmap(NULL, WINDOW + PAGE, PROT_READ | PROT_WRITE,
			      MAP_SHARED, trace->fd, window_at);
		if (window == MAP_FAILED)
			return NULL;
		trace->window = window;
		trace->window_at = window_at;
	}
	return trace->window + (at - window_at);
}

/* Writes blanks and the trailer behind them. Returns false on failure. */
static bool store_trailer(struct trace *trace, off_t at)
{
	/* Blanks at the end of the file change nothing, and reserve its place
	   on the disk. */
	const size_t before = PAGE - TRAILER;
	uint32_t text;
	char *pages;

	if (sysconf(_SC_PAGESIZE) != PAGE ||
	    pwrite(trace->fd, "  ", TRAILER, at + TRAILER) != TRAILER)
		return false;
	pages = two_pages(trace, at - (off_t)before);
	if (!pages)
		return false;
	memcpy(&text, "  ]}", sizeof(text));
	/* Touch both pages, so that no fault can come between the stores. */
	*(volatile char *)(pages + before) = trailer[0];
	*(volatile char *)(pages + PAGE) = ' ';
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	((volatile struct unaligned *)(pages + before))->word = text;
	return true;
}

/* Moves the trailer to the end of this page, then to the beginning of the page
   behind it. */
static void turn_page(struct trace *trace)
{
	const size_t end = PAGE - TRAILER;

	memset(trace->page + trace->used, ' ', end - trace->used);
	trace->used = end;
	write_page(trace);
	if (!trace->is_broken &&
	    !store_trailer(trace, trace->page_at + (off_t)end))
		write_at(trace, "  ]}", 2 * TRAILER,
			 trace->page_at + (off_t)end);
	trace->page_at += PAGE;
	trace->written = trace->used = 0;
}

/* Call before each event, so that none crosses a page. */
static void make_room_for_event(struct trace *trace)
{
	if (trace->used + EVENT_TEXT + TRAILER > PAGE)
		turn_page(trace);
}

static void put(struct trace *trace, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct trace *trace, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(trace->page + trace->used, PAGE - trace->used, format,
		      args);
	va_end(args);
	trace->used += (size_t)n;
}

/* Like "%s". Events are formatted by hand: printf() would take half of the time
   that tracing costs. */
static void put_text(struct trace *trace, const char *text)
{
	size_t n = strlen(text);

	memcpy(trace->page + trace->used, text, n);
	trace->used += n;
}

/* Like "%llu", with at least this many digits. */
static void put_digits(struct trace *trace, uint64_t n, size_t least)
{
	char digits[20];
	size_t at = sizeof(digits);

	for (; n || sizeof(digits) - at < least; n /= 10)
		digits[--at] = (char)('0' + n % 10);
	memcpy(trace->page + trace->used, digits + at, sizeof(digits) - at);
	trace->used += sizeof(digits) - at;
}

static void put_number(struct trace *trace, uint64_t n)
{
	put_digits(trace, n, 1);
}

/* Times in the file: nanoseconds, written as microseconds. */
static void put_us(struct trace *trace, uint64_t ns)
{
	put_number(trace, ns / 1000);
	put_text(trace, ".");
	put_digits(trace, ns % 1000, 3);
}

static void put_begin(struct trace *trace, const char *phase, const char *name,
		      uint32_t thread, uint64_t ns)
{
	make_room_for_event(trace);
	put_text(trace, ",\n{\"ph\":\"");
	put_text(trace, phase);
	put_text(trace, "\",\"cat\":\"beton\",\"name\":\"");
	put_text(trace, name);
	put_text(trace, "\",\"pid\":");
	put_number(trace, (uint64_t)getpid());
	put_text(trace, ",\"tid\":");
	put_number(trace, thread);
	put_text(trace, ",\"ts\":");
	put_us(trace, ns + trace->to_unix_ns - trace->base_ns);
}

static void put_name(struct trace *trace, struct trace_track *t,
		     const struct event *e)
{
	if (t->named == e->thread)
		return;
	put_begin(trace, "M", "thread_name", e->thread, e->begin);
	put(trace, ",\"args\":{\"name\":\"%s\"}}", t->name);
	t->named = e->thread;
}

static void put_args(struct trace *trace, const struct event *e)
{
	const char *before = "\"";

	put_text(trace, ",\"args\":{");
	for (size_t i = 0; i < ARRAY_LEN(kinds[e->kind].args); i++) {
		if (!kinds[e->kind].args[i])
			break;
		put_text(trace, before);
		put_text(trace, kinds[e->kind].args[i]);
		put_text(trace, "\":");
		put_number(trace, e->args[i]);
		before = ",\"";
	}
	put_text(trace, "}}");
}

static void put_event(struct trace *trace, struct trace_track *t,
		      const struct event *e)
{
	bool is_counter = kinds[e->kind].is_counter;

	put_name(trace, t, e);
	put_begin(trace, is_counter ? "C" : "X", kinds[e->kind].name, e->thread,
		  e->begin);
	if (!is_counter) {
		put_text(trace, ",\"dur\":");
		put_us(trace, e->end - e->begin);
	}
	put_args(trace, e);
}

static void put_dropped(struct trace *trace, struct trace_track *t)
{
	uint64_t n = atomic_exchange(&t->dropped, 0);

	if (!n)
		return;
	put_begin(trace, "i", "dropped", t->named, (uint64_t)clock_ns());
	put(trace, ",\"s\":\"t\",\"args\":{\"events\":%llu}}",
	    (unsigned long long)n);
	log_warning(trace->log,
		    "%s: lost %llu events of %s, because they came too fast",
		    trace->path, (unsigned long long)n, t->name);
}

static void put_track(struct trace *trace, struct trace_track *t)
{
	uint64_t at = atomic_load_explicit(&t->tail, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&t->head, memory_order_acquire);

	for (; at < head; at++)
		put_event(trace, t, &t->events[at % EVENTS]);
	atomic_store_explicit(&t->tail, at, memory_order_release);
	put_dropped(trace, t);
}

static void put_all(struct trace *trace)
{
	struct trace_track *t;

	DL_FOREACH(trace->tracks, t)
	{
		put_track(trace, t);
	}
	if (trace->used != trace->written)
		write_page(trace);
}

static void *write_all(void *arg)
{
	struct trace *trace = arg;
	struct timespec end;

	pthread_mutex_lock(&trace->lock);
	while (!trace->stopping) {
		end = clock_in_ms(WRITE_MS);
		pthread_cond_timedwait(&trace->wake, &trace->lock, &end);
		put_all(trace);
	}
	pthread_mutex_unlock(&trace->lock);
	return NULL;
}

/* --- opening and closing --- */

/* FILE.json, FILE.2.json and so on. */
static void path_of(const char *path, unsigned n, char out[PATH_SIZE])
{
	const char *slash = strrchr(path, '/');
	const char *dot = strrchr(slash ? slash : path, '.');
	size_t base = dot ? (size_t)(dot - path) : strlen(path);

	if (n == 1)
		snprintf(out, PATH_SIZE, "%s", path);
	else
		snprintf(out, PATH_SIZE, "%.*s.%u%s", (int)base, path, n,
			 path + base);
}

/* Locks and empties a file. -EAGAIN: another trace has it. On file systems
   without locks it is not locked. */
static int claim_file(int fd, const struct place *place)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -EINVAL;
	if (place_is_foreign(place, &st))
		return -EPERM;
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return -EAGAIN;
	if (place_has_dataset(fd))
		return -EEXIST;
	return ftruncate(fd, 0) ? -errno : 0;
}

static int open_one(const char *path, int *out)
{
	struct place place;
	int fd, r = place_open(path, &place);

	if (r)
		return r;
	fd = openat(place.dir, place.name,
		    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY |
			    O_NONBLOCK,
		    0666);
	r = fd < 0 ? -errno : claim_file(fd, &place);
	place_close(&place);
	if (!r)
		*out = fd;
	else if (fd >= 0)
		close(fd);
	return r;
}

static int open_file(struct trace *trace, const char *path)
{
	int r = -EAGAIN;

	if (strlen(path) + 4 > PATH_SIZE)
		return -ENAMETOOLONG;
	for (unsigned n = 1; n <= FILES_MAX && r == -EAGAIN; n++) {
		path_of(path, n, trace->path);
		r = open_one(trace->path, &trace->fd);
	}
	return r;
}

static uint64_t unix_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Reads both clocks at one moment: the quickest of some tries. */
static void set_clock(struct trace *trace)
{
	uint64_t before, now, after, best = UINT64_MAX;

	for (unsigned i = 0; i < 16; i++) {
		before = (uint64_t)clock_ns();
		now = unix_ns();
		after = (uint64_t)clock_ns();
		if (after - before >= best)
			continue;
		best = after - before;
		trace->to_unix_ns = now - (before + best / 2);
		trace->base_ns = now - now % QUARTER_NS;
	}
}

static void put_head(struct trace *trace)
{
	uint64_t now = (uint64_t)clock_ns();

	put(trace,
	    "{\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":%llu,\n"
	    "\"otherData\":{\"producer\":\"betonfs %s\"},\n\"traceEvents\":[\n",
	    (unsigned long long)trace->base_ns, beton_version());
	put(trace,
	    "{\"ph\":\"i\",\"cat\":\"beton\",\"name\":\"trace begins\",\"pid\":%d,\"tid\":%d,\"ts\":",
	    (int)getpid(), (int)gettid());
	put_us(trace, now + trace->to_unix_ns - trace->base_ns);
	put_text(trace, ",\"s\":\"p\",\"args\":{}}");
	write_page(trace);
}

int trace_open(const char *path, struct log *log, struct trace **out)
{
	struct trace *trace = calloc(1, sizeof(*trace));
	int r;

	if (!trace)
		return -ENOMEM;
	trace->log = log;
	trace->fd = -1;
	pthread_mutex_init(&trace->lock, NULL);
	clock_cond_init(&trace->wake);
	set_clock(trace);
	r = open_file(trace, path);
	if (!r) {
		put_head(trace);
		r = thread_start(&trace->thread, write_all, trace);
	}
	if (r) {
		log_error(log, "%s: cannot write the trace: %s", path,
			  place_why(r));
		trace_close(trace);
		return r;
	}
	trace->has_thread = true;
	log_info(log, "%s: writing a trace", trace->path);
	*out = trace;
	return 0;
}

static void stop_thread(struct trace *trace)
{
	pthread_mutex_lock(&trace->lock);
	trace->stopping = true;
	pthread_cond_signal(&trace->wake);
	pthread_mutex_unlock(&trace->lock);
	if (trace->has_thread)
		pthread_join(trace->thread, NULL);
}

void trace_close(struct trace *trace)
{
	struct trace_track *t, *next;

	if (!trace)
		return;
	stop_thread(trace);
	put_all(trace);
	DL_FOREACH_SAFE(trace->tracks, t, next)
	{
		free(t);
	}
	unmap_window(trace);
	if (trace->fd >= 0)
		close(trace->fd);
	pthread_cond_destroy(&trace->wake);
	pthread_mutex_destroy(&trace->lock);
	free(trace);
}
