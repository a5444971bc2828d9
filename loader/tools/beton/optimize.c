/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beton optimize: copies a dataset and recodes its JPEGs, without loss, as they
 * decode fastest. A first pass counts the symbols of some JPEGs and makes the
 * Huffman tables that all share. A second one recodes and writes.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/base/util/thread.h"
#include "fs/data/dataset/joined.h"
#include "fs/data/writer/output_open.h"
#include "fs/data/writer/rewrite.h"
#include "fs/data/writer/writer.h"
#include "loader/image/codec/recode.h"
#include "loader/tools/beton/command.h"
#include "loader/tools/beton/jpegs.h"
#include "loader/tools/ui/progress.h"
#include "loader/tools/ui/signals.h"

enum {
	/* Samples whose symbols are counted. More samples do not change the
	   tables. */
	COUNTED_MAX = 4096,
	COMPARED = 256, /* samples at least, or all */
	WORKERS_MAX = 256,
	PAGE_SIZE_MIN = 2 << 20, /* the writer's limit */
};

struct optimize_options {
	uint64_t step;
	uint64_t jobs;
	bool no_index;
	bool quality_report;
};

#define AT(member) .offset = offsetof(struct optimize_options, member)

static const struct option_row rows[] = {
	{ "step", .kind = OPTION_NUMBER, AT(step), .min = 1, .max = UINT16_MAX,
	  .argument = "N",
	  .help = "Index every N-th block (MCU) of a row (default: up to four "
		  "entries per row)" },
	{ "no-index", .kind = OPTION_FLAG, AT(no_index),
	  .help = "Make the JPEGs smaller, but add no index for decoding "
		  "crops" },
	{ "quality-report", .kind = OPTION_FLAG, AT(quality_report),
	  .help = "Print statistics of the JPEGs, and compare the pixels of "
		  "some" },
	{ "jobs", 'j', OPTION_NUMBER, AT(jobs), .min = 1, .max = WORKERS_MAX,
	  .argument = "N",
	  .help = "Use N threads (default: one per usable CPU)" },
};

/* Notes of a JPEG that was recoded. */
enum { HAS_INDEX = 1, HAS_OWN_CODES = 2 };

struct optimize_worker {
	const struct optimize *run;
	struct codec_recoder *recoder;
	struct symbols symbols; /* that it counted */
	struct jpegs *jpegs;	/* NULL: no report was asked for */
};

struct optimize {
	const struct optimize_options *options;
	struct log *log;
	const char *path; /* the new file's */
	struct dataset *dataset;
	struct writer *writer;
	struct signals_watch signals;
	struct progress progress;
	struct optimize_worker *workers;
	unsigned num_workers;
	uint64_t counted; /* samples whose symbols are counted */
	uint64_t done;	  /* samples done, of both passes */
	struct symbols_codes codes;
	struct jpegs_figures figures;
	/* Figures of the last line: */
	uint64_t jpegs;
	uint64_t own_codes;
	uint64_t kept;
	uint64_t indexed;
	uint64_t size_before;
	uint64_t size_after;
};

/* --- one JPEG ------------------------------------------------------------ */

static bool is_jpeg(const struct rewrite_value *v)
{
	return field_is_image(v->field) && v->read.mode == BETON_MODE_JPG;
}

/* If a JPEG cannot be read, it is not counted. */
static int count_symbols(void *worker, struct rewrite_sample *s, size_t i)
{
	const struct rewrite_value *v = &s->values[i];
	struct optimize_worker *w = worker;

	if (is_jpeg(v))
		codec_count(w->recoder, v->bytes, v->read.size, &w->symbols);
	return 0;
}

/* If a JPEG cannot be recoded, or would not gain, it stays. */
static int recode_value(void *worker, struct rewrite_sample *s, size_t i)
{
	struct rewrite_value *v = &s->values[i];
	const struct optimize_worker *w = worker;
	const struct optimize_options *o = w->run->options;
	int step = o->no_index ? RECODE_NO_INDEX : (int)o->step;
	struct recoded made;

	if (!is_jpeg(v) || codec_recode(w->recoder, v->bytes, v->read.size,
					step, &w->run->codes, &made))
		return 0;
	if (!made.index_size && made.size >= v->read.size) {
		free(made.bytes);
		return 0;
	}
	rewrite_replace(s, i, made.bytes, made.size);
	v->note = (made.index_size ? HAS_INDEX : 0) |
		  (made.own_codes ? HAS_OWN_CODES : 0);
	return 0;
}

