/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of values in generated code, and how one is made another: the same
 * bits as dtype_convert().
 */
#ifndef LOADER_JIT_EMIT_TYPE_H
#define LOADER_JIT_EMIT_TYPE_H

#include "loader/graph/dtype.h"

struct code;

/* How a value is held while it is calculated with, and how in memory. */
const char *emit_type_name(enum dtype type);
const char *emit_type_element(enum dtype type);

/*
 * What stands before (v) to convert it. The types differ; float16 is only made
 * of float32, and back.
 */
const char *emit_type_cast(enum dtype from, enum dtype to);

/*
 * Those of the functions that casts name, beton_whole() and beton_halves(),
 * that `text` calls.
 */
void emit_type_helpers(struct code *c, const char *text);

#endif
