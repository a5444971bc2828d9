/* SPDX-License-Identifier: Apache-2.0 */
/* beton doctor: finds the bottleneck of a training, and its fixes. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/beton/command.h"
#include "loader/tools/beton/defaults.h"
#include "loader/tools/beton/delivery.h"
#include "loader/tools/doctor/estimate.h"
#include "loader/tools/doctor/look.h"
#include "loader/tools/doctor/report.h"
#include "loader/tools/doctor/trials.h"
#include "loader/tools/doctor/watch.h"

struct doctor_options {
	const char *spec;
	const char *subset;
	const char *pipeline;
	struct reading reading;
	uint64_t jobs;
	uint64_t prefetch;
	uint64_t seconds;
	uint64_t target;
	uint64_t pid;
	const char *trainer;
	const char *html;
	const char *apply;
	unsigned allow;
	bool json;
};

#define AT(member) .offset = offsetof(struct doctor_options, member)

/* "order", "pixels", or both. */
static int parse_allow(const char *text, void *member)
{
	static const struct {
		const char *word;
		unsigned change;
	} words[] = { { "order", FIX_CHANGES_ORDER },
		      { "pixels", FIX_CHANGES_PIXELS } };
	unsigned changes = 0;

	for (;; text++) {
		size_t n = strcspn(text, ","), i = 0;

		while (i < ARRAY_LEN(words) &&
		       (strlen(words[i].word) != n ||
			memcmp(words[i].word, text, n) != 0))
			i++;
		if (i == ARRAY_LEN(words))
			return -EINVAL;
		changes |= words[i].change;
		text += n;
		if (!*text)
			break;
	}
	*(unsigned *)member = changes;
	return 0;
}

static const struct option_row rows[] = {
	SPEC_ROWS,
	JOBS_ROW,
	PREFETCH_ROW,
	READING_ROWS,
	{ "trainer", .kind = OPTION_TEXT, AT(trainer), .argument = "COMMAND",
	  .help = "Run COMMAND in a shell and watch it, then run it again "
		  "with synthetic data" },
	{ "pid", .kind = OPTION_NUMBER, AT(pid), .min = 1, .max = INT32_MAX,
	  .argument = "PID",
	  .help = "Watch the running trainer PID and its child processes" },
	{ "target", .kind = OPTION_NUMBER, AT(target), .min = 1,
	  .max = UINT32_MAX, .argument = "N",
	  .help = "Compare with a trainer that can take N samples per "
		  "second" },
	{ "seconds", .kind = OPTION_NUMBER, AT(seconds), .min = 5, .max = 3600,
	  .argument = "N",
	  .help = "Measure for about N seconds (default: 30)" },
	{ "html", .kind = OPTION_TEXT, AT(html), .argument = "FILE",
	  .help = "Also write the report to FILE as an HTML page" },
	{ "apply", .kind = OPTION_TEXT, AT(apply), .argument = "FILE",
	  .help = "Write the settings that help to FILE, for $BETON_SETTINGS "
		  "and betonfs -o settings=FILE" },
	{ "allow", .kind = OPTION_PARSED, AT(allow), .argument = "order,pixels",
	  .parse = parse_allow,
	  .help = "Allow --apply to change the order of samples, or pixels "
		  "(default: neither)" },
	{ "json", .kind = OPTION_FLAG, AT(json),
	  .help = "Print the report as JSON" },
};

static const struct doctor_options defaults = { .seconds = 30 };

