/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thrift's compact protocol, in which a Parquet file describes itself. The
 * bytes are hostile. Once a cursor is bad, every function returns 0 or false.
 */
#ifndef LOADER_TOOLS_INPUT_PARQUET_THRIFT_H
#define LOADER_TOOLS_INPUT_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum thrift_type {
	THRIFT_TRUE = 1,
	THRIFT_FALSE,
	THRIFT_I8,
	THRIFT_I16,
	THRIFT_I32,
	THRIFT_I64,
	THRIFT_DOUBLE,
	THRIFT_BINARY,
	THRIFT_LIST,
	THRIFT_SET,
	THRIFT_MAP,
	THRIFT_STRUCT,
};

struct thrift {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

/* A member of a struct. Begin a struct with zeros. */
struct thrift_field {
	int32_t id;
	enum thrift_type type;
};

/* Moves to the next member. Returns false at the end of the struct. The caller
   reads or skips each member. */
bool thrift_next(struct thrift *t, struct thrift_field *f);

int64_t thrift_int(struct thrift *t, const struct thrift_field *f);
bool thrift_bool(struct thrift *t, const struct thrift_field *f);
/* Returns bytes within the cursor's. */
const char *thrift_binary(struct thrift *t, const struct thrift_field *f,
			  size_t *size);
/* Returns the number of elements, each of which has the type `of` and at least
   a byte in the cursor. */
uint64_t thrift_list(struct thrift *t, const struct thrift_field *f,
		     enum thrift_type of);
/* The member must be a struct. */
bool thrift_struct(struct thrift *t, const struct thrift_field *f);
void thrift_skip(struct thrift *t, const struct thrift_field *f);

#endif
