/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/resize/rows.h"

#include "fs/util/bytes.h"

enum {
	CHANNELS = 3,
	/* Any class reads or writes at most as many numbers past a row. */
	ROWS_BLOCK = 32,
};

size_t rows_size(uint32_t width)
{
	return align_up((uint64_t)width * CHANNELS, ROWS_BLOCK) + ROWS_BLOCK;
}

const struct rows_class *rows_class(enum axis_kind kind)
{
	return &ISA_BEST(rows)->of[kind];
}
