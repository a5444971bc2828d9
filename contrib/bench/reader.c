/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader stat|read THREADS < PATHS: looks at, or reads whole, every path of the
 * list once, and prints the nanoseconds that it took. Threads take the paths
 * in turn.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, CHUNK = 1 << 20 };

static char **paths;
static size_t num_paths;
static bool reads;
static atomic_size_t next;

static void fail(const char *what)
{
	fprintf(stderr, "reader: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void load_paths(void)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	while ((n = getline(&line, &room, stdin)) > 0) {
		if (!(num_paths & (num_paths - 1)))
			paths = realloc(paths,
					(2 * num_paths + 1) * sizeof(*paths));
		line[strcspn(line, "\n")] = '\0';
		if (!paths || !(paths[num_paths++] = strdup(line)))
			fail("paths");
	}
	free(line);
}

static void read_file(const char *path, char *buf)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	off_t at = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st))
		fail(path);
	for (; at < st.st_size; at += n) {
		n = read(fd, buf, CHUNK);
		if (n <= 0)
			fail(path);
	}
	close(fd);
}

static void *work(void *arg)
{
	char *buf = malloc(CHUNK);
	struct stat st;
	size_t i;

	(void)arg;
	if (!buf)
		fail("buffer");
	while ((i = atomic_fetch_add(&next, 1)) < num_paths) {
		if (reads)
			read_file(paths[i], buf);
		else if (stat(paths[i], &st))
			fail(paths[i]);
	}
	free(buf);
	return NULL;
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	int n = argc == 3 ? atoi(argv[2]) : 0;
	long long start;

	if (n < 1 || n > THREADS_MAX) {
		fprintf(stderr, "usage: reader stat|read THREADS < PATHS\n");
		return 1;
	}
	reads = !strcmp(argv[1], "read");
	load_paths();
	start = now();
	for (int i = 0; i < n; i++) {
		if (pthread_create(&threads[i], NULL, work, NULL))
			fail("thread");
	}
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("%lld\n", now() - start);
	return 0;
}
