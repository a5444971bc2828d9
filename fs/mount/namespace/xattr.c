/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes of values: the properties that stat(2) cannot return. One
   row each. */
#include "fs/mount/namespace/object.h"

#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/value.h"

static const char prefix[] = "user.beton.";

/* A value and its place. */
struct xattr_subject {
	const struct field *field;
	struct value value;
	const struct dataset_part *part; /* of several files; NULL: one file */
};

/* Writes the text and returns its size. 0: the value has no such attribute. */
typedef size_t print_fn(const struct xattr_subject *t, char out[NS_XATTR_MAX]);

static size_t print_number(char *out, uint64_t number)
{
	return (size_t)snprintf(out, NS_XATTR_MAX, "%llu",
				(unsigned long long)number);
}

static size_t print_type(const struct xattr_subject *t, char out[NS_XATTR_MAX])
{
	return (size_t)snprintf(out, NS_XATTR_MAX, "%s", t->field->type->name);
}

static size_t print_dtype(const struct xattr_subject *t, char out[NS_XATTR_MAX])
{
	return (size_t)snprintf(out, NS_XATTR_MAX, "%s", t->field->dtype);
}

/* "2,3" */
static size_t print_shape(const struct xattr_subject *t, char out[NS_XATTR_MAX])
{
	size_t used = 0;

	for (uint32_t i = 0; i < t->field->ndim && field_is_array(t->field);
	     i++)
		used += (size_t)snprintf(
			out + used, NS_XATTR_MAX - used, "%s%llu", i ? "," : "",
			(unsigned long long)t->field->shape[i]);
	return used;
}

static size_t print_offset(const struct xattr_subject *t,
			   char out[NS_XATTR_MAX])
{
	return print_number(out, t->value.off);
}

static size_t print_file(const struct xattr_subject *t, char out[NS_XATTR_MAX])
{
	int n = t->part ? snprintf(out, NS_XATTR_MAX, "%s",
				   basename(dataset_path(t->part->ds)))
			: 0;

	return min_u64((uint64_t)n, NS_XATTR_MAX - 1);
}

static size_t print_size(const struct xattr_subject *t, char out[NS_XATTR_MAX])
{
	return print_number(out, t->value.size);
}

static bool is_image(const struct xattr_subject *t)
{
	return field_is_image(t->field);
}

static size_t print_width(const struct xattr_subject *t, char out[NS_XATTR_MAX])
{
	return is_image(t) ? print_number(out, t->value.width) : 0;
}

static size_t print_height(const struct xattr_subject *t,
			   char out[NS_XATTR_MAX])
{
	return is_image(t) ? print_number(out, t->value.height) : 0;
}

static size_t print_mode(const struct xattr_subject *t, char out[NS_XATTR_MAX])
{
	return is_image(t) ? (size_t)snprintf(out, NS_XATTR_MAX, "%s",
					      t->value.mode == BETON_MODE_RAW
						      ? "raw"
						      : "jpg")
			   : 0;
}

static const struct {
	const char *name; /* behind the prefix */
	print_fn *print;
} rows[] = {
	{ "type", print_type },	    { "dtype", print_dtype },
	{ "shape", print_shape },   { "offset", print_offset },
	{ "size", print_size },	    { "width", print_width },
	{ "height", print_height }, { "mode", print_mode },
	{ "file", print_file },
};

/* The value of a scalar lies in the metadata. */
static int find_subject(struct ns *ns, const struct ns_object *object,
			struct xattr_subject *out)
{
	struct dataset *ds = ns_dataset(ns, object);
	uint64_t n;
	int r = dataset_value_at(ds, object->part, object->index, &out->value);

	if (r)
		return r;
	out->field = &ds->format.fields[object->part];
	if (field_is_scalar(out->field))
		out->value.off = dataset_record_at(ds, object->index, &n) +
				 out->field->meta_off;
	out->part = dataset_part_of(ds, object->index);
	if (out->part)
		out->value.off -= out->part->base;
	return 0;
}

int ns_xattr(struct ns *ns, const struct ns_object *object, const char *name,
	     char out[NS_XATTR_MAX], size_t *size)
{
	struct xattr_subject t;
	int r;

	if (object->kind != NS_VALUE || strncmp(name, prefix, strlen(prefix)))
		return -ENODATA;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (strcmp(name + strlen(prefix), rows[i].name))
			continue;
		r = find_subject(ns, object, &t);
		if (r)
			return r;
		*size = rows[i].print(&t, out);
		return *size ? 0 : -ENODATA;
	}
	return -ENODATA;
}

int ns_xattr_names(struct ns *ns, const struct ns_object *object,
		   char out[NS_XATTR_MAX], size_t *size)
{
	char text[NS_XATTR_MAX];
	struct xattr_subject t;
	size_t used = 0;
	int r = object->kind == NS_VALUE ? find_subject(ns, object, &t) : 0;

	if (r)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(rows) && object->kind == NS_VALUE;
	     i++) {
		if (rows[i].print(&t, text))
			used += 1 + (size_t)snprintf(
					    out + used, NS_XATTR_MAX - used,
					    "%s%s", prefix, rows[i].name);
	}
	*size = used;
	return 0;
}
