/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a program, which other users of the machine can read. */
#ifndef FS_SOURCE_URL_COMMAND_LINE_H
#define FS_SOURCE_URL_COMMAND_LINE_H

/*
 * Overwrites users, passwords and queries of URLs in the words of main(), and
 * makes argv point to copies that have them. The copies live as long as the
 * process. If memory is short, a word stays as it is. Call it first, because
 * the list of processes shows the words until then.
 */
void command_line_hide(char **argv);

#endif
