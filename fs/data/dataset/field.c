/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/field.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/npy.h"

/* Offsets in a descriptor's arguments (beton(5)). */
enum {
	ARGS_SHAPE = 0,
	ARGS_TEXT_SIZE = 8 * BETON_MAX_NDIM,
	ARGS_TEXT = ARGS_TEXT_SIZE + 8,
	ARGS_TEXT_MAX = 1024 - ARGS_TEXT,
};

static int view_scalar(const struct field *field, const uint8_t *meta,
		       struct value *out, const char **why)
{
	const uint32_t size = field->type->meta_size;

	(void)why;
	*out = (struct value){ .size = size };
	memcpy(out->scalar, meta, size);
	return 0;
}

static int view_image(const struct field *field, const uint8_t *meta,
		      struct value *out, const char **why)
{
	(void)field;
	*out = (struct value){
		.mode = meta[0],
		.width = load16(meta + 1),
		.height = load16(meta + 3),
		.off = load64(meta + 5),
		.size = VALUE_SIZE_IN_TABLE,
	};
	if (meta[0] != BETON_MODE_JPG && meta[0] != BETON_MODE_RAW) {
		*why = "unknown image mode";
		return -BETON_ECORRUPT;
	}
	if (!out->width || !out->height) {
		*why = "an image without pixels";
		return -BETON_ECORRUPT;
	}
	if (out->mode == BETON_MODE_RAW)
		out->size = (uint64_t)out->width * out->height * 3;
	return 0;
}

static int view_bytes(const struct field *field, const uint8_t *meta,
		      struct value *out, const char **why)
{
	(void)field;
	*out = (struct value){ .off = load64(meta), .size = load64(meta + 8) };
	/* A size of all one bits would mean VALUE_SIZE_IN_TABLE. */
	if (out->size == UINT64_MAX) {
		*why = "its size is absurd";
		return -BETON_ECORRUPT;
	}
	return 0;
}

/* The stored text ends in a NUL, which its size includes. The value has no
   NUL. */
static int view_json(const struct field *field, const uint8_t *meta,
		     struct value *out, const char **why)
{
	int r = view_bytes(field, meta, out, why);

	if (out->size)
		out->size--;
	return r;
}

static int view_array(const struct field *field, const uint8_t *meta,
		      struct value *out, const char **why)
{
	(void)why;
	*out = (struct value){ .off = load64(meta), .size = field->array_size };
	return 0;
}

/* The metadata has a meaning only for the field's Python class. The value is
   the metadata itself; dataset.c sets its offset. */
static int view_custom(const struct field *field, const uint8_t *meta,
		       struct value *out, const char **why)
{
	(void)meta;
	(void)why;
	*out = (struct value){ .size = field->meta_size };
	return 0;
}

static double real_of_float(const uint8_t *meta)
{
	double v;

	memcpy(&v, meta, sizeof(v));
	return v;
}

static int64_t integer_of_int(const uint8_t *meta)
{
	return (int64_t)load64(meta);
}

/* Prints as few digits as give the same double when they are read back. */
static size_t head_float(const struct field *field, const struct value *value,
			 char *out)
{
	double v = field_number(field, value->scalar), back;
	int n = 0;

	for (int digits = 15; digits <= 17; digits++) {
		n = snprintf(out, NPY_HEADER_MAX, "%.*g\n", digits, v);
		back = strtod(out, NULL);
		if (!memcmp(&back, &v, sizeof(v)) || v != v)
			break;
	}
	return (size_t)n;
}

static size_t head_int(const struct field *field, const struct value *value,
		       char *out)
{
	return (size_t)snprintf(out, NPY_HEADER_MAX, "%lld\n",
				(long long)field->type->integer(value->scalar));
}

static size_t head_array(const struct field *field, const struct value *value,
			 char *out)
{
	(void)value;
	return npy_header(out, field->dtype, field->ndim, field->shape);
}

static size_t head_image(const struct field *field, const struct value *value,
			 char *out)
{
	(void)field;
	if (value->mode != BETON_MODE_RAW)
		return 0;
	return (size_t)snprintf(out, NPY_HEADER_MAX, "P6\n%u %u\n255\n",
				value->width, value->height);
}

static const char *check_image(const struct field *field,
			       const struct writer_value *v)
{
	(void)field;
	if (v->mode != BETON_MODE_JPG && v->mode != BETON_MODE_RAW)
		return "an unknown mode";
	if (!v->width || !v->height || !v->size)
		return "an image without pixels";
	if (v->mode == BETON_MODE_RAW &&
	    v->size != (uint64_t)v->width * v->height * 3)
		return "raw pixels of wrong size";
	return NULL;
}

