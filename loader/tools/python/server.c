/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/python/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/tools/ui/python.h"

enum {
	/* Bytes of an answer without its file. */
	ANSWER_MAX = 16384,
	/* Milliseconds that the process has to end by itself. */
	PATIENCE_MS = 2000,
	/* Neither write() nor ftruncate() changes the file any more. */
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE,
};

int server_start(struct server *s, const char *need, const char *const *args,
		 struct log *log)
{
	const struct python_run run = {
		.log = log,
		.program = "mkfs.beton",
		.need = need,
		.module = "betonfs.convert._server",
		.args = args,
	};
	int pair[2], r;

	*s = (struct server){ 0 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		log_error(log, "%s: cannot connect to Python: %s", need,
			  strerror(errno));
		return -errno;
	}
	r = python_serve(&run, pair[1], &s->pid);
	close(pair[1]);
	if (r) {
		close(pair[0]);
		return r;
	}
	s->lanes[0] = pair[0];
	s->num_lanes = 1;
	return 0;
}

/* Ends the process, which may be at work in a library. */
static int reap(pid_t pid)
{
	const struct timespec step = { .tv_nsec = 10 * 1000 * 1000 };
	int status = 0;

	for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		nanosleep(&step, NULL);
	}
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static int end(struct server *s)
{
	int status = 0;

	for (unsigned i = 0; i < s->num_lanes; i++)
		close(s->lanes[i]);
	s->num_lanes = 0;
	if (s->pid)
		status = reap(s->pid);
	s->pid = 0;
	return status;
}

void server_end(struct server *s)
{
	end(s);
}

/* --- requests ------------------------------------------------------------ */

__attribute__((format(printf, 3, 4))) static int
refuse(char why[SERVER_WHY_SIZE], int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, SERVER_WHY_SIZE, format, args);
	va_end(args);
	return error;
}

/* The process has closed its end: a library crashed, or Python did not start,
   of which it has printed the reason. */
static int refuse_end(struct server *s, char why[SERVER_WHY_SIZE])
{
	int status = end(s);

	why[0] = '\0';
	if (WIFSIGNALED(status))
		return refuse(why, -EPIPE,
			      "the library that reads it crashed: "
			      "%s",
			      strsignal(WTERMSIG(status)));
	return -EPIPE;
}

int server_ask(struct server *s, unsigned lane, const json_t *request, int fd,
	       char why[SERVER_WHY_SIZE])
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	cleanup_free char *text =
		request ? json_dumps(request, JSON_COMPACT) : NULL;
	struct iovec iov = { text, text ? strlen(text) : 0 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (!text)
		return refuse(why, -ENOMEM, "out of memory");
	if (lane >= s->num_lanes)
		return refuse(why, -EPIPE, "Python has ended");
	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
	}
	while (sendmsg(s->lanes[lane], &m, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return refuse_end(s, why);
	return 0;
}

/* An answer as it came. */
struct server_answer {
	json_t *json;
	int fds[SERVER_LANES_MAX];
	unsigned num_fds;
};

static void take_fds(struct msghdr *m, struct server_answer *a)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		a->num_fds =
			(unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(a->fds, CMSG_DATA(c), a->num_fds * sizeof(int));
	}
}

static void answer_fini(struct server_answer *a)
{
	while (a->num_fds)
		close(a->fds[--a->num_fds]);
	json_decref(a->json);
	a->json = NULL;
}

static int receive(struct server *s, unsigned lane, struct server_answer *a,
		   char why[SERVER_WHY_SIZE])
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(SERVER_LANES_MAX * sizeof(int))];
	} control;
	char text[ANSWER_MAX];
	struct iovec iov = { text, sizeof(text) };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control),
	};
	const char *error;
	ssize_t n;

	*a = (struct server_answer){ 0 };
	if (lane >= s->num_lanes)
		return refuse(why, -EPIPE, "Python has ended");
	do
		n = recvmsg(s->lanes[lane], &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return refuse_end(s, why);
	take_fds(&m, a);
	a->json = json_loadb(text, (size_t)n, 0, NULL);
	if (!a->json)
		return refuse(why, -EPROTO, "Python answered with no JSON");
	error = json_string_value(json_object_get(a->json, "error"));
	return error ? refuse(why, -EBADMSG, "%s", error) : 0;
}

static bool is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS) == SEALS;
}

int server_answer(struct server *s, unsigned lane, int *fd,
		  char why[SERVER_WHY_SIZE])
{
	struct server_answer a;
	int r = receive(s, lane, &a, why);

	if (!r && (a.num_fds != 1 || !is_sealed(a.fds[0])))
		r = refuse(why, -EPROTO, "Python sent no sealed file");
	if (!r)
		*fd = a.fds[--a.num_fds];
	answer_fini(&a);
	return r;
}

int server_add_lanes(struct server *s, unsigned wanted,
		     char why[SERVER_WHY_SIZE])
{
	unsigned more = (unsigned)min_u64(wanted, SERVER_LANES_MAX) - 1;
	json_t *request = json_pack("{s:i}", "lanes", (int)more);
	struct server_answer a = { 0 };
	int r = server_ask(s, 0, request, -1, why);

	json_decref(request);
	r = r ? r : receive(s, 0, &a, why);
	while (!r && a.num_fds && s->num_lanes < SERVER_LANES_MAX)
		s->lanes[s->num_lanes++] = a.fds[--a.num_fds];
	answer_fini(&a);
	return r;
}

int server_parse(int fd, json_t **out, char why[SERVER_WHY_SIZE])
{
	struct stat st = { 0 };
	void *text = MAP_FAILED;
	json_error_t error;

	if (!fstat(fd, &st) && st.st_size > 0)
		text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE,
			    fd, 0);
	if (text == MAP_FAILED)
		return refuse(why, -EPROTO, "Python sent an empty file");
	*out = json_loadb(text, (size_t)st.st_size, 0, &error);
	munmap(text, (size_t)st.st_size);
	return *out ? 0
		    : refuse(why, -EPROTO, "Python sent no JSON: %s",
			     error.text);
}
