/* SPDX-License-Identifier: Apache-2.0 */
/*
 * betonfs(8), the daemon: mounts datasets and serves them until they are
 * unmounted. In the background it is a child process. Its parent exits when the
 * mount answers or, if the child fails, with the child's exit code.
 */
#define FUSE_USE_VERSION 312

#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "fs/base/files/paths.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/mount/daemon/ending.h"
#include "fs/mount/daemon/log_output.h"
#include "fs/mount/daemon/mountpoint.h"
#include "fs/mount/daemon/operand.h"
#include "fs/mount/daemon/option_text.h"
#include "fs/mount/daemon/options.h"
#include "fs/mount/daemon/sandbox.h"
#include "fs/mount/daemon/served.h"
#include "fs/mount/daemon/watcher.h"
#include "fs/mount/fuse/transport.h"
#include "fs/source/url/command_line.h"

enum {
	/* Enough for most loads, so that libfuse seldom starts and ends
	   threads. */
	IDLE_THREADS = 10,
	/* A request for a batch occupies its thread until the batch is
	   collated. libfuse's default of 10 would leave no thread for other
	   requests, such as reads of other files. */
	THREADS_MAX = 200,
	/* Bytes that stay free at the end of a heap, and the size from which an
	   allocation is a mapping of its own. */
	HEAP_FREE = 1 << 20,
	OUTPUT_SIZE = 64 << 10, /* more than --help prints */
};

struct daemon {
	struct options opts;
	struct log_output message;
	struct log log;
	struct watcher watcher;
	struct ending ending;
	struct served served;
	struct transport transport;
	char mountpoint[PATH_MAX]; /* absolute: the daemon's directory is / */
	int ready_fd; /* to the waiting parent; -1 in the foreground */
	int null_fd;  /* with it: opened while a failure can be reported */
	bool is_mounting;
	char refusal[512]; /* the first message of libfuse while it mounts */
};

/* libfuse passes no pointer of ours to log_fuse(). */
static struct daemon *fuse_daemon;

static void log_fuse(enum fuse_log_level level, const char *format,
		     va_list args)
{
	struct daemon *d = fuse_daemon;
	char line[sizeof(d->refusal)];
	size_t size;

	if (level >= FUSE_LOG_INFO) {
		vfprintf(stderr, format, args);
		return;
	}
	vsnprintf(line, sizeof(line), format, args);
	size = strcspn(line, "\n");
	line[size] = '\0';
	if (!d->is_mounting)
		log_error(&d->log, "%s", line);
	else if (!*d->refusal)
		strcpy(d->refusal, line);
}

/* --- becoming a daemon --- */

/* Change to / before the sandbox forbids it. All paths of the daemon are
   absolute. */
static void let_go_of_directory(const struct daemon *d)
{
	if (d->ready_fd >= 0 && chdir("/"))
		return;
}

/* Close the output, because a caller that reads it to its end would wait for
   the daemon's end. */
static void let_go_of_terminal(struct daemon *d)
{
	for (int fd = 0; fd <= 2; fd++)
		dup2(d->null_fd, fd);
	close(d->null_fd);
	setsid();
}

static bool wants_none(const struct daemon *d)
{
	return d->opts.sandbox && !strcmp(d->opts.sandbox, "nosandbox");
}

