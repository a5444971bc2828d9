/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/beton/command_table.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/suggest.h"

extern char **environ;

enum { PAGE_SIZE = 64 };

static const struct command command_help;

static const struct command *const commands[] = {
	&command_info,	   &command_show,  &command_dump,  &command_bench,
	&command_optimize, &command_merge, &command_split, &command_doctor,
	&command_top,	   &command_help,
};

const struct command *command_at(size_t i)
{
	return i < ARRAY_LEN(commands) ? commands[i] : NULL;
}

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (!strcmp(name, commands[i]->name))
			return commands[i];
	}
	return NULL;
}

static const struct other_word other_commands[] = {
	{ "mount", "betonfs" },
	{ "mkfs", "mkfs.beton" },
	{ "make", "mkfs.beton" },
	{ "create", "mkfs.beton" },
	{ "write", "mkfs.beton" },
	{ "convert", "mkfs.beton" },
	{ "man", "beton help" },
	{ "version", "beton --version" },
	{ "ls", "beton info" },
	{ "stat", "beton info" },
	{ "check", "beton info" },
	{ "verify", "beton info" },
	{ "cat", "beton dump" },
	{ "get", "beton dump" },
	{ "extract", "beton dump" },
	{ "concat", "beton merge" },
	{ "join", "beton merge" },
	{ "append", "beton merge" },
	{ "partition", "beton split" },
	{ "shard", "beton split" },
	{ "benchmark", "beton bench" },
	{ "profile", "beton doctor" },
	{ NULL, NULL },
};

int command_refuse(const char *name, struct log *log)
{
	struct suggestion s = { .word = name };
	char meant[SUGGEST_TEXT_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		suggest_try(&s, commands[i]->name);
	suggest_other(&s, other_commands);
	suggest_text(&s, meant, sizeof(meant));
	log_error(log, "unknown command `%s'%s%s See 'beton --help'.", name,
		  meant, *meant ? "" : ".");
	return BETON_EXIT_USAGE;
}

void command_print_all(FILE *out)
{
	fputs("usage: beton COMMAND [OPTION]... OPERAND...\n\n"
	      "Inspect datasets and batches, measure how fast they load, and "
	      "find out why a\ntraining is slow.\n\nCommands:\n",
	      out);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		fprintf(out, "  %-10s%s\n", commands[i]->name,
			commands[i]->summary);
	fputs("\nOptions:\n"
	      "  -h, --help     Print this help\n"
	      "  -V, --version  Print the version and the features of this "
	      "build\n"
	      "  --commands     List the commands, one per line\n"
	      "\nExamples:\n"
	      "  beton info train.beton\n"
	      "  beton bench train.beton\n"
	      "  beton help bench\n"
	      "\nSee 'beton help COMMAND' for the options of a command.\n",
	      out);
}

/* --- beton help: the manual page on a terminal, otherwise the help text --- */

/* Returns whether man(1) finds the page. */
static bool has_page(char *page)
{
	char man[] = "man", where[] = "-w";
	char *const argv[] = { man, where, page, NULL };
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t child;

	if (posix_spawn_file_actions_init(&actions))
		return false;
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		posix_spawn_file_actions_addopen(&actions, fd, "/dev/null",
						 O_WRONLY, 0);
	if (posix_spawnp(&child, argv[0], &actions, NULL, argv, environ) ||
	    waitpid(child, &status, 0) != child)
		status = -1;
	posix_spawn_file_actions_destroy(&actions);
	return status == 0;
}

/* Becomes man(1). Returns only if that is not possible. */
static void show_page(const struct command *c)
{
	char page[PAGE_SIZE];

	snprintf(page, sizeof(page), c ? "beton-%s" : "beton",
		 c ? c->name : "");
	if (isatty(STDOUT_FILENO) && has_page(page))
		execlp("man", "man", page, (char *)NULL);
}

static int help(const struct invocation *call)
{
	const char *name = call->num_operands ? call->operands[0] : NULL;
	const struct command *c = name ? command_find(name) : NULL;

	if (name && !c)
		return command_refuse(name, call->log);
	if (c != &command_help)
		show_page(c);
	if (c)
		command_print_help(c, stdout);
	else
		command_print_all(stdout);
	return EXIT_SUCCESS;
}

static const struct command command_help = {
	.name = "help",
	.operands = "[COMMAND]",
	.min_operands = 0,
	.max_operands = 1,
	.summary = "Show the manual page or the help text of a command",
	.examples = "  beton help\n"
		    "  beton help bench\n",
	.run = help,
};