/* Returns whether the pixels of this sample are compared. */
static bool is_compared(const struct rewrite_sample *s)
{
	uint64_t every = s->dataset->format.samples / COMPARED;

	return s->number % max_u64(every, 1) == 0;
}

static int recode_and_report(void *worker, struct rewrite_sample *s, size_t i)
{
	const struct rewrite_value *v = &s->values[i];
	const struct writer_value *made = &s->written[i];
	struct optimize_worker *w = worker;

	if (!is_jpeg(v))
		return 0;
	recode_value(w, s, i);
	jpegs_look(w->jpegs, made->bytes, made->size, v->read.size);
	return v->replaced && is_compared(s)
		       ? jpegs_compare(w->jpegs, v->bytes, v->read.size,
				       made->bytes, made->size)
		       : 0;
}

/* --- two passes ---------------------------------------------------------- */

/* The samples whose symbols are counted lie evenly over all. */
static struct rewrite_place counted_place(void *arg, uint64_t i)
{
	const struct optimize *run = arg;
	uint64_t samples = run->dataset->format.samples;

	return (struct rewrite_place){
		run->dataset,
		(uint64_t)((unsigned __int128)i * samples / run->counted),
	};
}

static void show_progress(void *arg, const struct rewrite_sample *s)
{
	struct optimize *run = arg;

	(void)s;
	progress_show(&run->progress, ++run->done);
}

static void add_to_summary(void *arg, const struct rewrite_sample *s)
{
	struct optimize *run = arg;

	for (size_t i = 0; i < s->num_values; i++) {
		const struct rewrite_value *v = &s->values[i];

		if (!is_jpeg(v))
			continue;
		run->jpegs++;
		run->size_before += v->read.size;
		run->size_after += s->written[i].size;
		if (!v->replaced) {
			run->kept++;
			continue;
		}
		run->indexed += (v->note & HAS_INDEX) != 0;
		run->own_codes += (v->note & HAS_OWN_CODES) != 0;
	}
	show_progress(run, s);
}

static struct rewrite new_pass(struct optimize *run, rewrite_fn *change)
{
	return (struct rewrite){
		.dataset = run->dataset,
		.log = run->log,
		.change = change,
		.workers = run->workers,
		.worker_size = sizeof(*run->workers),
		.threads = run->num_workers,
		.arg = run,
	};
}

static int make_codes(struct optimize *run)
{
	struct rewrite pass = new_pass(run, count_symbols);
	struct symbols sum = { 0 };
	int r;

	pass.count = run->counted;
	pass.place = counted_place;
	pass.done = show_progress;
	r = rewrite_run(&pass);
	for (size_t i = 0; i < run->num_workers; i++)
		symbols_add(&sum, &run->workers[i].symbols);
	symbols_make_codes(&sum, true, &run->codes);
	return r;
}

static int recode_all(struct optimize *run)
{
	bool report = run->options->quality_report;
	struct rewrite pass =
		new_pass(run, report ? recode_and_report : recode_value);

	pass.count = run->dataset->format.samples;
	pass.writer = run->writer;
	/* A page may have no room for the index. */
	pass.undo_too_large = true;
	pass.done = add_to_summary;
	return rewrite_run(&pass);
}

/* If pixels differ, discard the file. */
static int add_reports(struct optimize *run)
{
	for (size_t i = 0; i < run->num_workers; i++) {
		const struct optimize_worker *w = &run->workers[i];

		if (w->jpegs)
			jpegs_add(&run->figures, jpegs_figures(w->jpegs));
	}
	if (!run->figures.different)
		return 0;
	log_error(run->log,
		  "%s: not written: the pixels of %llu JPEGs would change",
		  run->path, (unsigned long long)run->figures.different);
	return -EIO;
}

