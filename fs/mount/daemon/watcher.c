/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/daemon/watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "fs/base/util/cleanup.h"
#include "fs/mount/daemon/log_file.h"
#include "fs/mount/daemon/mountpoint.h"

enum {
	TEXT_MAX = 1024,
	/* Seconds that the daemon waits for an answer. */
	PATIENCE = 10,
	/* The descriptor that the watcher keeps. */
	SOCKET = STDERR_FILENO + 1,
};

/* A name of its own, so that killall(1) and pkill(1) for the daemon do not
   match the watcher. */
static const char process_name[] = "betonfs-watch";

enum request_kind {
	WATCH_MOUNTING,	   /* value: the directory was made */
	WATCH_SYSLOG,	   /* value: the priority; and the text */
	WATCH_UNMOUNT,	   /* answered */
	WATCH_OPEN_LOG,	   /* answered, with a descriptor */
	WATCH_OPEN_STATUS, /* the same; the text is the process ID */
	WATCH_REQUESTS,
};

struct watcher_request {
	uint8_t kind;
	uint8_t value;
	char text[TEXT_MAX];
};

/* A message of an error number, and perhaps of a descriptor. */
struct watcher_answer {
	int32_t error;
	struct iovec iov;
	struct msghdr message;
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
};

static void answer_init(struct watcher_answer *a)
{
	memset(a, 0, sizeof(*a));
	a->iov = (struct iovec){ &a->error, sizeof(a->error) };
	a->message.msg_iov = &a->iov;
	a->message.msg_iovlen = 1;
	a->message.msg_control = a->control.bytes;
	a->message.msg_controllen = sizeof(a->control.bytes);
}

/* --- the watcher --- */

struct duties {
	const char *mountpoint;
	const char *log;
	bool is_mounted;
	bool made;
};

/* `fd`: -1 for none. */
static void send_answer(int error, int fd)
{
	struct watcher_answer a;

	answer_init(&a);
	a.error = error;
	if (fd < 0) {
		a.message.msg_controllen = 0;
	} else {
		a.control.head.cmsg_level = SOL_SOCKET;
		a.control.head.cmsg_type = SCM_RIGHTS;
		a.control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&a.control.head), &fd, sizeof(int));
	}
	/* An error means that the daemon has ended. */
	if (sendmsg(SOCKET, &a.message, MSG_NOSIGNAL) < 0)
		return;
}

static void on_mounting(struct duties *d, const struct watcher_request *q)
{
	d->is_mounted = d->mountpoint != NULL;
	d->made = q->value;
}

static void on_syslog(struct duties *d, const struct watcher_request *q)
{
	(void)d;
	syslog(LOG_PRI(q->value), "%s", q->text);
}

static int unmount(struct duties *d)
{
	int r;

	if (!d->is_mounted)
		return 0;
	r = mountpoint_clear(d->mountpoint);
	if (d->made)
		mountpoint_remove(d->mountpoint);
	d->is_mounted = r != 0;
	return r;
}

static void on_unmount(struct duties *d, const struct watcher_request *q)
{
	(void)q;
	send_answer(-unmount(d), -1);
}

static void on_open_log(struct duties *d, const struct watcher_request *q)
{
	cleanup_fd int fd = d->log ? log_file_open(d->log) : -EBADF;

	(void)q;
	send_answer(fd < 0 ? -fd : 0, fd);
}

/* A thread's ID leads to that thread. */
static void on_open_status(struct duties *d, const struct watcher_request *q)
{
	cleanup_fd int fd = -1;
	char path[64];

	(void)d;
	snprintf(path, sizeof(path), "/proc/%d/status", atoi(q->text));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	send_answer(fd >= 0 ? 0 : errno, fd);
}

static void (*const handlers[WATCH_REQUESTS])(
	struct duties *d, const struct watcher_request *q) = {
	[WATCH_MOUNTING] = on_mounting,	      [WATCH_SYSLOG] = on_syslog,
	[WATCH_UNMOUNT] = on_unmount,	      [WATCH_OPEN_LOG] = on_open_log,
	[WATCH_OPEN_STATUS] = on_open_status,
};

