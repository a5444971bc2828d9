/* SPDX-License-Identifier: Apache-2.0 */
/* beton split: writes the samples of a dataset to several files, without
   decoding anything. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/name.h"
#include "fs/base/util/suggest.h"
#include "fs/data/dataset/joined.h"
#include "fs/data/writer/output_open.h"
#include "loader/tools/beton/command.h"
#include "loader/tools/combine/split.h"
#include "loader/tools/ui/progress.h"
#include "loader/tools/ui/signals.h"

struct split_options {
	const char *by;
	const char *fractions;
	uint64_t shards; /* 0: not given */
	const char *stratify;
	const char *names;
	uint64_t seed;
	bool json;
};

#define AT(member) .offset = offsetof(struct split_options, member)

static const struct option_row rows[] = {
	{ "by", .kind = OPTION_TEXT, AT(by), .argument = "FIELD",
	  .help = "Write a file for each value of an integer field, named after "
		  "its class" },
	{ "fraction", .kind = OPTION_TEXT, AT(fractions), .argument = "LIST",
	  .help = "Draw a random part of the samples for each share of LIST, "
		  "such as 0.9,0.1" },
	{ "shards", .kind = OPTION_NUMBER, AT(shards), .min = 1,
	  .max = PARTITION_MAX, .argument = "N",
	  .help = "Write N files of consecutive samples" },
	{ "stratify", .kind = OPTION_TEXT, AT(stratify), .argument = "FIELD",
	  .help = "With --fraction, divide the samples of each value of an "
		  "integer field" },
	{ "seed", .kind = OPTION_NUMBER, AT(seed), .max = UINT64_MAX,
	  .argument = "N",
	  .help = "With --fraction, draw other samples for another N (default: "
		  "0)" },
	{ "names", .kind = OPTION_TEXT, AT(names), .argument = "LIST",
	  .help = "Name the files, such as train,val (default: their numbers)" },
	{ "json", .kind = OPTION_FLAG, AT(json),
	  .help = "Print the files as JSON" },
};

/* The argument of --fraction. */
struct fractions {
	size_t num;
	double at[PARTITION_SHARES_MAX];
};

struct split_run {
	const struct invocation *call;
	const struct split_options *options;
	struct fractions fractions;
	struct dataset *dataset;
	struct partition partition;
	struct outputs outputs;
	struct progress progress;
	struct signals_watch signals;
};

/* --- the parts ----------------------------------------------------------- */

/* Finds a field of integers. */
static int find_integers(const struct split_run *run, const char *name,
			 uint32_t *out)
{
	const struct format *f = &run->dataset->format;
	struct suggestion s = { .word = name };
	char meant[SUGGEST_TEXT_SIZE];

	for (uint32_t i = 0; i < f->num_fields; i++) {
		const struct field *field = &f->fields[i];

		if (field_is_integer(field) && (!strcmp(field->name, name) ||
						!strcmp(field->stem, name))) {
			*out = i;
			return 0;
		}
		if (field_is_integer(field))
			suggest_try(&s, field->name);
	}
	suggest_text(&s, meant, sizeof(meant));
	log_error(run->call->log, "%s: has no field '%s' of integers%s",
		  dataset_path(run->dataset), name, meant);
	return -EINVAL;
}

static int name_values(struct split_run *run, uint32_t field)
{
	const struct class_names *classes =
		run->dataset->format.fields[field].classes;
	const struct group *g = run->partition.group;
	int r = 0;

	for (uint64_t i = 0; i < g->num && !r; i++) {
		const char *name = class_name(classes, g->values[i]);
		char number[32];

		snprintf(number, sizeof(number), "%lld",
			 (long long)g->values[i]);
		r = outputs_add(&run->outputs, name ? name : number,
				(long long)g->values[i], run->call->log);
	}
	return r;
}

static int split_by_value(struct split_run *run)
{
	uint32_t field;
	int r = find_integers(run, run->options->by, &field);

	r = r ? r : partition_by_value(run->dataset, field, &run->partition);
	return r ? r : name_values(run, field);
}

static int name_parts(struct split_run *run)
{
	size_t num = run->partition.num;
	const char *list = run->options->names;
	struct log *log = run->call->log;

	return list ? outputs_list(&run->outputs, num, list, log)
		    : outputs_number(&run->outputs, num, log);
}

static int split_by_number(struct split_run *run)
{
	int r = partition_by_number(run->dataset, run->options->shards,
				    &run->partition);

	return r ? r : name_parts(run);
}

static int split_by_share(struct split_run *run)
{
	const struct split_options *o = run->options;
	struct partition_shares shares = {
		.num = run->fractions.num,
		.shares = run->fractions.at,
		.seed = o->seed,
		.stratify = -1,
	};
	uint32_t field;
	int r = 0;

	if (o->stratify) {
		r = find_integers(run, o->stratify, &field);
		shares.stratify = r ? -1 : (int)field;
	}
	r = r ? r : partition_by_share(run->dataset, &shares, &run->partition);
	return r ? r : name_parts(run);
}

