/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates the memory of a ring before its first batch. If the batches do not
 * fit, the kernel ends the process without an explanation, so the loader warns.
 * Pure, except for reading the available memory.
 */
#ifndef LOADER_UTIL_FOOTPRINT_H
#define LOADER_UTIL_FOOTPRINT_H

#include <stdint.h>

struct log;

struct footprint {
	uint64_t row_size;  /* bytes of all outputs of a sample */
	uint32_t rows;	    /* samples in a batch */
	uint32_t complete;  /* batches that may be ready for the user */
	uint32_t head_rows; /* samples of another one that is begun */
};

/*
 * Warns if the prefetched batches and the one that the user holds do not fit
 * into the available memory. `root` as for memory_read().
 */
void footprint_check(const struct footprint *f, const char *root,
		     struct log *log);

#endif