static const char *check_array(const struct field *field,
			       const struct writer_value *v)
{
	return v->size == field->array_size ? NULL : "an array of wrong size";
}

/* FFCV ends a text at its first NUL. */
static const char *check_json(const struct field *field,
			      const struct writer_value *v)
{
	(void)field;
	return v->size && memchr(v->bytes, 0, v->size) ? "JSON with a NUL in it"
						       : NULL;
}

static void put_float(uint8_t *meta, const struct writer_value *v, uint64_t off,
		      uint64_t size)
{
	(void)off;
	(void)size;
	memcpy(meta, &v->real, 8);
}

static void put_int(uint8_t *meta, const struct writer_value *v, uint64_t off,
		    uint64_t size)
{
	(void)off;
	(void)size;
	store64(meta, (uint64_t)v->integer);
}

static void put_image(uint8_t *meta, const struct writer_value *v, uint64_t off,
		      uint64_t size)
{
	(void)size;
	meta[0] = (uint8_t)v->mode;
	store16(meta + 1, v->width);
	store16(meta + 3, v->height);
	store64(meta + 5, off);
}

static void put_bytes(uint8_t *meta, const struct writer_value *v, uint64_t off,
		      uint64_t size)
{
	(void)v;
	store64(meta, off);
	store64(meta + 8, size);
}

static void put_array(uint8_t *meta, const struct writer_value *v, uint64_t off,
		      uint64_t size)
{
	(void)v;
	(void)size;
	store64(meta, off);
}

static const struct field_type types[] = {
	{
		.type = BETON_TYPE_FLOAT,
		.name = "float",
		.words = "floating-point numbers",
		.column = COLUMN_SCALAR,
		.meta_size = 8,
		.meta_align = 8,
		.dtype = "<f8",
		.extension = "",
		.decoder = ".txt",
		.real = real_of_float,
		.view = view_scalar,
		.head = head_float,
		.put = put_float,
	},
	{
		.type = BETON_TYPE_INT,
		.name = "int",
		.words = "integers",
		.column = COLUMN_SCALAR,
		.meta_size = 8,
		.meta_align = 8,
		.dtype = "<i8",
		.extension = "",
		.decoder = ".cls",
		.integer = integer_of_int,
		.view = view_scalar,
		.head = head_int,
		.put = put_int,
	},
	{
		.type = BETON_TYPE_IMAGE,
		.name = "rgb_image",
		.words = "images",
		.column = COLUMN_IMAGE,
		.meta_size = 13,
		.meta_align = 1,
		.extension = "",
		.pointer_at = 5,
		.view = view_image,
		.head = head_image,
		.check = check_image,
		.put = put_image,
	},
	{
		.type = BETON_TYPE_BYTES,
		.name = "bytes",
		.words = "bytes",
		.column = COLUMN_RAGGED,
		.meta_size = 16,
		.meta_align = 1,
		.extension = ".bin",
		.view = view_bytes,
		.put = put_bytes,
	},
	{
		.type = BETON_TYPE_NDARRAY,
		.name = "ndarray",
		.words = "arrays",
		.column = COLUMN_ARRAY,
		.meta_size = 8,
		.meta_align = 8,
		.extension = ".npy",
		.view = view_array,
		.head = head_array,
		.check = check_array,
		.put = put_array,
	},
	{
		.type = BETON_TYPE_JSON,
		.name = "json",
		.words = "JSON",
		.column = COLUMN_RAGGED,
		.meta_size = 16,
		.meta_align = 1,
		.extension = ".json",
		.ends_in_nul = true,
		.view = view_json,
		.check = check_json,
		.put = put_bytes,
	},
	{
		.type = BETON_TYPE_TENSOR,
		.name = "torch_tensor",
		.words = "tensors",
		.column = COLUMN_ARRAY,
		.meta_size = 8,
		.meta_align = 8,
		.extension = ".npy",
		.view = view_array,
		.head = head_array,
		.check = check_array,
		.put = put_array,
	},
	{
		.type = BETON_TYPE_CUSTOM,
		.name = "custom",
		.words = "custom",
		.column = COLUMN_RECORD,
		.meta_align = 1,
		.extension = ".bin",
		.view = view_custom,
	},
};

const struct field_type *field_type_by_id(unsigned id)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if ((unsigned)types[i].type == id)
			return &types[i];
	}
	return NULL;
}

const struct field_type *field_type_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (!strcmp(types[i].name, name))
			return &types[i];
	}
	return NULL;
}

double field_number(const struct field *field, const uint8_t *meta)
{
	return field->type->real ? field->type->real(meta)
				 : (double)field->type->integer(meta);
}

