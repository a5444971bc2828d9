/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/column.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/base/util/utf8.h"
#include "fs/data/dataset/class_names.h"
#include "loader/tools/input/convert.h"
#include "loader/tools/picture/picture.h"

/* Kinds of values. */
enum {
	SEEN_BOOL = 1,
	SEEN_INT = 2,
	SEEN_FLOAT = 4,
	SEEN_IMAGE = 8, /* text that ends like the name of an image file */
	SEEN_TEXT = 16,
	SEEN_INTS = 32,
	SEEN_FLOATS = 64,
	SEEN_OTHER = 128, /* other lists, and objects */
};

static const struct {
	const char *name;
	enum column_form form;
} declared[] = {
	{ "int", COLUMN_FORM_INT },	{ "float", COLUMN_FORM_FLOAT },
	{ "text", COLUMN_FORM_TEXT },	{ "image", COLUMN_FORM_IMAGE },
	{ "bytes", COLUMN_FORM_BYTES }, { "json", COLUMN_FORM_JSON },
	{ "class", COLUMN_FORM_CLASS },
};

void column_fini(struct column *c)
{
	for (size_t i = 0; i < c->num_classes; i++)
		free(c->classes[i]);
	free(c->classes);
}

void column_declare(struct column *c, char *name)
{
	char *colon = strrchr(name, ':');

	for (size_t i = 0; colon && i < ARRAY_LEN(declared); i++) {
		if (!strcmp(colon + 1, declared[i].name)) {
			c->form = declared[i].form;
			*colon = '\0';
			return;
		}
	}
}

/* --- kinds of values ----------------------------------------------------- */

static bool parse_bool(const char *text, size_t size, int64_t *out)
{
	*out = size == 4;
	return (size == 4 && strncasecmp(text, "true", 4) == 0) ||
	       (size == 5 && strncasecmp(text, "false", 5) == 0);
}

/* Text such as 007 is a name and no number. */
static bool has_leading_zero(const char *text, size_t size)
{
	size_t sign = size && (*text == '-' || *text == '+');

	return size > sign + 1 && text[sign] == '0' &&
	       isdigit((unsigned char)text[sign + 1]);
}

/* An integer; true and false are 1 and 0. */
static bool parse_int(const struct cell *cell, int64_t *out)
{
	const char *text = cell->text;
	size_t size = cell->size;

	if (json_is_boolean(cell->json) || json_is_integer(cell->json)) {
		*out = json_is_integer(cell->json)
			       ? json_integer_value(cell->json)
			       : json_is_true(cell->json);
		return true;
	}
	if (cell->json)
		return false;
	convert_strip(&text, &size);
	return convert_int(text, size, out) || parse_bool(text, size, out);
}

static bool parse_float(const struct cell *cell, double *out)
{
	const char *text = cell->text;
	size_t size = cell->size;

	if (cell->json) {
		*out = json_number_value(cell->json);
		return json_is_number(cell->json);
	}
	convert_strip(&text, &size);
	return convert_float(text, size, out);
}

static unsigned kind_of_text(const struct cell *cell)
{
	return picture_has_extension(cell->text) ? SEEN_IMAGE : SEEN_TEXT;
}

static unsigned kind_of_csv(const struct cell *cell)
{
	const char *text = cell->text;
	size_t size = cell->size;
	int64_t integer;
	double real;

	convert_strip(&text, &size);
	if (has_leading_zero(text, size))
		return kind_of_text(cell);
	if (convert_int(text, size, &integer))
		return SEEN_INT;
	if (parse_bool(text, size, &integer))
		return SEEN_BOOL;
	/* An integer of too many digits would lose some. */
	if (convert_float(text, size, &real) && strcspn(text, ".eEnN") < size)
		return SEEN_FLOAT;
	return kind_of_text(cell);
}

static unsigned kind_of_list(struct column *c, const json_t *list)
{
	unsigned seen = SEEN_INTS;
	const json_t *v;
	size_t i;

	json_array_foreach(list, i, v)
	{
		if (!json_is_number(v))
			return SEEN_OTHER;
		if (json_is_real(v))
			seen = SEEN_FLOATS;
	}
	c->ragged |= c->has_length && c->length != json_array_size(list);
	c->has_length = true;
	c->length = json_array_size(list);
	return seen;
}

static unsigned kind_of_json(struct column *c, const struct cell *cell)
{
	switch (json_typeof(cell->json)) {
	case JSON_STRING:
		return kind_of_text(cell);
	case JSON_INTEGER:
		return SEEN_INT;
	case JSON_REAL:
		return SEEN_FLOAT;
	case JSON_TRUE:
	case JSON_FALSE:
		return SEEN_BOOL;
	case JSON_ARRAY:
		return kind_of_list(c, cell->json);
	default:
		return SEEN_OTHER;
	}
}

