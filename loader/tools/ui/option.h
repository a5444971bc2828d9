/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines of the programs: an option is a row of a table, and parsing,
 * --help and --options come from the same rows. Long options, "--name value"
 * or "--name=value", and single letters, "-n value" or "-nvalue"; operands may
 * stand anywhere, and all that follows "--" is operands.
 */
#ifndef LOADER_TOOLS_UI_OPTION_H
#define LOADER_TOOLS_UI_OPTION_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fs/util/log.h"

enum option_kind {
	OPTION_FLAG,   /* bool, true when given; takes no value */
	OPTION_NUMBER, /* uint64_t in [min, max] */
	OPTION_SIZE,   /* the same; K, M, G, T mean powers of 1024 */
	OPTION_TEXT,   /* const char *, points into argv */
	OPTION_CHOICE, /* unsigned: which word of `argument`, "one|two" */
	OPTION_PARSED, /* whatever parse() makes of it */
};

/* Text -> *member. -EINVAL: it is not what `argument` says. */
typedef int option_parse_fn(const char *text, void *member);

struct option_row {
	const char *name; /* without dashes */
	char letter;	  /* 0: none */
	enum option_kind kind;
	size_t offset; /* of the member in the caller's struct */
	uint64_t min, max;
	const char *argument; /* what --help calls the value */
	const char *help;     /* lines end in \n, except the last */
	option_parse_fn *parse;
};

/*
 * Fills the members of `options`, which keep their values where an option is
 * absent, and moves the operands to argv[1], argv[2]...; *operands says how
 * many. -EINVAL: wrong usage, and a logged line says which.
 */
int option_parse(const struct option_row *rows, size_t num_rows, char **argv,
		 void *options, struct log *log, int *operands);

/* One paragraph per row, for --help. */
void option_help(const struct option_row *rows, size_t num_rows, FILE *out);

/* One name per line, for completions and the test of the manual. */
void option_list(const struct option_row *rows, size_t num_rows, FILE *out);

#endif
