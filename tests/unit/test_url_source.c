/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a URL against a server that misbehaves: every byte is right, or
   the request fails with the right error. */
#include <errno.h>
#include <poll.h>

#include "fs/base/util/clock.h"
#include "fs/source/local/net_stats.h"
#include "fs/source/net/net.h"
#include "fs/source/object/remote.h"
#include "fs/source/object/url.h"

#include "tests/unit/server.h"

enum { MB = 1 << 20, SIZE = 4 * MB + 123 };

struct heard {
	struct log log;
	pthread_mutex_t lock;
	char text[16384];
	atomic_uint lines; /* read without the lock */
};

static void hear(void *arg, enum beton_log_level level, const char *message)
{
	struct heard *h = arg;
	size_t n;

	(void)level;
	pthread_mutex_lock(&h->lock);
	n = strlen(h->text);
	snprintf(h->text + n, sizeof(h->text) - n, "%s\n", message);
	h->lines++;
	pthread_mutex_unlock(&h->lock);
}

static void heard_init(struct heard *h)
{
	*h = (struct heard){ 0 };
	pthread_mutex_init(&h->lock, NULL);
	log_init(&h->log, hear, h);
}

static bool heard_has(struct heard *h, const char *text)
{
	bool has;

	pthread_mutex_lock(&h->lock);
	has = strstr(h->text, text);
	if (!has)
		fprintf(stderr, "no \"%s\" in:\n%s", text, h->text);
	pthread_mutex_unlock(&h->lock);
	return has;
}

static struct source *open_server(struct server *s, struct heard *h,
				  uint64_t retry_ms)
{
	const struct source_options options = { .retry_ms = retry_ms };
	struct source *source;

	heard_init(h);
	CHECK(!url_source_open(s->url, &options, &h->log, &source));
	return source;
}

static bool is_right(const uint8_t *buf, size_t size, uint64_t off)
{
	for (size_t i = 0; i < size; i++) {
		if (buf[i] != server_byte(off + i))
			return false;
	}
	return true;
}

/* Reads a range and compares it. Returns the result. */
static int read_range(struct source *source, uint64_t off, size_t size)
{
	uint8_t *buf = malloc(size);
	int r;

	CHECK(buf);
	r = source_read(source, buf, size, off);
	CHECK(r || is_right(buf, size, off));
	free(buf);
	return r;
}

static enum fault chosen(struct server *s, unsigned index, uint64_t first)
{
	(void)first;
	return index == 1 ? (enum fault)s->status : FAULT_NONE;
}

/* Requests after which the time of an answer is known. */
enum { WARM = 10 };

static enum fault chosen_later(struct server *s, unsigned index, uint64_t first)
{
	(void)first;
	return index == WARM ? (enum fault)s->status : FAULT_NONE;
}

static double seconds_since(int64_t ns)
{
	return (double)(clock_ns() - ns) * 1e-9;
}

/* --- opening --- */

static void test_open(void)
{
	struct server s = { .size = SIZE, .etag = "\"v1\"" };
	struct source_net_stats stats;
	struct source *source;
	struct heard h;

	server_start(&s);
	source = open_server(&s, &h, 0);
	CHECK(atomic_load(&s.requests) == 1 && !h.lines);
	CHECK(source->stat.st_size == SIZE && source->stat.st_uid == geteuid());
	CHECK(source->stat.st_mode == (S_IFREG | 0400));
	CHECK(source->stat.st_mtim.tv_sec == 784111777);
	CHECK(!strncmp(url_source_identity(source), "\"v1\" ", 5) &&
	      url_source_is_strong(source));
	/* The first MiB is there; the rest is not. */
	CHECK(!read_range(source, 0, URL_SOURCE_HEAD) &&
	      !read_range(source, 77, 1000));
	CHECK(atomic_load(&s.requests) == 1);
	CHECK(!read_range(source, URL_SOURCE_HEAD - 1, 2));
	CHECK(!read_range(source, SIZE - 5, 5));
	CHECK(atomic_load(&s.requests) == 3);
	CHECK(strstr(s.last, "If-Match: \"v1\"\r\n"));
	CHECK(read_range(source, SIZE - 5, 6) == -EIO);
	CHECK(read_range(source, SIZE, 1) == -EIO);
	CHECK(source_net_stats(source, &stats));
	CHECK(stats.requests == 3 && stats.connections == 1 && !stats.retries);
	CHECK(stats.payload_bytes == URL_SOURCE_HEAD + 7);
	source_close(source);
	server_stop(&s);
}

