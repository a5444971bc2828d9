/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a plan reads ahead of each reader, so that all readers share the
 * cache and no value is read twice. Computes only.
 */
#ifndef FS_DATA_ENGINE_HORIZON_H
#define FS_DATA_ENGINE_HORIZON_H

#include "fs/data/engine/readers.h"

/* The part of the cache that the plan leaves free: 1/8. Unfinished reads may
   have as much. */
enum { HORIZON_SPARE = 8 };

/* Returns the most positions to read ahead of a reader, because one that has
   opened few batches may open no more: four times as many per batch. */
uint64_t horizon_trust(const struct reader *r);
/* Returns the number of positions of this epoch and the next that may be read
   for a reader. */
uint64_t horizon_end(const struct reader *r);

/*
 * Returns the number of positions to read ahead of a reader. Reading a sample
 * reads its whole run, which is used within a window. Therefore the run must
 * find room as well; otherwise it would be read twice.
 */
uint64_t horizon_reach(const struct readers *s, const struct reader *r);

/* Returns the horizon of a reader on the common clock: chunks that are needed
   later can wait. */
uint64_t horizon_now(const struct readers *s, const struct reader *r);
/*
 * Returns the horizon for the reader of a batch. For its first batch, it is
 * that batch: the reader may be one of many ranks, and other reads would delay
 * it.
 */
uint64_t horizon_for_batch(const struct readers *s, const struct reader *r,
			   const struct batch_key *key);

#endif
