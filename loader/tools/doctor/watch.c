/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/watch.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"
#include "loader/run/loop/telemetry.h"
#include "loader/tools/machine/process.h"
#include "loader/util/read_file.h"

enum {
	FAMILY_MAX = 256, /* processes of a job on this machine */
	TICK_MS = 100,
	START_S = 30, /* to import the modules of a trainer */
	SETTLE_S = 1,
	END_MS = 2000,
	/* Loaders report to their daemon once a second. */
	REPORT_S = 4,
	STATS_MAX = 16 << 20, /* bytes of its statistics */
	NAME_SIZE = 65,	      /* of a job */
};

/* CPU time of a job so far, in seconds. */
struct family_cpu {
	double main;   /* of the busiest main thread */
	double wanted; /* the same, with the time that it waited for a CPU */
	double loader; /* of loaders' threads */
	double others;
};

struct doctor_watcher {
	const struct watch_options *options;
	struct evidence *e;
	pid_t pid;
	bool is_ours;
	bool has_ended;
	int status;
	int output; /* a file in memory for its output, or -1 */
	int telemetry_fd;
	struct telemetry *telemetry; /* NULL: none */
	char job[NAME_SIZE]; /* in the statistics of a daemon; "": none */
};

/* --- CPU time ------------------------------------------------------------ */

/* The CPU time of the threads of one process. */
struct thread_sums {
	const char *root;
	pid_t pid;
	struct family_cpu cpu;
	bool loads; /* has threads of the loader */
};

static void add_thread(void *arg, pid_t tid, const struct process_stat *stat)
{
	struct thread_sums *sums = arg;

	if (!strcmp(stat->name, THREAD_NAME)) {
		sums->cpu.loader += stat->cpu_s;
		sums->loads = true;
	} else if (tid == sums->pid) {
		sums->cpu.main = stat->cpu_s;
		sums->cpu.wanted =
			process_wanted_s(sums->root, tid, stat->cpu_s);
	} else {
		sums->cpu.others += stat->cpu_s;
	}
}

/* Adds the CPU time of one process. Returns false if it has no thread of the
   loader. */
static bool add_threads(const char *root, pid_t pid, struct family_cpu *sum)
{
	struct thread_sums sums = { .root = root, .pid = pid };
	const struct family_cpu *c = &sums.cpu;

	process_each_thread(root, pid, add_thread, &sums);
	sum->loader += c->loader;
	sum->others += c->others;
	/* If there are several ranks, use the busiest main thread, because it
	   limits the job. If there is no loader, use the busiest process. */
	if (c->main > sum->main) {
		sum->others += sum->main;
		sum->main = c->main;
		sum->wanted = c->wanted;
	} else {
		sum->others += c->main;
	}
	return sums.loads;
}

static bool family_cpu(const struct doctor_watcher *w, struct family_cpu *out)
{
	pid_t family[FAMILY_MAX];
	size_t n = process_family(w->options->root, w->pid, family, FAMILY_MAX);
	bool loads = false;

	*out = (struct family_cpu){ 0 };
	for (size_t i = 0; i < n; i++)
		loads |= add_threads(w->options->root, family[i], out);
	return loads;
}

/* --- reports of its loaders ---------------------------------------------- */

static void make_telemetry(struct doctor_watcher *w)
{
	void *at;

	w->telemetry_fd = memfd_create("beton-telemetry", MFD_CLOEXEC);
	if (w->telemetry_fd < 0 || ftruncate(w->telemetry_fd, TELEMETRY_SIZE))
		return;
	at = mmap(NULL, TELEMETRY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		  w->telemetry_fd, 0);
	if (at == MAP_FAILED)
		return;
	w->telemetry = at;
	atomic_store(&w->telemetry->magic, TELEMETRY_MAGIC);
}

static void drop_telemetry(struct doctor_watcher *w)
{
	if (w->telemetry)
		munmap(w->telemetry, TELEMETRY_SIZE);
	if (w->telemetry_fd >= 0)
		close(w->telemetry_fd);
	w->telemetry = NULL;
	w->telemetry_fd = -1;
}

/* The counts of loaders so far; from a daemon, up to their last report. */
struct watch_counts {
	size_t n;
	uint64_t rank[TELEMETRY_ENTRIES];
	double samples[TELEMETRY_ENTRIES], batches[TELEMETRY_ENTRIES];
	double wait_s[TELEMETRY_ENTRIES];
	double makers_s[TELEMETRY_ENTRIES], network_s[TELEMETRY_ENTRIES];
	double at_s[TELEMETRY_ENTRIES]; /* time of the counts */
	double all;
};

static void read_telemetry(const struct doctor_watcher *w,
			   struct watch_counts *out)
{
	double now = 1e-9 * (double)clock_ns();

