/* SPDX-License-Identifier: Apache-2.0 */
/*
 * betonfs(8), the daemon: opens datasets, mounts them, serves them until they
 * are unmounted. In the background it is a child of the process that was
 * started, which ends when the mount answers; or with the child's exit code, so
 * that failures are the caller's to see.
 */
#define FUSE_USE_VERSION 312

#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fs/mount/dataset_names.h"
#include "fs/mount/fuse_ops.h"
#include "fs/mount/handover.h"
#include "fs/mount/log_output.h"
#include "fs/mount/mountpoint.h"
#include "fs/mount/option_text.h"
#include "fs/mount/options.h"
#include "fs/util/cleanup.h"

/* As in betonfs(8). */
enum exit_code {
	EXIT_OK = 0,
	EXIT_USAGE = 1,
	EXIT_SYSTEM = 2,
	EXIT_NO_DATASET = 10,
	EXIT_NOT_DATASET = 11,
	EXIT_DAMAGED = 12,
	EXIT_MOUNTPOINT = 20,
};

enum {
	/* Enough for most of the time, that they do not come and go. */
	IDLE_THREADS = 10,
	/* A thread that assembles a batch, or waits for one, has its request as
	   long. Ten, which is what libfuse starts, would leave none for other
	   files, nor for the readers whose end is waited for. */
	THREADS_MAX = 200,
};

/* Of a mount's source; mount(2) takes a page, and commas take two bytes. */
enum { SOURCE_MAX = 3000 };

struct served {
	char path[PATH_MAX]; /* absolute */
	char name[NAME_DIRECTORY_SIZE];
	struct dataset *ds;
};

struct daemon {
	struct opts opts;
	struct message message;
	struct log log;
	struct served *served;	   /* each dataset */
	char mountpoint[PATH_MAX]; /* absolute: the daemon has / as its
				      directory */
	int ready_fd; /* to the waiting parent; -1 in the foreground */
	struct engine *engine;
	struct jobs *jobs;
	struct handover *handover; /* NULL: there can be none */
	struct ns *ns;
	struct ops *ops;
};

/* libfuse's messages come without any handle. */
static struct log *fuse_messages;

static void log_fuse(enum fuse_log_level level, const char *format,
		     va_list args)
{
	char line[512];
	size_t size;

	if (level >= FUSE_LOG_INFO) {
		vfprintf(stderr, format, args);
		return;
	}
	vsnprintf(line, sizeof(line), format, args);
	size = strcspn(line, "\n");
	line[size] = '\0';
	log_error(fuse_messages, "%s", line);
}

/* --- becoming a daemon --- */

static void let_go_of_terminal(void)
{
	cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		dup2(null, fd);
	setsid();
	if (chdir("/"))
		return;
}

/* Called by the thread that answers INIT. */
static void mount_is_ready(void *arg)
{
	struct daemon *d = arg;
	ssize_t sent = 1;

	message_start(&d->message);
	/* The usual case is in .betonfs/options alone. */
	if (engine_tiers(d->engine)->mode != TIERS_OS)
		log_info(&d->log, "%s", engine_tiers_why(d->engine));
	if (d->ready_fd < 0)
		return;
	let_go_of_terminal();
	/* A parent that is gone has nothing to be told. */
	sent = write(d->ready_fd, "", (size_t)sent);
	close(d->ready_fd);
	d->ready_fd = -1;
}

/* Waits for the child to be ready, or to end. */
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

/* --- serving --- */

static int open_dataset(struct daemon *d, struct served *served)
{
	int r = dataset_open(served->path, &d->log, &served->ds);

	switch (-r) {
	case 0:
		return EXIT_OK;
	case BETON_ENOTBETON:
	case EISDIR:
		return EXIT_NOT_DATASET;
	case BETON_ECORRUPT:
		return EXIT_DAMAGED;
	case EIO:
	case ENOMEM:
		return EXIT_SYSTEM;
	default:
		return EXIT_NO_DATASET;
	}
}