static int copy_dataset(struct optimize *run)
{
	uint64_t samples = run->dataset->format.samples;
	int r;

	run->counted = min_u64(samples, COUNTED_MAX);
	progress_init(&run->progress, samples + run->counted, run->log);
	r = make_codes(run);
	r = r ? r : recode_all(run);
	progress_hide(&run->progress);
	return r ? r : add_reports(run);
}

/* --- before and after ---------------------------------------------------- */

static int open_writer(struct optimize *run)
{
	const struct format *f = &run->dataset->format;
	cleanup_free struct writer_field *fields = NULL;
	int r = rewrite_fields(run->dataset, &fields);

	if (r)
		return r;
	return writer_begin(
		&(struct writer_setup){
			.path = run->path,
			.fields = fields,
			.num_fields = f->num_fields,
			.num_samples = f->samples,
			.page_size =
				(uint32_t)max_u64(f->page_size, PAGE_SIZE_MIN),
			.poll = signals_check,
			.arg = &run->signals,
			.log = run->log,
		},
		&run->writer);
}

static int open_workers(struct optimize *run)
{
	uint64_t n = run->options->jobs;
	int r;

	run->num_workers = n ? (unsigned)n : thread_usable_cpus();
	run->workers = calloc(run->num_workers, sizeof(*run->workers));
	r = run->workers ? 0 : -ENOMEM;
	for (size_t i = 0; i < run->num_workers && !r; i++) {
		run->workers[i].run = run;
		r = codec_recoder_open(&run->workers[i].recoder);
		if (!r && run->options->quality_report)
			r = jpegs_open(&run->workers[i].jpegs);
	}
	if (r)
		log_error(run->log, "out of memory");
	return r;
}

static void close_all(struct optimize *run)
{
	for (size_t i = 0; run->workers && i < run->num_workers; i++) {
		codec_recoder_close(run->workers[i].recoder);
		jpegs_close(run->workers[i].jpegs);
	}
	free(run->workers);
	writer_abort(&run->writer);
	dataset_close(run->dataset);
}

static void print_summary(const struct optimize *run)
{
	typedef unsigned long long ull;
	double before = (double)max_u64(run->size_before, 1);
	double change = 100 * ((double)run->size_after - before) / before;

	name_print(stdout, run->path);
	printf(": %llu samples, %llu JPEGs of %llu bytes -> %llu (%+.2f %%), %llu with an index, %llu with tables of their own, %llu unchanged, %.1f s\n",
	       (ull)run->dataset->format.samples, (ull)run->jpegs,
	       (ull)run->size_before, (ull)run->size_after,
	       run->jpegs ? change : 0, (ull)run->indexed, (ull)run->own_codes,
	       (ull)run->kept, progress_seconds(&run->progress));
}

static int optimize(const struct invocation *call)
{
	struct optimize run = {
		.options = call->options,
		.log = call->log,
		.path = call->operands[1],
	};
	int r;

	/* Parts of an unfinished object would stay on the server. */
	signals_watch(&run.signals, output_is_remote(run.path));
	r = joined_open(call->operands[0], NULL, call->log, &run.dataset);
	r = r ? r : open_workers(&run);
	r = r ? r : open_writer(&run);
	r = r ? r : copy_dataset(&run);
	r = r ? r : writer_finish(&run.writer);
	if (!r && run.options->quality_report)
		jpegs_print(&run.figures, stdout);
	if (!r && command_is_talkative(call))
		print_summary(&run);
	close_all(&run);
	signals_pass(&run.signals);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

const struct command command_optimize = {
	.name = "optimize",
	.operands = "FILE NEWFILE",
	.min_operands = 2,
	.max_operands = 2,
	.summary =
		"Copy a dataset so that its JPEGs decode faster, without loss",
	.examples = "  beton optimize train.beton fast.beton\n"
		    "  beton optimize --step 8 train.beton faster.beton\n",
	.rows = rows,
	.num_rows = ARRAY_LEN(rows),
	.options_size = sizeof(struct optimize_options),
	.run = optimize,
};
