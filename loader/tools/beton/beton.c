/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beton: all work on a dataset except mounting and making it. beton(1) is its
 * manual.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "fs/util/suggest.h"
#include "loader/tools/beton/command.h"
#include "loader/tools/ui/output.h"

static const struct command *const commands[] = {
	&command_info,	   &command_show,   &command_dump, &command_bench,
	&command_optimize, &command_doctor, &command_top,
};

static void print_help(void)
{
	printf("usage: beton COMMAND [options] ...\n\n"
	       "Looks into datasets and batches, and measures how they load;\n"
	       "makes datasets load faster.\n\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		printf("  %-8s %s\n", commands[i]->name, commands[i]->summary);
	printf("\n`beton COMMAND --help` tells its options; beton(1) all of it.\n"
	       "--version prints the version.\n");
}

static void print_usage(const struct command *c, FILE *out)
{
	fprintf(out, "usage: beton %s [options] %s\n", c->name, c->operands);
}

static void print_command_help(const struct command *c)
{
	print_usage(c, stdout);
	printf("\n%s.\n\n", c->summary);
	option_help(c->rows, c->num_rows, stdout);
	printf("\nexamples:\n%s", c->examples);
}

/* There are too few operands or too many. */
static void print_operands(const struct invocation *call)
{
	const struct command *c = call->command;

	if (call->num_operands > c->max_operands)
		fprintf(stderr, "beton: %s: unexpected operand '%s'\n", c->name,
			call->operands[c->max_operands]);
	else
		fprintf(stderr, "beton: %s needs %s\n", c->name, c->operands);
	print_usage(c, stderr);
	fprintf(stderr, "`beton %s --help' lists the options.\n", c->name);
}

static int run_command(const struct command *c, char **argv, struct log *log)
{
	struct invocation call = { .command = c, .log = log };
	int r, code = BETON_EXIT_USAGE;

	/* option_parse() skips argv[0], which is the command's name here. */
	for (char **a = argv; *a; a++) {
		if (!strcmp(*a, "--"))
			break;
		if (!strcmp(*a, "--help") || !strcmp(*a, "-h")) {
			print_command_help(c);
			return EXIT_SUCCESS;
		}
		if (!strcmp(*a, "--options")) {
			option_list(c->rows, c->num_rows, stdout);
			return EXIT_SUCCESS;
		}
	}
	call.options = calloc(1, c->options_size + 1);
	if (!call.options)
		return EXIT_FAILURE;
	if (c->defaults)
		memcpy(call.options, c->defaults, c->options_size);
	r = option_parse(c->rows, c->num_rows, argv, call.options, log,
			 &call.num_operands);
	call.operands = argv + 1;
	if (!r && (call.num_operands < c->min_operands ||
		   call.num_operands > c->max_operands)) {
		print_operands(&call);
	} else if (!r) {
		code = c->run(&call);
	}
	free(call.options);
	return code;
}

static const struct other_word other_commands[] = {
	{ "mount", "betonfs" },	       { "mkfs", "mkfs.beton" },
	{ "make", "mkfs.beton" },      { "create", "mkfs.beton" },
	{ "write", "mkfs.beton" },     { "convert", "mkfs.beton" },
	{ "help", "beton --help" },    { "version", "beton --version" },
	{ "ls", "beton info" },	       { "stat", "beton info" },
	{ "check", "beton info" },     { "verify", "beton info" },
	{ "cat", "beton dump" },       { "get", "beton dump" },
	{ "extract", "beton dump" },   { "benchmark", "beton bench" },
	{ "profile", "beton doctor" }, { NULL, NULL },
};

static int refuse_command(const char *word, struct log *log)
{
	struct suggestion s = { .word = word };
	char meant[SUGGEST_TEXT_SIZE];
	bool is_option = word[0] == '-';

	for (size_t i = 0; !is_option && i < ARRAY_LEN(commands); i++)
		suggest_try(&s, commands[i]->name);
	suggest_other(&s, other_commands);
	log_error(log, "unknown %s '%s'; see beton --help%s",
		  is_option ? "option" : "command", word,
		  suggest_text(&s, meant, sizeof(meant)));
	return BETON_EXIT_USAGE;
}

static int dispatch_command(char **argv, struct log *log)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (!strcmp(argv[1], commands[i]->name))
			return run_command(commands[i], argv + 1, log);
	}
	return refuse_command(argv[1], log);
}

static int list_commands(void)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		printf("%s\n", commands[i]->name);
	return EXIT_SUCCESS;
}

static int run_program(int argc, char **argv, struct log *log)
{
	if (argc < 2) {
		fprintf(stderr,
			"usage: beton COMMAND [options] ...; see beton --help\n");
		return BETON_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_help();
		return EXIT_SUCCESS;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("beton %s\n", beton_version());
		return EXIT_SUCCESS;
	}
	if (!strcmp(argv[1], "--commands"))
		return list_commands();
	return dispatch_command(argv, log);
}

int main(int argc, char **argv)
{
	struct log log;
	char name[] = "beton";
	int code;

	/* A write beyond a limit of the file's size is to fail with EFBIG. */
	signal(SIGXFSZ, SIG_IGN);
	output_begin();
	log_init(&log, log_to_stderr, name);
	code = output_end(&log, run_program(argc, argv, &log));
	log_fini(&log);
	return code;
}
