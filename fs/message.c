/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

static const char name[] = "betonfs";

static const int priorities[] = {
	[BETON_LOG_ERROR] = LOG_ERR,
	[BETON_LOG_WARNING] = LOG_WARNING,
	[BETON_LOG_INFO] = LOG_INFO,
	[BETON_LOG_DEBUG] = LOG_DEBUG,
};

int message_open(struct message *m, const char *path)
{
	m->fd = -1;
	if (path) {
		m->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			     0644);
		if (m->fd < 0)
			return -errno;
	}
	openlog(name, LOG_PID, LOG_DAEMON);
	return 0;
}

void message_close(struct message *m)
{
	closelog();
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

void message_start(struct message *m)
{
	atomic_store(&m->started, true);
}

/* A line is one write, so that daemons may share a file. */
static void log_to_file(int fd, const char *message)
{
	char time_text[32];
	struct tm tm;
	time_t now = time(NULL);

	strftime(time_text, sizeof(time_text), "%Y-%m-%dT%H:%M:%S%z",
		 localtime_r(&now, &tm));
	dprintf(fd, "%s %s[%d]: %s\n", time_text, name, (int)getpid(), message);
}

void message_log(void *arg, enum beton_log_level level, const char *message)
{
	struct message *m = arg;

	if (m->fd >= 0 && atomic_load(&m->started))
		log_to_file(m->fd, message);
	else if (m->keeps_stderr || !atomic_load(&m->started))
		fprintf(stderr, "%s: %s\n", name, message);
	else
		syslog(priorities[level], "%s", message);
}
