/* SPDX-License-Identifier: Apache-2.0 */
/* Decompresses a raw Snappy block. */
#ifndef LOADER_TOOLS_INPUT_PARQUET_SNAPPY_H
#define LOADER_TOOLS_INPUT_PARQUET_SNAPPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether the block is whole and has exactly `size` bytes. */
bool snappy_unpack(const uint8_t *block, size_t block_size, uint8_t *out,
		   size_t size);

#endif
