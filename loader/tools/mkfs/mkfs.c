/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mkfs.beton: makes a dataset of directories of images. mkfs.beton(8) is its
 * manual.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/writer/writer.h"
#include "fs/util/bytes.h"
#include "fs/util/log.h"
#include "fs/util/name.h"
#include "fs/util/thread.h"
#include "loader/tools/mkfs/mask.h"
#include "loader/tools/mkfs/options.h"
#include "loader/tools/mkfs/pool.h"
#include "loader/tools/mkfs/scan.h"
#include "loader/tools/ui/output.h"
#include "loader/tools/ui/progress.h"

/* Exit codes, beside EXIT_SUCCESS and EXIT_FAILURE (1: nothing was written, and
   a message contains the reason). */
enum {
	EXIT_USAGE = 2, /* wrong usage: nothing was done */
	/* Milliseconds between polls for a signal, and between updates of the
	   progress bar. */
	POLL_MS = 100,
};

#define PAGE_SIZE_DEFAULT ((uint64_t)8 << 20)

/* --- one run ------------------------------------------------------------- */

/* The state of the program. The figures are reset when it starts over. */
struct run {
	const struct mkfs_options *options;
	struct log *log;
	struct mkfs_plan plan;
	struct scan scan;
	const char *dataset;
	unsigned jobs;
	uint32_t page_size;
	uint64_t reported; /* number of the first image whose failure is not
			      logged yet */
	sigset_t signals;
	int signal; /* the one that ends the program, or 0 */
	struct progress progress;
	uint64_t jpegs;
	uint64_t raws;
	uint64_t skipped;
	uint64_t bytes; /* of all samples */
};

static const char *path_of(const struct run *run, uint64_t number)
{
	return mkfs_plan_file(&run->plan, number)->path;
}

/* Logs what is wrong with a bad image. Returns an error if it ends the run. */
static int report_bad(struct run *run, uint64_t number,
		      const struct encoded *sample)
{
	const char *path = path_of(run, number);

	progress_hide(&run->progress);
	if (sample->fatal || run->options->on_error == ON_ERROR_STOP) {
		log_error(run->log, "%s: %s", path, sample->why);
		return sample->status;
	}
	run->skipped++;
	/* Not a warning, because the log suppresses warnings beyond a limit. */
	if (number >= run->reported)
		log_info(run->log, "%s: %s; skipped", path, sample->why);
	run->reported = max_u64(run->reported, number + 1);
	return 0;
}

/* Without --page-size, returns -EAGAIN to try again with larger pages. */
static int report_too_large(struct run *run, uint64_t number, uint64_t size)
{
	uint64_t page = run->page_size;

	while (page < size)
		page *= 2;
	progress_hide(&run->progress);
	/* Starting over helps only if the pages grow. */
	if (run->options->page_size || page == run->page_size) {
		log_error(run->log,
			  "%s: takes %llu bytes, more than a page: "
			  "set --page-size=%lluM",
			  path_of(run, number), (unsigned long long)size,
			  (unsigned long long)page >> 20);
		return -BETON_ETOOLARGE;
	}
	log_info(run->log,
		 "%s: takes %llu bytes; starting over with pages "
		 "of %llu MiB",
		 path_of(run, number), (unsigned long long)size,
		 (unsigned long long)page >> 20);
	run->page_size = (uint32_t)page;
	return -EAGAIN;
}

/* The fields: an image, a label if there are classes, a mask if asked for. */
static unsigned num_fields(const struct run *run)
{
	return 1 + run->scan.has_labels + (run->options->masks != NULL);
}

static int append_sample(struct run *run, struct writer *w, uint64_t number,
			 const struct encoded *sample, const struct mask *mask)
{
	struct writer_value values[3] = {
		{
			.bytes = sample->bytes,
			.size = sample->size,
			.mode = sample->mode,
			.width = sample->width,
			.height = sample->height,
		},
		{ .integer = mkfs_plan_file(&run->plan, number)->label },
	};
	int r;

	if (mask->bytes)
		values[num_fields(run) - 1] = (struct writer_value){
			.bytes = mask->bytes,
			.size = mask->size,
		};
	r = writer_append(w, values);
	if (r == -BETON_ETOOLARGE)
		return report_too_large(run, number, sample->size + mask->size);
	if (r)
		return r;
	run->bytes += sample->size + mask->size;
	if (sample->mode == BETON_MODE_JPG)
		run->jpegs++;
	else
		run->raws++;
	return 0;
}

