/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/python.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "beton/beton.h"
#include "fs/base/files/child.h"
#include "fs/base/files/program.h"
#include "fs/base/util/cleanup.h"

enum { NUMBER_SIZE = 12, COPY_SIZE = 64 << 10 };

/*
 * Checks Python and the package, and runs the module. Before the version is
 * known, it imports only modules that each interpreter has loaded: older ones
 * would search the working directory.
 */
static const char bootstrap[] =
	"import os, sys\n"
	"version, program, need, module, *args = map(os.fsdecode, open(\n"
	"    int(sys.argv[1]), 'rb').read().split(b'\\0')[:-1])\n"
	"here = sys.executable\n"
	"def end(what):\n"
	"    sys.exit(f'{program}: {need} needs ' + ' '.join(what.split()))\n"
	"if sys.version_info < (3, 11):\n"
	"    end(f'Python 3.11 or later, and {here} is '\n"
	"        f'{sys.version.split()[0]}: set BETON_PYTHON to a newer one')\n"
	"import runpy, signal\n"
	"signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
	"package = 'the Python package of betonfs'\n"
	"try:\n"
	"    import betonfs\n"
	"    has = getattr(betonfs, '__version__', None)\n"
	"    if not has:\n"
	"        raise ModuleNotFoundError(name='betonfs')\n"
	"    if has != version:\n"
	"        end(f'version {version} of {package}, and {here} has {has}: '\n"
	"            'install both from one source, or set BETON_PYTHON')\n"
	"    sys.argv[1:] = args\n"
	"    runpy.run_module(module, run_name='__main__', alter_sys=True)\n"
	"except ModuleNotFoundError as e:\n"
	"    name = str(e.name).partition('.')[0]\n"
	"    end(f'{package}: run pip install ./contrib/python, or set '\n"
	"        'BETON_PYTHON to an interpreter that has it'\n"
	"        if name == 'betonfs' else\n"
	"        f'the Python library {name}: run {here} -m pip install {name}')\n"
	"except ImportError as e:\n"
	"    end(f'{package}, and {here} cannot import it: {e}')\n"
	"except KeyboardInterrupt:\n"
	"    signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
	"    os.kill(os.getpid(), signal.SIGINT)\n";

/* An interpreter with its arguments; `fd` has those of the module. */
struct python_command {
	char path[PATH_MAX];
	const char *argv[5];
	char number[NUMBER_SIZE];
	int fd;
};

static const char *interpreter(void)
{
	const char *given = secure_getenv("BETON_PYTHON");

	return given && *given ? given : "python3";
}

static int failed(const struct python_run *run, int r)
{
	log_error(run->log, "%s: %s", run->need, strerror(-r));
	return r;
}

static int find_interpreter(const struct python_run *run, char path[PATH_MAX])
{
	const char *name = interpreter();

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return 0;
	}
	if (!program_find(name, secure_getenv("PATH"), path))
		return 0;
	log_error(
		run->log,
		"%s needs Python 3.11 or later, and PATH has no %s: install it, or set BETON_PYTHON to an interpreter that has the package of betonfs",
		run->need, name);
	return -ENOENT;
}

/* Logs that the interpreter did not start. */
static int refuse(const struct python_run *run, const struct python_command *c,
		  int error)
{
	log_error(run->log, "%s needs Python: %s: %s", run->need, c->path,
		  strerror(error));
	return -error;
}

/* --- environment --------------------------------------------------------- */

/* Removes empty elements of a list, which mean the working directory. */
static void remove_empty(char *list)
{
	char *to = list;

	for (const char *s = list; *s; s++) {
		if (*s != ':' || (to != list && s[1] && s[1] != ':'))
			*to++ = *s;
	}
	*to = '\0';
}

/* Keeps the interpreter from importing from the working directory. */
static int set_environment(void)
{
	const char *path = secure_getenv("PYTHONPATH");
	cleanup_free char *list = strdup(path ? path : "");

	if (!list)
		return -ENOMEM;
	remove_empty(list);
	if (setenv("PYTHONSAFEPATH", "1", 1) ||
	    (path && setenv("PYTHONPATH", list, 1)))
		return -errno;
	return 0;
}

/* --- arguments ----------------------------------------------------------- */

