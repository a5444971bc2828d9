/* SPDX-License-Identifier: Apache-2.0 */
/* Closing a loader of a file while the disk does not answer. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "beton/loader.h"
#include "fs/data/writer/writer.h"
#include "tests/unit/t.h"

enum { DEADLINE_S = 30, SAMPLES = 512, BYTES = 20000, LIMIT_NS = 2000000000 };

static char path[] = "/tmp/stop.XXXXXX";
static atomic_bool hangs;
static atomic_uint waiting; /* reads */

/* --- a disk --- */

static void wait_for_disk(void)
{
	if (!atomic_load(&hangs))
		return;
	atomic_fetch_add(&waiting, 1);
	while (atomic_load(&hangs))
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	atomic_fetch_sub(&waiting, 1);
}

/* Instead of the C library's. Nothing is in the page cache. */
ssize_t preadv64v2(int fd, const struct iovec *iov, int n, off_t off,
		   int flags);
ssize_t preadv64(int fd, const struct iovec *iov, int n, off_t off);
ssize_t pread64(int fd, void *bytes, size_t size, off_t off);

ssize_t preadv64v2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	(void)fd;
	(void)iov;
	(void)n;
	(void)off;
	(void)flags;
	errno = EAGAIN;
	return -1;
}

ssize_t preadv64(int fd, const struct iovec *iov, int n, off_t off)
{
	wait_for_disk();
	return syscall(SYS_preadv, fd, iov, n, off, 0);
}

ssize_t pread64(int fd, void *bytes, size_t size, off_t off)
{
	wait_for_disk();
	return syscall(SYS_pread64, fd, bytes, size, off);
}

/* --- a loader on it --- */

static void write_dataset(void)
{
	static const uint8_t bytes[BYTES];
	const struct writer_field f = { .name = "blob",
					.type = BETON_TYPE_BYTES };
	struct writer *w;

	CHECK(!writer_open(path, &f, 1, SAMPLES, 2 << 20, NULL, &w));
	for (int64_t i = 0; i < SAMPLES; i++) {
		const struct writer_value v = { .bytes = bytes,
						.size = sizeof(bytes) };

		CHECK(!writer_append(w, &v));
	}
	CHECK(!writer_finish(&w));
}

static void count_line(void *arg, enum beton_log_level level, const char *text)
{
	(void)level;
	(void)text;
	atomic_fetch_add((atomic_uint *)arg, 1);
}

static struct beton_loader *load(const char *cache, atomic_uint *lines)
{
	struct beton_loader_options o = {
		.size = sizeof(o),
		.spec = "order=random,batch=8",
		.cache = cache,
		.cache_size = 4 << 20,
		.workers = 2,
		.log = count_line,
		.log_arg = lines,
	};
	struct beton_loader *l;

	CHECK(!beton_loader_open(path, &o, &l));
	return l;
}

static unsigned count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Until no batch comes any more. */
static void read_until_it_hangs(struct beton_loader *l)
{
	const struct beton_batch *b;
	int r;

	for (int i = 0; i < 4; i++) {
		CHECK(!beton_loader_next(l, &b));
		beton_loader_release(l, b);
	}
	atomic_store(&hangs, true);
	while (!(r = beton_loader_wait(l, 100)) || !atomic_load(&waiting)) {
		if (r)
			continue;
		CHECK(!beton_loader_next(l, &b));
		beton_loader_release(l, b);
	}
}

static void a_disk_that_does_not_answer_holds_no_close(const char *cache,
						       bool stops)
{
	unsigned threads = count_threads();
	const struct beton_batch *b;
	struct beton_loader *l;
	atomic_uint lines = 0;
	uint64_t begin;

	l = load(cache, &lines);
	CHECK(!beton_loader_next(l, &b));
	read_until_it_hangs(l);
	begin = now_ns();
	if (stops) {
		const struct beton_batch *none;

		beton_loader_stop(l);
		CHECK(beton_loader_next(l, &none) == -ECANCELED);
		CHECK(b->num_samples == 8);
		beton_loader_release(l, b);
		beton_loader_stop(l);
	}
	beton_loader_close(l);
	CHECK(now_ns() - begin < LIMIT_NS);
	CHECK(atomic_load(&waiting));
	atomic_store(&lines, 0);
	atomic_store(&hangs, false);
	/* The remaining threads end, and do not call the user's functions any
	   more. */
	while (count_threads() > threads)
		sched_yield();
	CHECK(!atomic_load(&lines));
}

int main(void)
{
	int fd = mkstemp(path);
	struct beton_loader *l;
	atomic_uint lines = 0;

	alarm(DEADLINE_S);
	CHECK(fd >= 0 && !close(fd));
	write_dataset();
	/* A sanitizer keeps a thread that it starts with the first one. */
	l = load("os", &lines);
	beton_loader_close(l);
	for (unsigned i = 0; i < 4; i++)
		a_disk_that_does_not_answer_holds_no_close(
			i & 1 ? "process" : "os", i & 2);
	CHECK(!unlink(path));
	return 0;
}
