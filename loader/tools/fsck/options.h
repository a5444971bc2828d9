/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of fsck.beton. */
#ifndef LOADER_TOOLS_FSCK_OPTIONS_H
#define LOADER_TOOLS_FSCK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/base/util/log.h"
#include "loader/tools/ui/common.h"

#define FSCK_PROGRAM "fsck.beton"

struct fsck_options {
	bool deep;
	bool tables;
	bool json;
	bool list_bad;
	bool list_checks;
	bool sums;
	bool update_sums;
	const char *repair; /* path of the copy; NULL: none */
	uint64_t jobs;	    /* 0: one per usable CPU */
	uint64_t limit;	    /* of lines per check */
	uint64_t memory;    /* bytes */
	struct common_options common;
};

/*
 * Fills *options, defaults first, and moves the operands to argv[1] and up.
 * -EINVAL: wrong usage, which is logged.
 */
int fsck_options_parse(char **argv, struct log *log,
		       struct fsck_options *options, int *operands);

/*
 * Answers --help, --version and other options that print something and do
 * nothing else. Returns false if none was given.
 */
bool fsck_options_answer(const struct fsck_options *options);

#endif
