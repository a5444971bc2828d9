/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/library/schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

static const struct {
	const char *name;
	enum input_type type;
} types[] = {
	{ "image", INPUT_IMAGE }, { "int", INPUT_INT },
	{ "float", INPUT_FLOAT }, { "text", INPUT_TEXT },
	{ "bytes", INPUT_BYTES }, { "json", INPUT_JSON },
	{ "array", INPUT_ARRAY },
};

static int refuse(const struct input *in)
{
	log_error(in->log, "the description of the source is not complete: the "
			   "Python package has another version than this "
			   "program");
	return -EPROTO;
}

static uint64_t number(const json_t *d, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(d, key));

	return n > 0 ? (uint64_t)n : 0;
}

static const char *string(const json_t *d, const char *key)
{
	const char *s = json_string_value(json_object_get(d, key));

	return s ? s : "";
}

static bool flag(const json_t *d, const char *key)
{
	return json_is_true(json_object_get(d, key));
}

static bool read_type(const json_t *d, enum input_type *out)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (strcmp(types[i].name, string(d, "type")) != 0)
			continue;
		*out = types[i].type;
		return true;
	}
	return false;
}

static bool read_shape(const json_t *d, struct input_field *f)
{
	const json_t *shape = json_object_get(d, "shape"), *side;
	size_t i;

	if (strlen(string(d, "dtype")) >= sizeof(f->dtype) ||
	    json_array_size(shape) > BETON_MAX_NDIM)
		return false;
	strcpy(f->dtype, string(d, "dtype"));
	f->ndim = (uint32_t)json_array_size(shape);
	json_array_foreach(shape, i, side) f->shape[i] =
		(uint64_t)json_integer_value(side);
	return true;
}

/* The names belong to the description, and the list to the field. */
static int read_classes(const json_t *d, struct input_field *f)
{
	const json_t *list = json_object_get(d, "classes"), *name;
	const char **names;
	size_t i;

	if (!json_array_size(list))
		return 0;
	names = calloc(json_array_size(list), sizeof(*names));
	if (!names)
		return -ENOMEM;
	json_array_foreach(list, i, name) names[i] =
		json_string_value(name) ? json_string_value(name) : "";
	f->classes = names;
	f->num_classes = json_array_size(list);
	return 0;
}

int schema_add_field(const json_t *d, struct input *in)
{
	enum input_type type;
	struct input_field *f;

	if (in->num_fields == INPUT_FIELDS_MAX) {
		log_error(in->log, "more than %d fields", INPUT_FIELDS_MAX);
		return -EINVAL;
	}
	if (!read_type(d, &type))
		return refuse(in);
	f = input_add_field(in, string(d, "name"), type);
	if (!f)
		return -ENOMEM;
	f->index = (uint32_t)number(d, "index");
	f->is_tensor = flag(d, "tensor");
	f->types = string(d, "types");
	snprintf(f->refused, sizeof(f->refused), "%s", string(d, "refused"));
	if (!read_shape(d, f))
		return refuse(in);
	if (!read_classes(d, f))
		return 0;
	return log_no_memory(in->log, NULL);
}

int schema_read(const json_t *d, struct input *in)
{
	const json_t *fields = json_object_get(d, "fields"), *field;
	size_t i;
	int r = 0;

	if (!json_is_array(fields) || !number(d, "rows"))
		return refuse(in);
	in->title = string(d, "title");
	in->num_samples = number(d, "samples");
	in->ignored = number(d, "ignored");
	in->keeps_images = flag(d, "keep");
	json_array_foreach(fields, i, field) r =
		r ? r : schema_add_field(field, in);
	return r;
}

static uint64_t first_of(const json_t *parts, size_t part)
{
	return (uint64_t)json_integer_value(
		json_array_get(json_array_get(parts, part), 1));
}

size_t schema_part(const json_t *d, uint64_t sample, uint64_t *first)
{
	const json_t *parts = json_object_get(d, "parts");
	size_t low = 0, high = json_array_size(parts);

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (first_of(parts, middle) <= sample)
			low = middle;
		else
			high = middle;
	}
	*first = first_of(parts, low);
	return low;
}

void schema_describe(const json_t *d, uint64_t sample, char *out, size_t size)
{
	uint64_t first;
	size_t part = schema_part(d, sample, &first);
	const char *path = json_string_value(json_array_get(
		json_array_get(json_object_get(d, "parts"), part), 0));

	snprintf(out, size, "%s, %s %llu", path ? path : string(d, "title"),
		 string(d, "unit"), (unsigned long long)(sample - first));
}
