/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the parts of a partition as datasets, without decoding anything. */
#ifndef LOADER_TOOLS_COMBINE_SPLIT_H
#define LOADER_TOOLS_COMBINE_SPLIT_H

#include "fs/data/dataset/dataset.h"
#include "loader/tools/combine/outputs.h"
#include "loader/tools/combine/partition.h"

struct split {
	struct dataset *dataset;
	const struct partition *partition;
	const struct outputs *outputs; /* one per part */
	struct log *log;
	/* Called after some samples, with the number of all so far. NULL: not
	   called. */
	void (*progress)(void *arg, uint64_t done);
	/* As that of a writer. NULL: none. */
	int (*poll)(void *poll_arg);
	void *poll_arg;
	void *arg;
};

/*
 * Writes a file for each part. Its fields, class names and pages are those of
 * the dataset. A file replaces one of its name when it is complete. Failures
 * are logged. -EINVAL: a part would replace a file of the dataset.
 */
int split_run(const struct split *split);

#endif
