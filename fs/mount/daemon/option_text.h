/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a mount as text: for --help, --options and .betonfs/options,
   for the sampling spec of batches/default, and for mount(2). */
#ifndef FS_MOUNT_DAEMON_OPTION_TEXT_H
#define FS_MOUNT_DAEMON_OPTION_TEXT_H

#include <stdio.h>

#include "fs/mount/daemon/option_table.h"

void opts_help(FILE *out);
void opts_list(FILE *out); /* one key per line */
/* For the shell completions, with tabs between the columns: "flag", letters and
   name, help; "key", key, value or words, help. */
void opts_describe(FILE *out);

/* Return the sampling spec of the options, the options for mount(2) or
   fusermount3, and all options that are set, one per line. The caller frees the
   text; NULL if memory is short. */
char *opts_spec(const struct options *opts);
char *opts_mount(const struct options *opts);
char *opts_text(const struct options *opts);

/* Writes "key=value" as a line of .betonfs/options, in which no value can look
   like another line. name_unquote() reverts this. */
void opts_print(FILE *out, const char *key, const char *value);

#endif