/* The view of JSON does not distinguish a text of no bytes from one without a
   NUL. */
uint64_t field_stored_size(const struct field *field, const uint8_t *meta,
			   const struct value *v)
{
	return field->type->ends_in_nul
		       ? load64(meta + field->type->pointer_at + 8)
		       : v->size;
}

enum field_column field_column(unsigned id)
{
	const struct field_type *type = field_type_by_id(id);

	return type ? type->column : COLUMN_RECORD;
}

const char *field_extension(const struct field *field, enum beton_mode mode)
{
	if (!field_is_image(field))
		return field->type->extension;
	return mode == BETON_MODE_RAW ? ".ppm" : ".jpg";
}

/* The kinds of NumPy's type strings, and their sizes (0: any). */
static const struct {
	char kind;
	uint8_t scale; /* bytes per unit of the size */
	uint8_t sizes[4];
} kinds[] = {
	{ 'b', 1, { 1 } },	    { 'i', 1, { 1, 2, 4, 8 } },
	{ 'u', 1, { 1, 2, 4, 8 } }, { 'f', 1, { 2, 4, 8, 16 } },
	{ 'c', 1, { 8, 16, 32 } },  { 'M', 1, { 8 } },
	{ 'm', 1, { 8 } },	    { 'S', 1, { 0 } },
	{ 'V', 1, { 0 } },	    { 'U', 4, { 0 } },
};

static bool size_allowed(const uint8_t *sizes, uint64_t n)
{
	if (!sizes[0])
		return true;
	for (size_t i = 0; i < 4 && sizes[i]; i++) {
		if (sizes[i] == n)
			return true;
	}
	return false;
}

/* Returns whether `suffix` may follow the number: a unit of time, like
   "[ns]". */
static bool suffix_ok(char kind, const char *suffix)
{
	if (!*suffix)
		return true;
	if ((kind != 'M' && kind != 'm') || *suffix++ != '[')
		return false;
	while (isalnum((unsigned char)*suffix))
		suffix++;
	return suffix[0] == ']' && !suffix[1];
}

uint64_t field_dtype_size(const char *dtype)
{
	uint64_t n = 0;
	const char *p = dtype + 2;

	if (!dtype[0] || !strchr("<>|=", dtype[0]) || !dtype[1])
		return 0;
	for (; isdigit((unsigned char)*p) && n < 1 << 20; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (kinds[i].kind == dtype[1] && n && suffix_ok(dtype[1], p) &&
		    size_allowed(kinds[i].sizes, n))
			return n * kinds[i].scale;
	}
	return 0;
}

/*
 * The text is numpy.dtype.descr, printed by Python's json.dumps. NumPy reads an
 * array back only if that has one entry without a name: [["", "<f4"]].
 */
static int parse_dtype(struct field *field, const uint8_t *text, uint64_t size)
{
	char copy[ARGS_TEXT_MAX + 1], dtype[BETON_DTYPE_SIZE] = "";
	char end;
	int used = 0;

	memcpy(copy, text, size);
	copy[size] = '\0';
	if (sscanf(copy, " [ [ \"\" , \"%15[^\"\\]\" ] %c%n", dtype, &end,
		   &used) != 2 ||
	    end != ']' || copy[used] || !field_dtype_size(dtype))
		return -BETON_ECORRUPT;
	memcpy(field->dtype, dtype, sizeof(dtype));
	return 0;
}

int field_parse_arguments(struct field *field, const uint8_t *args,
			  const char **why)
{
	uint64_t text_size = load64(args + ARGS_TEXT_SIZE), size;

	field->ndim = BETON_MAX_NDIM;
	for (size_t i = 0; i < BETON_MAX_NDIM; i++)
		field->shape[i] = load64(args + ARGS_SHAPE + 8 * i);
	while (field->ndim && !field->shape[field->ndim - 1])
		field->ndim--;
	*why = "its type text is too long";
	if (text_size > ARGS_TEXT_MAX)
		return -BETON_ECORRUPT;
	*why = "its type text names no NumPy type";
	if (parse_dtype(field, args + ARGS_TEXT, text_size))
		return -BETON_ECORRUPT;
	*why = "its shape is too large";
	size = field_dtype_size(field->dtype);
	for (size_t i = 0; i < field->ndim; i++) {
		if (!mul_ok(size, field->shape[i], &size))
			return -BETON_ECORRUPT;
	}
	field->array_size = size;
	return 0;
}

size_t field_arguments_size(const uint8_t *args)
{
	return ARGS_TEXT + (size_t)load64(args + ARGS_TEXT_SIZE);
}
