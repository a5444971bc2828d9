/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `beton`: each is one row, in a file named after it. */
#ifndef LOADER_TOOLS_BETON_COMMAND_H
#define LOADER_TOOLS_BETON_COMMAND_H

#include <stdbool.h>

#include "fs/util/log.h"
#include "loader/tools/ui/option.h"

/* beton's exit codes beside EXIT_SUCCESS and EXIT_FAILURE. */
enum { BETON_EXIT_USAGE = 2 };

/* The arguments of a command: options filled in, operands counted. */
struct invocation {
	const struct command *command;
	struct log *log;
	void *options;
	char **operands;
	int num_operands;
};

struct command {
	const char *name;
	const char *operands; /* for the usage line, "FILE|MOUNT" */
	int min_operands;
	int max_operands;
	const char *summary;  /* one line */
	const char *examples; /* for --help */
	const struct option_row *rows;
	size_t num_rows;
	size_t options_size;
	const void *defaults; /* options_size bytes, or NULL for zeros */
	/* Returns an exit code; failures are logged. */
	int (*run)(const struct invocation *call);
};

extern const struct command command_info;
extern const struct command command_show;
extern const struct command command_dump;
extern const struct command command_bench;
extern const struct command command_optimize;
extern const struct command command_doctor;
extern const struct command command_top;

#endif