/* Whoever may read the dataset may read its parts. */
static struct ns_owner owner_of(const struct daemon *d, const struct stat *st)
{
	const struct opts *o = &d->opts;
	mode_t file = st->st_mode & 0555, dir = st->st_mode & 0444;

	if (o->umask != OPTS_UNSET) {
		file = 0444 & ~(mode_t)o->umask;
		dir = file;
	}
	return (struct ns_owner){
		.uid = o->uid == OPTS_UNSET ? st->st_uid : (uid_t)o->uid,
		.gid = o->gid == OPTS_UNSET ? st->st_gid : (gid_t)o->gid,
		.file_mode = file,
		.dir_mode = dir | dir >> 2,
	};
}

static int failed(struct daemon *d, const char *what, int r)
{
	log_error(&d->log, "%s: %s", what, strerror(-r));
	return EXIT_SYSTEM;
}

static size_t num_served(const struct daemon *d)
{
	return d->opts.num_datasets;
}

/* The text of .betonfs/options of one dataset, or of the root above several,
   where `only` is NULL: the caller's. */
static char *options_text(const struct daemon *d, const struct served *only)
{
	cleanup_free char *set = opts_text(&d->opts);
	char *text = NULL;
	size_t size;
	FILE *out = set ? open_memstream(&text, &size) : NULL;

	if (!out)
		return NULL;
	fprintf(out, "pid=%d\n", (int)getpid());
	for (size_t i = 0; i < num_served(d); i++) {
		if (!only || only == &d->served[i])
			fprintf(out, "dataset=%s\n", d->served[i].path);
	}
	fprintf(out, "mountpoint=%s\ndirectory=%s\nhandover=%s%s\nwhy=%s\n%s",
		d->mountpoint, only ? only->name : "", d->handover ? "@" : "",
		d->handover ? handover_name(d->handover) : "",
		engine_tiers_why(d->engine), set);
	fclose(out);
	return text;
}

/* Of a dataset, or of the root above several, which shows their names to
   whoever may use the mount. */
static struct ns_top top_of(const struct daemon *d, const struct served *only)
{
	const struct stat root = {
		.st_uid = geteuid(),
		.st_gid = getegid(),
		.st_mode = 0444,
	};

	return (struct ns_top){
		.dataset = only ? only->ds : NULL,
		.name = only ? only->name : "",
		.owner = owner_of(d, only ? &only->ds->source->stat : &root),
		.options = options_text(d, only),
	};
}

/* Without it loaders read files: no reason not to mount. */
static void open_handover(struct daemon *d)
{
	const struct handover_options options = {
		.log = &d->log,
		.allow = d->opts.allow_other ? HANDOVER_ALLOW_OTHER
					     : HANDOVER_ALLOW_ROOT,
		.max_bytes = engine_lendable(d->engine),
		.jobs = d->jobs,
	};
	int r = handover_open(&options, &d->handover);

	if (r)
		log_info(&d->log, "hand-over: %s", strerror(-r));
}

static int open_namespace(struct daemon *d)
{
	cleanup_free char *spec = opts_spec(&d->opts);
	struct ns_top tops[NS_DATASETS_MAX + 1];
	const struct ns_options options = {
		.tops = tops,
		.num_tops = (uint32_t)(num_served(d) + (num_served(d) > 1)),
		.engine = d->engine,
		.log = &d->log,
		.subsets = d->opts.subsets,
		.num_subsets = d->opts.num_subsets,
		.default_spec = spec,
		.jobs = d->jobs,
		.mountpoint = d->mountpoint,
	};
	uint32_t i = 0;
	int r = spec ? 0 : -ENOMEM;

	if (num_served(d) > 1)
		tops[i++] = top_of(d, NULL);
	for (size_t k = 0; k < num_served(d); k++)
		tops[i++] = top_of(d, &d->served[k]);
	for (i = 0; i < options.num_tops; i++) {
		if (!tops[i].options)
			r = -ENOMEM;
	}
	if (!r)
		r = ns_open(&options, &d->ns);
	for (i = 0; i < options.num_tops; i++)
		free((char *)tops[i].options);
	if (r == -EINVAL)
		return EXIT_USAGE;
	return r ? failed(d, "namespace", r) : EXIT_OK;
}

