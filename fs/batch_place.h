/* SPDX-License-Identifier: Apache-2.0 */
/* Where everything of a batch file goes, once its metadata is known. */
#ifndef FS_BATCH_PLACE_H
#define FS_BATCH_PLACE_H

#include "fs/batch.h"

/*
 * Places ids, errors, columns and payloads in order, and writes header, field
 * table and SPEC down. Requires columns whose values, errors and descriptions
 * are filled in. -ENOMEM.
 */
int batch_place(struct batch *batch, const struct batch_key *key);

#endif