/* Writes strings, each with its NUL. */
static int write_strings(int fd, const char *const *strings)
{
	for (; *strings; strings++) {
		size_t size = strlen(*strings) + 1;
		ssize_t n = write(fd, *strings, size);

		if (n != (ssize_t)size)
			return n < 0 ? -errno : -EIO;
	}
	return 0;
}

static int write_arguments(const struct python_run *run, int fd)
{
	const char *const head[] = { beton_version(), run->program, run->need,
				     run->module, NULL };
	int r = write_strings(fd, head);

	r = r ? r : write_strings(fd, run->args);
	if (!r && lseek(fd, 0, SEEK_SET))
		r = -errno;
	return r;
}

/* The caller ends the command, also after a failure. */
static int prepare(const struct python_run *run, struct python_command *c)
{
	int r = find_interpreter(run, c->path);

	c->fd = -1;
	if (r)
		return r;
	r = set_environment();
	/* The interpreter inherits the descriptor. */
	c->fd = memfd_create("arguments", 0);
	if (!r)
		r = c->fd < 0 ? -errno : write_arguments(run, c->fd);
	snprintf(c->number, sizeof(c->number), "%d", c->fd);
	memcpy(c->argv,
	       (const char *[]){ c->path, "-c", bootstrap, c->number, NULL },
	       sizeof(c->argv));
	return r ? failed(run, r) : 0;
}

static void end_command(struct python_command *c)
{
	if (c->fd >= 0)
		close(c->fd);
}

int python_exec(const struct python_run *run)
{
	struct python_command c;
	int r = prepare(run, &c);

	if (!r) {
		fflush(stdout);
		execv(c.path, (char **)c.argv);
		r = refuse(run, &c, errno);
	}
	end_command(&c);
	return r;
}

/* --- child --------------------------------------------------------------- */

/* Starts the interpreter with `out` as its standard output. Returns 0 or an
   errno. */
static int spawn(const struct python_command *c, int out, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return r;
	r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!r)
		r = posix_spawn(pid, c->path, &actions, NULL, (char **)c->argv,
				environ);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

static int start(const struct python_run *run, int out, pid_t *pid)
{
	struct python_command c;
	int r = prepare(run, &c), error;

	if (!r) {
		error = spawn(&c, out, pid);
		r = error ? refuse(run, &c, error) : 0;
	}
	end_command(&c);
	return r;
}

/* Starts the interpreter with `fd` as PYTHON_SERVE_FD. Returns 0 or an
   errno. */
static int spawn_server(const struct python_command *c, int fd, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return r;
	posix_spawnattr_init(&attributes);
	r = posix_spawn_file_actions_adddup2(&actions, fd, PYTHON_SERVE_FD);
	r = r ? r : child_attributes(&attributes);
	r = r ? r
	      : posix_spawn(pid, c->path, &actions, &attributes,
			    (char **)c->argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* Keeps the descriptor of the arguments from being that of the server. */
static int move_up(struct python_command *c)
{
	int up = fcntl(c->fd, F_DUPFD, PYTHON_SERVE_FD + 1);

	if (up < 0)
		return errno;
	close(c->fd);
	c->fd = up;
	snprintf(c->number, sizeof(c->number), "%d", up);
	return 0;
}

int python_serve(const struct python_run *run, int fd, pid_t *pid)
{
	struct python_command c;
	int r = prepare(run, &c), error;

	if (!r) {
		error = move_up(&c);
		error = error ? error : spawn_server(&c, fd, pid);
		r = error ? refuse(run, &c, error) : 0;
	}
	end_command(&c);
	return r;
}

/* Reads all, even if `out` fails, so that the child can end. */
static int copy(int fd, FILE *out)
{
	char buf[COPY_SIZE];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf)))) {
		if (n > 0)
			fwrite(buf, 1, (size_t)n, out);
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int wait_for(const struct python_run *run, pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return failed(run, -errno);
	}
	if (WIFSIGNALED(status))
		log_error(run->log, "%s: signal %d ended %s: %s", run->need,
			  WTERMSIG(status), interpreter(),
			  strsignal(WTERMSIG(status)));
	return status ? -EIO : 0;
}

int python_print(const struct python_run *run, FILE *out)
{
	int fds[2], r, ended;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return failed(run, -errno);
	r = start(run, fds[1], &pid);
	close(fds[1]);
	if (r) {
		close(fds[0]);
		return r;
	}
	r = copy(fds[0], out);
	close(fds[0]);
	ended = wait_for(run, pid);
	return r ? failed(run, r) : ended;
}