static void test_take_head(void)
{
	struct server s = { .size = SIZE, .etag = "\"v1\"" };
	struct source *source;
	struct heard h;
	size_t size;
	void *head;

	server_start(&s);
	source = open_server(&s, &h, 0);
	head = url_source_take_head(source, &size);
	CHECK(size == URL_SOURCE_HEAD && is_right(head, size, 0));
	free(head);
	CHECK(!read_range(source, 0, 10) && atomic_load(&s.requests) == 2);
	CHECK(!url_source_take_head(source, &size));
	source_close(source);
	server_stop(&s);
}

static void test_small(void)
{
	struct server s = { .size = 100, .etag = "\"v1\"" };
	struct source *source;
	struct heard h;

	server_start(&s);
	source = open_server(&s, &h, 0);
	CHECK(source->stat.st_size == 100 && !read_range(source, 0, 100));
	CHECK(read_range(source, 0, 101) == -EIO);
	CHECK(atomic_load(&s.requests) == 1);
	source_close(source);
	server_stop(&s);
}

static enum fault always(struct server *s, unsigned index, uint64_t first)
{
	(void)index, (void)first;
	return (enum fault)s->status;
}

static void refuses(enum fault fault, uint64_t size, int expected,
		    const char *text)
{
	const struct source_options options = { .retry_ms = 100 };
	struct server s = { .size = size,
			    .etag = "\"v1\"",
			    .script = always,
			    .status = (int)fault };
	struct source *source;
	struct heard h;
	int r;

	heard_init(&h);
	server_start(&s);
	r = url_source_open(s.url, &options, &h.log, &source);
	if (r != expected)
		fprintf(stderr, "fault %d: %d: %s\n", fault, r, h.text);
	CHECK(r == expected && (r || h.lines == 0) && h.lines <= 1);
	CHECK(!text || heard_has(&h, text));
	if (!r) {
		CHECK(!read_range(source, 0, size));
		source_close(source);
	}
	server_stop(&s);
}

static void test_refusals(void)
{
	refuses(FAULT_WHOLE, SIZE, -EOPNOTSUPP, "ignores Range");
	refuses(FAULT_WHOLE, 1000, 0, NULL);
	refuses(FAULT_OK_RANGE, SIZE, 0, NULL);
	refuses(FAULT_MULTIPART, SIZE, -EOPNOTSUPP, "multipart/byteranges");
	refuses(FAULT_GZIP, SIZE, -EOPNOTSUPP, "Content-Encoding");
	refuses(FAULT_WRONG_RANGE, SIZE, -EIO, "Content-Range is 1-");
	refuses(FAULT_GARBAGE, SIZE, -EPROTO, NULL);
	refuses(FAULT_RESET, SIZE, -ECONNRESET, NULL);
	refuses(FAULT_TWO_LENGTHS, SIZE, -EOPNOTSUPP, "or two that differ");
	refuses(FAULT_EXCESS, SIZE, -EOPNOTSUPP, "more bytes than its Content");
	refuses(FAULT_HUGE, SIZE, -EOPNOTSUPP,
		"reports a size of 9223372036854775808 bytes");
	refuses(FAULT_ONE_BYTE, SIZE, -EIO, "bytes too early");
}

static enum fault first_is_slow(struct server *s, unsigned index,
				uint64_t first)
{
	(void)s, (void)first;
	return index ? FAULT_NONE : FAULT_SLOWER;
}