/* What was chosen stands among the options, as if it had been asked for. */
static int note_tiers(struct daemon *d)
{
	const struct tiers *tiers = engine_tiers(d->engine);
	char *name = strdup(tiers_mode_name(tiers->mode));

	if (!name)
		return -ENOMEM;
	free(d->opts.cache);
	d->opts.cache = name;
	d->opts.cache_size = d->opts.cold_size = OPTS_UNSET;
	if (tiers->mode == TIERS_PROCESS) {
		d->opts.cache_size = tiers->cache_size;
		d->opts.cold_size = tiers->cold_size;
	}
	return 0;
}

static int open_engine(struct daemon *d)
{
	struct dataset *datasets[NS_DATASETS_MAX];
	struct opts *o = &d->opts;
	struct engine_options options = {
		.log = &d->log,
		.threads = (unsigned)o->threads,
		.ahead = (unsigned)o->ahead,
		.tiers = {
			.cache_size = o->cache_size == OPTS_UNSET
					      ? 0
					      : o->cache_size,
			.cold_size = o->cold_size == OPTS_UNSET
					     ? TIERS_COLD_AUTO
					     : o->cold_size,
		},
		.datasets = datasets,
		.num_datasets = num_served(d),
	};
	int r;

	if (o->cache && !tiers_parse_mode(o->cache, &options.tiers.mode)) {
		log_error(&d->log, "-o cache=%s: expected auto, os or process",
			  o->cache);
		return EXIT_USAGE;
	}
	for (size_t i = 0; i < num_served(d); i++)
		datasets[i] = d->served[i].ds;
	r = engine_open(&options, &d->engine);
	if (!r)
		r = note_tiers(d);
	return r ? failed(d, "engine", r) : EXIT_OK;
}

static int open_all(struct daemon *d)
{
	int code = EXIT_OK, r;

	for (size_t i = 0; i < num_served(d) && !code; i++)
		code = open_dataset(d, &d->served[i]);
	if (!code)
		code = open_engine(d);
	if (code)
		return code;
	r = jobs_open(&d->jobs);
	if (r)
		return failed(d, "jobs", r);
	open_handover(d);
	code = open_namespace(d);
	if (code)
		return code;
	r = d->handover ? handover_serve(d->handover, d->ns) : 0;
	if (r)
		return failed(d, "hand-over", r);
	r = ops_open(d->ns, d->jobs, mount_is_ready, d, &d->ops);
	return r ? failed(d, "operations", r) : EXIT_OK;
}

static void close_all(struct daemon *d)
{
	handover_close(d->handover);
	ops_close(d->ops);
	/* The namespace has the subsets that read-ahead looks at. */
	engine_stop(d->engine);
	ns_close(d->ns);
	jobs_close(d->jobs);
	engine_close(d->engine);
	for (size_t i = 0; i < num_served(d); i++)
		dataset_close(d->served[i].ds);
}

/* A path as a list of datasets spells it. */
static void print_listed(FILE *out, const char *path)
{
	for (; *path; path++) {
		if (*path == ':')
			fputc('\\', out);
		fputc(*path, out);
	}
}

/* "fsname=PATH:PATH": text, the caller's, or NULL. */
static char *source_option(const struct daemon *d)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "fsname=%s", num_served(d) > 1 ? "" : d->served[0].path);
	for (size_t i = 0; i < num_served(d) && num_served(d) > 1; i++) {
		fputs(i ? ":" : "", out);
		fflush(out);
		if (size + strlen(d->served[i].path) > SOURCE_MAX) {
			fputs("...", out);
			break;
		}
		print_listed(out, d->served[i].path);
	}
	fclose(out);
	return text;
}

