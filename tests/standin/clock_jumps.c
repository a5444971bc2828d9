/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to preload: the clock that can be set jumps by up to a day, forward
 * and back, several times a second. The clocks that cannot be set are right.
 */
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

enum { STEP_MS = 200, DAY = 86400 };

static int64_t seconds_off(void)
{
	struct timespec now;
	uint64_t step;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	step = (uint64_t)now.tv_sec * (1000 / STEP_MS) +
	       (uint64_t)now.tv_nsec / (STEP_MS * 1000000);
	return (int64_t)(step * 2654435761U % (2 * DAY)) - DAY;
}

static int get_time(clockid_t clock, struct timespec *out)
{
	int r = (int)syscall(SYS_clock_gettime, clock, out);

	if (!r && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		out->tv_sec += seconds_off();
	return r;
}

SEEN int clock_gettime(clockid_t clock, struct timespec *out)
{
	return get_time(clock, out);
}

SEEN int gettimeofday(struct timeval *out, void *zone)
{
	struct timespec now;
	int r = get_time(CLOCK_REALTIME, &now);

	(void)zone;
	*out = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
	return r;
}

SEEN time_t time(time_t *out)
{
	struct timespec now;

	get_time(CLOCK_REALTIME, &now);
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}
