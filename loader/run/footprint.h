/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that a ring will need, known before its first batch. Without a
 * word the kernel would end the process for it. Pure but for reading how much
 * memory there is.
 */
#ifndef LOADER_RUN_FOOTPRINT_H
#define LOADER_RUN_FOOTPRINT_H

#include <stdint.h>

struct log;

struct footprint {
	uint64_t row_size; /* bytes of all outputs of a sample */
	uint32_t rows;	   /* samples of a batch */
	uint32_t prefetch;
};

/*
 * Warns if the batches of the ring, `prefetch` and the one that the caller
 * holds, do not fit into the available memory. `root` as for memory_read().
 */
void footprint_check(const struct footprint *f, const char *root,
		     struct log *log);

#endif