/* What libfuse and the kernel are told: text, the caller's, or NULL. */
static char *mount_options(const struct daemon *d)
{
	cleanup_free char *words = opts_mount(&d->opts);
	cleanup_free char *source = source_option(d);
	char *list = NULL;

	if (!words || asprintf(&list,
			       "ro,nosuid,nodev,default_permissions,"
			       "subtype=betonfs%s%s",
			       *words ? "," : "", words) < 0)
		return NULL;
	if (!source || fuse_opt_add_opt_escaped(&list, source))
		free(steal(list));
	return list;
}

/* fusermount3 looks, as root, whether the mount is dead; before 3.15 it gave up
   where root may not look. */
static void warn_of_auto_unmount(struct daemon *d)
{
	const struct opts *o = &d->opts;
	int major = 0, minor = 0;

	sscanf(fuse_pkgversion(), "%d.%d", &major, &minor);
	if (o->auto_unmount && !o->allow_other && !o->allow_root && geteuid() &&
	    major == 3 && minor < 15)
		log_warning(
			&d->log,
			"-o auto_unmount needs allow_other with libfuse %s; without, mount again over what a killed daemon left",
			fuse_pkgversion());
}

static struct fuse_session *new_session(struct daemon *d)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	cleanup_free char *list = mount_options(d);
	struct fuse_session *session = NULL;
	size_t size;
	const struct fuse_lowlevel_ops *table = ops_table(d->opts.xattr, &size);

	warn_of_auto_unmount(d);
	if (list && !fuse_opt_add_arg(&args, "betonfs") &&
	    !fuse_opt_add_arg(&args, "-o") && !fuse_opt_add_arg(&args, list) &&
	    (!d->opts.debug || !fuse_opt_add_arg(&args, "-d")))
		session = fuse_session_new(&args, table, size, d->ops);
	fuse_opt_free_args(&args);
	return session;
}

