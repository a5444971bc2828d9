/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/base/files/child.h"
#include "fs/base/files/program.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "loader/run/jit/build_dir.h"
#include "loader/util/cancel.h"

#define SOURCE "kernel.c"
#define OBJECT "kernel.so"

enum {
	OBJECT_MAX = 8 << 20,
	MESSAGES_MAX = 16 << 10,
	POLL_MS = 50 /* the compiler's end is noticed so late at most */
};

/* --- which one --- */

static int identify(struct compiler *c)
{
	char real[PATH_MAX];
	struct stat st;

	if (!realpath(c->path, real) || stat(real, &st) ||
	    !S_ISREG(st.st_mode) || access(real, X_OK))
		return -ENOENT;
	snprintf(c->identity, sizeof(c->identity), "%s %lld %lld.%09ld", real,
		 (long long)st.st_size, (long long)st.st_mtim.tv_sec,
		 st.st_mtim.tv_nsec);
	return 0;
}

/* The compiler runs in another directory, so its path must be absolute. */
static int find_path(const char *path, struct compiler *out)
{
	cleanup_free char *here = *path == '/' ? NULL : getcwd(NULL, 0);
	int n = snprintf(out->path, sizeof(out->path), "%s%s%s",
			 here ? here : "", here ? "/" : "", path);

	if (*out->path != '/' || (size_t)n >= sizeof(out->path))
		return -ENOENT;
	return identify(out);
}

/* For a program with rights that its user does not have: the user's variables
   could make the compiler run and load other code. */
static char trusted_path[] = "PATH=/usr/local/bin:/usr/bin:/bin";

/* A name without a slash is searched for on the PATH. */
static int find_name(const char *name, struct compiler *out)
{
	const char *list = secure_getenv("PATH");

	if (!list && getauxval(AT_SECURE))
		list = trusted_path + sizeof("PATH=") - 1;
	if (strchr(name, '/'))
		return find_path(name, out);
	return program_find(name, list, out->path) ? -ENOENT : identify(out);
}

int compiler_find(struct compiler *out)
{
	static const char *const names[] = { "cc", "gcc", "clang" };
	const char *own = secure_getenv("BETON_CC");
	int r = -ENOENT;

	if (own && *own)
		return find_name(own, out);
	for (size_t i = 0; r && i < ARRAY_LEN(names); i++)
		r = find_name(names[i], out);
	return r;
}

/* --- how --- */

void compiler_flags(const struct compiler_job *job, const char **out)
{
	/* No contraction, as everywhere. The two -fno options allow comparisons
	   to be vectorized, and change no result. */
	static const char *const always[] = {
		"-std=gnu11",
		"-O3",
		"-fPIC",
		"-shared",
		"-ffp-contract=off",
		"-fno-math-errno",
		"-fno-trapping-math",
		"-fno-strict-aliasing",
		"-fvisibility=default",
		"-fno-diagnostics-color",
		"-Werror=implicit-function-declaration",
	};

	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		*out++ = always[i];
	for (size_t i = 0; job->isa_flags[i]; i++)
		*out++ = job->isa_flags[i];
	*out++ = job->is_user ? "-lm" : "-nostdlib";
	*out = NULL;
}

/* A running compiler. */
struct compiler_run {
	const struct compiler_job *job;
	struct build_dir dir;
	pid_t pid;
	int pipe; /* of its messages */
	char *messages;
	size_t size; /* size of messages */
};

/* Removes variables that would change the compiler, or make it leave files. */
static bool is_inherited(const char *variable)
{
	static const char *const replaced[] = {
		"TMPDIR=", "LC_ALL=", "LD_PRELOAD=", "PWD=", "OLDPWD="
	};

	for (size_t i = 0; i < ARRAY_LEN(replaced); i++) {
		if (!strncmp(variable, replaced[i], strlen(replaced[i])))
			return false;
	}
	return true;
}

static char **make_environment(void)
{
	static char messages[] = "LC_ALL=C", tmpdir[] = "TMPDIR=.";
	bool is_secure = getauxval(AT_SECURE);
	size_t count = 0, n = 0;
	char **out;

	while (environ && !is_secure && environ[count])
		count++;
	out = calloc(count + 4, sizeof(*out));
	if (!out)
		return NULL;
	if (is_secure)
		out[n++] = trusted_path;
	for (size_t i = 0; i < count; i++) {
		if (is_inherited(environ[i]))
			out[n++] = environ[i];
	}
	out[n++] = messages;
	out[n] = tmpdir;
	return out;
}

/*
 * The compiler works in its directory, since a path to it could come to name
 * another one.
 */
static int set_files(posix_spawn_file_actions_t *files, int dir, int out)
{
	int r = posix_spawn_file_actions_addopen(files, 0, "/dev/null",
						 O_RDONLY, 0);

	if (!r)
		r = posix_spawn_file_actions_addfchdir_np(files, dir);
	if (!r)
		r = posix_spawn_file_actions_adddup2(files, out, 1);
	return r ? r : posix_spawn_file_actions_adddup2(files, out, 2);
}