/* A server may prepare an object before its first byte. */
static void test_slow_first_byte(void)
{
	struct server s = { .size = SIZE,
			    .etag = "\"v1\"",
			    .script = first_is_slow };
	struct source *source;
	struct heard h;

	server_start(&s);
	source = open_server(&s, &h, 1000);
	CHECK(atomic_load(&s.requests) == 1 && !h.lines);
	source_close(source);
	server_stop(&s);
}

/* Opening a wrong URL ends soon, however patient reads are. */
static void test_no_server(void)
{
	struct server s = { .size = SIZE, .etag = "\"v1\"" };
	struct source *source;
	struct heard h;
	int64_t begin = clock_ns();

	heard_init(&h);
	server_start(&s);
	server_stop(&s);
	CHECK(url_source_open(s.url, NULL, &h.log, &source) == -ECONNREFUSED);
	CHECK(seconds_since(begin) < 6);
	CHECK(heard_has(&h, "trying again for 5 s"));
}

static bool has_heard(void *arg)
{
	const struct heard *h = arg;

	return h->lines;
}

enum { READERS = 16, SLICE = 64 << 10 };

static _Atomic int64_t down_until;

static enum fault down_for_a_while(struct server *s, unsigned index,
				   uint64_t first)
{
	(void)s, (void)index, (void)first;
	return clock_ns() < down_until ? FAULT_RESET : FAULT_NONE;
}

struct part {
	struct source *source;
	unsigned index;
	int64_t end_ns;
};

static void *read_part(void *arg)
{
	struct part *p = arg;

	CHECK(!read_range(p->source, 2 * MB + (uint64_t)p->index * SLICE,
			  SLICE));
	p->end_ns = clock_ns();
	return NULL;
}

/* Each read pauses between its attempts, longer and longer. All continue when one
   of them is answered. */
static void test_end_of_outage(void)
{
	struct server s = { .size = SIZE,
			    .etag = "\"v1\"",
			    .script = down_for_a_while };
	pthread_t threads[READERS];
	struct part parts[READERS];
	int64_t first = INT64_MAX, last = 0;
	struct source *source;
	struct heard h;

	server_start(&s);
	source = open_server(&s, &h, 60000);
	down_until = clock_ns() + 3000000000LL;
	for (unsigned i = 0; i < READERS; i++) {
		parts[i] = (struct part){ .source = source, .index = i };
		CHECK(!pthread_create(&threads[i], NULL, read_part, &parts[i]));
	}
	for (unsigned i = 0; i < READERS; i++) {
		CHECK(!pthread_join(threads[i], NULL));
		if (parts[i].end_ns < first)
			first = parts[i].end_ns;
		if (parts[i].end_ns > last)
			last = parts[i].end_ns;
	}
	CHECK(heard_has(&h, "the server answers again"));
	CHECK(last - first < 400000000);
	source_close(source);
	server_stop(&s);
}

/* A job may start before its server, and its options have the time. */
static void test_late_server(void)
{
	struct server s = { .size = SIZE, .etag = "\"v1\"" };
	struct source *source;
	struct heard h;
	const struct source_options options = { .retry_ms = 60000,
						.interrupted = has_heard,
						.interrupted_arg = &h };

	heard_init(&h);
	server_start(&s);
	server_stop(&s);
	CHECK(url_source_open(s.url, &options, &h.log, &source) == -ECANCELED);
	CHECK(heard_has(&h, "trying again for 60 s"));
}

static enum fault by_status(struct server *s, unsigned index, uint64_t first)
{
	(void)s, (void)index, (void)first;
	return FAULT_STATUS;
}

