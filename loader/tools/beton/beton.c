/* SPDX-License-Identifier: Apache-2.0 */
/* beton: inspects, measures, copies and diagnoses datasets. beton(1) is its
   manual. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/source/url/command_line.h"
#include "loader/tools/beton/command_table.h"
#include "loader/tools/ui/features.h"
#include "loader/tools/ui/output.h"

struct beton_options {
	bool help;
	bool version;
	bool commands;
	bool describe;
};

#define AT(member) .offset = offsetof(struct beton_options, member)

/* Their help is in command_print_all(). */
static const struct option_row rows[] = {
	{ "help", 'h', OPTION_FLAG, AT(help), .help = "Print this help" },
	{ "version", 'V', OPTION_FLAG, AT(version),
	  .help = "Print the version and the features of this build" },
	{ "commands", 0, OPTION_FLAG, AT(commands),
	  .help = "List the commands, one per line" },
	{ "completions", 0, OPTION_FLAG, AT(describe) },
};

static void list_commands(void)
{
	const struct command *c;

	for (size_t i = 0; (c = command_at(i)); i++)
		printf("%s\n", c->name);
}

/* For the shell completions; option_describe() defines the lines of options. */
static void describe_commands(const struct option_set *set, struct log *log)
{
	const struct command *c;

	option_describe(set, "", stdout);
	for (size_t i = 0; (c = command_at(i)); i++) {
		char name[] = "", describe[] = "--completions";

		printf("command\t%s\t%s\t%s\n", c->name, c->operands,
		       c->summary);
		command_run(c, (char *[]){ name, describe, NULL }, log);
	}
}

/* Handles an option before any command. */
static int answer_option(char *argument, struct log *log)
{
	struct beton_options o = { 0 };
	const struct option_set set = { "beton",
					{ { rows, ARRAY_LEN(rows), &o } } };
	char name[] = "";
	char *argv[] = { name, argument, NULL };
	int operands;

	if (option_parse(&set, argv, log, &operands))
		return BETON_EXIT_USAGE;
	if (o.help)
		command_print_all(stdout);
	if (o.version)
		features_print("beton", stdout);
	if (o.commands)
		list_commands();
	if (o.describe)
		describe_commands(&set, log);
	return EXIT_SUCCESS;
}

static int run_program(char **argv, struct log *log)
{
	const struct command *c;

	if (!argv[0] || !argv[1]) {
		log_error(log, "missing operand: COMMAND. See 'beton --help'.");
		return BETON_EXIT_USAGE;
	}
	if (argv[1][0] == '-' && argv[1][1] && strcmp(argv[1], "--"))
		return answer_option(argv[1], log);
	c = command_find(argv[1]);
	return c ? command_run(c, argv + 1, log) : command_refuse(argv[1], log);
}

int main(int argc, char **argv)
{
	struct log log;
	char name[] = "beton";
	int code;

	(void)argc;
	command_line_hide(argv);
	/* Ignore the signal, so that a write beyond RLIMIT_FSIZE fails with
	   EFBIG. */
	signal(SIGXFSZ, SIG_IGN);
	output_begin();
	log_init(&log, log_to_stderr, name);
	code = output_end(&log, run_program(argv, &log));
	log_fini(&log);
	return code;
}
