/* SPDX-License-Identifier: Apache-2.0 */
/* Checks everything before the records: header, descriptors, layout, and the
   names of classes. */
#ifndef LOADER_TOOLS_FSCK_HEAD_H
#define LOADER_TOOLS_FSCK_HEAD_H

#include "loader/tools/fsck/target.h"

/*
 * Parses the head into t->format. -BETON_ECORRUPT: it has faults without which
 * nothing else can be checked. Another -errno: the file cannot be read, which
 * is logged.
 */
int head_check(struct target *t);

#endif
