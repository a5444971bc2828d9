/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock, which counts from an arbitrary moment and is never set:
   the time, and condition variables whose timed waits use it. Header only. */
#ifndef FS_BASE_UTIL_CLOCK_H
#define FS_BASE_UTIL_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Exact to a few milliseconds, and cheaper than clock_ns(). */
static inline int64_t clock_coarse_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* A moment of clock_ns(), for a timed wait on a condition of
   clock_cond_init(). */
static inline struct timespec clock_at_ns(int64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
}

/* The moment `ms` milliseconds from now. */
static inline struct timespec clock_in_ms(int64_t ms)
{
	return clock_at_ns(clock_ns() + ms * 1000000);
}

/* Initializes a condition whose timed waits use this clock. */
static inline void clock_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

#endif
