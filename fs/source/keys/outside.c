/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/base/files/child.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/name.h"
#include "fs/source/net/secret.h"

enum { WORDS_MAX = 64, POLL_MS = 50, PASSWD_SIZE = 16384 };

const char *outside_environment(const struct outside *outside, const char *name)
{
	const char *value = outside->environment(outside->arg, name);

	return value && *value ? value : NULL;
}

static char *find_home(const struct outside *outside)
{
	const char *home = outside_environment(outside, "HOME");

	if (home)
		return strdup(home);
	return outside->home ? outside->home(outside->arg) : NULL;
}

int outside_read(const struct outside *outside, const char *path, char **text,
		 size_t *size)
{
	cleanup_free char *expanded = NULL, *home = NULL;

	if (!strncmp(path, "~/", 2)) {
		home = find_home(outside);
		if (!home)
			return -ENOENT;
		if (text_print(&expanded, "%s%s", home, path + 1))
			return -ENOMEM;
		path = expanded;
	}
	return outside->read(outside->arg, path, text, size);
}

const char *outside_why(int error)
{
	switch (error) {
	case -EISDIR:
		return "it is a directory";
	case -ENOSTR:
		return "it is not a regular file";
	case -EFBIG:
		return "the file is larger than 1 MiB";
	case -EINVAL:
		return "the file contains a NUL byte";
	}
	return strerror(-error);
}

static const char *own_environment(void *arg, const char *name)
{
	(void)arg;
	return secure_getenv(name);
}

/* Services of systemd and containers often have no HOME. */
static char *own_home(void *arg)
{
	cleanup_free char *text = malloc(PASSWD_SIZE);
	struct passwd entry, *found = NULL;

	(void)arg;
	if (!text || getpwuid_r(geteuid(), &entry, text, PASSWD_SIZE, &found) ||
	    !found || *entry.pw_dir != '/')
		return NULL;
	return strdup(entry.pw_dir);
}

static time_t own_now(void *arg)
{
	(void)arg;
	return time(NULL);
}

/* --- files --- */

/* Memory that grows; its old bytes are cleared. */
struct outside_text {
	char *at;
	size_t size, room;
};

/* Makes room for one more byte, and a NUL. */
static int grow(struct outside_text *text)
{
	size_t room = text->room ? 4 * text->room : 4096;
	char *more;

	if (text->size + 1 < text->room)
		return 0;
	more = malloc(room);
	if (!more)
		return -ENOMEM;
	if (text->at)
		memcpy(more, text->at, text->size);
	secret_free_bytes(text->at, text->size);
	text->at = more;
	text->room = room;
	return 0;
}

/* Reads once. Returns the bytes, 0 at the end, or -errno. */
static ssize_t read_some(int fd, struct outside_text *text)
{
	ssize_t n = grow(text);

	if (n)
		return n;
	n = read(fd, text->at + text->size, text->room - text->size - 1);
	if (n < 0)
		return -errno;
	text->size += (size_t)n;
	return text->size > OUTSIDE_TEXT_MAX ? -EFBIG : n;
}

/* Gives a text with a NUL to the caller, or frees it after a failure. */
static int finish_text(struct outside_text *text, int r, char **out,
		       size_t *size)
{
	if (!r)
		r = grow(text);
	if (!r && memchr(text->at, '\0', text->size))
		r = -EINVAL;
	if (r) {
		secret_free_bytes(text->at, text->size);
		return r;
	}
	text->at[text->size] = '\0';
	*size = text->size;
	*out = text->at;
	return 0;
}

static int own_read(void *arg, const char *path, char **out, size_t *size)
{
	/* A FIFO must not block. */
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct outside_text text = { 0 };
	struct stat st;
	ssize_t n = 1;

	(void)arg;
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	/* People point variables at /dev/null. */
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		return -ENOSTR;
	while (n > 0) {
		n = read_some(fd, &text);
		if (n == -EINTR)
			n = 1;
	}
	return finish_text(&text, (int)n, out, size);
}

/* --- programs --- */

/* Splits a command line in place: quotes and backslashes as in a shell, and
   nothing else. Returns false for a bad one. */
static bool split(char *line, char *words[WORDS_MAX])
{
	char quote, *out = line;
	size_t n = 0;

	for (;;) {
		line += strspn(line, " \t");
		if (!*line)
			break;
		if (n == WORDS_MAX - 1)
			return false;
		words[n++] = out;
		for (quote = 0; *line && (quote || !strchr(" \t", *line));
		     line++) {
			if (!quote && strchr("'\"", *line))
				quote = *line;
			else if (quote && *line == quote)
				quote = 0;
			else if (*line == '\\' && quote != '\'' && line[1])
				*out++ = *++line;
			else
				*out++ = *line;
		}
		if (quote)
			return false;
		line += *line != '\0';
		*out++ = '\0';
	}
	words[n] = NULL;
	return n;
}

static int spawn(char *const words[], int out, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int r;

	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	r = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY,
					     0);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&files, out, 1);
	if (!r)
		r = child_attributes(&attributes);
	if (!r)
		r = posix_spawnp(pid, words[0], &files, &attributes, words,
				 environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return -r;
}

/* A program that runs. */
struct program {
	pid_t pid;
	int fd; /* its output */
	const bool *stop;
	int64_t end_ns;
};

static int may_go_on(const struct program *p)
{
	if (__atomic_load_n(p->stop, __ATOMIC_ACQUIRE))
		return -ECANCELED;
	return clock_ns() > p->end_ns ? -ETIMEDOUT : 0;
}

/* Reads until the program closes its output. */
static int listen_to(const struct program *p, struct outside_text *text)
{
	struct pollfd output = { .fd = p->fd, .events = POLLIN };
	ssize_t n = 1;
	int r = 0;

	while (n > 0 && !r) {
		r = may_go_on(p);
		if (r || poll(&output, 1, POLL_MS) <= 0)
			continue;
		n = read_some(p->fd, text);
		if (n == -EINTR)
			n = 1;
	}
	return r ? r : (int)n;
}

/* Waits until the program ends; after a failure it is ended. The result of one
   whose status the process has collected elsewhere counts as success. */
static int collect(const struct program *p, int r)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	int status = 0;
	pid_t got = 0;

	while (!got) {
		r = r ? r : may_go_on(p);
		if (r)
			kill(-p->pid, SIGKILL);
		got = waitpid(p->pid, &status, r ? 0 : WNOHANG);
		if (got < 0 && errno == EINTR)
			got = 0;
		else if (!got)
			nanosleep(&pause, NULL);
	}
	if (r || got < 0)
		return r;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

static int own_run(void *arg, const char *command, const bool *stop, char **out,
		   size_t *size)
{
	struct program p = {
		.stop = stop,
		.end_ns = clock_ns() + OUTSIDE_PROGRAM_MS * 1000000LL,
	};
	cleanup_free char *line = strdup(command);
	char *words[WORDS_MAX];
	struct outside_text text = { 0 };
	int ends[2], r;

	(void)arg;
	if (!line)
		return -ENOMEM;
	if (!split(line, words))
		return -EINVAL;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	p.fd = ends[0];
	r = spawn(words, ends[1], &p.pid);
	close(ends[1]);
	if (!r)
		r = collect(&p, listen_to(&p, &text));
	close(ends[0]);
	return finish_text(&text, r, out, size);
}

const struct outside outside_own = {
	.environment = own_environment,
	.home = own_home,
	.read = own_read,
	.run = own_run,
	.now = own_now,
};