/* Called by the thread that answers INIT. */
static void mount_is_ready(void *arg)
{
	struct daemon *d = arg;
	ssize_t sent = 1;

	/* The last line for the terminal: a log file or syslog follows. */
	if (d->opts.verbose)
		log_info(&d->log, "mounted on %s: %zu dataset%s, sandbox %s",
			 d->mountpoint, d->opts.num_datasets,
			 d->opts.num_datasets == 1 ? "" : "s",
			 sandbox_name(d->served.sandbox));
	log_output_start(&d->message);
	/* Log the choice only if it is unusual; .betonfs/options contains it in
	   any case. */
	if (engine_choice(d->served.engine)->mode != CACHE_OS)
		log_info(&d->log, "%s", engine_tiers_why(d->served.engine));
	if (d->served.sandbox != SANDBOX_ALL && !wants_none(d) &&
	    !d->served.is_unconfined)
		log_info(
			&d->log,
			"sandbox: using %s, because the kernel supports no more",
			sandbox_name(d->served.sandbox));
	if (d->ready_fd < 0)
		return;
	let_go_of_terminal(d);
	/* An error means that the parent has ended already. */
	sent = write(d->ready_fd, "", (size_t)sent);
	close(d->ready_fd);
	d->ready_fd = -1;
}

/* Waits until the child is ready or has ended. Returns an exit code. */
static int wait_for(pid_t child, int ready_fd)
{
	char byte;
	ssize_t got;
	int status;

	do
		got = read(ready_fd, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1)
		return EXIT_OK;
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return EXIT_SYSTEM;
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fprintf(stderr, "betonfs: the daemon was killed by signal %d\n",
		WTERMSIG(status));
	return EXIT_SYSTEM;
}

/* --- sessions --- */

/* Writes a path as in a list of datasets: "\:" for a colon. */
static void print_listed(FILE *out, const char *path)
{
	for (; *path; path++) {
		if (*path == ':')
			fputc('\\', out);
		fputc(*path, out);
	}
}

/* "fsname=PATH:PATH". The caller frees it; NULL without memory. */
static char *source_option(const struct daemon *d)
{
	const struct served_dataset *served = d->served.datasets;
	char *text = NULL;
	size_t size, n = d->opts.num_datasets;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "fsname=%s", n > 1 ? "" : served[0].source);
	for (size_t i = 0; i < n && n > 1; i++) {
		fputs(i ? ":" : "", out);
		fflush(out);
		if (size + strlen(served[i].source) > OPERAND_SOURCE_MAX) {
			fputs("...", out);
			break;
		}
		print_listed(out, served[i].source);
	}
	fclose(out);
	return text;
}

/* The -o list for libfuse and the kernel. The caller frees it; NULL without
   memory. */
static char *mount_options(const struct daemon *d)
{
	cleanup_free char *words = opts_mount(&d->opts);
	cleanup_free char *source = source_option(d);
	char *list = NULL;

	if (!words || text_print(&list,
				 "ro,nosuid,nodev,default_permissions,"
				 "subtype=betonfs%s%s",
				 *words ? "," : "", words))
		return NULL;
	if (!source || fuse_opt_add_opt_escaped(&list, source))
		free(steal(list));
	return list;
}

static struct fuse_session *new_session(struct daemon *d)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	cleanup_free char *list = mount_options(d);
	struct fuse_session *session = NULL;
	size_t size;
	const struct fuse_lowlevel_ops *table =
		fuse_ops_table(d->opts.xattr, &size);

	if (list && !fuse_opt_add_arg(&args, "betonfs") &&
	    !fuse_opt_add_arg(&args, "-o") && !fuse_opt_add_arg(&args, list) &&
	    (!d->opts.debug || !fuse_opt_add_arg(&args, "-d")))
		session = fuse_session_new(&args, table, size, d->served.ops);
	fuse_opt_free_args(&args);
	return session;
}

static int loop_with_threads(struct fuse_session *session)
{
/* Earlier versions of libfuse start a thread for each waiting request. */
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 12)
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int r;

	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_idle_threads(config, IDLE_THREADS);
	fuse_loop_cfg_set_max_threads(config, THREADS_MAX);
	r = fuse_session_loop_mt(session, config);
	fuse_loop_cfg_destroy(config);
	return r;
#else
	struct fuse_loop_config config = { .max_idle_threads = IDLE_THREADS };

	return fuse_session_loop_mt(session, &config);
#endif
}

