/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of fields: one row each. A row contains the size of the field's
 * part of a metadata record, functions to read and write it, the column of its
 * values in a batch, and the extension of its files. Other modules switch on
 * the column, never on the type. To add a type, add its number in beton/batch.h
 * and a row here.
 */
#ifndef FS_DATA_DATASET_FIELD_H
#define FS_DATA_DATASET_FIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "beton/batch.h"
#include "fs/data/dataset/class_names.h"

struct field;

/* The value of one field of one sample, read from its metadata. */
struct value {
	uint64_t off;	   /* in the dataset file; scalars: 0 */
	uint64_t size;	   /* VALUE_SIZE_IN_TABLE: look it up in the allocation
			      table */
	uint8_t scalar[8]; /* the metadata of a scalar, then zeros */
	enum beton_mode mode; /* only for images, like width and height */
	uint32_t width;
	uint32_t height;
};

#define VALUE_SIZE_IN_TABLE UINT64_MAX

/* A value to be written. Members that the field's type does not use are 0. */
struct writer_value {
	const void *bytes; /* images, bytes, JSON (without NUL), arrays */
	uint64_t size;
	int64_t integer;
	double real;
	enum beton_mode mode; /* only for images, like width and height */
	uint16_t width;
	uint16_t height;
};

/* The storage of the values of a field, and their column in a batch. */
enum field_column {
	COLUMN_SCALAR, /* fixed: one number, which the metadata holds */
	COLUMN_ARRAY,  /* fixed: the field's arguments name dtype and shape */
	COLUMN_IMAGE,  /* ragged; fixed if all are raw and of one size */
	COLUMN_RAGGED, /* any number of bytes each */
	COLUMN_RECORD, /* fixed: the metadata's bytes, of unknown meaning */
};

struct field_type {
	enum beton_type type;
	const char *name;  /* in dataset.json */
	const char *words; /* its values in messages: "integers" */
	enum field_column column;
	uint32_t meta_size; /* in a record; 0: has to be inferred */
	uint32_t meta_align;
	const char *dtype;     /* of a scalar's column, else NULL */
	const char *extension; /* of its files; images: by mode */
	const char *decoder;   /* the extension by which WebDataset decodes it;
				  NULL: the same */
	uint32_t pointer_at;   /* of the payload's offset in the metadata */
	bool ends_in_nul;      /* the payload; its stored size counts the NUL */
	/* Scalars have one of the two: the number out of meta_size bytes. */
	int64_t (*integer)(const uint8_t *meta);
	double (*real)(const uint8_t *meta);
	/* Reads meta_size bytes into *out. -EUCLEAN with *why set. */
	int (*view)(const struct field *field, const uint8_t *meta,
		    struct value *out, const char **why);
	/* Prints the bytes that precede the value in its file, at most
	   NPY_HEADER_MAX. Returns their number. The file of a scalar has no
	   other bytes. NULL: no bytes precede the value. */
	size_t (*head)(const struct field *field, const struct value *value,
		       char *out);
	/* Returns the reason why the value cannot be written, or NULL. A row
	   without this function accepts any value. */
	const char *(*check)(const struct field *field,
			     const struct writer_value *value);
	/* Writes meta_size bytes to `meta`, for a payload of `size` bytes, with
	   its NUL, at `off` of the file. NULL: the type cannot be written. */
	void (*put)(uint8_t *meta, const struct writer_value *value,
		    uint64_t off, uint64_t size);
};

/* One field of a dataset. Immutable after opening. */
struct field {
	const struct field_type *type;
	char name[17];
	char stem[BETON_STEM_SIZE];   /* the name in file names; unique */
	char dtype[BETON_DTYPE_SIZE]; /* of scalars and arrays, else "" */
	uint32_t ndim;
	uint64_t shape[BETON_MAX_NDIM];
	uint64_t array_size; /* bytes of an array */
	uint32_t meta_off;   /* in a record */
	uint32_t meta_size;
	const char *unusable; /* why its values cannot be read, or NULL */
	struct class_names_place classes_at; /* for integers only */
	struct class_names *classes;	     /* of its values; NULL: no names */
};

/* NULL if there is no such type. */
const struct field_type *field_type_by_id(unsigned id);
const struct field_type *field_type_by_name(const char *name);

/* Returns the number of a scalar, as a double. */
double field_number(const struct field *field, const uint8_t *meta);

/* Returns whether the values are whole numbers, by which samples can be
   grouped. */
static inline bool field_is_integer(const struct field *f)
{
	return f->type->integer != NULL;
}

/* COLUMN_RECORD if there is no such type. */
enum field_column field_column(unsigned id);

static inline bool field_is_scalar(const struct field *f)
{
	return f->type->column == COLUMN_SCALAR;
}

static inline bool field_is_array(const struct field *f)
{
	return f->type->column == COLUMN_ARRAY;
}

static inline bool field_is_image(const struct field *f)
{
	return f->type->column == COLUMN_IMAGE;
}

/* Returns whether the values lie in pages, not in the metadata. */
static inline bool field_has_payload(const struct field *f)
{
	return f->type->column != COLUMN_SCALAR &&
	       f->type->column != COLUMN_RECORD;
}

/* Returns the bytes of a payload with its NUL, if it has one. `v` is the view
   of the metadata. */
uint64_t field_stored_size(const struct field *field, const uint8_t *meta,
			   const struct value *v);

/* Sets dtype, ndim, shape and array_size of a field from the arguments in its
   descriptor, 1024 bytes. -EUCLEAN with *why set. */
int field_parse_arguments(struct field *field, const uint8_t *args,
			  const char **why);

/* Returns the number of bytes of arguments that field_parse_arguments()
   accepted; zeros follow. */
size_t field_arguments_size(const uint8_t *args);

/* Returns the extension of a value's file, with its dot; "" for none. */
const char *field_extension(const struct field *field, enum beton_mode mode);

/* Returns the bytes of one element of a NumPy type string; 0 if the type is not
   supported. */
uint64_t field_dtype_size(const char *dtype);

#endif
