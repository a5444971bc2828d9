/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/machine/memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"

/* More threads move no more bytes, and larger buffers give the same result. */
enum { THREADS_MAX = 16, PIECE = 32 << 20 };

static uint64_t limit(int which)
{
	struct rlimit l;

	if (getrlimit(which, &l) || l.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return l.rlim_cur;
}

int machine_memory_read(const char *root, struct machine_memory *out)
{
	struct machine_memory m = {
		.memlock = limit(RLIMIT_MEMLOCK),
		.address = limit(RLIMIT_AS),
		.files = limit(RLIMIT_NOFILE),
	};
	int r = memory_read(root, &m.size);

	if (!r)
		*out = m;
	return r;
}

struct copier {
	pthread_t thread;
	int64_t end_ns;
	double rate;
};

/* Measure CPU time, not wall time: a thread that waits for a CPU copies
   nothing. */
static double thread_cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *copy(void *arg)
{
	struct copier *c = arg;
	cleanup_free uint8_t *from = malloc(PIECE), *to = malloc(PIECE);
	uint64_t pieces = 0;
	double start;

	if (!from || !to)
		return NULL;
	memset(from, 1, PIECE);
	memset(to, 2, PIECE);
	start = thread_cpu_s();
	do {
		memcpy(to, from, PIECE);
		/* Use the result, so that the compiler does not remove the
		   copy. */
		__asm__ volatile("" : : "r"(to) : "memory");
		pieces++;
	} while (clock_ns() < c->end_ns || pieces < 2);
	c->rate = 2 * PIECE * (double)pieces / (thread_cpu_s() - start);
	return NULL;
}

double machine_memory_rate(unsigned threads, unsigned milliseconds)
{
	struct copier c[THREADS_MAX] = { 0 };
	unsigned n = 0;
	double sum = 0;

	while (n < threads && n < THREADS_MAX) {
		c[n].end_ns = clock_ns() + (int64_t)milliseconds * 1000000;
		if (thread_start(&c[n].thread, copy, &c[n]))
			break;
		n++;
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(c[i].thread, NULL);
		sum += c[i].rate;
	}
	return sum;
}