static void test_statuses(void)
{
	static const struct {
		int status, expected;
		unsigned least;
	} rows[] = {
		{ 404, -ENOENT, 1 }, { 403, -EACCES, 1 },
		{ 401, -EACCES, 1 }, { 416, -EIO, 1 },
		{ 412, -ESTALE, 1 }, { 400, -EIO, 1 },
		{ 500, -EIO, 2 },    { 503, -EBUSY, 2 },
		{ 429, -EBUSY, 2 },  { 501, -EOPNOTSUPP, 1 },
	};
	const struct source_options options = { .retry_ms = 100 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct server s = { .size = SIZE,
				    .etag = "\"v1\"",
				    .script = by_status,
				    .status = rows[i].status };
		struct source *source;
		struct heard h;

		heard_init(&h);
		server_start(&s);
		CHECK(url_source_open(s.url, &options, &h.log, &source) ==
		      rows[i].expected);
		CHECK(atomic_load(&s.requests) >= rows[i].least);
		CHECK(rows[i].least > 1 || atomic_load(&s.requests) == 1);
		CHECK(h.lines >= 1 && h.lines <= 2);
		server_stop(&s);
	}
}

/* --- faults while reading --- */

/* A fault of one request is no error, and costs so many more requests. */
static void survives(enum fault fault, unsigned more)
{
	struct server s = { .size = SIZE,
			    .etag = "\"v1\"",
			    .script = chosen_later,
			    .status = (int)fault };
	struct source *source;
	struct heard h;

	server_start(&s);
	source = open_server(&s, &h, 5000);
	for (unsigned i = 1; i < WARM; i++)
		CHECK(!read_range(source, MB, 1000));
	if (read_range(source, MB, 3 * MB))
		CHECK(!fprintf(stderr, "fault %d: %s\n", fault, h.text));
	if (atomic_load(&s.requests) != WARM + 1 + more)
		CHECK(!fprintf(stderr, "fault %d: %u requests\n", fault,
			       atomic_load(&s.requests)));
	/* A single fault is no news. */
	CHECK(!h.lines);
	source_close(source);
	server_stop(&s);
}

static void test_faults(void)
{
	survives(FAULT_NONE, 0);
	survives(FAULT_RESET, 1);
	survives(FAULT_RESET_MID, 1);
	survives(FAULT_TRUNCATE, 1);
	survives(FAULT_WRONG_RANGE, 1);
	survives(FAULT_SHORT, 1);
	survives(FAULT_OK_RANGE, 0);
	survives(FAULT_NO_ETAG, 1);
	survives(FAULT_GARBAGE, 1);
	survives(FAULT_STALL, 1);
	survives(FAULT_STALL_MID, 1);
	survives(FAULT_WHOLE, 1);
	survives(FAULT_GZIP, 1);
	survives(FAULT_MULTIPART, 1);
	survives(FAULT_NO_RANGE, 1);
	survives(FAULT_RESIZED, 1);
	survives(FAULT_ONE_BYTE, 1);
	survives(FAULT_EXCESS, 0);
	survives(FAULT_TWO_LENGTHS, 1);
}

static enum fault always_later(struct server *s, unsigned index, uint64_t first)
{
	(void)first;
	return index ? (enum fault)s->status : FAULT_NONE;
}

/* Wrong answers after a good one are tried again, and then final. */
static void ends_by(enum fault fault, const char *text)
{
	struct server s = { .size = SIZE,
			    .etag = "\"v1\"",
			    .script = always_later,
			    .status = (int)fault };
	struct source *source;
	struct heard h;

	server_start(&s);
	source = open_server(&s, &h, 300);
	CHECK(read_range(source, MB, 1000) == -EIO);
	CHECK(atomic_load(&s.requests) > 3 && h.lines == 1);
	CHECK(heard_has(&h, text));
	source_close(source);
	server_stop(&s);
}

static void test_wrong_answers(void)
{
	ends_by(FAULT_WHOLE, "ignores Range");
	ends_by(FAULT_GZIP, "Content-Encoding");
	ends_by(FAULT_NO_RANGE, "without Content-Range");
	ends_by(FAULT_RESIZED, "bytes instead of");
	ends_by(FAULT_TWO_LENGTHS, "or two that differ");
	ends_by(FAULT_HUGE, "bytes instead of");
	ends_by(FAULT_ONE_BYTE, "bytes too early");
}

static enum fault limited(struct server *s, unsigned index, uint64_t first)
{
	(void)s, (void)first;
	return index > 20 && index < 60 && index % 2 ? FAULT_STATUS
						     : FAULT_NONE;
}