	out->n = min_u64(atomic_load(&w->telemetry->taken), TELEMETRY_ENTRIES);
	/* A loader that is added later has no samples up to now. */
	for (size_t i = 0; i < TELEMETRY_ENTRIES; i++)
		out->at_s[i] = now;
	for (size_t i = 0; i < out->n; i++) {
		const struct telemetry_entry *b = &w->telemetry->entries[i];

		out->rank[i] = atomic_load(&b->rank);
		out->batches[i] = (double)atomic_load(&b->batches);
		out->samples[i] = (double)atomic_load(&b->samples);
		out->wait_s[i] = 1e-9 * (double)atomic_load(&b->wait_ns);
		out->makers_s[i] = 1e-9 * (double)atomic_load(&b->makers_ns);
		out->network_s[i] = 1e-9 * (double)atomic_load(&b->network_ns);
		out->all += out->samples[i];
	}
}

/* --- reports of a daemon ------------------------------------------------- */

/* Returns stats.json of the mount. NULL: it does not exist, or is not valid. */
static json_t *read_stats(const struct doctor_watcher *w)
{
	cleanup_free char *text = NULL;
	cleanup_fd int fd = -1;
	char path[PATH_MAX];
	size_t n;

	if (!w->options->mount)
		return NULL;
	snprintf(path, sizeof(path), "%.4000s/.betonfs/stats.json",
		 w->options->mount);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read_file_fd(fd, STATS_MAX - 1, &text, &n))
		return NULL;
	return json_loadb(text, n, 0, NULL);
}

static double number_of(json_t *object, const char *key)
{
	double v = json_number_value(json_object_get(object, key));

	return v > 0 ? v : 0;
}

static json_t *job_named(json_t *stats, const char *name)
{
	json_t *job;
	size_t i;

	json_array_foreach(json_object_get(stats, "jobs"), i, job)
	{
		const char *s = json_string_value(json_object_get(job, "name"));

		if (s && !strcmp(s, name))
			return job;
	}
	return NULL;
}

/* Returns the only job whose loaders are connected. */
static json_t *only_job(json_t *stats)
{
	json_t *job, *found = NULL;
	size_t i;

	json_array_foreach(json_object_get(stats, "jobs"), i, job)
	{
		if (number_of(job, "connections") <= 0)
			continue;
		if (found)
			return NULL;
		found = job;
	}
	return found;
}

/* Finds the job of the trainer: by $BETON_JOB, by its session, or because it is
   the only one. */
static void find_job(struct doctor_watcher *w)
{
	pid_t family[FAMILY_MAX];
	size_t n = process_family(w->options->root, w->pid, family, FAMILY_MAX);
	json_t *stats = read_stats(w);
	json_t *job = NULL;
	char name[NAME_SIZE];

	for (size_t i = 0; i < n && !job; i++) {
		snprintf(name, sizeof(name), "session-%d",
			 (int)getsid(family[i]));
		process_environment(w->options->root, family[i], "BETON_JOB",
				    name, sizeof(name));
		job = job_named(stats, name);
	}
	job = job ? job : only_job(stats);
	if (job)
		snprintf(w->job, sizeof(w->job), "%s",
			 json_string_value(json_object_get(job, "name")) ?: "");
	json_decref(stats);
}

/* Reads the counts of the ranks. */
static void read_daemon(const struct doctor_watcher *w,
			struct watch_counts *out)
{
	json_t *stats = read_stats(w);
	json_t *ranks = json_object_get(job_named(stats, w->job), "ranks");
	json_t *r;
	size_t i;

	json_array_foreach(ranks, i, r)
	{
		double rank = number_of(r, "rank");
		size_t k = (size_t)rank;

		if (rank >= TELEMETRY_ENTRIES)
			continue;
		out->rank[k] = k;
		out->batches[k] = number_of(r, "batches");
		out->samples[k] = number_of(r, "samples");
		out->wait_s[k] = number_of(r, "wait_s");
		out->at_s[k] = number_of(r, "open_s");
		out->all += out->samples[k];
		out->n = k + 1 > out->n ? k + 1 : out->n;
	}
	json_decref(stats);
}

static void read_counts(const struct doctor_watcher *w,
			struct watch_counts *out)
{
	*out = (struct watch_counts){ 0 };
	if (w->telemetry)
		read_telemetry(w, out);
	else if (*w->job)
		read_daemon(w, out);
}

/* --- starting and ending ------------------------------------------------- */