/* --- the run ------------------------------------------------------------- */

static void show_progress(void *arg, uint64_t done)
{
	progress_show(arg, done);
}

static int write_parts(struct split_run *run)
{
	struct split split = {
		.dataset = run->dataset,
		.partition = &run->partition,
		.outputs = &run->outputs,
		.log = run->call->log,
		.progress = show_progress,
		.arg = &run->progress,
		.poll = signals_check,
		.poll_arg = &run->signals,
	};
	int r;

	/* Parts of an unfinished object would stay on the server. */
	signals_watch(&run->signals,
		      run->outputs.num &&
			      output_is_remote(run->outputs.paths[0]));

	progress_init(&run->progress, run->dataset->format.samples,
		      run->call->log);
	r = split_run(&split);
	progress_hide(&run->progress);
	signals_pass(&run->signals);
	return r;
}

static uint64_t size_of(const struct split_run *run, size_t part)
{
	return run->partition.starts[part + 1] - run->partition.starts[part];
}

/* A path that is not UTF-8 is null. */
static void print_json(const struct split_run *run)
{
	json_t *files = json_array();

	for (size_t i = 0; i < run->partition.num; i++)
		json_array_append_new(
			files, json_pack("{s:s*, s:s, s:I}", "path",
					 run->outputs.paths[i], "name",
					 run->outputs.names[i], "samples",
					 (json_int_t)size_of(run, i)));
	json_dumpf(files, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(files);
}

static void print_lines(const struct split_run *run)
{
	for (size_t i = 0; i < run->partition.num; i++) {
		name_print(stdout, run->outputs.paths[i]);
		printf(": %llu samples\n", (unsigned long long)size_of(run, i));
	}
}

/* --- the command line ---------------------------------------------------- */

static int refuse_fractions(const struct invocation *call, const char *why)
{
	const struct split_options *o = call->options;

	return option_refuse(call->set, call->log,
			     "--fraction=%s: %s, such as 0.9,0.1", o->fractions,
			     why);
}

/* The sum may differ from 1 as that of 0.333,0.333,0.333 does. */
static int parse_fractions(const struct invocation *call, struct fractions *f)
{
	const struct split_options *o = call->options;
	const char *text = o->fractions;
	double sum = 0;
	char *end;

	do {
		if (f->num == PARTITION_SHARES_MAX)
			return refuse_fractions(call, "at most 64 shares");
		f->at[f->num] = strtod(text, &end);
		if (end == text || (*end && *end != ',') ||
		    !(f->at[f->num] > 0))
			return refuse_fractions(call,
						"expected positive numbers");
		sum += f->at[f->num++];
		text = end + 1;
	} while (*end);
	if (f->num < 2 || fabs(sum - 1) > 0.0011)
		return refuse_fractions(
			call, "expected two or more shares whose sum is 1");
	for (size_t i = 0; i < f->num; i++)
		f->at[i] /= sum;
	return 0;
}

static int check_usage(struct split_run *run)
{
	const struct invocation *call = run->call;
	const struct split_options *o = run->options;
	int ways = (o->by != NULL) + (o->fractions != NULL) + (o->shards > 0);

	if (ways != 1)
		return option_refuse(call->set, call->log,
				     "give one of --by, --fraction and "
				     "--shards");
	if (o->stratify && !o->fractions)
		return option_refuse(call->set, call->log,
				     "--stratify needs --fraction");
	if (o->names && o->by)
		return option_refuse(call->set, call->log,
				     "--names: with --by, files have the names "
				     "of classes");
	return o->fractions ? parse_fractions(call, &run->fractions) : 0;
}

static int split_dataset(struct split_run *run)
{
	int r = joined_open(run->call->operands[0], NULL, run->call->log,
			    &run->dataset);

	if (!r)
		r = run->options->by	   ? split_by_value(run)
		    : run->options->shards ? split_by_number(run)
					   : split_by_share(run);
	r = r ? r
	      : outputs_place(&run->outputs, run->call->operands[1],
			      run->call->log);
	return r ? r : write_parts(run);
}

static int split(const struct invocation *call)
{
	struct split_run run = { .call = call, .options = call->options };
	int r;

	if (check_usage(&run))
		return BETON_EXIT_USAGE;
	r = split_dataset(&run);
	if (!r && run.options->json)
		print_json(&run);
	else if (!r && command_is_talkative(call))
		print_lines(&run);
	partition_fini(&run.partition);
	outputs_fini(&run.outputs);
	dataset_close(run.dataset);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

const struct command command_split = {
	.name = "split",
	.operands = "FILE PATTERN|DIRECTORY",
	.min_operands = 2,
	.max_operands = 2,
	.summary = "Write the samples of a dataset to several files",
	.examples =
		"  beton split --fraction 0.9,0.1 --names train,val all.beton "
		"{}.beton\n"
		"  beton split --by label all.beton classes/\n"
		"  beton split --shards 8 all.beton part-{}.beton\n",
	.rows = rows,
	.num_rows = ARRAY_LEN(rows),
	.options_size = sizeof(struct split_options),
	.run = split,
};
