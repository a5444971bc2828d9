/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines of the programs. An option is a row of a table; parsing, --help
 * and --options come from the rows. Options are "--name value", "--name=value",
 * "-n value" or "-nvalue". Operands may precede options; after "--" all
 * arguments are operands.
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
	OPTION_SIZE,   /* uint64_t in [min, max], a TYPED_SIZE */
	OPTION_TEXT,   /* const char *, points into argv */
	OPTION_CHOICE, /* unsigned: index of a word of `argument`, "one|two" */
	OPTION_PARSED, /* the type that parse() writes */
};

/* Parses a text into *member. -EINVAL: it is not an `argument`. */
typedef int option_parse_fn(const char *text, void *member);

struct option_row {
	const char *name; /* without dashes */
	char letter;	  /* 0: none */
	enum option_kind kind;
	size_t offset; /* of the member in the caller's struct */
	uint64_t min, max;
	const char *argument; /* the value's name in --help and errors */
	const char *help;     /* lines end in \n, except the last */
	option_parse_fn *parse;
};

/*
 * Sets the member of `options` of each option that is given; others keep their
 * values. Moves the operands to argv[1], argv[2], ... and sets *operands to
 * their number. -EINVAL: wrong usage, which is logged.
 */
int option_parse(const struct option_row *rows, size_t num_rows, char **argv,
		 void *options, struct log *log, int *operands);

/* Prints a paragraph for each row, for --help. */
void option_help(const struct option_row *rows, size_t num_rows, FILE *out);

/* Prints a name per line, for completions and the test of the manual. */
void option_list(const struct option_row *rows, size_t num_rows, FILE *out);

#endif
