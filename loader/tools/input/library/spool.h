/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a pass in a file without a name below TMPDIR, so that rows can
 * be read in any order: most formats are fast in their own order only.
 */
#ifndef LOADER_TOOLS_INPUT_LIBRARY_SPOOL_H
#define LOADER_TOOLS_INPUT_LIBRARY_SPOOL_H

#include "loader/tools/input/library/pass.h"

struct spool;

/* Writes all blocks of a pass. Failures are logged. */
int spool_open(struct pass *pass, uint64_t rows_per_block, uint64_t count,
	       size_t num_columns, struct log *log, struct spool **out);
void spool_close(struct spool *s); /* takes NULL */

/* Maps a block, which the caller puts. For any thread. -errno. */
int spool_block(const struct spool *s, uint64_t index, struct block **out);

#endif
