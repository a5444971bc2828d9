/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/source/local/file.h"
#include "fs/source/local/join.h"
#include "fs/source/object/open.h"
#include "tests/unit/t.h"
#include "tests/unit/write_file.h"

static char folder[] = "/tmp/test_source.XXXXXX";
static char path[64];

struct heard {
	unsigned lines;
	char last[1024];
};

static void hear(void *arg, enum beton_log_level level, const char *message)
{
	struct heard *h = arg;

	(void)level;
	h->lines++;
	snprintf(h->last, sizeof(h->last), "%s", message);
}

static void write_text(const char *text)
{
	write_file(path, text, strlen(text));
}

static void files_are_read_at_any_place(void)
{
	struct source *s;
	char buf[16];

	write_text("0123456789");
	CHECK(!source_open(path, NULL, NULL, &s));
	CHECK(s->stat.st_size == 10 && !strcmp(s->path, path));
	CHECK(!source_read(s, buf, 3, 4) && !memcmp(buf, "456", 3));
	CHECK(!source_read(s, buf, 10, 0) && !memcmp(buf, "0123456789", 10));
	CHECK(!source_read(s, buf, 0, 5));
	source_close(s);
	source_close(NULL);
}

static void a_read_past_the_end_fails_and_is_reported(void)
{
	struct heard heard = { 0 };
	struct source *s;
	struct log log;
	char buf[16];

	write_text("0123456789");
	log_init(&log, hear, &heard);
	CHECK(!source_open(path, NULL, &log, &s));
	CHECK(source_read(s, buf, 1, 10) == -EIO);
	CHECK(source_read(s, buf, 11, 0) == -EIO);
	CHECK(source_read(s, buf, 1, (uint64_t)1 << 62) == -EIO);
	CHECK(heard.lines == 3 && strstr(heard.last, path));
	source_close(s);
	log_fini(&log);
}

static void a_file_that_shrinks_is_an_error_not_a_crash(void)
{
	struct source *s;
	char buf[16];

	write_text("0123456789");
	CHECK(!source_open(path, NULL, NULL, &s));
	CHECK(!truncate(path, 5));
	CHECK(!source_read(s, buf, 5, 0));
	CHECK(source_read(s, buf, 6, 0) == -EIO);
	source_close(s);
}

static int open_result(const char *what, const char *word)
{
	struct heard heard = { 0 };
	struct source *s;
	struct log log;
	int r;

	log_init(&log, hear, &heard);
	r = source_open(what, NULL, &log, &s);
	CHECK(r && heard.lines == 1 && strstr(heard.last, what));
	CHECK(strstr(heard.last, word));
	log_fini(&log);
	return r;
}

/* Neither waits for the other end of a FIFO. */
static void only_regular_files_are_opened(void)
{
	unlink(path);
	CHECK(open_result(path, "No such file") == -ENOENT);
	CHECK(open_result(folder, "directory") == -EISDIR);
	CHECK(open_result("/dev/null", "not a regular file") ==
	      -BETON_ENOTBETON);
	CHECK(!mkfifo(path, 0600));
	CHECK(open_result(path, "not a regular file") == -BETON_ENOTBETON);
	unlink(path);
}

enum { REQUESTS = 100 };

struct many {
	struct source_wait wait;
	struct source_request requests[REQUESTS];
	char bytes[REQUESTS];
	int results[REQUESTS];
};

static void request_done(struct source_request *q, int result)
{
	struct many *m = q->arg;

	m->results[q - m->requests] = result;
	source_wait_done(&m->wait);
}

static void every_request_is_answered_once(void)
{
	struct source *s;
	struct many m;

	write_text("0123456789");
	CHECK(!source_open(path, NULL, NULL, &s));
	source_wait_init(&m.wait);
	for (int i = 0; i < REQUESTS; i++) {
		m.results[i] = 1;
		m.requests[i] = (struct source_request){
			.buf = &m.bytes[i],
			.off = (uint64_t)i % 12,
			.size = 1,
			.done = request_done,
			.arg = &m,
		};
		source_wait_add(&m.wait);
		source_submit(s, &m.requests[i]);
		source_cancel(s, &m.requests[i]);
	}
	source_wait_idle(&m.wait);
	for (int i = 0; i < REQUESTS; i++) {
		CHECK(m.results[i] == (i % 12 < 10 ? 0 : -EIO) ||
		      m.results[i] == -ECANCELED);
		CHECK(m.results[i] || m.bytes[i] == '0' + i % 12);
	}
	source_wait_fini(&m.wait);
	source_close(s);
}

