/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a library: they block all signals, because signals belong to the
   program, and begin with the default floating-point mode. Also the number of
   threads that can run at once. */
#ifndef FS_BASE_UTIL_THREAD_H
#define FS_BASE_UTIL_THREAD_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "fs/base/util/clock.h"

#include "fs/base/util/float_mode.h"

#define THREAD_NAME "beton"

/* The work of a thread that begins; the thread frees it. */
struct thread_work {
	void *(*run)(void *);
	void *arg;
};

/* Runs the work under a name by which top(1) and beton doctor distinguish it
   from threads of the trainer. A thread names itself, because naming another
   thread opens a file in /proc. */
static inline void *thread_run(void *work)
{
	struct thread_work w = *(struct thread_work *)work;

	free(work);
	pthread_setname_np(pthread_self(), THREAD_NAME);
	return w.run(w.arg);
}

/* Starts a thread that the caller joins. Returns 0 or -errno. */
static inline int thread_start(pthread_t *out, void *(*run)(void *), void *arg)
{
	struct thread_work *work = malloc(sizeof(*work));
	sigset_t all, before;
	fenv_t mode;
	int r;

	if (!work)
		return -ENOMEM;
	*work = (struct thread_work){ run, arg };
	sigfillset(&all);
	/* The new thread inherits both. */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	float_mode_begin(&mode);
	r = -pthread_create(out, NULL, thread_run, work);
	float_mode_end(&mode);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		free(work);
	return r;
}

/* Joins a thread if it ends within `ms` milliseconds. Polls, because timed
   joins use a clock that can be set. */
static inline bool thread_joins_in(pthread_t thread, int64_t ms)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	int64_t end = clock_ns() + ms * 1000000;

	while (pthread_tryjoin_np(thread, NULL)) {
		if (clock_ns() >= end)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* CPUs that the kernel lets this process run on; 1 if that is unknown. */
static inline unsigned thread_usable_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

#endif