/* A positive result of a libfuse loop is the signal that ended it. */
static int run_loop(struct daemon *d, struct fuse_session *session)
{
	int r = transport_start(&d->transport, session, d->served.ops);

	if (r < 0)
		return fuse_session_exited(session) ? EXIT_OK : EXIT_SYSTEM;
	if (r > 0)
		r = transport_loop(&d->transport, session);
	else
		r = d->opts.single_thread ? fuse_session_loop(session)
					  : loop_with_threads(session);
	return r < 0 ? exit_failed(&d->log, d->mountpoint, r) : EXIT_OK;
}

static int start_watcher(struct daemon *d)
{
	bool is_ours = !mountpoint_is_fd(d->mountpoint);
	int r;

	if (d->opts.fake)
		return EXIT_OK;
	r = watcher_start(&d->watcher, is_ours ? d->mountpoint : NULL,
			  d->message.path);
	return r ? exit_failed(&d->log, "watcher", r) : EXIT_OK;
}

/* Chooses the layers of the sandbox. */
static int choose_sandbox(struct daemon *d)
{
	const enum sandbox_layers offered = sandbox_offered();

	if (d->opts.sandbox && !wants_none(d) && offered != SANDBOX_ALL) {
		log_error(
			&d->log,
			"-o sandbox: the kernel supports %s instead of %s: remove the option to use what the kernel supports",
			sandbox_name(offered), sandbox_name(SANDBOX_ALL));
		return EXIT_SYSTEM;
	}
	d->served.sandbox = wants_none(d) ? SANDBOX_NONE : offered;
	return EXIT_OK;
}

/* Enters the sandbox. Call it after everything that needs paths or programs,
   and before the threads. */
static int enter_sandbox(struct daemon *d)
{
	int r;

	let_go_of_directory(d);
	served_pause(&d->served);
	r = sandbox_enter(d->served.sandbox, served_is_remote(&d->served));
	return r ? exit_failed(&d->log, "sandbox", r) : EXIT_OK;
}

static int start_threads(struct daemon *d)
{
	int code = served_start(&d->served);
	int r = code ? 0 : log_output_watch(&d->message, &d->log);

	if (!code && !r)
		r = ending_start(&d->ending);
	return r ? exit_failed(&d->log, "thread", r) : code;
}

static int mount_session(struct daemon *d, struct fuse_session *session)
{
	const char *why =
		mountpoint_explain(d->opts.allow_other || d->opts.allow_root);
	int r;

	d->is_mounting = true;
	r = fuse_session_mount(session, d->mountpoint);
	d->is_mounting = false;
	if (r)
		log_error(&d->log, "mountpoint %s: cannot mount%s%s",
			  d->mountpoint, why || *d->refusal ? ": " : "",
			  why ? why : d->refusal);
	return r;
}

/* Serves the session until a signal or an unmount. The mountpoint exists. */
static int mount_and_serve(struct daemon *d, struct fuse_session *session)
{
	int code;

	if (mount_session(d, session))
		return EXIT_MOUNT;
	fuse_ops_start_dropping(d->served.ops, session, d->mountpoint);
	code = transport_connect(&d->transport, session) ? EXIT_SYSTEM
							 : enter_sandbox(d);
	if (!code)
		code = start_threads(d);
	if (!code)
		code = run_loop(d, session);
	fuse_ops_stop_dropping(d->served.ops);
	transport_stop(&d->transport);
	ending_disconnect(&d->ending);
	return code;
}

static int serve_session(struct daemon *d)
{
	struct fuse_session *session = new_session(d);
	bool made = false;
	int code = EXIT_MOUNT;

	/* libfuse has logged the reason. */
	if (!session)
		return EXIT_SYSTEM;
	if (fuse_set_signal_handlers(session)) {
		fuse_session_destroy(session);
		return EXIT_SYSTEM;
	}
	if (!mountpoint_prepare(d->mountpoint, &d->log, &made)) {
		watcher_mounting(&d->watcher, made);
		d->ending.session = session;
		code = mount_and_serve(d, session);
		ending_unmount(&d->ending);
	}
	fuse_remove_signal_handlers(session);
	fuse_session_destroy(session);
	return code;
}