static enum fault one_is_slow(struct server *s, unsigned index, uint64_t first)
{
	(void)s, (void)first;
	return index == 150 ? FAULT_STALL : FAULT_NONE;
}

/* A request that a thread waits for, and that is late, is sent again before the
   limits end it. */
static void test_hedge(void)
{
	struct server s = { .size = SIZE,
			    .etag = "\"v1\"",
			    .script = one_is_slow };
	struct source_net_stats stats;
	struct source *source;
	struct heard h;

	server_start(&s);
	source = open_server(&s, &h, 5000);
	for (unsigned i = 0; i < 200; i++)
		CHECK(!read_range(source, MB + i * 1000, 10000));
	CHECK(source_net_stats(source, &stats));
	CHECK(stats.hedges >= 1 && stats.stalls == 0);
	CHECK(stats.hedge_bytes < 3 * 12000 && !h.lines);
	source_close(source);
	server_stop(&s);
}

/* The object is replaced before each request in turn: on a server that checks
   conditions, and on one that does not. */
static void replaced_at(unsigned index, bool is_honest, enum fault fault)
{
	struct server s = { .size = SIZE,
			    /* Objects of any size may have a weak one. */
			    .etag = fault == FAULT_RESIZED ? "W/\"v1\""
							   : "\"v1\"",
			    .is_honest = is_honest,
			    .script = chosen,
			    .status = (int)fault };
	struct source *source;
	struct heard h;
	int r = 0;

	server_start(&s);
	source = open_server(&s, &h, 5000);
	for (unsigned i = 1; i < 4 && !r; i++)
		r = read_range(source, i * MB, 1000 + index);
	CHECK(r == -ESTALE);
	for (unsigned i = 1; i < 4; i++)
		CHECK(read_range(source, i * MB, 1000) == -ESTALE);
	poll(NULL, 0, 50);
	CHECK(h.lines == 1 + (fault == FAULT_RESIZED));
	CHECK(heard_has(&h, "the object was replaced"));
	CHECK(heard_has(&h, "\"v1\""));
	CHECK(fault == FAULT_RESIZED || heard_has(&h, "is \"other\""));
	source_close(source);
	server_stop(&s);
}

static void test_replaced(void)
{
	replaced_at(1, false, FAULT_REPLACED);
	replaced_at(1, true, FAULT_REPLACED);
	replaced_at(1, false, FAULT_RESIZED);
}

/* --- many requests --- */

struct many {
	struct source_wait wait;
	atomic_uint errors[200];
	atomic_uint failed;
};

struct one {
	struct source_request q;
	struct iovec iov[3];
	struct many *many;
	uint8_t *buf;
};

static void end_one(struct source_request *q, int result)
{
	struct one *one = q->arg;

	if (result)
		atomic_fetch_add(&one->many->failed, 1);
	if (result < 0 && result > -200)
		atomic_fetch_add(&one->many->errors[-result], 1);
	CHECK(result || is_right(one->buf, q->size, q->off));
	source_wait_done(&one->many->wait);
}

static void submit_one(struct source *source, struct one *one, uint64_t off,
		       size_t size, bool must)
{
	one->buf = malloc(size);
	CHECK(one->buf);
	/* Pieces of memory of odd sizes. */
	one->iov[0] = (struct iovec){ one->buf, 7 };
	one->iov[1] = (struct iovec){ one->buf + 7, size / 2 };
	one->iov[2] =
		(struct iovec){ one->buf + 7 + size / 2, size - 7 - size / 2 };
	one->q = (struct source_request){ .iov = one->iov,
					  .iovcnt = 3,
					  .size = size,
					  .off = off,
					  .must = must,
					  .done = end_one,
					  .arg = one };
	source_wait_add(&one->many->wait);
	source_submit(source, &one->q);
}

enum { MANY = 300, PART = 10007 };

static struct one *begin_many(struct many *many)
{
	struct one *ones = calloc(MANY, sizeof(*ones));