/*
 * The signals are blocked and polled, so no handler has anything to clean up.
 */
static bool is_interrupted(struct run *run)
{
	struct timespec now = { 0 };
	int s = sigtimedwait(&run->signals, NULL, &now);

	if (s > 0)
		run->signal = s;
	return run->signal != 0;
}

static int take_sample(struct run *run, struct writer *w, uint64_t number,
		       struct encoded *sample)
{
	const struct scan_file *file = mkfs_plan_file(&run->plan, number);
	struct mask mask = { NULL, 0 };
	int r;

	if (!sample->status && run->options->masks)
		mask_read(run->options->masks, file->path + file->rel, sample,
			  &mask);
	r = sample->status ? report_bad(run, number, sample)
			   : append_sample(run, w, number, sample, &mask);
	free(mask.bytes);
	return r;
}

static int copy_samples(struct run *run, struct mkfs_pool *pool,
			struct writer *w)
{
	struct encoded sample;
	uint64_t number = 0;
	int r;

	for (;;) {
		if (is_interrupted(run))
			return -EINTR;
		progress_show(&run->progress, number);
		r = mkfs_pool_next(pool, POLL_MS, &sample);
		if (r == -EAGAIN)
			continue;
		if (r)
			return r == -ENODATA ? 0 : r;
		r = take_sample(run, w, number, &sample);
		free(sample.bytes);
		if (r)
			return r;
		number++;
	}
}

static int finish_dataset(struct run *run, struct writer **w)
{
	progress_hide(&run->progress);
	if (!run->jpegs && !run->raws) {
		log_error(run->log, "%s: not written: no image could be read",
			  run->dataset);
		return -ENODATA;
	}
	return writer_finish(w);
}

/* Writes the dataset. -EAGAIN: run->page_size had to grow. */
static int build_dataset(struct run *run)
{
	struct writer_field fields[3] = {
		{ .name = "image", .type = BETON_TYPE_IMAGE },
		{ .name = "label",
		  .type = BETON_TYPE_INT,
		  .classes = (const char *const *)run->scan.classes,
		  .num_classes =
			  run->scan.has_names ? run->scan.num_classes : 0 },
	};
	struct writer *w = NULL;
	struct mkfs_pool *pool = NULL;
	int r;

	if (run->options->masks)
		fields[num_fields(run) - 1] = (struct writer_field){
			.name = "mask",
			.type = BETON_TYPE_BYTES,
		};
	r = writer_open(run->dataset, fields, num_fields(run), run->plan.count,
			run->page_size, run->log, &w);
	if (r)
		return r;
	run->jpegs = run->raws = run->skipped = run->bytes = 0;
	r = mkfs_pool_open(&run->plan, run->jobs, &pool);
	if (r)
		log_error(run->log, "cannot start %u threads: %s", run->jobs,
			  strerror(-r));
	r = r ? r : copy_samples(run, pool, w);
	progress_hide(&run->progress);
	/* After a signal, do not wait for the images still being encoded. */
	if (run->signal) {
		writer_abort(&w);
		signal(run->signal, SIG_DFL);
		pthread_sigmask(SIG_UNBLOCK, &run->signals, NULL);
		raise(run->signal);
	}
	mkfs_pool_close(pool);
	r = r ? r : finish_dataset(run, &w);
	writer_abort(&w);
	return r;
}

/* --- before and after ---------------------------------------------------- */

static int check_source(struct run *run, const char *path)
{
	size_t n = strlen(path);
	struct stat st;

	if (stat(path, &st) < 0) {
		log_error(run->log, "%s: %s", path, strerror(errno));
		return -errno;
	}
	if (S_ISDIR(st.st_mode))
		return 0;
	if (n >= 6 && strcmp(path + n - 6, ".beton") == 0)
		log_error(
			run->log,
			"%s: SOURCE is a dataset: expected a directory of images",
			path);
	else
		log_error(run->log,
			  "%s: not a directory: expected a directory of images",
			  path);
	return -ENOTDIR;
}

