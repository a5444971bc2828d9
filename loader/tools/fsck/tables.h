/* SPDX-License-Identifier: Apache-2.0 */
/* Checks records, allocation table and, unless only tables are wanted, all
   bytes, in windows of the file that fit into memory. */
#ifndef LOADER_TOOLS_FSCK_TABLES_H
#define LOADER_TOOLS_FSCK_TABLES_H

#include "loader/tools/fsck/target.h"

/* Requires head_check(). -EINTR: canceled. Findings are in the report; other
   failures are reported or logged. */
int tables_check(struct target *t);

#endif
