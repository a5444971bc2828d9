/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a new file says about its fields: the descriptors' bytes, and where in
 * a metadata record each field has its place.
 */
#ifndef FS_DATASET_SCHEMA_H
#define FS_DATASET_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#include "fs/dataset/field.h"
#include "fs/dataset/format.h"
#include "fs/util/log.h"

/* A field of the new file. */
struct writer_field {
	const char *name; /* 1..16 bytes of ASCII */
	enum beton_type type;
	char dtype[BETON_DTYPE_SIZE]; /* arrays and tensors */
	uint32_t ndim;
	uint64_t shape[BETON_MAX_NDIM];
};

struct schema {
	size_t num_fields;
	struct field *fields; /* type, name, meta_off, array_size alone */
	uint8_t *descriptors;
	size_t descriptors_size;
	uint64_t itemsize; /* of a record */
};

/* Refuses, and logs under the file's `path`, what FFCV could not read. */
int schema_init(struct schema *s, const struct writer_field *fields,
		size_t num_fields, const char *path, struct log *log);

/* Takes what schema_init() made or left behind when it failed. */
void schema_fini(struct schema *s);

#endif
