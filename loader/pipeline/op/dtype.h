/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of NumPy's little-endian types, and conversions between them
 * (beton-operations(7)):
 *
 *   to a float type rounded once, to nearest, ties to even. A double becomes a
 *   half or a bfloat16 by way of float32, which can round twice.
 *   to an integer     rounded to nearest, ties to even; what does not fit
 *                     becomes the nearest end of the range, NaN becomes 0
 */
#ifndef LOADER_PIPELINE_OP_DTYPE_H
#define LOADER_PIPELINE_OP_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype {
	DTYPE_B1,
	DTYPE_I1,
	DTYPE_U1,
	DTYPE_I2,
	DTYPE_U2,
	DTYPE_I4,
	DTYPE_U4,
	DTYPE_I8,
	DTYPE_U8,
	DTYPE_F2,
	DTYPE_F4,
	DTYPE_F8,
	DTYPE_BF2,   /* bfloat16, the upper half of a float32 */
	DTYPE_OTHER, /* not supported as numbers: strings, complex, dates */
};

/* Looks up a type string of NumPy, such as "<f4". NumPy has no bfloat16; that
   of ml_dtypes is "<V2". */
enum dtype dtype_by_name(const char *name);
const char *dtype_name(enum dtype t);
size_t dtype_size(enum dtype t); /* 0 for DTYPE_OTHER */
bool dtype_is_whole(enum dtype t);
/* Whether a type of whole numbers represents all values of another one. */
bool dtype_holds(enum dtype t, enum dtype other);

/*
 * Returns the bytes of one element of any NumPy type, also "<U3" and "<M8[s]",
 * or 0 for an unknown type.
 */
uint64_t dtype_item_size(const char *name);

/* Converts to the bits of an IEEE binary16, to nearest, ties to even. The
   conversion back is exact. */
uint16_t half_of_float(float v);
float float_of_half(uint16_t h);

/* Converts to the bits of a bfloat16, to nearest, ties to even. The conversion
   back is exact. */
uint16_t bfloat_of_float(float v);
float float_of_bfloat(uint16_t b);

/* Whether a type is converted by way of float32: float16 and bfloat16. */
bool dtype_is_short_real(enum dtype t);

/* Converts `count` unaligned values. `out` must not overlap `in`. */
void dtype_convert(enum dtype from, const void *in, enum dtype to, void *out,
		   size_t count);

#endif