static int choose_transport(struct daemon *d)
{
	const struct transport_options options = {
		.wanted = d->opts.io_uring,
		.single_thread = d->opts.single_thread,
		.debug = d->opts.debug,
		.allow_root = d->opts.allow_root,
		.log = &d->log,
	};

	switch (transport_open(&d->transport, &options)) {
	case 0:
		return EXIT_OK;
	case -EINVAL:
		return EXIT_USAGE;
	default:
		return EXIT_SYSTEM;
	}
}

static int serve(struct daemon *d)
{
	int code = choose_sandbox(d);

	ending_init(&d->ending);
	if (!code)
		code = start_watcher(d);
	if (!code)
		code = choose_transport(d);
	if (!code)
		code = served_open(&d->served, mount_is_ready, d);
	if (!code && d->opts.fake)
		code = mountpoint_check(d->mountpoint, &d->log) ? EXIT_MOUNT
								: EXIT_OK;
	else if (!code)
		code = serve_session(d);
	served_close(&d->served);
	ending_close(&d->ending);
	transport_close(&d->transport);
	return code;
}

/* Fork before the process starts a thread. */
static int serve_in_background(struct daemon *d)
{
	int ready[2], code;
	pid_t child;

	if (pipe2(ready, O_CLOEXEC))
		return exit_failed(&d->log, "pipe", -errno);
	child = fork();
	if (child < 0)
		return exit_failed(&d->log, "fork", -errno);
	if (child == 0) {
		close(ready[0]);
		d->ready_fd = ready[1];
		d->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		return d->null_fd < 0
			       ? exit_failed(&d->log, "/dev/null", -errno)
			       : serve(d);
	}
	close(ready[1]);
	code = wait_for(child, ready[0]);
	close(ready[0]);
	return code;
}

/* --- the command line --- */