	CHECK(ones);
	for (unsigned i = 0; i < MANY; i++)
		ones[i].many = many;
	source_wait_init(&many->wait);
	return ones;
}

/* After the end of the source. */
static void end_many(struct many *many, struct one *ones)
{
	for (unsigned i = 0; i < MANY; i++)
		free(ones[i].buf);
	source_wait_fini(&many->wait);
	free(ones);
}

static enum fault some(struct server *s, unsigned index, uint64_t first)
{
	static const enum fault faults[] = {
		FAULT_RESET,	   FAULT_RESET_MID, FAULT_TRUNCATE,
		FAULT_WRONG_RANGE, FAULT_SHORT,	    FAULT_STATUS,
		FAULT_NO_ETAG,	   FAULT_GARBAGE,   FAULT_OK_RANGE,
	};

	(void)s, (void)first;
	return index % 5 == 4 ? faults[index / 5 % ARRAY_LEN(faults)]
			      : FAULT_NONE;
}

/* A fifth of all requests fails; all bytes arrive. */
static void test_many(void)
{
	struct server s = {
		.size = SIZE, .etag = "\"v1\"", .status = 500, .script = some
	};
	struct many many = { 0 };
	struct one *ones = begin_many(&many);
	struct source *source;
	struct heard h;

	server_start(&s);
	source = open_server(&s, &h, 20000);
	for (unsigned i = 0; i < MANY; i++)
		submit_one(source, &ones[i], MB + i * PART, PART, i % 3 == 0);
	source_wait_idle(&many.wait);
	CHECK(!atomic_load(&many.failed));
	CHECK(atomic_load(&s.faults) > 40);
	source_close(source);
	end_many(&many, ones);
	server_stop(&s);
}

static atomic_uint place_of_other;

static enum fault note_other(struct server *s, unsigned index, uint64_t first)
{
	(void)s;
	if (first == MB)
		atomic_store(&place_of_other, index);
	return FAULT_NONE;
}

/* Urgent requests do not keep others from the only connection. */
static void test_urgent_run(void)
{
	const struct source_options options = { .retry_ms = 5000,
						.connections = 1 };
	struct server s = { .size = SIZE,
			    .etag = "\"v1\"",
			    .script = note_other };
	struct many many = { 0 };
	struct one *ones = begin_many(&many);
	struct source *source;
	struct heard h;

	server_start(&s);
	heard_init(&h);
	CHECK(!url_source_open(s.url, &options, &h.log, &source));
	for (unsigned i = 0; i < MANY; i++)
		submit_one(source, &ones[i], i == 9 ? MB : MB + (i + 1) * PART,
			   PART, i != 9);
	source_wait_idle(&many.wait);
	CHECK(!atomic_load(&many.failed));
	CHECK(atomic_load(&place_of_other) < MANY / 2);
	source_close(source);
	end_many(&many, ones);
	server_stop(&s);
}

/* A late request that was read ahead is repeated, too: a thread will soon wait
   for it. */
static void test_hedge_ahead(void)
{
	struct server s = { .size = SIZE,
			    .etag = "\"v1\"",
			    .script = one_is_slow };
	struct many many = { 0 };
	struct source_net_stats stats;
	struct source *source;
	struct heard h;
	struct one one = { .many = &many };

	server_start(&s);
	source = open_server(&s, &h, 5000);
	source_wait_init(&many.wait);
	for (unsigned i = 0; i < 200; i++) {
		submit_one(source, &one, MB + i * 1000, 10000, false);
		source_wait_idle(&many.wait);
		free(one.buf);
	}
	CHECK(!atomic_load(&many.failed));
	CHECK(source_net_stats(source, &stats));
	CHECK(stats.hedges >= 1 && stats.stalls == 0);
	source_close(source);
	source_wait_fini(&many.wait);
	server_stop(&s);
}

