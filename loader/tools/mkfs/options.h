/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of mkfs.beton. */
#ifndef LOADER_TOOLS_MKFS_OPTIONS_H
#define LOADER_TOOLS_MKFS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/base/util/log.h"
#include "loader/tools/mkfs/encode.h"
#include "loader/tools/mkfs/selection.h"
#include "loader/tools/ui/common.h"

#define MKFS_PROGRAM "mkfs.beton"

enum on_error {
	ON_ERROR_STOP,
	ON_ERROR_SKIP,
};

struct mkfs_options {
	struct recipe recipe;
	struct selection_options selection;
	const char *fields; /* NULL: all of the source */
	const char *masks;  /* directory; NULL: none */
	const char *split;  /* NULL: none is named */
	uint64_t page_size; /* 0: as large as the samples need */
	uint64_t jobs;	    /* 0: one per usable CPU */
	enum on_error on_error;
	bool dry_run;
	bool sums;
	bool append;
	struct common_options common;
};

/*
 * Fills *options, defaults first, and moves the operands to argv[1] and up.
 * -EINVAL: wrong usage, which is logged.
 */
int mkfs_options_parse(char **argv, struct log *log,
		       struct mkfs_options *options, int *operands);

/* Sets the defaults that depend on the source, which may keep the form of its
   images. */
void mkfs_options_complete(struct mkfs_options *options, bool keeps_images);

/*
 * Answers --help, --version and other options that print something and do
 * nothing else. Returns false if none was given.
 */
bool mkfs_options_answer(const struct mkfs_options *options);

#endif