/* One request, waited for. */
struct one {
	struct source_wait wait;
	struct source_request request;
	pthread_t thread; /* that reported the result */
	int result;
};

static void one_done(struct source_request *q, int result)
{
	struct one *one = q->arg;

	one->thread = pthread_self();
	one->result = result;
	source_wait_done(&one->wait);
}

static int ask(struct source *s, struct one *one)
{
	one->request.done = one_done;
	one->request.arg = one;
	source_wait_init(&one->wait);
	source_wait_add(&one->wait);
	source_submit(s, &one->request);
	source_wait_idle(&one->wait);
	source_wait_fini(&one->wait);
	return one->result;
}

enum { BIG = 3 * SOURCE_ALIGN + 1000 };

static uint8_t big_byte(size_t i)
{
	return (uint8_t)(i * 7 + i / 256);
}

static void write_big(void)
{
	FILE *f = fopen(path, "w");

	CHECK(f);
	for (size_t i = 0; i < BIG; i++)
		CHECK(putc(big_byte(i), f) != EOF);
	CHECK(!fflush(f) && !fsync(fileno(f)) && !fclose(f));
}

static void check_big(const uint8_t *bytes, size_t off, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK(bytes[i] == big_byte(off + i));
}

/* Out of the page cache with the file. */
static int forget(void)
{
	cleanup_fd int fd = open(path, O_RDONLY);

	return fd < 0 ? -errno : -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void cached_reads_need_no_thread(void)
{
	uint8_t buf[BIG];
	struct one one = { .request = { .buf = buf, .size = BIG } };
	struct source *s;

	write_big();
	CHECK(!source_open(path, NULL, NULL, &s));
	CHECK(!source_read(s, buf, BIG, 0));
	CHECK(!ask(s, &one));
	CHECK(pthread_equal(one.thread, pthread_self()));
	check_big(buf, 0, BIG);
	source_close(s);
}

/* More pieces than one call of the kernel gets, some of them empty. */
static void pieces_are_filled_in_order(void)
{
	enum { PIECE = 17, PIECES = BIG / PIECE };
	struct iovec iov[PIECES];
	uint8_t buf[BIG];
	struct one one = { .request = { .iov = iov, .iovcnt = PIECES } };
	size_t at = 0;
	struct source *s;

	write_big();
	for (unsigned i = 0; i < PIECES; i++) {
		iov[i] = (struct iovec){ buf + at, i % 5 ? PIECE : 0 };
		at += iov[i].iov_len;
	}
	one.request.size = at;
	one.request.off = 3;
	CHECK(!source_open(path, NULL, NULL, &s));
	CHECK(!ask(s, &one));
	check_big(buf, 3, at);
	/* A thread reads it again, after the page cache has dropped it. */
	CHECK(!forget());
	memset(buf, 0, sizeof(buf));
	CHECK(!ask(s, &one));
	check_big(buf, 3, at);
	one.request.off = BIG - at + 1;
	CHECK(ask(s, &one) == -EIO);
	source_close(s);
}

/* Direct or not: what must come comes, and what is there of the rest. */
static void check_tail(struct source *s)
{
	uint8_t *buf = aligned_alloc(SOURCE_ALIGN, (size_t)4 * SOURCE_ALIGN);
	struct iovec iov[] = { { buf + SOURCE_ALIGN, SOURCE_ALIGN },
			       { buf + 3 * SOURCE_ALIGN, SOURCE_ALIGN },
			       { buf, SOURCE_ALIGN } };
	struct one one = { .request = { .buf = buf,
					.size = (size_t)4 * SOURCE_ALIGN,
					.need = BIG,
					.direct = true } };

	CHECK(buf);
	CHECK(!ask(s, &one));
	check_big(buf, 0, BIG);
	CHECK(!pthread_equal(one.thread, pthread_self()));
	one.request.need = BIG + 1;
	CHECK(ask(s, &one) == -EIO);
	one.request.need = 0;
	CHECK(ask(s, &one) == -EIO);
	one.request = (struct source_request){ .iov = iov,
					       .iovcnt = 3,
					       .size = 3 * SOURCE_ALIGN,
					       .off = SOURCE_ALIGN,
					       .need = BIG - SOURCE_ALIGN,
					       .direct = true };
	memset(buf, 0, (size_t)4 * SOURCE_ALIGN);
	CHECK(!ask(s, &one));
	check_big(buf + SOURCE_ALIGN, SOURCE_ALIGN, SOURCE_ALIGN);
	check_big(buf + 3 * SOURCE_ALIGN, 2 * SOURCE_ALIGN, SOURCE_ALIGN);
	check_big(buf, 3 * SOURCE_ALIGN, 1000);
	one.request.off = 4 * SOURCE_ALIGN;
	one.request.need = 1;
	CHECK(ask(s, &one) == -EIO);
	free(buf);
}

static void direct_reads_reach_past_the_end(void)
{
	struct heard heard = { 0 };
	struct source *s;
	struct log log;

	write_big();
	log_init(&log, hear, &heard);
	CHECK(!source_open(path, NULL, &log, &s));
	CHECK(!unlink(path));
	check_tail(s);
	/* One line for each failure, and one where there are no direct reads.
	 */
	CHECK(heard.lines == (source_is_direct(s) ? 3 : 4));
	source_close(s);
	log_fini(&log);
}

/* Files of /proc know neither direct reads nor whether they are cached. */
static void reads_work_where_direct_ones_do_not(void)
{
	struct heard heard = { 0 };
	char want[SOURCE_ALIGN] = "", got[SOURCE_ALIGN] = "";
	struct one one = { .request = { .buf = got,
					.size = sizeof(got),
					.need = 5,
					.direct = true } };
	struct source *s;
	struct log log;
	FILE *f = fopen("/proc/version", "r");

	if (!f || !fgets(want, sizeof(want), f)) {
		printf("skip: no /proc/version\n");
		return;
	}
	fclose(f);
	log_init(&log, hear, &heard);
	CHECK(!source_open("/proc/version", NULL, &log, &s));
	CHECK(!ask(s, &one) && !strcmp(want, got));
	CHECK(!ask(s, &one));
	CHECK(!source_is_direct(s));
	CHECK(heard.lines == 1 && strstr(heard.last, "/proc/version"));
	memset(got, 0, sizeof(got));
	one.request.direct = false;
	one.request.need = 0;
	one.request.size = strlen(want);
	CHECK(!ask(s, &one) && !strcmp(want, got));
	CHECK(pthread_equal(one.thread, pthread_self()));
	source_close(s);
	log_fini(&log);
}

enum { HELD = 40, READERS = 16 };

/* Requests whose callbacks wait until the gate is open. */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool open;
	unsigned held;
	unsigned canceled;
	unsigned done;
	struct source_request requests[HELD];
	uint8_t *bytes;
};

