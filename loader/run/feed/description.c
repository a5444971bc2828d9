/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/feed/description.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/field.h"
#include "fs/data/dataset/format.h"

static int complain(char *why, const char *reason)
{
	snprintf(why, DESCRIPTION_WHY_SIZE, "%s", reason);
	return -BETON_ECORRUPT;
}

/* --- fields --- */

/* As in a dataset file: ASCII. */
static bool is_name(const char *name)
{
	size_t size = strlen(name);

	for (size_t i = 0; i < size; i++) {
		if (name[i] & 0x80)
			return false;
	}
	return size <= FORMAT_NAME_SIZE;
}

/* A file-name form of a field, as name_escape() writes it, perhaps with the
   "~2" that makes it unique. */
static bool is_stem(const char *stem)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz"
				      "0123456789_-.%~";
	size_t size = strlen(stem);

	return size && size < BETON_STEM_SIZE && stem[0] != '.' &&
	       strspn(stem, letters) == size;
}

/* Scalars and arrays have a type of their elements, other values have none. */
static bool is_dtype(const struct field_type *type, const char *dtype)
{
	if (type->column == COLUMN_SCALAR)
		return dtype && !strcmp(dtype, type->dtype);
	if (type->column == COLUMN_ARRAY)
		return dtype && strlen(dtype) < BETON_DTYPE_SIZE &&
		       field_dtype_size(dtype);
	return !dtype;
}

/* Reads the shape of an array. Its bytes fit into a page, whose size has 32
   bits. A length of 0 counts as 1 in the sum, so that no product of some of
   the lengths wraps either. */
static bool parse_shape(struct pipeline_field *f, const json_t *shape)
{
	uint64_t bytes = field_dtype_size(f->dtype);
	const json_t *length;
	json_int_t n;
	size_t i;

	if (!json_is_array(shape) || json_array_size(shape) > BETON_MAX_NDIM)
		return false;
	json_array_foreach(shape, i, length)
	{
		n = json_integer_value(length);
		if (!json_is_integer(length) || n < 0 ||
		    !mul_ok(bytes, n ? (uint64_t)n : 1, &bytes) ||
		    bytes > UINT32_MAX)
			return false;
		f->shape[i] = (uint64_t)n;
	}
	f->ndim = (uint32_t)json_array_size(shape);
	return true;
}

static const char *parse_field(struct feed *feed, uint32_t i, json_t *o)
{
	const char *name, *stem, *type, *dtype = NULL, *unusable = NULL;
	struct pipeline_field *f = &feed->fields[i];
	const struct field_type *row;
	json_t *shape = NULL;

	if (json_unpack(o, "{s:s, s:s, s:s, s?s, s?o, s?s}", "name", &name,
			"stem", &stem, "type", &type, "dtype", &dtype, "shape",
			&shape, "unusable", &unusable))
		return "a member is missing";
	row = field_type_by_name(type);
	if (!row)
		return "its type is unknown";
	if (!is_name(name))
		return "its name is too long, or not ASCII";
	if (!is_stem(stem))
		return "its file-name form has characters that file names do not have";
	if (!is_dtype(row, dtype))
		return "its dtype is not one of this type";
	strcpy(feed->names[i].name, name);
	strcpy(feed->names[i].stem, stem);
	strcpy(f->dtype, dtype ? dtype : "|u1");
	f->column = row->column;
	f->usable = !unusable;
	if (row->column == COLUMN_ARRAY ? !parse_shape(f, shape) : !!shape)
		return "its shape is not one of this type, or too large";
	return NULL;
}

/* No two fields may have the same file-name form. */
static int parse_fields(struct feed *feed, json_t *fields, char *why)
{
	json_t *field, *stems = json_object();
	const char *reason = NULL;
	size_t i;

	json_array_foreach(fields, i, field)
	{
		const char *stem = feed->names[i].stem;

		reason = parse_field(feed, (uint32_t)i, field);
		if (!reason && json_object_get(stems, stem))
			reason = "its file-name form is that of another field";
		if (reason)
			break;
		json_object_set_new(stems, stem, json_null());
	}
	json_decref(stems);
	if (!reason)
		return 0;
	snprintf(why, DESCRIPTION_WHY_SIZE, "field %zu: %s", i, reason);
	return -BETON_ECORRUPT;
}

/* --- the dataset --- */

static bool is_fingerprint(const char *print)
{
	return strlen(print) == 2 * BETON_FINGERPRINT_SIZE &&
	       strspn(print, "0123456789abcdef") == 2 * BETON_FINGERPRINT_SIZE;
}

static int parse_dataset(struct feed *feed, json_t *o, char *why)
{
	json_int_t version, samples, data_bytes;
	const char *print;
	json_t *fields;
	int r;

	if (json_unpack(o, "{s:I, s:I, s:I, s:s, s:o}", "version", &version,
			"samples", &samples, "data_bytes", &data_bytes,
			"fingerprint", &print, "fields", &fields))
		return complain(why, "a member is missing");
	if (version != 1)
		return complain(why, "its version is not 1");
	if (samples < 0 || (uint64_t)samples > FORMAT_SAMPLES_MAX ||
	    data_bytes < 0)
		return complain(why, "its size is out of range");
	if (!is_fingerprint(print))
		return complain(why, "its fingerprint is none");
	if (!json_is_array(fields) ||
	    json_array_size(fields) > FORMAT_FIELDS_MAX)
		return complain(why, "it has too many fields");
	feed->facts.samples = (uint64_t)samples;
	feed->facts.data_bytes = (uint64_t)data_bytes;
	strcpy(feed->fingerprint, print);
	r = feed_make_fields(feed, (uint32_t)json_array_size(fields));
	return r ? r : parse_fields(feed, fields, why);
}

int description_parse(struct feed *feed, const char *text, size_t size,
		      char why[DESCRIPTION_WHY_SIZE])
{
	json_error_t error;
	json_t *o = json_loadb(text, size, 0, &error);
	int r;

	if (!o) {
		snprintf(why, DESCRIPTION_WHY_SIZE, "%s", error.text);
		return -BETON_ECORRUPT;
	}
	r = parse_dataset(feed, o, why);
	json_decref(o);
	return r;
}

int description_compare(const struct feed *feed, const char *text, size_t size,
			char print[2 * BETON_FINGERPRINT_SIZE + 1],
			char why[DESCRIPTION_WHY_SIZE])
{
	struct feed other = { .log = NULL };
	int r = description_parse(&other, text, size, why);

	if (!r) {
		strcpy(print, other.fingerprint);
		if (strcmp(print, feed->fingerprint) != 0 ||
		    other.facts.samples != feed->facts.samples ||
		    other.num_fields != feed->num_fields)
			r = -ESTALE;
	}
	free(other.fields);
	free(other.names);
	return r;
}

int description_add_sample(struct feed *feed, const struct batch_view *view)
{
	struct batch_view_value v;

	if (view->header->num_fields != feed->num_fields ||
	    !view->header->num_samples)
		return -BETON_ECORRUPT;
	for (uint32_t i = 0; i < feed->num_fields; i++) {
		struct pipeline_field *f = &feed->fields[i];

		v = batch_view_at(view, i, 0);
		f->width = v.width;
		f->height = v.height;
		if (f->column == COLUMN_RAGGED)
			array_parse(v.bytes, v.size, v.size, &f->array);
		if (f->column == COLUMN_RECORD) {
			f->ndim = 1;
			f->shape[0] = v.size;
		}
	}
	return 0;
}
