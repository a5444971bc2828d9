/* SPDX-License-Identifier: Apache-2.0 */
/* Where everything of a batch file goes, once its metadata is known. */
#ifndef FS_ENGINE_BATCH_PLACE_H
#define FS_ENGINE_BATCH_PLACE_H

#include "fs/engine/batch.h"

/*
 * Places ids, errors, columns and payloads in order, and writes header, field
 * table and SPEC down. Requires columns whose values, errors and descriptions
 * are filled in. -ENOMEM.
 */
int batch_place(struct batch *batch, const struct batch_key *key);

/* What SPEC, epoch and number say of a batch; the rest is 0. */
void batch_header_init(struct beton_batch_header *h, const struct spec *spec,
		       uint64_t epoch, uint64_t number);

#endif
