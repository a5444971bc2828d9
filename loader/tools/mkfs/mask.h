/* SPDX-License-Identifier: Apache-2.0 */
/* A mask must be as large as its image is stored. */
#ifndef LOADER_TOOLS_MKFS_MASK_H
#define LOADER_TOOLS_MKFS_MASK_H

#include "loader/tools/mkfs/mapping.h"

/* Refuses the sample if its mask, the PNG of the last field, has another size
   than its image, the first field. `arg` is the mapping. */
void mask_check(void *arg, struct made *made);

#endif
