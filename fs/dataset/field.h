/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of fields: one row each. A row says how big the field's part of a
 * metadata record is, how it reads, and what its files are called. Adding a
 * type is adding a row.
 */
#ifndef FS_DATASET_FIELD_H
#define FS_DATASET_FIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "beton/batch.h"

struct field;

/* The value of one field of one sample, as its metadata tells it. */
struct value {
	uint64_t off;	      /* in the dataset file; 0 for scalars */
	uint64_t size;	      /* VALUE_SIZE_IN_TABLE: only the allocation
				 table knows it */
	uint8_t scalar[8];    /* int and float: the 8 bytes */
	enum beton_mode mode; /* images, as the next two */
	uint32_t width;
	uint32_t height;
};

#define VALUE_SIZE_IN_TABLE UINT64_MAX

struct field_type {
	enum beton_type type;
	const char *name;   /* in dataset.json */
	uint32_t meta_size; /* in a record; 0: has to be inferred */
	uint32_t meta_align;
	const char *dtype;     /* of a scalar's column, else NULL */
	const char *extension; /* of its files; images: by mode */
	bool has_dtype;	       /* its arguments tell a dtype and a shape */
	/* meta_size bytes -> *out. -EUCLEAN with *why set. */
	int (*view)(const struct field *field, const uint8_t *meta,
		    struct value *out, const char **why);
	/* What stands before the value's bytes in its file (all of it, for
	   scalars): at most NPY_HEADER_MAX bytes; the size. NULL: nothing. */
	size_t (*head)(const struct field *field, const struct value *value,
		       char *out);
};

/* One field of a dataset. Immutable after opening. */
struct field {
	const struct field_type *type;
	char name[17];
	char stem[BETON_STEM_SIZE];   /* what file names call it; unique */
	char dtype[BETON_DTYPE_SIZE]; /* scalars and arrays, else "" */
	uint32_t ndim;
	uint64_t shape[BETON_MAX_NDIM];
	uint64_t array_size; /* bytes of an array */
	uint32_t meta_off;   /* in a record */
	uint32_t meta_size;
	const char *unusable; /* why its values cannot be read, or NULL */
};

/* NULL if there is no such type. */
const struct field_type *field_type_by_id(unsigned id);
const struct field_type *field_type_by_name(const char *name);

/* A scalar has its value in the metadata: int and float. */
static inline bool field_is_scalar(const struct field *f)
{
	return f->type->dtype != NULL;
}

/* Fills dtype, ndim, shape, array_size of a field from the 1024 bytes of its
   descriptor's arguments. -EUCLEAN with *why set. */
int field_parse_arguments(struct field *field, const uint8_t *args,
			  const char **why);

/* The extension of a value's file, with its dot; "" for none. */
const char *field_extension(const struct field *field, enum beton_mode mode);

/* Bytes of one element of a NumPy type string; 0 if it is not supported. */
uint64_t field_dtype_size(const char *dtype);

#endif
