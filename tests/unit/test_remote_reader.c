/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads objects of stores, for tests/e2e/remote/test_remote_keys.py.
 *
 *     test_remote_reader < URLS
 *     test_remote_reader URL SECONDS
 *
 * The first form prints the size of each object, or its -errno; the second one
 * reads an object of which byte I is I modulo 256, in random ranges. Without a
 * pipe and without arguments, it opens URLs that are none.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/rng.h"
#include "fs/source/object/open.h"
#include "fs/source/object/url.h"
#include "tests/unit/t.h"

enum { PIECE = 64 << 10 };

static struct log printed;

static int64_t size_of(const char *url)
{
	struct source *source;
	int64_t size;
	int r = source_open(url, NULL, &printed, &source);

	if (r)
		return r;
	size = source->stat.st_size;
	source_close(source);
	return size;
}

static int print_sizes(void)
{
	char line[20000];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		printf("%lld\n", (long long)size_of(line));
	}
	return fflush(stdout) ? 1 : 0;
}

static bool is_right(const uint8_t *buf, size_t size, uint64_t off)
{
	for (size_t i = 0; i < size; i++) {
		if (buf[i] != (uint8_t)(off + i))
			return false;
	}
	return true;
}

static int read_on(const char *url, double seconds)
{
	static uint8_t buf[PIECE];
	struct source *source;
	struct rng rng = { .key = 1 };
	uint64_t off, n = 0;
	int64_t end;
	/* The whole stack would keep the object in memory. */
	int r = url_source_open(url, NULL, &printed, &source);

	if (r)
		return r;
	end = clock_ns() + (int64_t)(seconds * 1e9);
	for (; !r && clock_ns() < end; n++) {
		off = rng_next(&rng) % ((uint64_t)source->stat.st_size - PIECE);
		r = source_read(source, buf, PIECE, off);
		CHECK(r || is_right(buf, PIECE, off));
	}
	source_close(source);
	printf("%llu\n", (unsigned long long)n);
	return r;
}

static void bad_urls_fail(void)
{
	struct source *source;

	CHECK(source_open("s3://", NULL, NULL, &source) < 0);
	CHECK(source_open("http://:1/", NULL, NULL, &source) < 0);
}

int main(int argc, char **argv)
{
	char name[] = "test_remote_reader";
	struct stat st;
	int r = 0;

	log_init(&printed, log_to_stderr, name);
	if (argc == 3)
		r = read_on(argv[1], atof(argv[2]));
	else if (!fstat(0, &st) && S_ISFIFO(st.st_mode))
		r = print_sizes();
	else
		bad_urls_fail();
	log_fini(&printed);
	return r ? 1 : 0;
}
