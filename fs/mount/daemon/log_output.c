/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/daemon/log_output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/thread.h"
#include "fs/mount/daemon/log_file.h"
#include "fs/mount/daemon/watcher.h"

static const char name[] = "betonfs";

static const int priorities[] = {
	[BETON_LOG_ERROR] = LOG_ERR,
	[BETON_LOG_WARNING] = LOG_WARNING,
	[BETON_LOG_INFO] = LOG_INFO,
	[BETON_LOG_DEBUG] = LOG_DEBUG,
};

static const char *reason(int r)
{
	return r == -EINVAL ? "neither a file nor a character device"
			    : strerror(-r);
}

/* The path must be absolute, because the daemon changes its directory to /. */
static char *absolute(const char *path)
{
	cleanup_free char *dir = *path == '/' ? NULL : getcwd(NULL, 0);
	char *out;

	if (*path == '/')
		return strdup(path);
	return dir && asprintf(&out, "%s/%s", dir, path) >= 0 ? out : NULL;
}

static void hangup_only(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGHUP);
}

int log_output_open(struct log_output *m, const char *path, struct log *log)
{
	sigset_t hangup;

	m->fd = -1;
	if (path) {
		m->path = absolute(path);
		m->fd = m->path ? log_file_open(m->path) : -ENOMEM;
		if (m->fd < 0) {
			log_error(log, "-o log=%s: %s", path, reason(m->fd));
			return m->fd;
		}
	}
	hangup_only(&hangup);
	pthread_sigmask(SIG_BLOCK, &hangup, NULL);
	return 0;
}

/* Keeps the descriptor's number, so that other threads may write meanwhile. */
static int reopen(struct log_output *m)
{
	cleanup_fd int fd = watcher_open_log(m->watcher);

	if (fd < 0)
		return fd;
	return dup3(fd, m->fd, O_CLOEXEC) < 0 ? -errno : 0;
}

static void *watch_hangups(void *arg)
{
	struct log_output *m = arg;
	sigset_t hangup;
	int signal, r;

	hangup_only(&hangup);
	while (!sigwait(&hangup, &signal) && !atomic_load(&m->ends)) {
		r = reopen(m);
		if (r)
			log_error(
				m->log,
				"log %s: %s; messages still go to the old file",
				m->path, reason(r));
	}
	return NULL;
}

int log_output_watch(struct log_output *m, struct log *log)
{
	int r;

	if (!m->path)
		return 0;
	m->log = log;
	r = thread_start(&m->thread, watch_hangups, m);
	m->has_thread = !r;
	return r;
}

void log_output_close(struct log_output *m)
{
	if (m->has_thread) {
		atomic_store(&m->ends, true);
		pthread_kill(m->thread, SIGHUP);
		pthread_join(m->thread, NULL);
	}
	if (m->fd >= 0)
		close(m->fd);
	free(m->path);
	m->fd = -1;
	m->path = NULL;
	m->has_thread = false;
}

void log_output_start(struct log_output *m)
{
	atomic_store(&m->started, true);
}

/* Writes a line by one write(), so that daemons may share a file. */
static void log_to_file(int fd, const char *message)
{
	char time_text[32];
	struct tm tm;
	time_t now = time(NULL);

	strftime(time_text, sizeof(time_text), "%Y-%m-%dT%H:%M:%S%z",
		 localtime_r(&now, &tm));
	dprintf(fd, "%s %s[%d]: %s\n", time_text, name, (int)getpid(), message);
}

void log_output_log(void *arg, enum beton_log_level level, const char *message)
{
	struct log_output *m = arg;

	if (m->fd >= 0 && atomic_load(&m->started))
		log_to_file(m->fd, message);
	else if (m->keeps_stderr || !atomic_load(&m->started))
		fprintf(stderr, "%s: %s\n", name, message);
	else
		watcher_syslog(m->watcher, priorities[level], message);
}