static int copy_path(const char *path, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s", path);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Names the directories by the operands, not by the targets of links. */
static void name_directories(struct daemon *d)
{
	char names[NS_DATASETS_MAX][NAME_DIRECTORY_SIZE];
	char of_patterns[NS_DATASETS_MAX][NAME_DIRECTORY_SIZE];
	const char *texts[NS_DATASETS_MAX];
	char *shown[NS_DATASETS_MAX];
	size_t n = d->opts.num_datasets;

	for (size_t i = 0; i < n; i++) {
		texts[i] = shown[i] = paths_public(d->opts.datasets[i]);
		if (!texts[i])
			texts[i] = "dataset";
		if (!paths_is_pattern(texts[i]))
			continue;
		name_pattern(texts[i], of_patterns[i]);
		texts[i] = of_patterns[i];
	}
	name_datasets(texts, n, names);
	for (size_t i = 0; i < n && n > 1; i++)
		strcpy(d->served.datasets[i].name, names[i]);
	for (size_t i = 0; i < n; i++)
		free(shown[i]);
}

static int name_served(struct daemon *d)
{
	struct served_dataset *served;
	size_t n = d->opts.num_datasets;

	if (n > NS_DATASETS_MAX) {
		log_error(&d->log,
			  "%zu datasets: expected at most %d per mount", n,
			  (int)NS_DATASETS_MAX);
		return EXIT_USAGE;
	}
	served = calloc(n, sizeof(*served));
	if (!served)
		return exit_failed(&d->log, "datasets", -ENOMEM);
	d->served.datasets = served;
	name_directories(d);
	for (size_t i = 0; i < n; i++) {
		if (operand_resolve(d->opts.datasets[i], &d->log, &served[i]))
			return EXIT_MOUNT;
	}
	return EXIT_OK;
}

static int mount_datasets(struct daemon *d)
{
	const struct options *o = &d->opts;
	int r = log_output_open(&d->message, o->log, &d->log), code;

	if (r)
		return r == -EINVAL ? EXIT_USAGE : EXIT_SYSTEM;
	code = name_served(d);
	if (code)
		return code;
	r = mountpoint_is_fd(o->mountpoint)
		    ? copy_path(o->mountpoint, d->mountpoint)
		    : operand_absolute(o->mountpoint, d->mountpoint);
	if (r) {
		log_error(&d->log, "mountpoint %s: %s", o->mountpoint,
			  strerror(-r));
		return EXIT_MOUNT;
	}
	return o->foreground || o->fake ? serve(d) : serve_in_background(d);
}

/* If the output is incomplete, fail, because a script would use half of a
   list. */
static int flush_output(struct daemon *d)
{
	int r = fflush(stdout) ? -errno : 0;

	if (!r && ferror(stdout))
		r = -EIO;
	return r ? exit_failed(&d->log, "standard output", r) : EXIT_OK;
}

static void print_version(void)
{
	printf("betonfs %s\n  libfuse: %s\n  sandbox: %s\n", beton_version(),
	       fuse_pkgversion(), sandbox_name(sandbox_offered()));
}

static int run(struct daemon *d, int argc, char **argv)
{
	if (options_parse(&d->opts, argc, argv, &d->log))
		return EXIT_USAGE;
	d->message.keeps_stderr = d->opts.foreground;
	if (d->opts.help)
		opts_help(stdout);
	else if (d->opts.version)
		print_version();
	else if (d->opts.list)
		opts_list(stdout);
	else if (d->opts.describe)
		opts_describe(stdout);
	else
		return mount_datasets(d);
	return flush_output(d);
}

static void set_limits(void)
{
	struct rlimit files;

	/* Makes the C library return freed memory to the system. By default it
	   retains up to 64 MiB of each of its heaps. */
	mallopt(M_MMAP_THRESHOLD, HEAP_FREE);
	mallopt(M_TRIM_THRESHOLD, HEAP_FREE);
	/* Ignore the signal, so that a write beyond RLIMIT_FSIZE fails, which
	   callers handle. */
	signal(SIGXFSZ, SIG_IGN);
	/* Descriptors that loaders have not received yet count against the soft
	   limit: a few silent loaders could use up the usual 1024. */
	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv)
{
	struct daemon d = { .ready_fd = -1,
			    .message = { .fd = -1, .watcher = &d.watcher },
			    .watcher.socket = -1 };
	int code;

	command_line_hide(argv);
	/* One write at the end: stdio forgets why an earlier one failed. */
	setvbuf(stdout, malloc(OUTPUT_SIZE), _IOFBF, OUTPUT_SIZE);
	/* Reset SIGCHLD: if the parent ignored it, waitpid(2) would fail. */
	signal(SIGCHLD, SIG_DFL);
	set_limits();
	log_init(&d.log, log_output_log, &d.message);
	fuse_daemon = &d;
	fuse_set_log_func(log_fuse);
	d.served = (struct served){ .opts = &d.opts,
				    .log = &d.log,
				    .watcher = &d.watcher,
				    .rings = &d.transport.count,
				    .mountpoint = d.mountpoint };
	d.transport = (struct transport){ .fuse_fd = -1, .reply = { -1, -1 } };
	d.ending = (struct ending){ .log = &d.log,
				    .watcher = &d.watcher,
				    .transport = &d.transport,
				    .mountpoint = d.mountpoint };
	code = run(&d, argc, argv);
	for (size_t i = 0; d.served.datasets && i < d.opts.num_datasets; i++)
		free(d.served.datasets[i].path);
	free(d.served.datasets);
	options_fini(&d.opts);
	log_output_close(&d.message);
	watcher_close(&d.watcher);
	log_fini(&d.log);
	return code;
}
