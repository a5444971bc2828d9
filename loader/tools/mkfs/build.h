/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the dataset of a mapping and a selection. */
#ifndef LOADER_TOOLS_MKFS_BUILD_H
#define LOADER_TOOLS_MKFS_BUILD_H

#include <signal.h>
#include <stdatomic.h>

#include "fs/data/writer/append.h"
#include "loader/tools/mkfs/mapping.h"
#include "loader/tools/mkfs/options.h"
#include "loader/tools/mkfs/selection.h"
#include "loader/tools/ui/progress.h"

/* Zero-initialize, then set the first group of members. */
struct build {
	const struct mkfs_options *options;
	struct log *log;
	struct mapping *mapping;
	struct selection selection;
	const char *dataset; /* its path */
	unsigned jobs;
	uint32_t page_size; /* grows if a sample needs it; 0: see append.h */
	/* Signals that end the program; blocked, and polled, so that no handler
	   has anything to clean up. */
	sigset_t signals;

	/* Results. */
	struct progress progress;
	uint64_t samples;
	uint64_t jpegs;
	uint64_t raws;
	uint64_t skipped;
	uint64_t bytes; /* of all samples */

	struct sums *sums; /* of an object; NULL: none are wanted */
	uint64_t reported; /* position of the first sample whose failure is not
			      logged yet */
	atomic_int signal; /* the one that ends the program, or 0 */
};

/*
 * Writes the dataset, which appears under its name when it is complete.
 * Failures are logged. A signal removes the unfinished file and ends the
 * program.
 */
int build_run(struct build *b);

#endif
