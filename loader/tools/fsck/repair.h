/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a copy of a dataset without its damaged samples. */
#ifndef LOADER_TOOLS_FSCK_REPAIR_H
#define LOADER_TOOLS_FSCK_REPAIR_H

#include "loader/tools/fsck/target.h"

/*
 * Writes the copy to `path`, which appears when it is complete. *written is the
 * number of its samples. A sample that cannot be read counts as damaged, too.
 * -EINTR: canceled; -EOPNOTSUPP: the damage is such that no copy can be right.
 * Failures are logged.
 */
int repair_write(struct target *t, const char *path, uint64_t *written);

#endif
