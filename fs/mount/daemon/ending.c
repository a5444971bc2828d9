/* SPDX-License-Identifier: Apache-2.0 */
#define FUSE_USE_VERSION 312

#include "fs/mount/daemon/ending.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"
#include "fs/mount/daemon/served.h"
#include "fs/mount/fuse/transport.h"

enum {
	/* Milliseconds between checks whether the session has ended. No event
	   reports this while a thread of libfuse waits. */
	LOOK_MS = 1000,
	/* Seconds from the end of the session until the process ends. A working
	   disk answers earlier, also over a network. */
	PATIENCE_MS = 10000,
	/* Time for the message, because the log may be on the same disk. */
	LOG_MS = 1000,
};

/*
 * libfuse would unmount, which a confined process cannot do. If the descriptor
 * of the mount has POLLERR, libfuse does not unmount. A pipe without a reader
 * has it.
 */
static void cut_off(struct ending *e)
{
	int ends[2];

	if (e->is_cut_off || pipe2(ends, O_CLOEXEC))
		return;
	close(ends[0]);
	dup2(ends[1], fuse_session_fd(e->session));
	close(ends[1]);
	e->is_cut_off = true;
}

void ending_unmount(struct ending *e)
{
	int r = watcher_unmount(e->watcher);

	if (r)
		log_error(e->log, "mountpoint %s: cannot unmount: %s",
			  e->mountpoint, strerror(-r));
}

/* The caller holds the lock. Returns false if the time is over. */
static bool waits(struct ending *e, const bool *what, int ms)
{
	const struct timespec end = clock_in_ms(ms);
	int r = 0;

	while (!*what && !r)
		r = pthread_cond_timedwait(&e->changed, &e->lock, &end);
	return *what;
}

static void *say_why(void *arg)
{
	const struct ending *e = arg;

	log_error(
		e->log,
		"mountpoint %s: unmounted with requests open: the disk or the server of a dataset has not answered for %d s",
		e->mountpoint, PATIENCE_MS / 1000);
	return NULL;
}

static void give_up(struct ending *e)
{
	pthread_t thread;

	cut_off(e);
	transport_cut_off(e->transport);
	ending_unmount(e);
	if (!thread_start(&thread, say_why, e))
		thread_joins_in(thread, LOG_MS);
	_exit(EXIT_SYSTEM);
}

/* The session ends by a signal, or by an unmount, which libfuse detects when it
   reads the next request. */
static bool has_ended(const struct ending *e)
{
	struct pollfd fd = { .fd = fuse_session_fd(e->session) };

	return fuse_session_exited(e->session) ||
	       (poll(&fd, 1, 0) == 1 && fd.revents & POLLERR);
}

static void *wait_for_end(void *arg)
{
	struct ending *e = arg;

	scoped_lock(&e->lock);
	while (!e->has_begun && !has_ended(e))
		waits(e, &e->has_begun, LOOK_MS);
	if (!waits(e, &e->is_over, PATIENCE_MS))
		give_up(e);
	return NULL;
}

void ending_init(struct ending *e)
{
	pthread_mutex_init(&e->lock, NULL);
	clock_cond_init(&e->changed);
}

int ending_start(struct ending *e)
{
	int r = thread_start(&e->thread, wait_for_end, e);

	e->has_thread = !r;
	return r;
}

static void say(struct ending *e, bool *what)
{
	scoped_lock(&e->lock);
	*what = true;
	pthread_cond_signal(&e->changed);
}

void ending_disconnect(struct ending *e)
{
	say(e, &e->has_begun);
	pthread_mutex_lock(&e->lock);
	cut_off(e);
	fuse_session_unmount(e->session);
	pthread_mutex_unlock(&e->lock);
}

void ending_close(struct ending *e)
{
	say(e, &e->is_over);
	if (e->has_thread)
		pthread_join(e->thread, NULL);
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->lock);
}
