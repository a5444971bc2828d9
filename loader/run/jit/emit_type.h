/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of values in generated code, and their conversions, with the same
 * bits as dtype_convert().
 */
#ifndef LOADER_RUN_JIT_EMIT_TYPE_H
#define LOADER_RUN_JIT_EMIT_TYPE_H

#include "loader/pipeline/op/dtype.h"

struct code;

/* How a value is held while it is calculated with, and how in memory. */
const char *emit_type_name(enum dtype type);
const char *emit_type_element(enum dtype type);

/*
 * The text before (v) that converts it to another type. float16 and bfloat16 are
 * only made of float32, and the reverse.
 */
const char *emit_type_cast(enum dtype from, enum dtype to);

/* The function that converts many floats to a type; NULL: there is none. */
const char *emit_type_many(enum dtype type);

/*
 * Emits those of beton_whole(), beton_halves() and beton_bfloats() that `text`
 * calls. Casts name them.
 */
void emit_type_helpers(struct code *c, const char *text);

#endif
