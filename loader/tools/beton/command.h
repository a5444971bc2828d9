/* SPDX-License-Identifier: Apache-2.0 */
/* A command of `beton`: one row, in a file named after it. */
#ifndef LOADER_TOOLS_BETON_COMMAND_H
#define LOADER_TOOLS_BETON_COMMAND_H

#include <stdbool.h>

#include "fs/base/util/log.h"
#include "loader/tools/ui/common.h"
#include "loader/tools/ui/option.h"

/*
 * beton's exit codes:
 *
 *	0  success
 * 1 the command failed; a message has the reason (EXIT_FAILURE)
 *	2  wrong usage: an unknown command or option, a bad value, a missing
 *	   operand; nothing was done
 *
 * A signal ends the program as usual, so that a shell reports 128 plus its
 * number.
 */
enum { BETON_EXIT_USAGE = 2 };

/* The arguments of a command: options filled in, operands counted. */
struct invocation {
	const struct command *command;
	struct log *log;
	const struct option_set *set;
	const struct common_options *common;
	void *options;
	char **operands;
	int num_operands;
};

struct command {
	const char *name;
	const char *operands; /* for the usage line, "FILE|MOUNT" */
	int min_operands;
	int max_operands;
	const char *summary;  /* one line without a full stop */
	const char *examples; /* for --help */
	const struct option_row *rows;
	size_t num_rows;
	size_t options_size;
	const void *defaults; /* options_size bytes, or NULL for zeros */
	/* Returns an exit code; failures are logged. */
	int (*run)(const struct invocation *call);
};

/* Prints the help of a command. */
void command_print_help(const struct command *command, FILE *out);

/* Returns whether to print messages that are neither errors nor warnings, and
   to show progress. */
bool command_is_talkative(const struct invocation *call);

/* Runs a command with its arguments; argv[0] is its name. Returns an exit
   code. */
int command_run(const struct command *command, char **argv, struct log *log);

extern const struct command command_info;
extern const struct command command_show;
extern const struct command command_dump;
extern const struct command command_bench;
extern const struct command command_optimize;
extern const struct command command_merge;
extern const struct command command_split;
extern const struct command command_doctor;
extern const struct command command_top;

#endif
