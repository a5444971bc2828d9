/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "beton/beton.h"
#include "fs/util/bytes.h"
#include "loader/tools/ui/option.h"

enum { JOBS_MAX = 1024 };

#define PAGE_SIZE_SMALLEST ((uint64_t)2 << 20)
#define PAGE_SIZE_LARGEST ((uint64_t)2 << 30)

#define AT(member) .offset = offsetof(struct mkfs_options, member)

static const struct option_row rows[] = {
	{ "mode", .kind = OPTION_PARSED, AT(recipe.mode),
	  .argument = "jpg|raw|smart|proportion=P|keep",
	  .parse = encode_parse_mode,
	  .help = "how images are stored: as JPEG (default), as raw\n"
		  "pixels, raw unless large, a share P of them as JPEG,\n"
		  "or JPEG files byte for byte where possible" },
	{ "masks", .kind = OPTION_TEXT, AT(masks), .argument = "FOLDER",
	  .help = "store the PNG of each image's name in FOLDER as its mask" },
	{ "max-resolution", .kind = OPTION_NUMBER, AT(recipe.max_resolution),
	  .min = 1, .max = 65535, .argument = "N",
	  .help = "shrink images whose longer side is above N pixels" },
	{ "quality", .kind = OPTION_NUMBER, AT(recipe.quality), .min = 1,
	  .max = 100, .argument = "Q",
	  .help = "JPEG quality, 1 to 100 (default 90)" },
	{ "index", .kind = OPTION_FLAG, AT(recipe.index),
	  .help = "put an index into JPEGs, so that loaders decode crops\n"
		  "faster" },
	{ "smart-threshold", .kind = OPTION_SIZE, AT(recipe.smart_threshold),
	  .max = UINT64_MAX, .argument = "B",
	  .help = "with --mode=smart, images of more than B bytes of\n"
		  "pixels become JPEG (default 128K)" },
	{ "page-size", .kind = OPTION_SIZE, AT(page_size),
	  .min = PAGE_SIZE_SMALLEST, .max = PAGE_SIZE_LARGEST, .argument = "B",
	  .help = "a power of two from 2M to 2G (default 8M, more\n"
		  "where an image needs it)" },
	{ "shuffle", .kind = OPTION_FLAG, AT(shuffle),
	  .help = "store the samples in random order" },
	{ "seed", .kind = OPTION_NUMBER, AT(recipe.seed), .max = UINT64_MAX,
	  .argument = "N",
	  .help = "of --shuffle and --mode=proportion (default 0)" },
	{ "jobs", .letter = 'j', .kind = OPTION_NUMBER, AT(jobs), .min = 1,
	  .max = JOBS_MAX, .argument = "N",
	  .help = "threads (default: one per usable CPU); the file is\n"
		  "the same for any number" },
	{ "limit", .kind = OPTION_NUMBER, AT(limit), .min = 1,
	  .max = UINT64_MAX, .argument = "N",
	  .help = "take the first N images only, after --shuffle" },
	{ "on-error", .kind = OPTION_CHOICE, AT(on_error),
	  .argument = "stop|skip",
	  .help = "what a damaged image does: end everything\n"
		  "(default), or be left out" },
	{ "help", .letter = 'h', .kind = OPTION_FLAG, AT(help),
	  .help = "print this" },
	{ "version", .letter = 'V', .kind = OPTION_FLAG, AT(version),
	  .help = "print the version" },
	{ "options", .kind = OPTION_FLAG, AT(list),
	  .help = "print the names of all options" },
};

static void set_defaults(struct mkfs_options *o)
{
	*o = (struct mkfs_options){
		.recipe = {
			.quality = 90,
			.smart_threshold = ENCODE_SMART_THRESHOLD,
		},
		.limit = UINT64_MAX,
	};
	encode_parse_mode("jpg", &o->recipe.mode);
}

static void print_help(void)
{
	printf("usage: %s [option...] SOURCE... DATASET\n\n"
	       "Makes a dataset in FFCV's format of the JPEG, PNG and WebP "
	       "images below the\nSOURCE folders. Where all of them lie in "
	       "folders of their class, it has labels.\n\n",
	       MKFS_PROGRAM);
	option_help(rows, ARRAY_LEN(rows), stdout);
	printf("\nexamples:\n"
	       "  %s --max-resolution=500 imagenet/train train.beton\n"
	       "  %s --mode=raw --max-resolution=64 --shuffle photos/ "
	       "small.beton\n"
	       "  %s --mode=keep --on-error=skip photos/ photos.beton\n",
	       MKFS_PROGRAM, MKFS_PROGRAM, MKFS_PROGRAM);
}

static int check_options(const struct mkfs_options *o, struct log *log,
			 int operands)
{
	if (o->page_size && !is_power_of_two(o->page_size)) {
		log_error(log, "--page-size: %llu is not a power of two",
			  (unsigned long long)o->page_size);
		return -EINVAL;
	}
	if (operands < 2) {
		log_error(log, "%s; see --help",
			  operands ? "DATASET is missing"
				   : "SOURCE and DATASET are missing");
		return -EINVAL;
	}
	return 0;
}

int mkfs_options_parse(char **argv, struct log *log,
		       struct mkfs_options *options, int *operands)
{
	int r;

	set_defaults(options);
	r = option_parse(rows, ARRAY_LEN(rows), argv, options, log, operands);
	if (r || options->help || options->version || options->list)
		return r;
	return check_options(options, log, *operands);
}

bool mkfs_options_answer(const struct mkfs_options *o)
{
	if (o->help)
		print_help();
	if (o->version)
		printf("%s %s\n", MKFS_PROGRAM, beton_version());
	if (o->list)
		option_list(rows, ARRAY_LEN(rows), stdout);
	return o->help || o->version || o->list;
}