static int spawn(struct compiler_run *run, const struct compiler *c, int out)
{
	const char *args[COMPILER_FLAGS_MAX + 8] = {
		c->path, "-o", "./" OBJECT, "-x", "c", "./" SOURCE, "-x", "none"
	};
	cleanup_free char **environment = make_environment();
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int r = environment ? 0 : ENOMEM;

	/* Flags come last: a library must follow its users. */
	compiler_flags(run->job, args + 8);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	if (!r)
		r = set_files(&files, run->dir.fd, out);
	if (!r)
		r = child_attributes(&attributes);
	if (!r)
		r = posix_spawn(&run->pid, c->path, &files, &attributes,
				(char *const *)(uintptr_t)args, environment);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return -r;
}

static int64_t now_ms(void)
{
	return clock_ns() / 1000000;
}

/* Keeps the beginning, and reads and drops the rest. */
static ssize_t read_messages(struct compiler_run *run)
{
	char chunk[4096];
	ssize_t n = read(run->pipe, chunk, sizeof(chunk));
	size_t room = MESSAGES_MAX - run->size;

	if (n <= 0)
		return n;
	room = room < (size_t)n ? room : (size_t)n;
	memcpy(run->messages + run->size, chunk, room);
	run->size += room;
	return n;
}

/*
 * 0: the process runs, 1: it has ended, and its number is taken until its
 * status is collected, -ECHILD: the host program has collected that.
 */
static int look_at(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT))
		return -errno;
	return info.si_pid != 0;
}

/* Waits a moment for messages or to be canceled. */
static int listen_to(struct compiler_run *run, bool *more)
{
	struct pollfd pipe = { .fd = *more ? run->pipe : -1, .events = POLLIN };
	/* A compiler that closed its messages ends soon after. */
	int r = cancel_poll(run->job->cancel, &pipe, *more ? POLL_MS : 1);

	if (!r && pipe.revents)
		*more = read_messages(run) > 0;
	return r;
}

/*
 * Waits for the compiler itself: a process that it left behind may keep the
 * pipe open for longer.
 */
static int wait_for_end(struct compiler_run *run)
{
	int64_t end = now_ms() + run->job->limit_ms;
	bool more = true;
	int r = 0;

	while (!r && !look_at(run->pid)) {
		r = listen_to(run, &more);
		if (!r && now_ms() >= end)
			r = -ETIMEDOUT;
	}
	return r;
}

/*
 * -EINVAL unless the compiler succeeded. If the host program has already
 * collected the status, the object file decides.
 */
static int take_status(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno == ECHILD)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EINVAL;
}

static int supervise(struct compiler_run *run)
{
	int status, r = wait_for_end(run);

	/* The compiler, and processes that it left behind. */
	if (look_at(run->pid) >= 0)
		kill(-run->pid, SIGKILL);
	status = take_status(run->pid);
	while (run->size < MESSAGES_MAX && read_messages(run) > 0)
		;
	return r ? r : status;
}

static int run_compiler(struct compiler_run *run, const struct compiler *c)
{
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	run->pipe = ends[0];
	r = fcntl(run->pipe, F_SETFL, O_NONBLOCK) ? -errno : 0;
	if (!r)
		r = spawn(run, c, ends[1]);
	close(ends[1]);
	if (!r)
		r = supervise(run);
	close(run->pipe);
	return r;
}

/* Compiles in the directory, without trusting its path. */
static int build(struct compiler_run *run, const struct compiler *c,
		 uint8_t **object, size_t *size)
{
	int r = build_dir_write(&run->dir, SOURCE, run->job->source);

	if (!r)
		r = run_compiler(run, c);
	return r ? r
		 : build_dir_read(&run->dir, OBJECT, OBJECT_MAX, object, size);
}

static int run_in_dir(struct compiler_run *run, const struct compiler *c,
		      uint8_t **object, size_t *size)
{
	int r = build_dir_open(&run->dir);

	if (r) {
		run->size = (size_t)snprintf(
			run->messages, MESSAGES_MAX,
			"no private directory can be made in TMPDIR, /tmp or "
			"/dev/shm");
		return r;
	}
	r = build(run, c, object, size);
	build_dir_close(&run->dir);
	return r;
}

int compiler_run(const struct compiler *c, const struct compiler_job *job,
		 uint8_t **object, size_t *size, char **messages)
{
	struct compiler_run run = { .job = job,
				    .messages = malloc(MESSAGES_MAX + 1) };
	int r = -ENOMEM;

	if (run.messages) {
		r = run_in_dir(&run, c, object, size);
		run.messages[run.size] = '\0';
	}
	if (r && messages)
		*messages = steal(run.messages);
	free(run.messages);
	return r;
}
