/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/beton/command.h"

#include <stdlib.h>
#include <string.h>

#include "loader/tools/ui/features.h"

enum { NAME_SIZE = 32 };

/* --- help --- */

static void print_usage(const struct command *c, FILE *out)
{
	fprintf(out, "usage: beton %s [OPTION]... %s\n", c->name, c->operands);
}

/* The rows of a command without members, only for lists. */
static struct option_set rows_of(const struct command *c, char name[NAME_SIZE])
{
	static struct common_options unused;

	snprintf(name, NAME_SIZE, "beton %s", c->name);
	return (struct option_set){
		.command = name,
		.groups = { { c->rows, c->num_rows, NULL },
			    common_init(&unused) },
	};
}

void command_print_help(const struct command *c, FILE *out)
{
	char name[NAME_SIZE];
	struct option_set set = rows_of(c, name);

	print_usage(c, out);
	fprintf(out, "\n%s.\n\nOptions:\n", c->summary);
	option_help(&set, out);
	fprintf(out, "\nExamples:\n%s", c->examples);
}

/* --- running --- */

bool command_is_talkative(const struct invocation *call)
{
	return call->common->level >= BETON_LOG_INFO;
}

/* Answers the options that print something instead of running the command.
   Returns false if there is none. */
static bool answer(const struct command *c, const struct option_set *set,
		   const struct common_options *common)
{
	if (common->help)
		command_print_help(c, stdout);
	else if (common->version)
		features_print("beton", stdout);
	else if (common->list)
		option_list(set, stdout);
	else if (common->describe)
		option_describe(set, c->name, stdout);
	else
		return false;
	return true;
}

/* Logs that there are too few operands, or too many. */
static int check_operands(const struct invocation *call)
{
	const struct command *c = call->command;

	if (call->num_operands > c->max_operands)
		return option_refuse(call->set, call->log,
				     "%s: unexpected operand '%s'", c->name,
				     call->operands[c->max_operands]);
	if (call->num_operands < c->min_operands)
		return option_refuse(call->set, call->log,
				     "%s: missing operand: expected %s",
				     c->name, c->operands);
	return 0;
}

int command_run(const struct command *c, char **argv, struct log *log)
{
	char name[NAME_SIZE];
	struct option_set set = rows_of(c, name);
	struct common_options common;
	struct invocation call = {
		.command = c, .log = log, .set = &set, .common = &common
	};
	int code = BETON_EXIT_USAGE;

	set.groups[1] = common_init(&common);
	call.options = set.groups[0].members = calloc(1, c->options_size + 1);
	if (!call.options) {
		log_error(log, "out of memory");
		return EXIT_FAILURE;
	}
	if (c->defaults)
		memcpy(call.options, c->defaults, c->options_size);
	/* option_parse() skips argv[0], which is the command's name here. */
	call.operands = argv + 1;
	if (!option_parse(&set, argv, log, &call.num_operands)) {
		log->level = common.level;
		if (answer(c, &set, &common))
			code = EXIT_SUCCESS;
		else if (!check_operands(&call))
			code = c->run(&call);
	}
	free(call.options);
	return code;
}