/* Serves requests until the daemon ends. */
static void serve_requests(struct duties *d)
{
	struct watcher_request q;
	ssize_t got;

	for (;;) {
		memset(&q, 0, sizeof(q));
		got = recv(SOCKET, &q, sizeof(q) - 1, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;
		if (q.kind < WATCH_REQUESTS)
			handlers[q.kind](d, &q);
	}
}

/*
 * Detaches from the terminal, the directory and the signals of the daemon.
 * Closes every other descriptor, because a /dev/fuse would keep the mount
 * alive, and a pipe would keep its reader waiting.
 */
static void let_go(int socket)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM,
				       SIGPIPE };
	int null;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	if (socket != SOCKET)
		dup3(socket, SOCKET, O_CLOEXEC);
	closefrom(SOCKET + 1);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < SOCKET; fd++) {
		if (dup2(null, fd) < 0)
			close(fd);
	}
	if (null > SOCKET)
		close(null);
	setsid();
	if (chdir("/"))
		return;
}

static void watch(int socket, struct duties *d, pid_t daemon)
{
	char name[32];
	int r;

	prctl(PR_SET_NAME, process_name);
	let_go(socket);
	/* Log with the name of the daemon. */
	snprintf(name, sizeof(name), "betonfs[%d]", (int)daemon);
	openlog(name, 0, LOG_DAEMON);
	serve_requests(d);
	r = unmount(d);
	if (r)
		syslog(LOG_ERR, "mountpoint %s: cannot unmount: %s",
		       d->mountpoint, strerror(-r));
	_exit(0);
}

/* --- the daemon --- */

int watcher_start(struct watcher *w, const char *mountpoint, const char *log)
{
	const struct timeval patience = { .tv_sec = PATIENCE };
	struct duties duties = { .mountpoint = mountpoint, .log = log };
	pid_t daemon = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	w->pid = fork();
	if (w->pid == 0)
		watch(ends[1], &duties, daemon);
	close(ends[1]);
	if (w->pid < 0) {
		close(ends[0]);
		return -EAGAIN;
	}
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience,
		   sizeof(patience));
	pthread_mutex_init(&w->lock, NULL);
	w->socket = ends[0];
	return 0;
}

static int send_request(const struct watcher *w, enum request_kind kind,
			uint8_t value, const char *text, int flags)
{
	struct watcher_request q = { .kind = (uint8_t)kind, .value = value };
	int n = snprintf(q.text, sizeof(q.text), "%s", text);
	struct iovec iov = { &q, offsetof(struct watcher_request, text) };
	const struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n >= TEXT_MAX)
		n = TEXT_MAX - 1;
	iov.iov_len += (size_t)n;
	return sendmsg(w->socket, &message, MSG_NOSIGNAL | flags) < 0 ? -errno
								      : 0;
}

/* Returns a descriptor, 0 or -errno. */
static int receive_answer(struct watcher *w)
{
	struct watcher_answer a;
	ssize_t got;
	int fd = 0;

	do {
		answer_init(&a);
		got = recvmsg(w->socket, &a.message, MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof(a.error)) {
		w->is_lost = true;
		return -EPIPE;
	}
	if (a.message.msg_controllen >= CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(&a.control.head), sizeof(int));
	return a.error ? -a.error : fd;
}

static int ask(struct watcher *w, enum request_kind kind, const char *text)
{
	int r;

	scoped_lock(&w->lock);
	if (w->is_lost)
		return -EPIPE;
	r = send_request(w, kind, 0, text, 0);
	return r ? r : receive_answer(w);
}

void watcher_mounting(struct watcher *w, bool made)
{
	/* An error means that the watcher was killed. */
	if (send_request(w, WATCH_MOUNTING, made, "", 0))
		return;
}

int watcher_unmount(struct watcher *w)
{
	return ask(w, WATCH_UNMOUNT, "");
}

int watcher_open_log(struct watcher *w)
{
	return ask(w, WATCH_OPEN_LOG, "");
}

int watcher_open_status(struct watcher *w, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)pid);
	return ask(w, WATCH_OPEN_STATUS, text);
}

void watcher_syslog(struct watcher *w, int priority, const char *message)
{
	if (send_request(w, WATCH_SYSLOG, (uint8_t)priority, message,
			 MSG_DONTWAIT))
		return;
}

void watcher_close(struct watcher *w)
{
	if (w->socket < 0)
		return;
	close(w->socket);
	w->socket = -1;
	while (!w->is_lost && waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
		;
	pthread_mutex_destroy(&w->lock);
}
