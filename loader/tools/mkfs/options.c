/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/picture/picture.h"
#include "loader/tools/ui/features.h"
#include "loader/tools/ui/option.h"

enum { JOBS_MAX = 1024, QUALITY_DEFAULT = 90 };

#define PAGE_SIZE_SMALLEST ((uint64_t)2 << 20)
#define PAGE_SIZE_LARGEST ((uint64_t)2 << 30)

#define AT(member) .offset = offsetof(struct mkfs_options, member)

static const struct option_row rows[] = {
	{ "mode", .kind = OPTION_PARSED, AT(recipe.mode),
	  .argument = "jpg|raw|smart|proportion=P|keep",
	  .parse = encode_parse_mode,
	  .help = "Store images as JPEG (jpg), as pixels (raw), as pixels "
		  "unless large (smart), a share P as JPEG, or JPEG files "
		  "unchanged (keep) (default: jpg; keep if the source is a "
		  "dataset)" },
	{ "fields", .kind = OPTION_TEXT, AT(fields),
	  .argument = "NAME[:TYPE][=SOURCE],...",
	  .help = "Store these fields in this order, renamed from SOURCE and "
		  "converted to TYPE (default: all of the source)" },
	{ "where", .kind = OPTION_TEXT, AT(selection.where),
	  .argument = "CONDITION",
	  .help = "Take only the samples that meet the condition, for example "
		  "'label in 1,5,9 and score >= 0.5'" },
	{ "subset", .kind = OPTION_TEXT, AT(selection.subset),
	  .argument = "A-B|FILE",
	  .help = "Take only samples A to B-1 of the source, or those whose "
		  "numbers FILE lists, in its order" },
	{ "split", .kind = OPTION_TEXT, AT(split), .argument = "NAME",
	  .help = "Read this split of a dataset of Hugging Face or torchvision, "
		  "for example train" },
	{ "masks", .kind = OPTION_TEXT, AT(masks), .argument = "DIR",
	  .help = "Store the PNG file of the same name in DIR as the mask of "
		  "an image" },
	{ "max-resolution", .kind = OPTION_NUMBER, AT(recipe.max_resolution),
	  .min = 1, .max = 65535, .argument = "N",
	  .help = "Shrink images whose longer side exceeds N pixels" },
	{ "quality", .kind = OPTION_NUMBER, AT(recipe.quality), .min = 1,
	  .max = 100, .argument = "Q",
	  .help = "Set the JPEG quality, from 1 to 100 (default: 90)" },
	{ "index", .kind = OPTION_FLAG, AT(recipe.index),
	  .help = "Add an index to JPEGs, so that loaders decode crops "
		  "faster" },
	{ "check", .kind = OPTION_FLAG, AT(recipe.check),
	  .help = "With --mode=keep, decode each file completely, to find "
		  "errors in its data, too" },
	{ "smart-threshold", .kind = OPTION_SIZE, AT(recipe.smart_threshold),
	  .max = UINT64_MAX, .argument = "SIZE",
	  .help = "With --mode=smart, store images of more than SIZE bytes "
		  "of pixels as JPEG (default: 128K)" },
	{ "page-size", .kind = OPTION_SIZE, AT(page_size),
	  .min = PAGE_SIZE_SMALLEST, .max = PAGE_SIZE_LARGEST,
	  .argument = "SIZE",
	  .help = "Set the page size, a power of two from 2M to 2G (default: "
		  "8M, or more if an image needs it)" },
	{ "shuffle", .kind = OPTION_FLAG, AT(selection.shuffle),
	  .help = "Store the samples in random order" },
	{ "sort", .kind = OPTION_TEXT, AT(selection.sort), .argument = "FIELD",
	  .help = "Store the samples in the order of a field's values" },
	{ "cluster", .kind = OPTION_TEXT, AT(selection.cluster),
	  .argument = "FIELD",
	  .help = "Store runs of samples with an equal field, in random order "
		  "of the runs" },
	{ "seed", .kind = OPTION_NUMBER, AT(recipe.seed), .max = UINT64_MAX,
	  .argument = "N",
	  .help = "Seed --shuffle, --cluster and --mode=proportion with N "
		  "(default: 0)" },
	{ "jobs", .letter = 'j', .kind = OPTION_NUMBER, AT(jobs), .min = 1,
	  .max = JOBS_MAX, .argument = "N",
	  .help = "Use N threads; the dataset is the same for any N "
		  "(default: one per usable CPU)" },
	{ "limit", .kind = OPTION_NUMBER, AT(selection.limit), .min = 1,
	  .max = UINT64_MAX, .argument = "N",
	  .help = "Take only the first N samples, after --shuffle (default: "
		  "all)" },
	{ "shard", .kind = OPTION_PARSED, AT(selection.shard),
	  .argument = "I/N", .parse = selection_parse_shard,
	  .help = "Write only part I of N, from 0; beton merge joins the parts "
		  "to the same bytes" },
	{ "on-error", .kind = OPTION_CHOICE, AT(on_error),
	  .argument = "stop|skip",
	  .help = "Stop at a damaged sample, or skip it (default: stop)" },
	{ "append", .kind = OPTION_FLAG, AT(append),
	  .help = "Add the samples to the end of DATASET, which exists; it is "
		  "replaced when all samples are written" },
	{ "sums", .kind = OPTION_FLAG, AT(sums),
	  .help = "Also write DATASET.sums with checksums, for fsck.beton and "
		  "betonfs -o verify" },
	{ "dry-run", .letter = 'n', .kind = OPTION_FLAG, AT(dry_run),
	  .help = "Print the fields and samples that would be stored, and "
		  "write nothing" },
};

