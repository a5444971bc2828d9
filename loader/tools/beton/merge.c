/* SPDX-License-Identifier: Apache-2.0 */
/* beton merge: makes one dataset of several, without decoding anything. */
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fs/base/files/paths.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/name.h"
#include "fs/data/writer/merge.h"
#include "fs/data/writer/output_open.h"
#include "loader/tools/beton/command.h"
#include "loader/tools/ui/progress.h"
#include "loader/tools/ui/signals.h"

struct merge_command_options {
	uint64_t page_size;
	bool keep_numbers;
	bool json;
};

#define AT(member) .offset = offsetof(struct merge_command_options, member)

static const struct option_row rows[] = {
	{ "page-size", .kind = OPTION_SIZE, AT(page_size), .min = 2 << 20,
	  .max = (uint64_t)2 << 30, .argument = "SIZE",
	  .help = "Make pages of SIZE bytes, a power of two (default: those of "
		  "the file with the largest pages)" },
	{ "keep-numbers", .kind = OPTION_FLAG, AT(keep_numbers),
	  .help = "Keep integers as they are, instead of renumbering classes "
		  "by name" },
	{ "json", .kind = OPTION_FLAG, AT(json),
	  .help = "Print the last line as JSON" },
};

struct merge_watch {
	struct progress progress;
	struct signals_watch signals;
};

static int show_progress(void *arg, uint64_t done, uint64_t total)
{
	struct merge_watch *w = arg;

	w->progress.total = total;
	progress_show(&w->progress, done);
	return signals_check(&w->signals);
}

static void print_json(const struct merge_result *r, double seconds)
{
	json_t *o =
		json_pack("{s:I, s:I, s:I, s:f}", "files", (json_int_t)r->files,
			  "samples", (json_int_t)r->samples, "bytes",
			  (json_int_t)r->size, "seconds", seconds);

	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

static void print_line(const char *out, const struct merge_result *r,
		       double seconds)
{
	typedef unsigned long long ull;

	name_print(stdout, out);
	printf(": %llu files, %llu samples, %llu bytes, %.1f s\n",
	       (ull)r->files, (ull)r->samples, (ull)r->size, seconds);
}

/* In "merge a.beton b.beton" the new file is probably missing: b.beton would
   become a copy of a.beton. */
static bool lacks_new_file(const struct invocation *call)
{
	const char *out = call->operands[1];

	if (call->num_operands != 2 || paths_is_pattern(call->operands[0]) ||
	    access(out, F_OK))
		return false;
	log_error(call->log,
		  "%s exists, and a single file replaces no other one: the "
		  "last operand is the new file",
		  out);
	return true;
}

static int merge(const struct invocation *call)
{
	const struct merge_command_options *o = call->options;
	size_t num = (size_t)call->num_operands - 1;
	const char *out = call->operands[num];
	struct merge_result result;
	struct merge_watch watch;
	struct merge_options options = {
		.page_size = o->page_size,
		.keep_numbers = o->keep_numbers,
		.progress = show_progress,
		.arg = &watch,
	};
	int r;

	if (lacks_new_file(call))
		return BETON_EXIT_USAGE;
	/* Parts of an unfinished object would stay on the server. */
	signals_watch(&watch.signals, output_is_remote(out));
	progress_init(&watch.progress, 0, call->log);
	r = merge_files((const char *const *)call->operands, num, out, &options,
			call->log, &result);
	progress_hide(&watch.progress);
	if (r)
		signals_pass(&watch.signals);
	if (r)
		return EXIT_FAILURE;
	if (o->json)
		print_json(&result, progress_seconds(&watch.progress));
	else if (command_is_talkative(call))
		print_line(out, &result, progress_seconds(&watch.progress));
	return EXIT_SUCCESS;
}

const struct command command_merge = {
	.name = "merge",
	.operands = "FILE... NEWFILE",
	.min_operands = 2,
	.max_operands = INT_MAX,
	.summary = "Make one dataset of several, without re-encoding",
	.examples = "  beton merge part-0.beton part-1.beton train.beton\n"
		    "  beton merge 'part-*.beton' train.beton\n"
		    "  beton merge train.beton new.beton train.beton\n"
		    "  beton merge 'part-*.beton' s3://bucket/train.beton\n",
	.rows = rows,
	.num_rows = ARRAY_LEN(rows),
	.options_size = sizeof(struct merge_command_options),
	.run = merge,
};