/* --- classes ------------------------------------------------------------- */

/* Returns the index of the first name that is not before `name`. */
static size_t find_class(const struct column *c, const char *name)
{
	size_t low = 0, high = c->num_classes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(c->classes[middle], name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int reserve_class(struct column *c)
{
	size_t room = c->classes_room ? 2 * c->classes_room : 64;
	char **more;

	if (c->num_classes < c->classes_room)
		return 0;
	more = reallocarray(c->classes, room, sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->classes = more;
	c->classes_room = room;
	return 0;
}

static int add_class(struct column *c, const char *name, const char **why)
{
	size_t at = find_class(c, name);
	char *copy;

	if (at < c->num_classes && !strcmp(c->classes[at], name))
		return 0;
	c->classes_size += strlen(name) + 1;
	*why = "the names of the classes have more than 1 MiB";
	if (c->classes_size > CLASS_NAMES_SIZE_MAX)
		return -EINVAL;
	*why = "out of memory";
	copy = reserve_class(c) ? NULL : strdup(name);
	if (!copy)
		return -ENOMEM;
	memmove(c->classes + at + 1, c->classes + at,
		(c->num_classes - at) * sizeof(*c->classes));
	c->classes[at] = copy;
	c->num_classes++;
	return 0;
}

/* --- types --------------------------------------------------------------- */

/* Returns why a cell does not have the declared form, or NULL. */
static const char *check_declared(const struct column *c,
				  const struct cell *cell)
{
	int64_t integer;
	double real;

	switch (c->form) {
	case COLUMN_FORM_INT:
		return parse_int(cell, &integer) ? NULL : "no integer";
	case COLUMN_FORM_FLOAT:
		return parse_float(cell, &real) ? NULL : "no number";
	case COLUMN_FORM_JSON:
		return convert_is_json(cell->text, cell->size) ? NULL
							       : "no JSON";
	default:
		return NULL;
	}
}

int column_look(struct column *c, const struct cell *cell, const char **why)
{
	*why = "no value; a type in the header, as in name:text, permits "
	       "empty text";
	if (!cell->json && !cell->size && c->form != COLUMN_FORM_TEXT)
		return -EINVAL;
	*why = "no value";
	if (json_is_null(cell->json))
		return -EINVAL;
	*why = "no UTF-8, or it contains a NUL";
	if (cell->text && !utf8_is_text(cell->text, cell->size))
		return -EINVAL;
	*why = check_declared(c, cell);
	if (*why)
		return -EINVAL;
	if (c->form == COLUMN_FORM_CLASS)
		return add_class(c, cell->text, why);
	if (c->form == COLUMN_FORM_FOUND)
		c->seen |=
			cell->json ? kind_of_json(c, cell) : kind_of_csv(cell);
	return 0;
}

/* Forms by the kinds of all values. The first row without other kinds counts.
 */
static enum column_form find_form(const struct column *c, bool json)
{
	static const struct {
		unsigned kinds;
		enum column_form form;
	} rows[] = {
		{ SEEN_BOOL | SEEN_INT, COLUMN_FORM_INT },
		{ SEEN_INT | SEEN_FLOAT, COLUMN_FORM_FLOAT },
		{ SEEN_IMAGE, COLUMN_FORM_IMAGE },
		{ SEEN_IMAGE | SEEN_TEXT, COLUMN_FORM_TEXT },
		{ SEEN_INTS, COLUMN_FORM_INTS },
		{ SEEN_INTS | SEEN_FLOATS, COLUMN_FORM_FLOATS },
	};
	size_t i = 0;

	while (i < ARRAY_LEN(rows) && c->seen & ~rows[i].kinds)
		i++;
	/* Text holds all values of CSV, and JSON all of JSON. */
	if (i == ARRAY_LEN(rows))
		return json ? COLUMN_FORM_JSON : COLUMN_FORM_TEXT;
	if (rows[i].form >= COLUMN_FORM_INTS && (c->ragged || !c->length))
		return COLUMN_FORM_JSON;
	return rows[i].form;
}

void column_finish(struct column *c, bool json, struct input_field *f)
{
	static const enum input_type types[] = {
		[COLUMN_FORM_INT] = INPUT_INT,
		[COLUMN_FORM_FLOAT] = INPUT_FLOAT,
		[COLUMN_FORM_TEXT] = INPUT_TEXT,
		[COLUMN_FORM_IMAGE] = INPUT_IMAGE,
		[COLUMN_FORM_BYTES] = INPUT_BYTES,
		[COLUMN_FORM_JSON] = INPUT_JSON,
		[COLUMN_FORM_CLASS] = INPUT_INT,
		[COLUMN_FORM_INTS] = INPUT_ARRAY,
		[COLUMN_FORM_FLOATS] = INPUT_ARRAY,
	};

	if (c->form == COLUMN_FORM_FOUND)
		c->form = find_form(c, json);
	f->type = types[c->form];
	if (f->type == INPUT_ARRAY) {
		strcpy(f->dtype, c->form == COLUMN_FORM_INTS ? "<i8" : "<f4");
		f->ndim = 1;
		f->shape[0] = c->length;
	}
	if (c->form == COLUMN_FORM_CLASS) {
		f->classes = (const char *const *)c->classes;
		f->num_classes = c->num_classes;
	}
}

/* --- values -------------------------------------------------------------- */

static int refuse_cell(const struct cell *cell, const char *type,
		       struct input_error *error)
{
	return input_refuse(error, -EBADMSG, "'%.40s' is no %s",
			    cell->text ? cell->text : "", type);
}

static int read_path(const struct cell *cell, const char *base,
		     struct input_memory *memory, struct input_value *out,
		     struct input_error *error)
{
	cleanup_free char *path = NULL;
	bool absolute = cell->text && *cell->text == '/';
	int r;

	if (!cell->text || !cell->size)
		return refuse_cell(cell, "path", error);
	if (text_print(&path, "%s%s%s", absolute ? "" : base,
		       absolute ? "" : "/", cell->text))
		return input_refuse(error, -ENOMEM, "out of memory");
	r = input_read_file(path, memory, &out->size);
	out->bytes = memory->bytes;
	return r ? input_refuse(error, r, "%.110s: %s", path, input_file_why(r))
		 : 0;
}

static int take_class(const struct column *c, const struct cell *cell,
		      struct input_value *out, struct input_error *error)
{
	size_t at = find_class(c, cell->text);

	if (at == c->num_classes || strcmp(c->classes[at], cell->text) != 0)
		return refuse_cell(cell, "class of before", error);
	out->integer = (int64_t)at;
	return 0;
}

static int take_list(const struct column *c, const struct cell *cell,
		     struct input_memory *memory, struct input_value *out,
		     struct input_error *error)
{
	size_t item = c->form == COLUMN_FORM_INTS ? 8 : 4;
	const json_t *v;
	size_t i;

	if (json_array_size(cell->json) != c->length)
		return refuse_cell(cell, "list of the length of before", error);
	if (input_reserve(memory, c->length * item))
		return input_refuse(error, -ENOMEM, "out of memory");
	json_array_foreach(cell->json, i, v)
	{
		float f = (float)json_number_value(v);

		if (item == 8)
			store64(memory->bytes + 8 * i,
				(uint64_t)json_integer_value(v));
		else
			memcpy(memory->bytes + 4 * i, &f, sizeof(f));
	}
	out->bytes = memory->bytes;
	out->size = c->length * item;
	return 0;
}

static int take_json(const struct cell *cell, struct input_memory *memory,
		     struct input_value *out, struct input_error *error)
{
	const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY;

	out->bytes = cell->text;
	out->size = cell->size;
	if (!cell->json)
		return 0;
	out->size = json_dumpb(cell->json, NULL, 0, flags);
	if (input_reserve(memory, out->size))
		return input_refuse(error, -ENOMEM, "out of memory");
	json_dumpb(cell->json, (char *)memory->bytes, out->size, flags);
	out->bytes = memory->bytes;
	return 0;
}

/* The file may have changed since its values were looked at. */
static int take_text(const struct cell *cell, struct input_value *out,
		     struct input_error *error)
{
	if (!cell->text || !utf8_is_text(cell->text, cell->size))
		return refuse_cell(cell, "text", error);
	out->bytes = cell->text;
	out->size = cell->size;
	return 0;
}

int column_value(const struct column *c, const struct cell *cell,
		 const char *base, struct input_memory *memory,
		 struct input_value *out, struct input_error *error)
{
	switch (c->form) {
	case COLUMN_FORM_INT:
		return parse_int(cell, &out->integer)
			       ? 0
			       : refuse_cell(cell, "integer", error);
	case COLUMN_FORM_FLOAT:
		return parse_float(cell, &out->real)
			       ? 0
			       : refuse_cell(cell, "number", error);
	case COLUMN_FORM_TEXT:
		return take_text(cell, out, error);
	case COLUMN_FORM_CLASS:
		return take_class(c, cell, out, error);
	case COLUMN_FORM_JSON:
		return take_json(cell, memory, out, error);
	case COLUMN_FORM_INTS:
	case COLUMN_FORM_FLOATS:
		return take_list(c, cell, memory, out, error);
	default:
		return read_path(cell, base, memory, out, error);
	}
}