static struct option_set option_set(struct mkfs_options *o)
{
	return (struct option_set){
		.command = MKFS_PROGRAM,
		.groups = { { rows, ARRAY_LEN(rows), o },
			    common_init(&o->common) },
	};
}

static void set_defaults(struct mkfs_options *o)
{
	*o = (struct mkfs_options){
		.recipe = {
			.smart_threshold = ENCODE_SMART_THRESHOLD,
		},
		.selection = { .limit = UINT64_MAX },
	};
}

void mkfs_options_complete(struct mkfs_options *o, bool keeps_images)
{
	struct recipe *recipe = &o->recipe;

	/* A quality asks for new JPEGs. */
	if (!recipe->mode.row)
		encode_parse_mode(keeps_images && !recipe->quality ? "keep"
								   : "jpg",
				  &recipe->mode);
	if (!recipe->quality)
		recipe->quality = QUALITY_DEFAULT;
	o->selection.seed = recipe->seed;
}

static void print_help(const struct option_set *set)
{
	printf("usage: %s [OPTION]... SOURCE... DATASET\n\n"
	       "Make a dataset file (.beton) from samples: images below "
	       "directories, arrays,\narchives, tables, databases, or other "
	       "datasets (see beton-sources(7)). If every\nimage is in a "
	       "directory of its class, the dataset has labels. DATASET may be "
	       "the\nURL of an object: s3://BUCKET/KEY, gs://BUCKET/KEY or "
	       "https://HOST/PATH.\n\n"
	       "Options:\n",
	       MKFS_PROGRAM);
	option_help(set, stdout);
	printf("\nExamples:\n"
	       "  %s --max-resolution=500 imagenet/train train.beton\n"
	       "  %s --mode=raw --max-resolution=64 --shuffle photos/ "
	       "small.beton\n"
	       "  %s --mode=keep --on-error=skip photos/ photos.beton\n"
	       "  %s --where='label in 1,5,9' --quality=75 train.beton "
	       "small.beton\n"
	       "  %s imagenet/train s3://bucket/train.beton\n",
	       MKFS_PROGRAM, MKFS_PROGRAM, MKFS_PROGRAM, MKFS_PROGRAM,
	       MKFS_PROGRAM);
}

static void print_version(void)
{
	features_print(MKFS_PROGRAM, stdout);
	picture_print_formats(stdout);
}

static int check_options(const struct option_set *set,
			 const struct mkfs_options *o, struct log *log,
			 int operands)
{
	if (o->page_size && !is_power_of_two(o->page_size))
		return option_refuse(
			set, log, "--page-size=%llu: expected a power of two",
			(unsigned long long)o->page_size);
	if (o->selection.shuffle + !!o->selection.sort +
		    !!o->selection.cluster >
	    1)
		return option_refuse(
			set, log,
			"--shuffle, --sort and --cluster: choose one order");
	if (operands < 2)
		return option_refuse(set, log, "missing operand: %s",
				     operands ? "DATASET"
					      : "SOURCE and DATASET");
	return 0;
}

int mkfs_options_parse(char **argv, struct log *log,
		       struct mkfs_options *options, int *operands)
{
	const struct common_options *common = &options->common;
	struct option_set set;
	int r;

	set_defaults(options);
	set = option_set(options);
	r = option_parse(&set, argv, log, operands);
	if (r || common->help || common->version || common->list ||
	    common->describe)
		return r;
	return check_options(&set, options, log, *operands);
}

bool mkfs_options_answer(const struct mkfs_options *o)
{
	const struct common_options *common = &o->common;
	struct mkfs_options unused;
	const struct option_set set = option_set(&unused);

	if (common->help)
		print_help(&set);
	else if (common->version)
		print_version();
	else if (common->list)
		option_list(&set, stdout);
	else if (common->describe)
		option_describe(&set, "", stdout);
	else
		return false;
	return true;
}
