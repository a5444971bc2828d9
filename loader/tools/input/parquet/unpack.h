/* SPDX-License-Identifier: Apache-2.0 */
/* Decompresses the pages of a Parquet file. */
#ifndef LOADER_TOOLS_INPUT_PARQUET_UNPACK_H
#define LOADER_TOOLS_INPUT_PARQUET_UNPACK_H

#include "loader/tools/input/input.h"

/* Decompresses to exactly `size` bytes. `codec` is the file's number of the
   compression. -EBADMSG: damaged; -ENOTSUP: unknown, or not in this build. */
int pq_unpack(int codec, const uint8_t *packed, size_t packed_size,
	      uint8_t *out, size_t size, struct input_error *error);

#endif
