/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads batch files as some tool would, and what they are made of as nothing
 * could do better; every byte is summed once.
 *
 *   batches map|read|direct SPEC_DIR EPOCHS COUNT
 *       batches 0 to COUNT - 1 of epochs 0 to EPOCHS - 1: mapped, by read()
 *       through the page cache, or past it. A line for each: epoch, number.
 *   batches data FILE PASSES
 *       the file mapped once, all of it summed in every pass
 *   batches copy FILE PASSES SIZE BATCH
 *       runs of SIZE bytes from all over the mapped file, copied into one
 *       buffer of BATCH bytes, which is summed whenever it is full
 *
 * The last line: bytes, and nanoseconds of CPU time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 4 << 20, HUGE = 2 << 20 };

static uint64_t total; /* of all words, so that no read is left out */
static uint64_t bytes;
static uint64_t start_ns;
static char *buffer;
static size_t capacity;

static void fail(const char *what)
{
	fprintf(stderr, "batches: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void sum(const char *data, size_t size)
{
	const uint64_t *words = (const uint64_t *)data;
	uint64_t s = 0;

	for (size_t i = 0; i < size / 8; i++)
		s += words[i];
	for (size_t i = size / 8 * 8; i < size; i++)
		s += (unsigned char)data[i];
	total += s;
	bytes += size;
}

/* One buffer for the whole run. */
static void reserve(size_t size)
{
	if (size <= capacity)
		return;
	free(buffer);
	capacity = (size + HUGE - 1) / HUGE * HUGE;
	buffer = aligned_alloc(HUGE, capacity);
	if (!buffer)
		fail("buffer");
	madvise(buffer, capacity, MADV_HUGEPAGE);
	memset(buffer, 1, capacity);
}

static char *map_file(int fd, size_t size)
{
	char *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	return p;
}

static void read_batch(const char *path, char how)
{
	int fd = open(path, O_RDONLY | (how == 'd' ? O_DIRECT : 0));
	struct stat st;
	size_t at = 0;
	ssize_t n;
	char *p;

	if (fd < 0 || fstat(fd, &st))
		fail(path);
	if (how == 'm') {
		p = map_file(fd, (size_t)st.st_size);
		sum(p, (size_t)st.st_size);
		munmap(p, (size_t)st.st_size);
		close(fd);
		return;
	}
	reserve((size_t)st.st_size + CHUNK);
	while ((n = read(fd, buffer + at, CHUNK)) > 0)
		at += (size_t)n;
	if (n < 0 || at != (size_t)st.st_size)
		fail(path);
	sum(buffer, at);
	close(fd);
}

static void read_batches(char how, const char *dir, long epochs, long count)
{
	char path[4096];

	for (long e = 0; e < epochs; e++) {
		for (long i = 0; i < count; i++) {
			snprintf(path, sizeof(path), "%s/%ld/%06ld.batch", dir,
				 e, i);
			read_batch(path, how);
			printf("%ld %ld\n", e, i);
			fflush(stdout);
		}
	}
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static char *map_path(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char *p;

	if (fd < 0 || fstat(fd, &st))
		fail(path);
	*size = (size_t)st.st_size;
	p = map_file(fd, *size);
	close(fd);
	sum(p, *size);
	return p;
}

static void copy_runs(const char *data, size_t size, size_t run, size_t batch)
{
	/* A stride that is prime to the number of runs takes each once. */
	size_t runs = size / run, stride = 7919, at = 0;

	while (runs % stride == 0)
		stride += 2;
	for (size_t i = 0; i < runs; i++) {
		memcpy(buffer + at, data + i * stride % runs * run, run);
		at += run;
		if (at + run > batch) {
			sum(buffer, at);
			at = 0;
		}
	}
	sum(buffer, at);
}

static void pass_file(char **argv, bool copies)
{
	long passes = atol(argv[3]);
	size_t run = copies ? (size_t)atol(argv[4]) : 0;
	size_t batch = copies ? (size_t)atol(argv[5]) : 0;
	size_t size;
	char *data = map_path(argv[2], &size);

	reserve(batch + run);
	bytes = 0;
	start_ns = cpu_ns();
	for (long i = 0; i < passes; i++) {
		if (copies)
			copy_runs(data, size, run, batch);
		else
			sum(data, size);
	}
}

static int usage(void)
{
	fprintf(stderr, "usage: batches map|read|direct SPEC_DIR EPOCHS COUNT\n"
			"       batches data FILE PASSES\n"
			"       batches copy FILE PASSES SIZE BATCH\n");
	return 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	start_ns = cpu_ns();
	if (argc == 4 && !strcmp(what, "data"))
		pass_file(argv, false);
	else if (argc == 6 && !strcmp(what, "copy"))
		pass_file(argv, true);
	else if (argc == 5 && (!strcmp(what, "map") || !strcmp(what, "read") ||
			       !strcmp(what, "direct")))
		read_batches(*what, argv[2], atol(argv[3]), atol(argv[4]));
	else
		return usage();
	printf("%llu %llu\n", (unsigned long long)bytes,
	       (unsigned long long)(cpu_ns() - start_ns));
	/* Without this output the compiler could drop the sum. */
	fprintf(stderr, "sum %llu\n", (unsigned long long)total);
	return 0;
}
