/* SPDX-License-Identifier: Apache-2.0 */
#define FUSE_USE_VERSION 312

#include "fs/mount/fuse/inval.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"

enum {
	WAITING_MAX = 256,
	NAME_SIZE = 64,
	/* Milliseconds that inval_close() answers requests before it aborts the
	   connection, and between its polls for requests. */
	PATIENCE_MS = 2000,
	LOOK_MS = 20,
};

struct drop {
	uint64_t directory;
	char name[NAME_SIZE];
};

struct inval {
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	pthread_cond_t stopped;
	struct fuse_session *session;	  /* NULL: not started */
	int abort_fd;			  /* aborts the connection; -1: none */
	struct drop waiting[WAITING_MAX]; /* a ring, the oldest first */
	unsigned first;
	unsigned n;
	bool stopping;
	bool has_thread;
	bool is_running;
	pthread_t thread;
};

static void drop_oldest(struct inval *d)
{
	struct fuse_session *session = d->session;
	struct drop drop = d->waiting[d->first];

	d->first = (d->first + 1) % WAITING_MAX;
	d->n--;
	pthread_mutex_unlock(&d->lock);
	/* -ENOENT: the kernel has forgotten the name already. */
	if (!fuse_session_exited(session))
		fuse_lowlevel_notify_inval_entry(session, drop.directory,
						 drop.name, strlen(drop.name));
	pthread_mutex_lock(&d->lock);
}

static void *drop_all(void *arg)
{
	struct inval *d = arg;

	pthread_mutex_lock(&d->lock);
	while (!d->stopping) {
		if (d->n)
			drop_oldest(d);
		else
			pthread_cond_wait(&d->changed, &d->lock);
	}
	d->is_running = false;
	pthread_cond_signal(&d->stopped);
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

int inval_open(struct inval **out)
{
	struct inval *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->abort_fd = -1;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->changed, NULL);
	clock_cond_init(&d->stopped);
	*out = d;
	return 0;
}

/* Starts the thread when it is first needed, which is never on most mounts. The
   lock is held. */
static void need_thread(struct inval *d)
{
	if (d->has_thread)
		return;
	d->has_thread = !thread_start(&d->thread, drop_all, d);
	d->is_running = d->has_thread;
}

void inval_push(struct inval *d, uint64_t directory, const char *name)
{
	struct drop *drop;

	scoped_lock(&d->lock);
	if (!d->session || d->stopping || d->n == WAITING_MAX ||
	    strlen(name) >= NAME_SIZE)
		return;
	drop = &d->waiting[(d->first + d->n) % WAITING_MAX];
	drop->directory = directory;
	strcpy(drop->name, name);
	d->n++;
	need_thread(d);
	pthread_cond_signal(&d->changed);
}

/* Returns whether a word of mountinfo is the path. mountinfo writes blanks and
   backslashes in octal. */
static bool is_spelled(const char *word, const char *path)
{
	char octal[16];

	for (; *path; path++) {
		if (!strchr(" \t\n\\", *path)) {
			if (*word++ != *path)
				return false;
			continue;
		}
		snprintf(octal, sizeof(octal), "\\%03o", (unsigned)*path);
		if (strncmp(word, octal, strlen(octal)))
			return false;
		word += strlen(octal);
	}
	return !*word;
}

/* Returns the minor number of the device of a mount, from mountinfo, because
   stat() would send a request to the mount. 0: not a mountpoint. */
static unsigned minor_of(const char *mountpoint)
{
	unsigned minor, found = 0;
	char line[8192], where[4096];
	FILE *f = fopen("/proc/self/mountinfo", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*d %*d 0:%u %*s %4095s", &minor, where) ==
			    2 &&
		    is_spelled(where, mountpoint))
			found = minor;
	}
	if (f)
		fclose(f);
	return found;
}

static int open_abort(const char *mountpoint)
{
	unsigned minor = minor_of(mountpoint);
	char path[64];

	if (!minor)
		return -1;
	snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/abort",
		 minor);
	return open(path, O_WRONLY | O_CLOEXEC);
}

void inval_start(struct inval *d, struct fuse_session *session,
		 const char *mountpoint)
{
	scoped_lock(&d->lock);
	d->session = session;
	d->abort_fd = open_abort(mountpoint);
}

static void abort_connection(const struct inval *d)
{
	if (d->abort_fd >= 0 && write(d->abort_fd, "1", 1) < 0)
		return;
}

/* Answers a request if there is one. */
static bool answer_request(struct fuse_session *session, struct fuse_buf *buf)
{
	struct pollfd fd = { .fd = fuse_session_fd(session), .events = POLLIN };

	if (poll(&fd, 1, 0) != 1 || !(fd.revents & POLLIN) ||
	    fuse_session_receive_buf(session, buf) <= 0)
		return false;
	fuse_session_process_buf(session, buf);
	return true;
}

/* The kernel may not be able to forget a name before a lookup is answered, and
   the threads that answered have ended. */
static void answer_until_stopped(struct inval *d)
{
	const int64_t start = clock_coarse_ms();
	struct fuse_buf buf = { .mem = NULL };
	struct timespec end;
	bool is_idle;

	while (d->is_running) {
		pthread_mutex_unlock(&d->lock);
		is_idle = !answer_request(d->session, &buf);
		if (clock_coarse_ms() - start > PATIENCE_MS)
			abort_connection(d);
		pthread_mutex_lock(&d->lock);
		end = clock_in_ms(LOOK_MS);
		if (is_idle && d->is_running)
			pthread_cond_timedwait(&d->stopped, &d->lock, &end);
	}
	free(buf.mem);
}

void inval_close(struct inval *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->stopping = true;
	pthread_cond_signal(&d->changed);
	answer_until_stopped(d);
	pthread_mutex_unlock(&d->lock);
	if (d->has_thread)
		pthread_join(d->thread, NULL);
	if (d->abort_fd >= 0)
		close(d->abort_fd);
	pthread_cond_destroy(&d->stopped);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