/* The server refuses requests: fewer at a time, one line, and all bytes. */
static void test_throttled(void)
{
	struct server s = {
		.size = SIZE, .etag = "\"v1\"", .status = 503, .script = limited
	};
	struct many many = { 0 };
	struct one *ones = begin_many(&many);
	struct source_net_stats stats;
	struct source *source;
	struct heard h;

	server_start(&s);
	source = open_server(&s, &h, 20000);
	for (unsigned i = 0; i < MANY; i++)
		submit_one(source, &ones[i], MB + i * PART, PART, false);
	source_wait_idle(&many.wait);
	CHECK(!atomic_load(&many.failed) && source_net_stats(source, &stats));
	CHECK(stats.throttled == 20 && stats.retries == 20);
	CHECK(h.lines == 1 && heard_has(&h, "limits the rate of requests"));
	CHECK(stats.target_bytes < 4 * MB);
	source_close(source);
	end_many(&many, ones);
	server_stop(&s);
}

static enum fault stall_later(struct server *s, unsigned index, uint64_t first)
{
	(void)s, (void)first;
	return index ? FAULT_STALL : FAULT_NONE;
}

enum ending { BY_CLOSE, BY_CANCEL, BY_HALT };

/* Requests that wait or run end when they are canceled, when a reader stops,
   and all others when the source is closed. After a stop, those that follow end
   as well. */
static void test_ending(enum ending how)
{
	struct server s = { .size = SIZE,
			    .etag = "\"v1\"",
			    .script = stall_later };
	struct many many = { 0 };
	struct one *ones = begin_many(&many);
	struct source *source;
	struct heard h;

	server_start(&s);
	source = open_server(&s, &h, 20000);
	for (unsigned i = 0; i < MANY; i++)
		submit_one(source, &ones[i], MB + i * PART, PART, i % 3 == 0);
	poll(NULL, 0, 50);
	for (unsigned i = 0; i < MANY && how == BY_CANCEL; i++)
		source_cancel(source, &ones[i].q);
	if (how == BY_HALT)
		source_halt(source);
	if (how != BY_CLOSE)
		source_wait_idle(&many.wait);
	if (how == BY_HALT) {
		CHECK(atomic_load(&many.errors[ECANCELED]) == MANY);
		CHECK(read_range(source, MB, 1000) == -ECANCELED && !h.lines);
	}
	source_close(source);
	source_wait_idle(&many.wait);
	CHECK(atomic_load(&many.errors[ECANCELED]) == MANY);
	end_many(&many, ones);
	server_stop(&s);
}

/* --- outages --- */

static enum fault out(struct server *s, unsigned index, uint64_t first)
{
	(void)first;
	return index && s->status ? FAULT_RESET : FAULT_NONE;
}

/* The server is gone for longer than the retries last, and then it returns. */
static void test_outage(void)
{
	struct server s = { .size = SIZE, .etag = "\"v1\"", .script = out };
	struct source_net_stats stats;
	struct source *source;
	struct heard h;
	bool is_out;

	server_start(&s);
	source = open_server(&s, &h, 1500);
	s.status = 1;
	CHECK(read_range(source, MB, 1000) == -ECONNRESET);
	/* If no attempt fell into the second half, there is no first line. */
	is_out = h.lines == 2;
	CHECK(h.lines <= 2 && (!is_out || heard_has(&h, "trying again for")));
	CHECK(heard_has(&h, is_out ? "failed for" : "read of 1000 bytes"));
	CHECK(source_net_stats(source, &stats));
	CHECK(stats.failures == 1 && stats.retries > 3);
	CHECK(stats.is_out == is_out);
	s.status = 0;
	CHECK(!read_range(source, MB, 1000));
	CHECK(!is_out || (h.lines == 3 && heard_has(&h, "answers again")));
	source_close(source);
	server_stop(&s);
}

/* --- redirects --- */

static enum fault redirect(struct server *s, unsigned index, uint64_t first)
{
	(void)s, (void)index, (void)first;
	return FAULT_REDIRECT;
}

