/* SPDX-License-Identifier: Apache-2.0 */
/* fsck.beton: checks datasets. fsck.beton(8) is its manual. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/base/util/thread.h"
#include "fs/source/url/command_line.h"
#include "fs/source/url/url.h"
#include "loader/tools/fsck/head.h"
#include "loader/tools/fsck/options.h"
#include "loader/tools/fsck/repair.h"
#include "loader/tools/fsck/sums.h"
#include "loader/tools/fsck/tables.h"
#include "loader/tools/ui/output.h"
#include "loader/tools/ui/signals.h"

typedef unsigned long long ull;

/* The exit status of fsck(8): a sum of these. */
enum {
	STATUS_REPAIRED = 1,
	STATUS_DAMAGED = 4,
	STATUS_FAILED = 8,
	STATUS_USAGE = 16,
	STATUS_CANCELED = 32,
};

/* One dataset. */
struct fsck_run {
	const struct fsck_options *options;
	struct log *log;
	struct target target;
	struct report report;
	struct progress progress;
	json_t *findings;
	int status;
	uint64_t written; /* samples of the copy */
	bool wrote_sums;
};

/* --- results ------------------------------------------------------------- */

static bool is_silent(const struct fsck_options *o)
{
	return o->json || o->list_bad;
}

static double rate_of(const struct fsck_run *run, double seconds)
{
	return (double)run->target.read / (1 << 20) / seconds;
}

/* The verdict, in one line. */
static void print_verdict(const struct fsck_run *run)
{
	const struct report *r = &run->report;
	double seconds = progress_seconds(&run->progress);
	uint64_t errors = report_errors(r), notes = report_notes(r);

	name_print(stdout, r->path);
	if (!(run->status & ~STATUS_REPAIRED) && !errors)
		printf(": sound: ");
	else if (run->status & STATUS_CANCELED)
		printf(": canceled: ");
	else if (errors)
		printf(": damaged: %llu errors, %llu damaged samples; ",
		       (ull)errors, (ull)r->bad.count);
	else
		printf(": not checked: ");
	if (!r->counts[CHECK_VERSION])
		printf("%llu samples, %u fields, ",
		       (ull)run->target.format.samples,
		       run->target.format.num_fields);
	if (notes)
		printf("%llu notes, ", (ull)notes);
	printf("%llu MiB read in %.1f s (%.0f MiB/s)\n",
	       (ull)run->target.read >> 20, seconds, rate_of(run, seconds));
}

static void print_repair(const struct fsck_run *run)
{
	const struct bad_set *bad = &run->report.bad;
	uint64_t at = bad_set_next(bad, 0), shown = 0;

	name_print(stdout, run->options->repair);
	printf(": written: %llu samples, %llu left out", (ull)run->written,
	       (ull)bad->count);
	for (; at < bad->samples && shown < run->options->limit; shown++) {
		printf("%s%llu", shown ? ", " : ": ", (ull)at);
		at = bad_set_next(bad, at + 1);
	}
	printf("%s\n", at < bad->samples ? ", ..." : "");
}

static void print_sums(const struct fsck_run *run)
{
	name_print(stdout, run->report.path);
	printf(".sums: written\n");
}

static void print_bad(const struct fsck_run *run)
{
	const struct bad_set *bad = &run->report.bad;

	for (uint64_t at = bad_set_next(bad, 0); at < bad->samples;
	     at = bad_set_next(bad, at + 1))
		printf("%llu\n", (ull)at);
}

static json_t *bad_json(const struct bad_set *bad)
{
	json_t *list = json_array();

	for (uint64_t at = bad_set_next(bad, 0); at < bad->samples;
	     at = bad_set_next(bad, at + 1))
		json_array_append_new(list, json_integer((json_int_t)at));
	return list;
}