static void held_done(struct source_request *q, int result)
{
	struct gate *g = q->arg;

	scoped_lock(&g->lock);
	if (result == -ECANCELED) {
		g->canceled++;
		return;
	}
	CHECK(!result);
	g->held++;
	pthread_cond_broadcast(&g->changed);
	while (!g->open)
		pthread_cond_wait(&g->changed, &g->lock);
	g->done++;
	pthread_cond_broadcast(&g->changed);
}

static void hold(struct gate *g, struct source *s)
{
	g->bytes = aligned_alloc(SOURCE_ALIGN, (size_t)HELD * SOURCE_ALIGN);
	CHECK(g->bytes);
	for (size_t i = 0; i < HELD; i++) {
		g->requests[i] = (struct source_request){
			.buf = g->bytes + i * SOURCE_ALIGN,
			.size = SOURCE_ALIGN,
			.off = i % 3 * SOURCE_ALIGN,
			.direct = true,
			.done = held_done,
			.arg = g,
		};
		source_submit(s, &g->requests[i]);
	}
	scoped_lock(&g->lock);
	while (g->held < READERS)
		pthread_cond_wait(&g->changed, &g->lock);
}

static void *open_gate(void *arg)
{
	struct gate *g = arg;

	scoped_lock(&g->lock);
	g->open = true;
	pthread_cond_broadcast(&g->changed);
	return NULL;
}

/* Many are read at once; what waits is canceled at once, the others never. */
/* A file system that opens a file for direct reads and refuses them, and whose
   reads through the page cache return less than they were asked for. */
static bool is_reluctant;

ssize_t pread64(int fd, void *buf, size_t size, off64_t off)
{
	if (is_reluctant && fcntl(fd, F_GETFL) & O_DIRECT) {
		errno = EINVAL;
		return -1;
	}
	if (is_reluctant)
		size = min_u64(size, 1000);
	return syscall(SYS_pread64, fd, buf, size, off);
}

