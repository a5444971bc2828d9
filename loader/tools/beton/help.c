/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beton help: the manual page of a command on a terminal, otherwise its help
 * text.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/beton/command.h"

extern char **environ;

enum { PAGE_SIZE = 64 };

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

const struct command command_help = {
	.name = "help",
	.operands = "[COMMAND]",
	.min_operands = 0,
	.max_operands = 1,
	.summary = "Show the manual page or the help text of a command",
	.examples = "  beton help\n"
		    "  beton help bench\n",
	.run = help,
};