static int scan_sources(struct run *run, char **sources, int num_sources)
{
	int r = 0;

	run->scan.log = run->log;
	for (int i = 0; i < num_sources && !r; i++)
		r = check_source(run, sources[i]);
	for (int i = 0; i < num_sources && !r; i++)
		r = scan_add(&run->scan, sources[i]);
	r = r ? r : scan_finish(&run->scan);
	if (!r && !run->scan.num_files) {
		log_error(run->log,
			  "%s: no .jpg, .jpeg, .jpe, .png or .webp files",
			  num_sources == 1 ? sources[0] : "the sources");
		return -ENODATA;
	}
	return r;
}

static void make_plan(struct run *run)
{
	const struct mkfs_options *o = run->options;
	uint64_t key[] = { o->recipe.seed, rng_key_of_text("shuffle") };

	run->plan = (struct mkfs_plan){
		.scan = &run->scan,
		.recipe = &o->recipe,
		.count = min_u64(run->scan.num_files, o->limit),
		.shuffle = o->shuffle,
		.order = permutation_init(run->scan.num_files,
					  rng_key(key, ARRAY_LEN(key))),
	};
}

/* Leaves out ignored signals: after nohup, SIGHUP must stay ignored. */
static void block_signals(sigset_t *set)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;

	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		if (sigaction(signals[i], NULL, &action) == 0 &&
		    action.sa_handler != SIG_IGN)
			sigaddset(set, signals[i]);
	}
	pthread_sigmask(SIG_BLOCK, set, NULL);
}

static void print_summary(const struct run *run)
{
	double seconds = progress_seconds(&run->progress);
	uint64_t samples = run->jpegs + run->raws;

	name_print(stdout, run->dataset);
	printf(": %llu samples", (unsigned long long)samples);
	if (run->scan.has_labels)
		printf(" of %zu classes", run->scan.num_classes);
	else
		printf(" without labels");
	printf(" (%llu jpg, %llu raw), %llu bytes, %.1f s (%.0f/s)",
	       (unsigned long long)run->jpegs, (unsigned long long)run->raws,
	       (unsigned long long)run->bytes, seconds,
	       (double)samples / seconds);
	if (run->skipped)
		printf(", %llu skipped", (unsigned long long)run->skipped);
	if (run->scan.ignored)
		printf(", %llu other files ignored",
		       (unsigned long long)run->scan.ignored);
	putchar('\n');
}

/* operands: SOURCE... DATASET */
static int make_dataset(struct run *run, char **operands, int n)
{
	const struct mkfs_options *o = run->options;
	int r;

	run->dataset = operands[n - 1];
	run->jobs = o->jobs ? (unsigned)o->jobs : thread_usable_cpus();
	run->page_size =
		(uint32_t)(o->page_size ? o->page_size : PAGE_SIZE_DEFAULT);
	r = scan_sources(run, operands, n - 1);
	if (r)
		return r;
	make_plan(run);
	block_signals(&run->signals);
	if (o->common.level >= BETON_LOG_DEBUG)
		log_info(
			run->log,
			"%zu images found, %llu taken, %u threads, pages of %u MiB",
			run->scan.num_files,
			(unsigned long long)run->plan.count, run->jobs,
			run->page_size >> 20);
	progress_init(&run->progress, run->plan.count, run->log);
	do
		r = build_dataset(run);
	while (r == -EAGAIN);
	if (!r && o->common.level >= BETON_LOG_INFO)
		print_summary(run);
	return r;
}

static int run_program(char **argv, struct log *log)
{
	struct mkfs_options options;
	struct run run = { .options = &options, .log = log };
	int r, operands = 0;

	if (mkfs_options_parse(argv, log, &options, &operands))
		return EXIT_USAGE;
	if (mkfs_options_answer(&options))
		return EXIT_SUCCESS;
	log->level = options.common.level;
	r = make_dataset(&run, argv + 1, operands);
	scan_fini(&run.scan);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct log log;
	int code;

	(void)argc;
	/* Ignore the signal, so that a write beyond RLIMIT_FSIZE fails with
	   EFBIG. */
	signal(SIGXFSZ, SIG_IGN);
	output_begin();
	log_init(&log, log_to_stderr, (char[]){ MKFS_PROGRAM });
	code = output_end(&log, run_program(argv, &log));
	log_fini(&log);
	return code;
}
