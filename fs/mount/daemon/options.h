/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command line of betonfs. */
#ifndef FS_MOUNT_DAEMON_OPTIONS_H
#define FS_MOUNT_DAEMON_OPTIONS_H

#include "fs/base/util/log.h"
#include "fs/mount/daemon/option_table.h"

/* Parses a command line. A program whose name begins with "mount." accepts the
   letters of mount(8) instead of its own. With --quiet the log drops all but
   errors from then on. -EINVAL: wrong usage, which is logged. The caller calls
   options_fini() in any case. */
int options_parse(struct options *opts, int argc, char **argv, struct log *log);
void options_fini(struct options *opts);

#endif
