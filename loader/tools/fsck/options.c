/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/fsck/check.h"
#include "loader/tools/ui/features.h"
#include "loader/tools/ui/option.h"

enum { JOBS_MAX = 1024 };

#define MEMORY_DEFAULT ((uint64_t)64 << 20)
#define MEMORY_MIN ((uint64_t)8 << 20)
#define MEMORY_MAX ((uint64_t)1 << 40)

#define AT(member) .offset = offsetof(struct fsck_options, member)

static const struct option_row rows[] = {
	{ "deep", .kind = OPTION_FLAG, AT(deep),
	  .help = "Also decode every image and parse every JSON text" },
	{ "tables", .kind = OPTION_FLAG, AT(tables),
	  .help = "Read only the header, the metadata and the allocation "
		  "table" },
	{ "repair", .letter = 'a', .kind = OPTION_TEXT, AT(repair),
	  .argument = "OUT",
	  .help = "If the dataset is damaged, write a copy without the "
		  "damaged samples to OUT" },
	{ "sums", .kind = OPTION_FLAG, AT(sums),
	  .help = "If the dataset is sound and has no checksums, write them "
		  "to DATASET.sums" },
	{ "update-sums", .kind = OPTION_FLAG, AT(update_sums),
	  .help = "Ignore the checksums, and write new ones if the dataset is "
		  "sound" },
	{ "list-bad", .kind = OPTION_FLAG, AT(list_bad),
	  .help = "Print only the numbers of the damaged samples, one per "
		  "line" },
	{ "json", .kind = OPTION_FLAG, AT(json),
	  .help = "Print a JSON object per dataset" },
	{ "limit", .kind = OPTION_NUMBER, AT(limit), .max = UINT64_MAX,
	  .argument = "N",
	  .help = "Print at most N lines per check (default: 10)" },
	{ "memory", .kind = OPTION_SIZE, AT(memory), .min = MEMORY_MIN,
	  .max = MEMORY_MAX, .argument = "SIZE",
	  .help = "Use at most SIZE of memory for tables and buffers "
		  "(default: 64M)" },
	{ "jobs", .letter = 'j', .kind = OPTION_NUMBER, AT(jobs), .min = 1,
	  .max = JOBS_MAX, .argument = "N",
	  .help = "Check with N threads (default: one per usable CPU)" },
	{ "checks", .kind = OPTION_FLAG, AT(list_checks) },
};

static struct option_set option_set(struct fsck_options *o)
{
	return (struct option_set){
		.command = FSCK_PROGRAM,
		.groups = { { rows, ARRAY_LEN(rows), o },
			    common_init(&o->common) },
	};
}

static void print_help(const struct option_set *set)
{
	printf("usage: %s [OPTION]... DATASET...\n\n"
	       "Check dataset files (.beton) by every rule of their format. "
	       "The exit status is\n0 if they are sound, 4 if they are "
	       "damaged, and 1 if they were damaged and a\nrepaired copy was "
	       "written.\n\n"
	       "Options:\n",
	       FSCK_PROGRAM);
	option_help(set, stdout);
	printf("\nExamples:\n"
	       "  %s train.beton\n"
	       "  %s --deep train.beton val.beton\n"
	       "  %s --deep --repair=repaired.beton train.beton\n",
	       FSCK_PROGRAM, FSCK_PROGRAM, FSCK_PROGRAM);
}

static int check_options(const struct option_set *set,
			 const struct fsck_options *o, struct log *log,
			 int operands)
{
	if (!operands)
		return option_refuse(set, log, "missing operand: DATASET");
	if (o->deep && o->tables)
		return option_refuse(set, log,
				     "--deep and --tables exclude each other");
	if (o->tables && (o->sums || o->update_sums))
		return option_refuse(set, log,
				     "--tables and --%s exclude each other",
				     o->sums ? "sums" : "update-sums");
	if (o->json && o->list_bad)
		return option_refuse(
			set, log, "--json and --list-bad exclude each other");
	if (operands > 1 && (o->repair || o->list_bad))
		return option_refuse(set, log, "%s takes one DATASET, not %d",
				     o->repair ? "--repair" : "--list-bad",
				     operands);
	return 0;
}

int fsck_options_parse(char **argv, struct log *log,
		       struct fsck_options *options, int *operands)
{
	const struct common_options *common = &options->common;
	struct option_set set;
	int r;

	*options = (struct fsck_options){
		.limit = 10,
		.memory = MEMORY_DEFAULT,
	};
	set = option_set(options);
	r = option_parse(&set, argv, log, operands);
	if (r || common->help || common->version || common->list ||
	    common->describe || options->list_checks)
		return r;
	return check_options(&set, options, log, *operands);
}

bool fsck_options_answer(const struct fsck_options *o)
{
	const struct common_options *common = &o->common;
	struct fsck_options unused;
	const struct option_set set = option_set(&unused);

	if (common->help)
		print_help(&set);
	else if (common->version)
		features_print(FSCK_PROGRAM, stdout);
	else if (common->list)
		option_list(&set, stdout);
	else if (common->describe)
		option_describe(&set, "", stdout);
	else if (o->list_checks)
		check_list();
	else
		return false;
	return true;
}
