/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares every byte that is read from a dataset with the checksums of its
 * side file (sums.h), before a caller gets it. A source in front of the
 * dataset's own source reads whole blocks instead of parts of them.
 *
 * Direct reads compare each time. Reads through the page cache compare a block
 * when they first need it; later reads go to the page cache directly.
 *
 * If a block is damaged, reads of its bytes fail with -BETON_ECORRUPT, and one
 * message names the block. Reads of other blocks succeed.
 */
#ifndef FS_DATA_DATASET_VERIFY_H
#define FS_DATA_DATASET_VERIFY_H

#include "fs/data/dataset/dataset.h"

/* Bytes that every verified source needs. */
enum { VERIFY_MEMORY_LEAST = 1 << 20 };

/*
 * Opens the side files of the dataset's files, with the options with which
 * those were opened, and verifies all later reads. Call it once, right after
 * the dataset was opened. Bytes that the dataset has kept since then are
 * verified now; damaged class names are dropped. Failures are logged: those of
 * sums_open(), -ENOENT too. The dataset may be closed after a failure, and must
 * not be used otherwise.
 */
int verify_dataset(struct dataset *ds, const struct source_options *options);

/*
 * Limits the memory for blocks that are being compared to `bytes`, but at least
 * VERIFY_MEMORY_LEAST. Returns the bytes that will be used at most; 0 if
 * the dataset is not verified. Call it before other threads read.
 */
uint64_t verify_set_memory(struct dataset *ds, uint64_t bytes);

struct verify_stats {
	uint64_t bytes;	     /* that were compared with checksums */
	uint64_t bad_blocks; /* blocks that were damaged, each counted once */
};

/* Returns whether the dataset is verified, and fills *out; zeros if not. */
bool verify_stats(const struct dataset *ds, struct verify_stats *out);

#endif
