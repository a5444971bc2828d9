/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `beton`, and `beton help`, which prints them. */
#ifndef LOADER_TOOLS_BETON_COMMAND_TABLE_H
#define LOADER_TOOLS_BETON_COMMAND_TABLE_H

#include "loader/tools/beton/command.h"

/* The row at an index; NULL past the end. */
const struct command *command_at(size_t i);

/* NULL: there is none. */
const struct command *command_find(const char *name);

/* Logs that the command does not exist, and the most similar one. Returns
   BETON_EXIT_USAGE. */
int command_refuse(const char *name, struct log *log);

/* Prints the help of the program. */
void command_print_all(FILE *out);

#endif
