/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mkfs.beton: makes a dataset of images, archives, tables or other datasets.
 * mkfs.beton(8) is its manual.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/base/util/log.h"
#include "fs/base/util/name.h"
#include "fs/base/util/thread.h"
#include "fs/source/url/command_line.h"
#include "loader/tools/input/directory.h"
#include "loader/tools/input/kinds.h"
#include "loader/tools/mkfs/build.h"
#include "loader/tools/ui/output.h"
#include "loader/tools/ui/signals.h"

/* Exit codes, beside EXIT_SUCCESS and EXIT_FAILURE (1: nothing was written, and
   a message contains the reason). */
enum {
	EXIT_USAGE = 2, /* wrong usage: nothing was done */
};

#define PAGE_SIZE_DEFAULT ((uint32_t)8 << 20)

/* The text after the number of samples in the summary. */
static void print_classes(const struct mapping *mapping)
{
	size_t n = mapping_num_classes(mapping);

	if (n)
		printf(" of %zu classes", n);
	else if (mapping->input->kind == &input_directory)
		printf(" without labels");
}

static void print_summary(const struct build *b)
{
	double seconds = progress_seconds(&b->progress);
	uint64_t ignored = b->mapping->input->ignored;

	name_print(stdout, b->dataset);
	printf(": %llu %ssamples", (unsigned long long)b->samples,
	       b->options->append ? "new " : "");
	print_classes(b->mapping);
	if (mapping_has_images(b->mapping))
		printf(" (%llu jpg, %llu raw)", (unsigned long long)b->jpegs,
		       (unsigned long long)b->raws);
	printf(", %llu bytes, %.1f s (%.0f/s)", (unsigned long long)b->bytes,
	       seconds, (double)b->samples / seconds);
	if (b->skipped)
		printf(", %llu skipped", (unsigned long long)b->skipped);
	if (ignored)
		printf(", %llu other file%s ignored",
		       (unsigned long long)ignored, ignored == 1 ? "" : "s");
	putchar('\n');
}

/* Describes what a run without --dry-run writes. */
static void print_plan(const struct build *b)
{
	const struct selection *s = &b->selection;

	name_print(stdout, b->dataset);
	printf(": %llu of %llu samples of %s", (unsigned long long)s->count,
	       (unsigned long long)b->mapping->input->num_samples,
	       input_title(b->mapping->input));
	if (mapping_has_images(b->mapping))
		printf(", images as %s",
		       encode_mode_name(&b->options->recipe.mode));
	printf(", pages of %u MiB\n", b->page_size >> 20);
	mapping_print(b->mapping, stdout);
}

static int write_dataset(struct build *b)
{
	const struct mkfs_options *o = b->options;
	int r;

	signals_block(&b->signals);
	if (o->common.level >= BETON_LOG_DEBUG)
		log_info(b->log,
			 "%llu samples found, %llu taken, %u threads, pages of "
			 "%u MiB",
			 (unsigned long long)b->mapping->input->num_samples,
			 (unsigned long long)b->selection.count, b->jobs,
			 b->page_size >> 20);
	r = build_run(b);
	if (!r && o->common.level >= BETON_LOG_INFO)
		print_summary(b);
	return r;
}

static uint64_t selected(const void *selection, uint64_t i)
{
	return selection_at(selection, i);
}

/* Opens what the options ask for, and writes it. */
static int make_of(struct input *in, const struct mkfs_options *o,
		   struct build *b)
{
	int r = o->masks ? directory_add_masks(in, o->masks) : 0;

	r = r ? r : mapping_open(in, o->fields, b->log, &b->mapping);
	r = r ? r : selection_open(in, &o->selection, b->log, &b->selection);
	if (r)
		return r;
	if (o->dry_run) {
		print_plan(b);
		return 0;
	}
	r = input_begin(in, b->mapping->wanted,
			&(struct input_order){ selected, &b->selection,
					       b->selection.count });
	return r ? r : write_dataset(b);
}

/* An existing dataset keeps its page size. */
static uint32_t first_page_size(const struct mkfs_options *o)
{
	if (o->page_size || o->append)
		return (uint32_t)o->page_size;
	return PAGE_SIZE_DEFAULT;
}

/* operands: SOURCE... DATASET */
static int make_dataset(char **operands, int n, struct mkfs_options *o,
			struct log *log)
{
	struct build b = {
		.options = o,
		.log = log,
		.dataset = operands[n - 1],
		.jobs = o->jobs ? (unsigned)o->jobs : thread_usable_cpus(),
		.page_size = first_page_size(o),
	};
	struct input_setup setup = {
		.split = o->split,
		.mode = o->recipe.mode.row ? encode_mode_name(&o->recipe.mode)
					   : "keep",
		.quality = o->recipe.quality ? (int)o->recipe.quality : 90,
		.max_resolution = (int)o->recipe.max_resolution,
		.log = log,
	};
	struct input *in = NULL;
	int r = input_open(operands, (size_t)n - 1, &setup, &in);

	if (r)
		return r;
	mkfs_options_complete(o, in->keeps_images);
	r = make_of(in, o, &b);
	selection_fini(&b.selection);
	mapping_close(b.mapping);
	input_close(in);
	return r;
}

static int run_program(char **argv, struct log *log)
{
	struct mkfs_options options;
	int r, operands = 0;

	if (mkfs_options_parse(argv, log, &options, &operands))
		return EXIT_USAGE;
	if (mkfs_options_answer(&options))
		return EXIT_SUCCESS;
	log->level = options.common.level;
	r = make_dataset(argv + 1, operands, &options, log);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct log log;
	int code;

	(void)argc;
	command_line_hide(argv);
	/* Ignore the signal, so that a write beyond RLIMIT_FSIZE fails with
	   EFBIG. */
	signal(SIGXFSZ, SIG_IGN);
	output_begin();
	log_init(&log, log_to_stderr, (char[]){ MKFS_PROGRAM });
	code = output_end(&log, run_program(argv, &log));
	log_fini(&log);
	return code;
}
