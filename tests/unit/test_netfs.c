/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/clock.h"
#include "fs/source/local/netfs.h"
#include "fs/source/local/source.h"
#include "tests/unit/t.h"

enum { MIB = 1 << 20, MS = 1000000 };

struct seen {
	unsigned lines;
	char last[512];
};

static void see(void *arg, enum beton_log_level level, const char *text)
{
	struct seen *seen = arg;

	(void)level;
	seen->lines++;
	snprintf(seen->last, sizeof(seen->last), "%s", text);
}

/* Reads of `ms` milliseconds each, as many at a time as it has threads, for a
   second. */
static unsigned threads_after(struct netfs *n, unsigned ms)
{
	int64_t end = clock_ns() + 1000 * (int64_t)MS;
	unsigned threads;

	while (clock_ns() < end) {
		threads = netfs_threads(n);
		netfs_full(n);
		for (unsigned i = 0; i < threads; i++)
			netfs_begin(n, MIB / 16);
		usleep(ms * 1000);
		for (unsigned i = 0; i < threads; i++)
			netfs_done(n, MIB / 16, ms * (int64_t)MS);
	}
	return netfs_threads(n);
}

static void threads_cover_the_latency(void)
{
	struct netfs n;

	netfs_init(&n, "file", NULL);
	CHECK(netfs_depth(&n) == SOURCE_DEPTH && netfs_threads(&n) == 16);
	netfs_done(&n, MIB, 100 * (int64_t)MS);
	CHECK(netfs_threads(&n) == 16);
	netfs_set(&n, "NFS", NULL);
	CHECK(threads_after(&n, 20) > 100);
	CHECK(netfs_threads(&n) <= NETFS_THREADS_MAX);
	CHECK(netfs_depth(&n) > netfs_threads(&n));
	netfs_fini(&n);
}

static void failures_pass_or_end(void)
{
	const struct source_options options = { .retry_ms = 40 };
	struct netfs_failures f = { 0 }, others = { 0 }, final = { 0 };
	struct seen seen = { 0 };
	struct log log;
	struct netfs n;
	unsigned tries = 0;
	int64_t wait;

	log_init(&log, see, &seen);
	netfs_init(&n, "a/file", &log);
	netfs_set(&n, "NFS", &options);
	CHECK(netfs_fails(&n, &final, EINVAL, 0, 1) < 0 && seen.lines == 1);
	while ((wait = netfs_fails(&n, &f, EIO, 0, 1)) >= 0) {
		CHECK(wait <= (int64_t)50 * MS << tries);
		usleep(10000);
		CHECK(++tries < 6);
	}
	CHECK(tries >= 2 && seen.lines == 2);
	CHECK(strstr(seen.last, "a/file") && strstr(seen.last, "Input/output"));
	netfs_succeeds(&n);
	CHECK(seen.lines == 2);
	CHECK(netfs_fails(&n, &others, ESTALE, 0, 1) >= 0);
	netfs_fini(&n);
	log_fini(&log);
}

static void local_files_are_local(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && netfs_kind(-1) == NULL);
	/* The machine that builds may itself be on a network file system. */
	netfs_kind(fd);
	close(fd);
	fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && netfs_kind(fd) == NULL);
	close(fd);
}

int main(void)
{
	threads_cover_the_latency();
	failures_pass_or_end();
	local_files_are_local();
	return 0;
}
