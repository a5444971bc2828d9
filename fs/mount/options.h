/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command line of betonfs. */
#ifndef FS_MOUNT_OPTIONS_H
#define FS_MOUNT_OPTIONS_H

#include "fs/mount/option_table.h"
#include "fs/util/log.h"

/* Parses a command line. A program whose name begins with "mount." accepts the
   letters of mount(8) instead of its own. -EINVAL: wrong usage, which is
   logged. The caller calls opts_fini() in any case. */
int opts_parse(struct opts *opts, int argc, char **argv, struct log *log);
void opts_fini(struct opts *opts);

#endif