static void test_redirect(void)
{
	struct server to = { .size = SIZE, .etag = "\"v1\"" };
	struct server from = { .size = 1, .script = redirect };
	struct source *source;
	struct heard h;

	server_start(&to);
	from.location = to.url;
	server_start(&from);
	source = open_server(&from, &h, 1000);
	CHECK(!read_range(source, MB, 1000) && !h.lines);
	CHECK(source->stat.st_size == SIZE);
	/* Ranges begin at the target. */
	CHECK(!read_range(source, 2 * MB, 1000));
	CHECK(atomic_load(&from.requests) == 1);
	CHECK(atomic_load(&to.requests) == 3);
	source_close(source);
	server_stop(&from);
	server_stop(&to);
}

static enum fault expired(struct server *s, unsigned index, uint64_t first)
{
	(void)s, (void)first;
	return index == 2 ? FAULT_STATUS : FAULT_NONE;
}

/* The target expires: the first URL is asked again, and gets the secrets, which
   the target never sees. */
static void test_expired_redirect(void)
{
	char path[] = "/tmp/test_url_source.XXXXXX";
	const struct source_options options = { .header = path };
	struct server to = {
		.size = SIZE, .etag = "\"v1\"", .script = expired, .status = 403
	};
	struct server from = { .size = 1, .script = redirect };
	struct source *source;
	struct heard h;
	int fd = mkstemp(path);

	CHECK(fd >= 0 && write(fd, "X-Secret: 1\n", 12) == 12 && !close(fd));
	heard_init(&h);
	server_start(&to);
	from.location = to.url;
	server_start(&from);
	CHECK(!url_source_open(from.url, &options, &h.log, &source));
	CHECK(!read_range(source, MB, 1000) &&
	      atomic_load(&from.requests) == 1);
	CHECK(!read_range(source, MB, 1000) && !read_range(source, MB, 1000));
	CHECK(atomic_load(&from.requests) == 2 &&
	      atomic_load(&to.requests) == 5 && !h.lines);
	CHECK(atomic_load(&from.with_secret) == 2);
	CHECK(!atomic_load(&to.with_secret));
	source_close(source);
	unlink(path);
	server_stop(&from);
	server_stop(&to);
}

static void test_endless_redirect(void)
{
	struct server s = { .size = 1, .script = redirect };
	const struct source_options options = { .retry_ms = 1000 };
	struct source *source;
	struct heard h;

	heard_init(&h);
	server_start(&s);
	s.location = s.url;
	CHECK(url_source_open(s.url, &options, &h.log, &source) == -ELOOP);
	CHECK(heard_has(&h, "redirects") && atomic_load(&s.requests) == 6);
	server_stop(&s);
}

/* --- a net that several sources share, and that pauses --- */

static void test_pause(void)
{
	struct server s = { .size = SIZE, .etag = "\"v1\"" };
	struct source_options options = { 0 };
	struct source *a, *b;
	struct heard h;

	heard_init(&h);
	server_start(&s);
	CHECK(!net_open(&h.log, &options.net));
	CHECK(!url_source_open(s.url, &options, &h.log, &a));
	net_pause(options.net);
	net_pause(options.net);
	CHECK(!url_source_open(s.url, &options, &h.log, &b));
	net_unref(options.net);
	CHECK(!read_range(a, MB, 1000) && !read_range(b, 2 * MB, 1000));
	source_close(a);
	CHECK(!read_range(b, MB, 1000));
	source_close(b);
	server_stop(&s);
}

int main(void)
{
	struct net *net;

	if (net_open(NULL, &net)) {
		printf("skip: test_url_source: libcurl is not installed\n");
		return 0;
	}
	net_unref(net);
	test_open();
	test_take_head();
	test_small();
	test_refusals();
	test_slow_first_byte();
	test_no_server();
	test_late_server();
	test_end_of_outage();
	test_statuses();
	test_faults();
	test_wrong_answers();
	test_replaced();
	test_many();
	test_hedge();
	test_hedge_ahead();
	test_urgent_run();
	test_throttled();
	test_ending(BY_CANCEL);
	test_ending(BY_CLOSE);
	test_ending(BY_HALT);
	test_outage();
	test_redirect();
	test_expired_redirect();
	test_endless_redirect();
	test_pause();
	return 0;
}