/* The only variable that a signal handler writes. */
static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
	(void)signal;
	stopped = 1;
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* Shows the progress in one line on a terminal, and nowhere else. */
static void show_progress(void *arg, double done, const char *what)
{
	const struct invocation *call = arg;

	if (command_is_talkative(call) && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%3.0f %%  %s", 100 * done, what);
}

static void hide_progress(const struct invocation *call)
{
	if (command_is_talkative(call) && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
}

/* Finds the daemon's process id among the options of its mount. */
static pid_t find_daemon(const char *mount)
{
	char path[4096], line[1024];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/.betonfs/options", mount);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "pid=%d", &pid) == 1)
			break;
	}
	if (f)
		fclose(f);
	return pid;
}

/* The trainer gets the rest of the time. */
#define LADDER_SHARE(o) ((o)->trainer || (o)->pid ? 0.6 : 1.0)

static int watch_trainer(const struct invocation *call, struct evidence *e)
{
	const struct doctor_options *o = call->options;
	const char *root = secure_getenv("BETON_DOCTOR_ROOT");
	struct watch_options options = {
		.root = root ? root : "",
		.trainer = o->trainer,
		.pid = (pid_t)o->pid,
		.mount = find_daemon(call->operands[0]) ? call->operands[0]
							: NULL,
		.seconds = 0.15 * (double)o->seconds,
		.log = call->log,
		.stop = &stopped,
	};
	int r = o->trainer || o->pid ? watch_run(&options, e) : 0;

	if (!r)
		watch_model(e);
	return r;
}

static struct ladder_options ladder_of(const struct invocation *call)
{
	const struct doctor_options *o = call->options;
	struct beton_loader_options reading = { 0 };
	const char *root = secure_getenv("BETON_DOCTOR_ROOT");

	reading_apply(&o->reading, call->log, &reading);
	return (struct ladder_options){
		.place = {
			.root = root ? root : "",
			.path = call->operands[0],
			.spec = o->spec,
			.subset = o->subset,
			.delivery = reading.delivery,
			.cache = reading.cache,
			.cache_size = reading.cache_size,
			.cold_size = reading.cold_size,
			.prefetch = (uint32_t)o->prefetch,
			.daemon = find_daemon(call->operands[0]),
			.trainer = (pid_t)o->pid,
			.stop = &stopped,
		},
		.pipeline = o->pipeline ? o->pipeline : "",
		.workers = (uint32_t)o->jobs,
		.seconds = LADDER_SHARE(o) * (double)o->seconds,
		.log = call->log,
		.progress = show_progress,
		.arg = (void *)call,
	};
}

/*
 * Unsets $BETON_SETTINGS: the doctor measures the machine without settings, and
 * a new file does not build on the last one.
 */
static void leave_settings(struct log *log)
{
	const char *path = secure_getenv("BETON_SETTINGS");

	if (!path || !*path)
		return;
	log_warning(
		log,
		"ignoring BETON_SETTINGS, because the doctor finds settings itself");
	unsetenv("BETON_SETTINGS");
}

/* Chooses options that the user left out, if their defaults would fail. The
   ladder refers to *chosen. */
static void choose_defaults(const struct invocation *call,
			    struct ladder_options *ladder,
			    struct command_defaults *chosen)
{
	const struct doctor_options *o = call->options;
	struct beton_loader_options options = {
		.size = sizeof(options),
		.spec = o->spec,
		.subset = o->subset,
		.pipeline = o->pipeline,
		.workers = (uint32_t)o->jobs,
		.job = "doctor",
	};

	reading_apply(&o->reading, NULL, &options);
	defaults_apply(call->operands[0], call->log, &options, chosen);
	ladder->place.spec = options.spec;
	if (options.pipeline)
		ladder->pipeline = options.pipeline;
}

/* Returns 0 or -errno, logged. */
static int report_evidence(const struct invocation *call,
			   const struct evidence *e, struct diagnosis *d,
			   struct applied *applied)
{
	const struct doctor_options *o = call->options;
	int r = 0;

	report_diagnose(e, d);
	if (o->apply) {
		r = apply_fixes(d->fixes, d->num_fixes, o->apply, o->allow,
				call->log, applied);
		d->applied = r ? NULL : applied;
	}
	if (o->json)
		report_json(d, stdout);
	else
		report_text(d, stdout);
	if (!r && o->html)
		r = report_html(d, o->html, call->log);
	return r;
}

static int doctor(const struct invocation *call)
{
	const struct doctor_options *o = call->options;
	struct ladder_options ladder = ladder_of(call);
	struct applied applied;
	struct command_defaults *chosen = calloc(1, sizeof(*chosen));
	struct evidence *e = calloc(1, sizeof(*e));
	struct diagnosis *d = calloc(1, sizeof(*d));
	int r = e && d && chosen ? 0 : -ENOMEM;

	/*
	 * Measure real data. A trainer that the doctor starts on synthetic data
	 * gets $BETON_SYNTHETIC from it.
	 */
	unsetenv("BETON_SYNTHETIC");
	catch_signals();
	leave_settings(call->log);
	if (!r && o->apply)
		r = apply_check(o->apply, call->log);
	if (!r) {
		choose_defaults(call, &ladder, chosen);
		e->target = (double)o->target;
		r = ladder_look(&ladder, e);
	}
	r = r ? r : ladder_run(&ladder, e);
	r = r ? r : watch_trainer(call, e);
	hide_progress(call);
	r = r ? r : report_evidence(call, e, d, &applied);
	for (size_t i = 0; e && i < e->num_ops; i++)
		free(e->ops[i].written);
	free(e);
	free(d);
	free(chosen);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

const struct command command_doctor = {
	.name = "doctor",
	.operands = "FILE|MOUNT",
	.min_operands = 1,
	.max_operands = 1,
	.summary = "Find out why a training is slow, and what would help",
	.examples =
		"  beton doctor train.beton\n"
		"  beton doctor train.beton --pipeline 'random_resized_crop(224) | \\\n"
		"      flip | normalize(imagenet) | float | chw'\n"
		"  beton doctor mnt --target 3000 --json\n",
	.rows = rows,
	.num_rows = ARRAY_LEN(rows),
	.options_size = sizeof(struct doctor_options),
	.defaults = &defaults,
	.run = doctor,
};
