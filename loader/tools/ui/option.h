/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines of the programs, by the habits of GNU. An option is a row of a
 * table; parsing, --help, --options and the shell completions come from the
 * rows. Options are "--name value", "--name=value", an unambiguous beginning of
 * the name, "-n value" or "-nvalue"; letters of flags may be combined, "-qv".
 * Operands may precede options; after "--" all arguments are operands.
 */
#ifndef LOADER_TOOLS_UI_OPTION_H
#define LOADER_TOOLS_UI_OPTION_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fs/base/util/log.h"

enum option_kind {
	OPTION_FLAG,   /* bool, true when given; takes no value */
	OPTION_SET,    /* unsigned, `min` when given; takes no value */
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
	/* Sentences, which --help wraps. NULL: a hidden option. */
	const char *help;
	option_parse_fn *parse;
};

struct option_group {
	const struct option_row *rows;
	size_t num_rows;
	void *members; /* the struct of the rows' offsets */
};

/* The command line of one command. */
struct option_set {
	const char *command; /* in messages: "beton dump" */
	/* Its own options, and those of every command. */
	struct option_group groups[2];
};

/*
 * Sets the members of the options in argv; others keep their values. Moves the
 * operands to argv[1], argv[2], ... and sets *operands to their number.
 * -EINVAL: wrong usage, which is logged.
 */
int option_parse(const struct option_set *set, char **argv, struct log *log,
		 int *operands);

/* Logs wrong usage with a pointer to --help. Returns -EINVAL. */
int option_refuse(const struct option_set *set, struct log *log,
		  const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Prints a paragraph for each option, for --help. */
void option_help(const struct option_set *set, FILE *out);

/* Prints a name per line, for the test of the manual. */
void option_list(const struct option_set *set, FILE *out);

/*
 * Prints a line per option, for the shell completions: "option", command, name,
 * letter, value, help, with tabs between them. `command` is the word after the
 * program's name, or "". The value is empty for a flag.
 */
void option_describe(const struct option_set *set, const char *command,
		     FILE *out);

#endif
