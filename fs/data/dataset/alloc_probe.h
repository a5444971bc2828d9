/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds one entry of an allocation table behind a network without the whole
 * table. A writer appends ascending runs of entries, so a few entries, read in
 * parallel, determine which parts of the table can contain an offset. Each
 * round reads entries of these parts, and takes one round trip.
 *
 * An answer differs from the one of alloc_table.h only if the table is damaged
 * far away from the entry: a larger entry elsewhere with the same offset, too
 * many entries of one sample, or too many runs.
 */
#ifndef FS_DATA_DATASET_ALLOC_PROBE_H
#define FS_DATA_DATASET_ALLOC_PROBE_H

#include "fs/data/dataset/format.h"
#include "fs/source/local/source.h"

/*
 * Sets *size to the size of the sample's allocation at `off`. -ENOENT: it was
 * not found, it is empty, or the entries around it overlap it, so that only the
 * whole table has the answer. Other failures are those of reading.
 */
int alloc_probe(struct source *source, const struct format *format,
		uint64_t sample, uint64_t off, uint64_t *size);

#endif