static void be_the_trainer(const struct doctor_watcher *w,
			   const char *synthetic)
{
	char text[64];
	int null = open("/dev/null", O_RDONLY);

	setsid();
	signal(SIGXFSZ, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(null, STDIN_FILENO);
	dup2(w->output >= 0 ? w->output : null, STDOUT_FILENO);
	dup2(w->output >= 0 ? w->output : null, STDERR_FILENO);
	if (w->telemetry) {
		snprintf(text, sizeof(text), "/proc/%d/fd/%d", (int)getppid(),
			 w->telemetry_fd);
		setenv("BETON_TELEMETRY", text, 1);
	}
	snprintf(text, sizeof(text), "doctor-%d", (int)getppid());
	setenv("BETON_JOB", text, 0);
	if (synthetic)
		setenv("BETON_SYNTHETIC", synthetic, 1);
	execl("/bin/sh", "sh", "-c", w->options->trainer, (char *)NULL);
	_exit(127);
}

static int start_trainer(struct doctor_watcher *w, const char *synthetic)
{
	w->output = memfd_create("beton-trainer", MFD_CLOEXEC);
	make_telemetry(w);
	w->has_ended = false;
	w->is_ours = true;
	w->pid = fork();
	if (w->pid < 0)
		return -errno;
	if (!w->pid)
		be_the_trainer(w, synthetic);
	return 0;
}

static bool has_ended(struct doctor_watcher *w)
{
	if (!w->is_ours)
		return kill(w->pid, 0) && errno == ESRCH;
	if (!w->has_ended && waitpid(w->pid, &w->status, WNOHANG) == w->pid)
		w->has_ended = true;
	return w->has_ended;
}

static void wait_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

/* Kill the whole process group of the session, also processes that the trainer
   left behind. */
static void end_trainer(struct doctor_watcher *w)
{
	if (w->is_ours && w->pid > 0) {
		kill(-w->pid, SIGTERM);
		for (int ms = 0; ms < END_MS && !has_ended(w); ms += 20)
			wait_ms(20);
		kill(-w->pid, SIGKILL);
		if (!w->has_ended)
			waitpid(w->pid, &w->status, 0);
	}
	drop_telemetry(w);
	if (w->output >= 0)
		close(w->output);
	w->output = -1;
}

/* Returns the last line of its output, if any. */
static void last_line(const struct doctor_watcher *w, char *out, size_t size)
{
	char text[1024];
	off_t length = w->output >= 0 ? lseek(w->output, 0, SEEK_END) : 0;
	off_t at = length > (off_t)sizeof(text) - 1
			   ? length - (off_t)sizeof(text) + 1
			   : 0;
	ssize_t n =
		length > 0 ? pread(w->output, text, sizeof(text) - 1, at) : 0;
	char *line;

	out[0] = '\0';
	if (n <= 0)
		return;
	text[n] = '\0';
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		text[--n] = '\0';
	line = strrchr(text, '\n');
	snprintf(out, size, "%.*s", (int)size - 1, line ? line + 1 : text);
	for (char *c = out; *c; c++)
		*c = isprint((unsigned char)*c) ? *c : '?';
}

/* --- watching ------------------------------------------------------------ */

static bool is_stopped(const struct doctor_watcher *w)
{
	return *w->options->stop;
}

/* Waits until its loader has delivered batches, or has threads. */
static void wait_for_start(struct doctor_watcher *w)
{
	int64_t latest = clock_ns() + START_S * INT64_C(1000000000);
	struct family_cpu cpu;
	struct watch_counts c;

	while (!is_stopped(w) && !has_ended(w) && clock_ns() < latest) {
		read_counts(w, &c);
		if (w->telemetry ? c.all > 0 : family_cpu(w, &cpu))
			break;
		wait_ms(TICK_MS / 2);
	}
	for (int ms = 0; ms < 1000 * SETTLE_S && !has_ended(w); ms += TICK_MS)
		wait_ms(TICK_MS);
}

static void look_at_gpus(struct evidence *e, double *sum, unsigned *n)
{
	struct machine_gpu gpus[MACHINE_GPUS_MAX];
	size_t count =
		e->num_gpus ? machine_gpu_read(gpus, MACHINE_GPUS_MAX) : 0;

	if (!count)
		return;
	for (size_t i = 0; i < count; i++)
		*sum += gpus[i].busy > 0 ? gpus[i].busy : 0;
	*n += (unsigned)count;
	/* Measure the processes at work, not before. */
	memcpy(e->gpus, gpus, count * sizeof(*gpus));
	e->num_gpus = count;
}

struct view {
	double seconds;
	struct family_cpu cpu;
	struct watch_counts first, last;
	double gpu_sum;
	unsigned gpu_n;
	bool loads;
};

static void watch_trainer(struct doctor_watcher *w, struct view *v)
{
	struct family_cpu before, now;
	int64_t start;
	int64_t end_ns;

	*v = (struct view){ 0 };
	wait_for_start(w);
	v->loads = family_cpu(w, &before);
	if (!w->is_ours)
		find_job(w);
	read_counts(w, &v->first);
	v->last = v->first;
	start = clock_ns();
	end_ns = start +
		 (int64_t)(1e9 * (*w->job ? fmax(w->options->seconds, REPORT_S)
					  : w->options->seconds));
	while (!is_stopped(w) && clock_ns() < end_ns) {
		wait_ms(TICK_MS);
		if (has_ended(w))
			break;
		v->loads |= family_cpu(w, &now);
		read_counts(w, &v->last);
		v->seconds = 1e-9 * (double)(clock_ns() - start);
		v->cpu = (struct family_cpu){
			.main = now.main - before.main,
			.wanted = now.wanted - before.wanted,
			.loader = now.loader - before.loader,
			.others = now.others - before.others,
		};
		look_at_gpus(w->e, &v->gpu_sum, &v->gpu_n);
	}
}

/* Returns the seconds between two reports of a loader; 0: it sent none
   meanwhile. */
static double seconds_of(const struct view *v, size_t i)
{
	return fmax(v->last.at_s[i] - v->first.at_s[i], 0);
}

static double rate_of(const struct view *v)
{
	double rate = 0;

	for (size_t i = 0; i < v->last.n; i++) {
		double s = seconds_of(v, i);

		if (s > 0)
			rate += (v->last.samples[i] - v->first.samples[i]) / s;
	}
	return rate;
}

static double share_of(double before, double now, double seconds)
{
	return fmin(fmax(0, (now - before) / seconds), 1);
}

static void take_ranks_seen(const struct view *v, struct evidence *e)
{
	e->num_ranks = 0;
	for (size_t i = 0; i < v->last.n; i++) {
		double wait = v->last.wait_s[i] - v->first.wait_s[i];
		double n = v->last.batches[i] - v->first.batches[i];
		double s = seconds_of(v, i);

		if (n <= 0 || s <= 0)
			continue;
		e->ranks[e->num_ranks++] = (struct rank_seen){
			.rank = (unsigned)v->last.rank[i],
			.rate = n / s,
			.ready = fmin(fmax(0, 1 - wait / s), 1),
			.makers = share_of(v->first.makers_s[i],
					   v->last.makers_s[i], s),
			.network = share_of(v->first.network_s[i],
					    v->last.network_s[i], s),
		};
	}
}

static void take_view(const struct view *v, struct evidence *e)
{
	struct watch *w = &e->watch;

	w->known = v->seconds > 0;
	if (!w->known)
		return;
	w->seconds = v->seconds;
	w->main_busy = fmin(v->cpu.wanted / v->seconds, 1);
	w->main_cores = fmin(v->cpu.main / v->seconds, 1);
	w->loader_cores = v->cpu.loader / v->seconds;
	w->other_cores = v->cpu.others / v->seconds;
	w->rate = rate_of(v);
	w->gpu_busy = v->gpu_n ? (int)(v->gpu_sum / v->gpu_n) : -1;
	take_ranks_seen(v, e);
}

static int log_end(struct doctor_watcher *w)
{
	char line[200];

	last_line(w, line, sizeof(line));
	log_error(w->options->log,
		  "the trainer ended before its loader delivered a batch%s%s",
		  *line ? ": " : "", line);
	return -ECHILD;
}

/* Synthetic batches cost nothing, so the rate is that of the trainer alone. */
static void watch_alone(struct doctor_watcher *w)
{
	struct evidence *e = w->e;
	struct view v;

	if (is_stopped(w) || start_trainer(w, "constant"))
		return;
	watch_trainer(w, &v);
	/* The loader still uses CPU time, so it does not support synthetic
	   batches. */
	if (rate_of(&v) > 0 &&
	    v.cpu.loader / v.seconds <= 0.5 * e->watch.loader_cores) {
		e->watch.own_rate = rate_of(&v);
		e->watch.main_busy_alone = fmin(v.cpu.wanted / v.seconds, 1);
	}
	end_trainer(w);
}

int watch_run(const struct watch_options *o, struct evidence *e)
{
	struct doctor_watcher w = { .options = o,
				    .e = e,
				    .pid = o->pid,
				    .output = -1,
				    .telemetry_fd = -1 };
	struct view v;
	int r = 0;

	e->watch.gpu_busy = -1;
	if (o->trainer)
		r = start_trainer(&w, NULL);
	else if (kill(o->pid, 0) && errno == ESRCH)
		r = -ESRCH;
	if (r) {
		log_error(o->log, "%s: %s", o->trainer ? o->trainer : "--pid",
			  strerror(-r));
		end_trainer(&w);
		return r;
	}
	watch_trainer(&w, &v);
	take_view(&v, e);
	if (o->trainer && !e->watch.known && !is_stopped(&w))
		r = log_end(&w);
	end_trainer(&w);
	if (!r && o->trainer)
		watch_alone(&w);
	if (!v.loads)
		doctor_note(
			e,
			"the trainer does not use the betonfs loader, so its rate is unknown");
	return is_stopped(&w) ? -ECANCELED : r;
}