static int loop_with_threads(struct fuse_session *session)
{
/* Those before start as many as there are requests. */
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

/* A positive result of a loop is the signal that ended it. */
static int loop(struct daemon *d, struct fuse_session *session)
{
	int r = d->opts.single_thread ? fuse_session_loop(session)
				      : loop_with_threads(session);

	return r < 0 ? failed(d, d->mountpoint, r) : EXIT_OK;
}

/* The mountpoint exists; signals end the loop. */
static int mount_and_serve(struct daemon *d, struct fuse_session *session)
{
	int code;

	if (fuse_session_mount(session, d->mountpoint)) {
		log_error(&d->log, "mountpoint %s: cannot mount",
			  d->mountpoint);
		mountpoint_explain(d->opts.allow_other || d->opts.allow_root,
				   &d->log);
		return EXIT_MOUNTPOINT;
	}
	ops_start_dropping(d->ops, session);
	code = loop(d, session);
	ops_stop_dropping(d->ops, d->mountpoint);
	fuse_session_unmount(session);
	return code;
}

static int serve_session(struct daemon *d)
{
	struct fuse_session *session = new_session(d);
	bool made = false;
	int code = EXIT_MOUNTPOINT;

	/* libfuse has said why. */
	if (!session)
		return EXIT_SYSTEM;
	if (fuse_set_signal_handlers(session)) {
		fuse_session_destroy(session);
		return EXIT_SYSTEM;
	}
	if (!mountpoint_prepare(d->mountpoint, &d->log, &made))
		code = mount_and_serve(d, session);
	if (made)
		mountpoint_remove(d->mountpoint);
	fuse_remove_signal_handlers(session);
	fuse_session_destroy(session);
	return code;
}

static int serve(struct daemon *d)
{
	int code = open_all(d);
	int r = code ? 0 : message_watch(&d->message, &d->log);

	if (r)
		code = failed(d, "thread", r);
	if (!code && d->opts.fake)
		code = mountpoint_check(d->mountpoint, &d->log)
			       ? EXIT_MOUNTPOINT
			       : EXIT_OK;
	else if (!code)
		code = serve_session(d);
	close_all(d);
	return code;
}

/* Forks before there is any thread. */
static int serve_in_background(struct daemon *d)
{
	int ready[2], code;
	pid_t child;

	if (pipe2(ready, O_CLOEXEC))
		return failed(d, "pipe", -errno);
	child = fork();
	if (child < 0)
		return failed(d, "fork", -errno);
	if (child == 0) {
		close(ready[0]);
		d->ready_fd = ready[1];
		return serve(d);
	}
	close(ready[1]);
	code = wait_for(child, ready[0]);
	close(ready[0]);
	return code;
}

/* --- the command line --- */

/* realpath() where there is something, else a path from the root. */
static int absolute(const char *path, char out[PATH_MAX])
{
	char dir[PATH_MAX];
	int n;

	if (realpath(path, out))
		return 0;
	if (!getcwd(dir, sizeof(dir)))
		return -errno;
	n = snprintf(out, PATH_MAX, "%s%s%s", *path == '/' ? "" : dir,
		     *path == '/' ? "" : "/", path);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int copy_path(const char *path, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s", path);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int name_served(struct daemon *d)
{
	char names[NS_DATASETS_MAX][NAME_DIRECTORY_SIZE];
	char *const *paths = d->opts.datasets;
	size_t n = num_served(d);
	int r;

	if (n > NS_DATASETS_MAX) {
		log_error(&d->log, "%zu datasets: one mount has %d at most", n,
			  (int)NS_DATASETS_MAX);
		return EXIT_USAGE;
	}
	d->served = calloc(n, sizeof(*d->served));
	if (!d->served)
		return failed(d, "datasets", -ENOMEM);
	/* After the words of the command line, not what links lead to. */
	name_datasets((const char *const *)paths, n, names);
	for (size_t i = 0; i < n; i++) {
		r = absolute(paths[i], d->served[i].path);
		if (r) {
			failed(d, paths[i], r);
			return EXIT_NO_DATASET;
		}
		if (n > 1)
			strcpy(d->served[i].name, names[i]);
	}
	return EXIT_OK;
}

static int mount_datasets(struct daemon *d)
{
	const struct opts *o = &d->opts;
	int r = message_open(&d->message, o->log), code;

	if (r)
		return failed(d, o->log, r);
	code = name_served(d);
	if (code)
		return code;
	r = mountpoint_is_fd(o->mountpoint)
		    ? copy_path(o->mountpoint, d->mountpoint)
		    : absolute(o->mountpoint, d->mountpoint);
	if (r) {
		failed(d, o->mountpoint, r);
		return EXIT_MOUNTPOINT;
	}
	return o->foreground || o->fake ? serve(d) : serve_in_background(d);
}

static int run(struct daemon *d, int argc, char **argv)
{
	if (opts_parse(&d->opts, argc, argv, &d->log))
		return EXIT_USAGE;
	d->message.keeps_stderr = d->opts.foreground;
	if (d->opts.help)
		opts_help(stdout);
	else if (d->opts.version)
		printf("betonfs %s\nlibfuse %s\n", beton_version(),
		       fuse_pkgversion());
	else if (d->opts.list)
		opts_list(stdout);
	else
		return mount_datasets(d);
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	struct daemon d = { .ready_fd = -1, .message.fd = -1 };
	int code;

	log_init(&d.log, message_log, &d.message);
	fuse_messages = &d.log;
	fuse_set_log_func(log_fuse);
	code = run(&d, argc, argv);
	free(d.served);
	opts_fini(&d.opts);
	message_close(&d.message);
	log_fini(&d.log);
	return code;
}
