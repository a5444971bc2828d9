/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/writer/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

enum {
	ARGS_SIZE = FORMAT_DESCRIPTOR_SIZE - FORMAT_ARGS_OFF,
	/* Bytes of names that fit there. */
	NAMES_IN_ARGS = ARGS_SIZE - CLASS_NAMES_HEAD_SIZE,
};

_Static_assert((int)ARGS_SIZE == (int)CLASS_NAMES_ARGS_SIZE, "layout");

struct schema_builder {
	struct schema *schema;
	const char *path;
	struct log *log;
};

static int refuse_field(const struct schema_builder *b, const char *name,
			const char *why)
{
	log_error(b->log, "%s: field '%s': %s", b->path, name, why);
	return -EINVAL;
}

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)name[i] >= 0x80)
			return false;
	}
	return n >= 1 && n <= FORMAT_NAME_SIZE;
}

/*
 * Writes the shape, then the type as NumPy's descr in JSON. FFCV reads trailing
 * zeros of a shape as unused dimensions, so a dimension of 0 is refused.
 */
static int write_arguments(const struct schema_builder *b,
			   const struct writer_field *field,
			   uint64_t *array_size, uint8_t *args)
{
	uint64_t size = field_dtype_size(field->dtype);
	int n;

	if (!size)
		return refuse_field(b, field->name, "not a type of NumPy's");
	if (!field->ndim || field->ndim > BETON_MAX_NDIM)
		return refuse_field(b, field->name, "needs 1 to 32 dimensions");
	for (uint32_t i = 0; i < field->ndim; i++) {
		if (!field->shape[i])
			return refuse_field(b, field->name, "a dimension of 0");
		if (!mul_ok(size, field->shape[i], &size))
			return refuse_field(b, field->name, "too large");
		store64(args + 8 * i, field->shape[i]);
	}
	*array_size = size;
	args += 8 * BETON_MAX_NDIM;
	n = snprintf((char *)args + 8, ARGS_SIZE - 8 * BETON_MAX_NDIM - 8,
		     "[[\"\", \"%s\"]]", field->dtype);
	store64(args, (uint64_t)n);
	return 0;
}

/* Returns the offset of a field's arguments in the descriptors. */
static size_t args_off(size_t i)
{
	return i * FORMAT_DESCRIPTOR_SIZE + FORMAT_ARGS_OFF;
}

static int append_names(struct schema_builder *b, const char *text,
			uint64_t size)
{
	struct schema *s = b->schema;
	char *names = realloc(s->names, s->names_size + size);

	if (!names)
		return log_no_memory(b->log, b->path);
	memcpy(names + s->names_size, text, size);
	s->names = names;
	s->names_size += size;
	return 0;
}

/* Stores names in the descriptor if they fit, otherwise in s->names, whose
   offset is not determined yet. */
static int add_names(struct schema_builder *b, const struct writer_field *field,
		     size_t i)
{
	struct schema *s = b->schema;
	struct class_names_place *at = &s->fields[i].classes_at;
	uint64_t args = args_off(i);
	cleanup_free char *text = NULL;

	if (!field_is_integer(&s->fields[i]))
		return refuse_field(b, field->name,
				    "names of classes need integers");
	at->num = field->num_classes;
	text = class_names_join(field->classes, at->num, &at->size);
	if (!text)
		return log_no_memory(b->log, b->path);
	if (at->size > CLASS_NAMES_SIZE_MAX - s->names_size)
		return refuse_field(b, field->name,
				    "names of classes take over 1 MiB");
	if (at->size > NAMES_IN_ARGS) {
		at->off = s->names_size;
		return append_names(b, text, at->size);
	}
	at->off = FORMAT_HEADER_SIZE + args + CLASS_NAMES_HEAD_SIZE;
	class_names_put(at, s->descriptors + args);
	memcpy(s->descriptors + args + CLASS_NAMES_HEAD_SIZE, text, at->size);
	return 0;
}

void schema_place_names(struct schema *s, uint64_t off)
{
	for (size_t i = 0; i < s->num_fields; i++) {
		struct class_names_place at = s->fields[i].classes_at;

		if (at.size <= NAMES_IN_ARGS)
			continue;
		at.off += off;
		class_names_put(&at, s->descriptors + args_off(i));
	}
}

static int add_field(struct schema_builder *b, const struct writer_field *field,
		     size_t i)
{
	struct field *f = &b->schema->fields[i];
	uint8_t *d = b->schema->descriptors + i * FORMAT_DESCRIPTOR_SIZE;

	if (!is_name(field->name))
		return refuse_field(b, field->name,
				    "not 1 to 16 bytes of ASCII");
	for (size_t k = 0; k < i; k++) {
		if (strcmp(b->schema->fields[k].name, field->name) == 0)
			return refuse_field(b, field->name,
					    "there are two of them");
	}
	f->type = field_type_by_id(field->type);
	if (!f->type || !f->type->put)
		return refuse_field(b, field->name,
				    "a type that cannot be written");
	memcpy(f->name, field->name, strlen(field->name));
	d[0] = (uint8_t)field->type;
	memcpy(d + 1, f->name, FORMAT_NAME_SIZE);
	if (field->num_classes)
		return add_names(b, field, i);
	return field_is_array(f) ? write_arguments(b, field, &f->array_size,
						   d + FORMAT_ARGS_OFF)
				 : 0;
}

/* Lays records out like numpy.dtype(..., align=True). */
static void lay_out(struct schema *s)
{
	uint32_t widest = 1;

	for (size_t i = 0; i < s->num_fields; i++) {
		struct field *f = &s->fields[i];

		s->itemsize = align_up(s->itemsize, f->type->meta_align);
		f->meta_off = (uint32_t)s->itemsize;
		s->itemsize += f->type->meta_size;
		if (f->type->meta_align > widest)
			widest = f->type->meta_align;
	}
	s->itemsize = align_up(s->itemsize, widest);
}

int schema_init(struct schema *s, const struct writer_field *fields,
		size_t num_fields, const char *path, struct log *log)
{
	struct schema_builder b = { s, path, log };
	int r = 0;

	*s = (struct schema){ .num_fields = num_fields };
	if (!num_fields || num_fields > FORMAT_FIELDS_MAX) {
		log_error(log, "%s: %zu fields: expected 1 to %d", path,
			  num_fields, FORMAT_FIELDS_MAX);
		return -EINVAL;
	}
	s->descriptors_size = num_fields * FORMAT_DESCRIPTOR_SIZE;
	s->descriptors = calloc(1, s->descriptors_size);
	s->fields = calloc(num_fields, sizeof(*s->fields));
	if (!s->descriptors || !s->fields)
		return log_no_memory(log, path);
	for (size_t i = 0; i < num_fields && !r; i++)
		r = add_field(&b, &fields[i], i);
	if (!r)
		lay_out(s);
	return r;
}

void schema_fini(struct schema *s)
{
	free(s->fields);
	free(s->descriptors);
	free(s->names);
}
