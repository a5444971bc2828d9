/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/bytes.h"
#include "fs/source.h"
#include "tests/unit/t.h"

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

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

static void files_are_read_at_any_place(void)
{
	struct source *s;
	char buf[16];

	write_file("0123456789");
	CHECK(!source_open(path, NULL, &s));
	CHECK(s->stat.st_size == 10 && !strcmp(s->path, path));
	CHECK(!source_read(s, buf, 3, 4) && !memcmp(buf, "456", 3));
	CHECK(!source_read(s, buf, 10, 0) && !memcmp(buf, "0123456789", 10));
	CHECK(!source_read(s, buf, 0, 5));
	source_close(s);
	source_close(NULL);
}

static void a_read_past_the_end_fails_and_is_told(void)
{
	struct heard heard = { 0 };
	struct source *s;
	struct log log;
	char buf[16];

	write_file("0123456789");
	log_init(&log, hear, &heard);
	CHECK(!source_open(path, &log, &s));
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

	write_file("0123456789");
	CHECK(!source_open(path, NULL, &s));
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
	r = source_open(what, &log, &s);
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

	write_file("0123456789");
	CHECK(!source_open(path, NULL, &s));
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

int main(void)
{
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	files_are_read_at_any_place();
	a_read_past_the_end_fails_and_is_told();
	a_file_that_shrinks_is_an_error_not_a_crash();
	only_regular_files_are_opened();
	every_request_is_answered_once();
	unlink(path);
	rmdir(folder);
	return 0;
}