static void refused_direct_reads_are_made_through_the_page_cache(void)
{
	struct one one = { .request = { .size = (size_t)4 * SOURCE_ALIGN,
					.need = BIG,
					.direct = true } };
	uint8_t *buf = aligned_alloc(SOURCE_ALIGN, one.request.size);
	struct heard heard = { 0 };
	struct source *s;
	struct log log;

	write_big();
	log_init(&log, hear, &heard);
	CHECK(buf && !source_open(path, NULL, &log, &s));
	if (source_is_direct(s)) {
		is_reluctant = true;
		for (int i = 0; i < 2; i++) {
			memset(buf, 0, one.request.size);
			one.request.buf = buf;
			CHECK(!ask(s, &one));
			check_big(buf, 0, BIG);
			CHECK(!source_is_direct(s) && heard.lines == 1);
		}
		is_reluctant = false;
	} else {
		printf("skip: no direct reads of %s\n", path);
	}
	source_close(s);
	log_fini(&log);
	free(buf);
}

static void requests_that_wait_can_be_cancelled(void)
{
	struct gate g = { .lock = PTHREAD_MUTEX_INITIALIZER,
			  .changed = PTHREAD_COND_INITIALIZER };
	struct source *s;

	write_big();
	CHECK(!source_open(path, NULL, NULL, &s));
	hold(&g, s);
	for (int i = 0; i < HELD; i += 2)
		source_cancel(s, &g.requests[i]);
	CHECK(g.canceled == (HELD - READERS) / 2);
	CHECK(g.held == READERS);
	open_gate(&g);
	pthread_mutex_lock(&g.lock);
	while (g.done < HELD - g.canceled)
		pthread_cond_wait(&g.changed, &g.lock);
	pthread_mutex_unlock(&g.lock);
	source_close(s);
	CHECK(g.done + g.canceled == HELD);
	free(g.bytes);
}

/* Every request is answered, at the latest when the source is closed. */
static void closing_cancels_waiting_requests(void)
{
	struct gate g = { .lock = PTHREAD_MUTEX_INITIALIZER,
			  .changed = PTHREAD_COND_INITIALIZER };
	struct source *s;
	pthread_t opener;

	write_big();
	CHECK(!source_open(path, NULL, NULL, &s));
	hold(&g, s);
	CHECK(!pthread_create(&opener, NULL, open_gate, &g));
	source_close(s);
	pthread_join(opener, NULL);
	CHECK(g.done + g.canceled == HELD && g.done >= READERS);
	free(g.bytes);
}

/* --- several files --- */

enum { FIRST = 2 * SOURCE_ALIGN + 100, SECOND = 7, THIRD = 9000 };

struct joined {
	struct source *parts[3];
	struct source *all;
	uint8_t expected[6 * SOURCE_ALIGN + THIRD];
};

static void open_joined(struct joined *j)
{
	static const size_t sizes[] = { FIRST, SECOND, THIRD };
	static const uint64_t bases[] = { 0, (uint64_t)4 * SOURCE_ALIGN,
					  (uint64_t)6 * SOURCE_ALIGN };
	char name[80];
	FILE *f;

	memset(j->expected, 0, sizeof(j->expected));
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		for (size_t k = 0; k < sizes[i]; k++)
			j->expected[bases[i] + k] = (uint8_t)(k * 31 + i + 1);
		snprintf(name, sizeof(name), "%s%zu", path, i);
		f = fopen(name, "we");
		CHECK(f && fwrite(j->expected + bases[i], 1, sizes[i], f) ==
				   sizes[i]);
		CHECK(!fclose(f));
		CHECK(!source_open(name, NULL, NULL, &j->parts[i]));
		unlink(name);
	}
	CHECK(!source_join(j->parts, bases, 3, "all of them", &j->all));
}

static void close_joined(struct joined *j)
{
	source_close(j->all);
	for (size_t i = 0; i < ARRAY_LEN(j->parts); i++)
		source_close(j->parts[i]);
}

/* Every start and end near the places where files begin and end. */
static void joined_files_are_read_as_one(void)
{
	static const int near[] = { 0, 1, 7, 99, 100, 101, 4095 };
	static uint8_t buf[sizeof(((struct joined *)0)->expected)];
	static struct joined j;
	size_t from, to;

	open_joined(&j);
	CHECK(j.all->stat.st_size == sizeof(j.expected));
	for (size_t i = 0; i < 7 * ARRAY_LEN(near); i++) {
		for (size_t k = i; k < 7 * ARRAY_LEN(near); k++) {
			from = i / ARRAY_LEN(near) * SOURCE_ALIGN +
			       (size_t)near[i % ARRAY_LEN(near)];
			to = k / ARRAY_LEN(near) * SOURCE_ALIGN +
			     (size_t)near[k % ARRAY_LEN(near)];
			memset(buf, 0xff, sizeof(buf));
			CHECK(!source_read(j.all, buf, to - from, from));
			CHECK(!memcmp(buf, j.expected + from, to - from));
			CHECK(buf[to - from] == 0xff);
		}
	}
	CHECK(source_read(j.all, buf, 2, sizeof(j.expected) - 1) == -EIO);
	close_joined(&j);
}

