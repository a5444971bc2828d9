/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a file to be written: their descriptors, and the offset of each
 * field in a metadata record.
 */
#ifndef FS_DATA_WRITER_SCHEMA_H
#define FS_DATA_WRITER_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#include "fs/base/util/log.h"
#include "fs/data/dataset/field.h"
#include "fs/data/dataset/format.h"

/* A field of the new file. */
struct writer_field {
	const char *name; /* 1..16 bytes of ASCII */
	enum beton_type type;
	char dtype[BETON_DTYPE_SIZE]; /* of arrays and tensors */
	uint32_t ndim;
	uint64_t shape[BETON_MAX_NDIM];
	/* Only for integers: value i has the i-th name. NULL: no names. */
	const char *const *classes;
	size_t num_classes;
};

struct schema {
	size_t num_fields;
	struct field
		*fields; /* only type, name, meta_off, array_size are set */
	uint8_t *descriptors;
	size_t descriptors_size;
	uint64_t itemsize; /* of a record */
	/* The class names for which the descriptors have no room, one after the
	   other. NULL: none. Offsets in the descriptors count from the first
	   name. */
	char *names;
	uint64_t names_size;
};

/* Stores in the descriptors the offset of s->names in the file. */
void schema_place_names(struct schema *s, uint64_t off);

/* Builds the descriptors. -EINVAL: FFCV could not read such a file. Failures
   are logged, with `path`. */
int schema_init(struct schema *s, const struct writer_field *fields,
		size_t num_fields, const char *path, struct log *log);

/* Frees the members, also after schema_init() failed. */
void schema_fini(struct schema *s);

#endif