/* A path that is not UTF-8 is escaped. */
static json_t *path_json(const char *path)
{
	json_t *text = json_string(path);
	char *escaped = text ? NULL : malloc(NAME_ESCAPED * strlen(path) + 2);

	if (escaped) {
		name_escape(path, escaped);
		text = json_string(escaped);
	}
	free(escaped);
	return text;
}

static void print_json(const struct fsck_run *run)
{
	static const char *const extents[] = { "tables", "bytes", "deep" };
	const struct report *r = &run->report;
	double seconds = progress_seconds(&run->progress);
	json_t *o = json_pack(
		"{s:i, s:o, s:s, s:i, s:b, s:I, s:I, s:I, s:I, s:f, s:o, s:O, s:o, s:b}",
		"version", 1, "file", path_json(r->path), "checked",
		extents[run->target.extent], "status", run->status, "sound",
		!run->status && !report_errors(r), "samples",
		(json_int_t)run->target.format.samples, "errors",
		(json_int_t)report_errors(r), "notes",
		(json_int_t)report_notes(r), "bytes_read",
		(json_int_t)run->target.read, "seconds", seconds, "checks",
		report_counts(r), "findings", run->findings, "bad_samples",
		bad_json(&r->bad), "bad_samples_complete", !r->bad.incomplete);

	if (o && run->options->repair && run->status & STATUS_REPAIRED)
		json_object_set_new(o, "repaired",
				    json_integer((json_int_t)run->written));
	if (o)
		json_dumpf(o, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(o);
}

static void print_results(const struct fsck_run *run)
{
	const struct fsck_options *o = run->options;

	report_rest(&run->report);
	if (o->json) {
		print_json(run);
	} else if (o->list_bad) {
		print_bad(run);
	} else {
		if (o->common.level >= BETON_LOG_INFO)
			print_verdict(run);
		if (run->status & STATUS_REPAIRED)
			print_repair(run);
		if (run->wrote_sums && o->common.level >= BETON_LOG_INFO)
			print_sums(run);
	}
	if (run->report.bad.incomplete)
		log_error(
			run->log,
			"%s: there are more damaged samples than --memory=%lluM can list",
			run->report.path, (ull)o->memory >> 20);
}

/* --- one dataset --------------------------------------------------------- */

static int status_of(const struct fsck_run *run, int error)
{
	int status = report_errors(&run->report) ? STATUS_DAMAGED : 0;

	if (error == -EINTR)
		return status | STATUS_CANCELED;
	if (run->report.bad.incomplete || run->report.counts[CHECK_READ])
		status |= STATUS_FAILED;
	return error && error != -BETON_ECORRUPT && error != -BETON_ENOTBETON
		       ? status | STATUS_FAILED
		       : status;
}

static void repair(struct fsck_run *run)
{
	int r = repair_write(&run->target, run->options->repair, &run->written);

	if (!r)
		run->status = STATUS_REPAIRED;
	else if (r == -EINTR)
		run->status |= STATUS_CANCELED;
	else if (r != -EOPNOTSUPP && r != -ENODATA && r != -EINVAL)
		run->status |= STATUS_FAILED;
}

/* The bytes that the progress bar counts, in MiB. */
static uint64_t work_of(const struct target *t)
{
	const struct format *f = &t->format;
	uint64_t tables =
		f->samples * f->itemsize + f->table_entries * FORMAT_ENTRY_SIZE;

	return (tables + (t->extent == CHECK_TABLES
				  ? 0
				  : f->table_off - f->first_page)) >>
	       20;
}

static int open_sums(struct fsck_run *run)
{
	const struct fsck_options *o = run->options;

	if (o->tables)
		return 0;
	return sums_check_open(&run->target,
			       o->update_sums ? SUMS_RENEW
			       : o->sums      ? SUMS_MAKE
					      : SUMS_VERIFY,
			       &run->target.sums);
}

/* The head is damaged: the checksums may locate the damage. */
static int check_sums(struct target *t)
{
	int r = t->sums ? sums_check_file(t->sums) : 0;

	return r || !t->sums ? r : sums_check_report(t->sums, NULL);
}

static int check_all(struct fsck_run *run)
{
	struct target *t = &run->target;
	int r = open_sums(run), head = r ? r : head_check(t);

	if (head == -BETON_ECORRUPT)
		r = check_sums(t);
	if (r || head)
		return r ? r : head;
	r = bad_set_init(&run->report.bad, t->format.samples, t->memory / 8);
	if (r)
		return r;
	progress_init(&run->progress, work_of(t), run->log);
	return tables_check(t);
}

/* Checksums are written next to the dataset. Returns whether that is possible,
   or not asked for. */
static bool can_write_sums(const struct fsck_options *o, const char *path,
			   struct log *log)
{
	cleanup_free char *shown = NULL;

	if (!url_is(path) || (!o->sums && !o->update_sums))
		return true;
	shown = url_visible(path);
	log_error(
		log,
		"%s: checksums are written next to a local file: run fsck.beton --sums FILE before you upload FILE, and upload FILE.sums, too",
		shown ? shown : "URL");
	return false;
}

static int check_dataset(const struct fsck_options *o, const char *path,
			 sigset_t *signals, struct log *log)
{
	struct fsck_run run = {
		.options = o,
		.log = log,
		.report = {
			.limit = o->limit,
			.shows_details = o->common.level >= BETON_LOG_DEBUG,
			.is_silent = is_silent(o),
		},
		.target = {
			.given = path,
			.log = log,
			.extent = o->deep     ? CHECK_DEEP
				  : o->tables ? CHECK_TABLES
					      : CHECK_BYTES,
			.threads = o->jobs ? (unsigned)o->jobs
					   : thread_usable_cpus(),
			.memory = o->memory,
			.signals = signals,
		},
	};
	int r;

	if (!can_write_sums(o, path, log))
		return STATUS_USAGE;
	r = source_open(path, NULL, log, &run.target.source);
	if (r)
		return STATUS_FAILED;
	run.report.path = run.target.source->path;
	run.report.format = &run.target.format;
	run.report.progress = &run.progress;
	run.target.report = &run.report;
	run.findings = json_array();
	run.report.json = o->json ? run.findings : NULL;
	progress_init(&run.progress, 0, log);
	r = check_all(&run);
	run.status = status_of(&run, r);
	if (!run.status && run.target.sums &&
	    sums_check_save(run.target.sums, &run.wrote_sums))
		run.status = STATUS_FAILED;
	if (o->repair && run.status == STATUS_DAMAGED)
		repair(&run);
	progress_hide(&run.progress);
	print_results(&run);
	json_decref(run.findings);
	bad_set_fini(&run.report.bad);
	format_fini(&run.target.format);
	sums_check_close(run.target.sums);
	source_close(run.target.source);
	return run.status;
}

static int run_program(char **argv, struct log *log)
{
	struct fsck_options options;
	sigset_t signals;
	int status = 0, operands = 0;

	if (fsck_options_parse(argv, log, &options, &operands))
		return STATUS_USAGE;
	if (fsck_options_answer(&options))
		return EXIT_SUCCESS;
	log->level = options.common.level;
	signals_block(&signals);
	for (int i = 1; i <= operands && !(status & STATUS_CANCELED); i++) {
		status |= check_dataset(&options, argv[i], &signals, log);
		if (output_flush(log))
			return status | STATUS_FAILED;
	}
	return status;
}

int main(int argc, char **argv)
{
	struct log log;
	int code, ended;

	(void)argc;
	command_line_hide(argv);
	/* Ignore the signal, so that a write beyond RLIMIT_FSIZE fails with
	   EFBIG. */
	signal(SIGXFSZ, SIG_IGN);
	output_begin();
	log_init(&log, log_to_stderr, (char[]){ FSCK_PROGRAM });
	code = run_program(argv, &log);
	ended = output_end(&log, EXIT_SUCCESS);
	log_fini(&log);
	return ended ? code | STATUS_FAILED : code;
}
