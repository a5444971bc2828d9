/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the layout of a batch file, once its metadata is known. */
#ifndef FS_DATA_ENGINE_BATCH_PLACE_H
#define FS_DATA_ENGINE_BATCH_PLACE_H

#include "fs/data/engine/batch.h"

/*
 * Computes the offsets of ids, errors, columns and payloads in this order, and
 * writes header, field table and spec to batch->head. Requires columns with
 * values, errors and descriptions. -ENOMEM.
 */
int batch_place(struct batch *batch, const struct batch_key *key);

/* Sets all members that depend only on spec, epoch and number, the others
   to 0. */
void batch_header_init(struct beton_batch_header *h, const struct spec *spec,
		       uint64_t epoch, uint64_t number);

#endif