static void requests_cross_joined_files(void)
{
	static struct joined j;
	size_t size = align_up(sizeof(j.expected), SOURCE_ALIGN);
	uint8_t *buf = aligned_alloc(SOURCE_ALIGN, size);
	struct one one = { .request = { .need = sizeof(j.expected) } };
	struct iovec iov[] = { { buf, 5 * SOURCE_ALIGN },
			       { buf + 5 * SOURCE_ALIGN,
				 size - 5 * SOURCE_ALIGN } };

	open_joined(&j);
	for (int i = 0; i < 4 && buf; i++) {
		memset(buf, 0xff, size);
		one.request.buf = i & 1 ? NULL : buf;
		one.request.iov = iov;
		one.request.iovcnt = 2;
		one.request.size = size;
		one.request.direct = i & 2 && source_is_direct(j.all);
		CHECK(!ask(j.all, &one));
		CHECK(!memcmp(buf, j.expected, sizeof(j.expected)));
	}
	free(buf);
	close_joined(&j);
}

static void a_joined_file_that_shrinks_is_an_error(void)
{
	static struct joined j;
	char link[64], buf[16];
	int fd;

	open_joined(&j);
	CHECK(!source_read(j.all, buf, 16, FIRST - 8));
	for (fd = 3; fd < 100; fd++) {
		struct stat st;

		if (!fstat(fd, &st) && st.st_ino == j.parts[0]->stat.st_ino)
			break;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	CHECK(!truncate(link, FIRST - 4));
	CHECK(source_read(j.all, buf, 16, FIRST - 8) == -EIO);
	CHECK(!source_read(j.all, buf, 7, (uint64_t)4 * SOURCE_ALIGN));
	close_joined(&j);
}

static mode_t mode_of(const struct stat *first, const struct stat *second)
{
	static struct joined j;
	const uint64_t bases[] = { 0, (uint64_t)4 * SOURCE_ALIGN };
	struct source *both;
	mode_t mode;

	open_joined(&j);
	j.parts[0]->stat = *first;
	j.parts[1]->stat = *second;
	CHECK(!source_join(j.parts, bases, 2, "", &both));
	CHECK(both->stat.st_uid == first->st_uid &&
	      both->stat.st_gid == first->st_gid);
	mode = both->stat.st_mode;
	source_close(both);
	close_joined(&j);
	return mode;
}

static void only_readers_of_all_files_may_read(void)
{
	struct stat a = { .st_uid = 1, .st_gid = 2, .st_mode = S_IFREG | 0644 };
	struct stat b = a;

	b.st_mode = S_IFREG | 0640;
	CHECK(mode_of(&a, &b) == (S_IFREG | 0640));
	/* Those of group 2 are others there, and the owner is. */
	b.st_gid = 3;
	CHECK(mode_of(&a, &b) == S_IFREG);
	b.st_mode = S_IFREG | 0644;
	CHECK(mode_of(&a, &b) == (S_IFREG | 0444));
	b.st_uid = 3;
	b.st_mode = S_IFREG | 0600;
	CHECK(mode_of(&a, &b) == S_IFREG);
}

int main(void)
{
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	files_are_read_at_any_place();
	a_read_past_the_end_fails_and_is_reported();
	a_file_that_shrinks_is_an_error_not_a_crash();
	only_regular_files_are_opened();
	every_request_is_answered_once();
	cached_reads_need_no_thread();
	pieces_are_filled_in_order();
	direct_reads_reach_past_the_end();
	reads_work_where_direct_ones_do_not();
	refused_direct_reads_are_made_through_the_page_cache();
	requests_that_wait_can_be_cancelled();
	closing_cancels_waiting_requests();
	joined_files_are_read_as_one();
	requests_cross_joined_files();
	a_joined_file_that_shrinks_is_an_error();
	only_readers_of_all_files_may_read();
	unlink(path);
	rmdir(folder);
	return 0;
}
