/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/mapping.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/class_names.h"
#include "loader/tools/mkfs/survey.h"

/* A value under way: of field `field` of the sample at position `number`. */
struct mapping_making {
	const struct mapping_field *field;
	const struct input_field *source;
	struct encoder *encoder;
	const struct input_value *from;
	uint64_t number;
	struct made *made;
};

/* Sets *to, whose bytes are malloc'ed. On failure m->made->error is set. */
typedef int convert_fn(const struct mapping_making *m, struct writer_value *to);

/* From a type of sources to one of datasets. The first row of a source's type
   is its default. */
struct conversion {
	const char *name; /* in --fields */
	enum input_type from;
	enum beton_type to;
	convert_fn *convert;
	/* Returns why the field cannot be converted, or NULL. */
	const char *(*refuse)(const struct input_field *f);
	bool has_classes; /* texts become numbers */
};

static int refuse_value(const struct mapping_making *m, int code,
			const char *why)
{
	return input_refuse(&m->made->error, code, "field %s: %s",
			    m->field->name, why);
}

/* --- conversions --------------------------------------------------------- */

static int copy_bytes(const struct mapping_making *m, struct writer_value *to)
{
	void *bytes = malloc(m->from->size + 1);

	if (!bytes)
		return refuse_value(m, -ENOMEM, "out of memory");
	if (m->from->size)
		memcpy(bytes, m->from->bytes, m->from->size);
	to->bytes = bytes;
	to->size = m->from->size;
	return 0;
}

static int copy_integer(const struct mapping_making *m, struct writer_value *to)
{
	to->integer = m->from->integer;
	return 0;
}

static int integer_to_real(const struct mapping_making *m,
			   struct writer_value *to)
{
	to->real = (double)m->from->integer;
	return 0;
}

static int copy_real(const struct mapping_making *m, struct writer_value *to)
{
	to->real = m->from->real;
	return 0;
}

static int text_to_class(const struct mapping_making *m,
			 struct writer_value *to)
{
	const struct mapping_field *f = m->field;
	size_t class;

	if (!survey_find_text(f->classes, f->num_classes, m->from, &class))
		return refuse_value(m, -EINVAL, "its class has no number");
	to->integer = (int64_t) class;
	return 0;
}

static int text_to_json(const struct mapping_making *m, struct writer_value *to)
{
	json_t *text = json_stringn(m->from->bytes ? m->from->bytes : "",
				    m->from->size);
	char *json =
		text ? json_dumps(text, JSON_ENCODE_ANY | JSON_ENSURE_ASCII)
		     : NULL;

	json_decref(text);
	if (!json)
		return refuse_value(m, -EBADMSG, "not a text in UTF-8");
	to->bytes = json;
	to->size = strlen(json);
	return 0;
}

static int to_image(const struct mapping_making *m, struct writer_value *to)
{
	struct encoded image;

	encode(m->encoder, m->from, m->number, &image);
	if (image.status) {
		snprintf(m->made->error.why, sizeof(m->made->error.why), "%s",
			 image.why);
		m->made->error.fatal = image.fatal;
		return image.status;
	}
	*to = (struct writer_value){
		.bytes = image.bytes,
		.size = image.size,
		.mode = image.mode,
		.width = image.width,
		.height = image.height,
	};
	m->made->jpegs += image.mode == BETON_MODE_JPG;
	m->made->raws += image.mode == BETON_MODE_RAW;
	return 0;
}

/* Rows of 8-bit pixels: (H, W) or (H, W, C). */
static const char *refuse_pixels(const struct input_field *f)
{
	bool shaped = f->ndim == 2 ||
		      (f->ndim == 3 && (f->shape[2] == 1 || f->shape[2] == 3 ||
					f->shape[2] == 4));

	if (strcmp(f->dtype, "|u1") || !shaped)
		return "an image has the type uint8 and the shape (height, "
		       "width) or (height, width, 1, 3 or 4)";
	return f->shape[0] > UINT16_MAX || f->shape[1] > UINT16_MAX
		       ? "an image has at most 65535 pixels a side"
		       : NULL;
}

static int array_to_image(const struct mapping_making *m,
			  struct writer_value *to)
{
	const struct input_field *f = m->source;
	struct input_value pixels = *m->from;
	struct mapping_making image = *m;

	pixels.height = (uint32_t)f->shape[0];
	pixels.width = (uint32_t)f->shape[1];
	pixels.channels = f->ndim == 3 ? (uint32_t)f->shape[2] : 1;
	image.from = &pixels;
	return to_image(&image, to);
}

static int image_to_bytes(const struct mapping_making *m,
			  struct writer_value *to)
{
	if (m->from->channels)
		return refuse_value(m, -EINVAL, "pixels are no image file");
	return copy_bytes(m, to);
}

#define CONVERSION(type, source, dataset, function, ...)                       \
	{                                                                      \
		.name = (type), .from = INPUT_##source,                        \
		.to = BETON_TYPE_##dataset, .convert = (function), __VA_ARGS__ \
	}

static const struct conversion conversions[] = {
	CONVERSION("image", IMAGE, IMAGE, to_image),
	CONVERSION("bytes", IMAGE, BYTES, image_to_bytes),
	CONVERSION("int", INT, INT, copy_integer),
	CONVERSION("float", INT, FLOAT, integer_to_real),
	CONVERSION("float", FLOAT, FLOAT, copy_real),
	CONVERSION("bytes", TEXT, BYTES, copy_bytes),
	CONVERSION("class", TEXT, INT, text_to_class, .has_classes = true),
	CONVERSION("json", TEXT, JSON, text_to_json),
	CONVERSION("bytes", BYTES, BYTES, copy_bytes),
	CONVERSION("image", BYTES, IMAGE, to_image),
	CONVERSION("json", JSON, JSON, copy_bytes),
	CONVERSION("bytes", JSON, BYTES, copy_bytes),
	CONVERSION("array", ARRAY, NDARRAY, copy_bytes),
	CONVERSION("image", ARRAY, IMAGE, array_to_image,
		   .refuse = refuse_pixels),
};

/* Texts of fields with these names are classes unless --fields names another
   type. */
static const char *const class_names[] = { "label", "class", "category" };

static bool is_class_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(class_names); i++) {
		if (!strcmp(name, class_names[i]))
			return true;
	}
	return false;
}

/* NULL: there is none. `type` NULL: the default, which may be a class. */
static const struct conversion *find_conversion(const struct input_field *f,
						const char *type, bool by_name)
{
	if (!type && by_name && f->type == INPUT_TEXT && is_class_name(f->name))
		type = "class";
	for (size_t i = 0; i < ARRAY_LEN(conversions); i++) {
		const struct conversion *c = &conversions[i];

		if (c->from == f->type && (!type || !strcmp(c->name, type)))
			return c;
	}
	return NULL;
}

/* --- opening ------------------------------------------------------------- */

struct mapping_builder {
	struct mapping *mapping;
	struct log *log;
};

static int refuse_type(const struct mapping_builder *b,
		       const struct input_field *f, const char *type)
{
	char list[160] = "";

	for (size_t i = 0; i < ARRAY_LEN(conversions); i++) {
		if (conversions[i].from != f->type)
			continue;
		strcat(list, *list ? ", " : "");
		strcat(list, conversions[i].name);
	}
	for (const char *at = f->types; at && *at; at += *at == '|') {
		strcat(list, *list ? ", " : "");
		strncat(list, at, strcspn(at, "|"));
		at += strcspn(at, "|");
	}
	log_error(b->log,
		  "--fields: '%s' cannot become '%s': expected one of %s",
		  f->name, type, list);
	return -EINVAL;
}

static int refuse_name(const struct mapping_builder *b, const char *name)
{
	log_error(b->log,
		  "field '%s': a name has 1 to 16 letters of ASCII: rename it "
		  "with --fields, for example --fields='%.8s=%s,...'",
		  name, *name ? name : "name", name);
	return -EINVAL;
}

static bool is_valid_name(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] < 0x20 ||
		    (unsigned char)name[i] > 0x7e)
			return false;
	return n && n <= 16;
}

/* Whether the source itself makes values of this type of a field. */
static bool can_cast(const struct input_field *f, const char *type)
{
	size_t n = strlen(type);

	for (const char *at = f->types; at && *at; at += *at == '|') {
		size_t word = strcspn(at, "|");

		if (word == n && !memcmp(at, type, n))
			return true;
		at += word;
	}
	return false;
}

/* If the source makes values of `type`, sets *from to the field that has them,
   and *type to NULL. */
static int cast(const struct mapping_builder *b, size_t *from,
		const char **type)
{
	struct input *in = b->mapping->input;
	int r;

	if (!*type || !can_cast(&in->fields[*from], *type))
		return 0;
	r = in->kind->cast(in, *from, *type);
	*from = in->num_fields - 1;
	*type = NULL;
	return r;
}

static int add_field(const struct mapping_builder *b, const char *name,
		     const char *type, size_t from)
{
	struct mapping_field *f = &b->mapping->fields[b->mapping->num_fields];
	const struct input_field *source;
	const char *why;
	bool is_cast = type != NULL;
	int r = is_valid_name(name) ? cast(b, &from, &type)
				    : refuse_name(b, name);

	if (r)
		return r;
	is_cast &= !type;
	source = &b->mapping->input->fields[from];
	if (source->refused[0]) {
		log_error(b->log, "field '%s': %s", source->name,
			  source->refused);
		return -ENOTSUP;
	}
	f->conversion = find_conversion(source, type, !is_cast);
	if (!f->conversion)
		return refuse_type(b, source, type);
	why = f->conversion->refuse ? f->conversion->refuse(source) : NULL;
	if (why) {
		log_error(b->log, "--fields: '%s': %s", source->name, why);
		return -EINVAL;
	}
	strcpy(f->name, name);
	f->from = from;
	b->mapping->wanted[from] = true;
	b->mapping->num_fields++;
	return 0;
}

static int find_source(const struct mapping_builder *b, const char *name,
		       size_t *out)
{
	const struct input *in = b->mapping->input;
	char advice[INPUT_ADVICE_SIZE];

	for (size_t i = 0; i < in->num_fields; i++) {
		if (!strcmp(in->fields[i].name, name)) {
			*out = i;
			return 0;
		}
	}
	log_error(b->log, "--fields: the source has no field '%s'%s", name,
		  input_advice(in, name, advice));
	return -EINVAL;
}

/* "NAME[:TYPE][=SOURCE]" */
static int add_listed(const struct mapping_builder *b, char *text)
{
	char *name = text, *from = strchr(text, '='), *type;
	size_t index;
	int r;

	if (from)
		*from++ = '\0';
	type = strrchr(name, ':');
	if (type)
		*type++ = '\0';
	r = find_source(b, from ? from : name, &index);
	return r ? r : add_field(b, name, type, index);
}

static int add_fields(const struct mapping_builder *b, const char *fields)
{
	const struct input *in = b->mapping->input;
	cleanup_free char *copy = fields ? strdup(fields) : NULL;
	char *rest = copy, *text;
	int r = 0;

	if (!fields) {
		for (size_t i = 0; i < in->num_fields && !r; i++)
			r = add_field(b, in->fields[i].name, NULL, i);
		return r;
	}
	if (!copy)
		return log_no_memory(b->log, NULL);
	while (!r && (text = strsep(&rest, ","))) {
		if (b->mapping->num_fields == INPUT_FIELDS_MAX) {
			log_error(b->log, "--fields: over %d fields",
				  INPUT_FIELDS_MAX);
			return -EINVAL;
		}
		r = add_listed(b, text + strspn(text, " "));
	}
	return r;
}

/* Collects the classes of the texts. */
static int find_classes(const struct mapping_builder *b)
{
	struct mapping *mapping = b->mapping;
	int r = 0;

	for (size_t i = 0; i < mapping->num_fields && !r; i++) {
		struct mapping_field *f = &mapping->fields[i];

		if (f->conversion->has_classes)
			r = survey_texts(mapping->input, f->from, b->log,
					 &f->classes, &f->num_classes);
	}
	return r;
}

/* Names that do not fit are left out; their numbers stay. */
static bool names_fit(const struct writer_field *f, struct log *log)
{
	size_t size = 0;

	for (size_t i = 0; i < f->num_classes; i++)
		size += strlen(f->classes[i]) + 1;
	if (size <= CLASS_NAMES_SIZE_MAX)
		return true;
	log_warning(
		log,
		"the names of %zu classes take %zu bytes, but a dataset has room for %d: it stores only the class numbers",
		f->num_classes, size, CLASS_NAMES_SIZE_MAX);
	return false;
}

static void set_written(const struct mapping_builder *b, size_t i)
{
	const struct mapping_field *f = &b->mapping->fields[i];
	const struct input_field *source = &b->mapping->input->fields[f->from];
	struct writer_field *w = &b->mapping->written[i];

	*w = (struct writer_field){
		.name = f->name,
		.type = f->conversion->to,
	};
	if (w->type == BETON_TYPE_NDARRAY) {
		if (source->is_tensor)
			w->type = BETON_TYPE_TENSOR;
		memcpy(w->dtype, source->dtype, sizeof(w->dtype));
		memcpy(w->shape, source->shape, sizeof(w->shape));
		w->ndim = source->ndim;
	}
	if (w->type == BETON_TYPE_INT) {
		w->classes = f->conversion->has_classes
				     ? (const char *const *)f->classes
				     : source->classes;
		w->num_classes = f->conversion->has_classes
					 ? f->num_classes
					 : source->num_classes;
	}
	if (!w->classes || !names_fit(w, b->log))
		w->num_classes = 0;
}

static int allocate(struct mapping *mapping)
{
	size_t room = INPUT_FIELDS_MAX + mapping->input->num_fields;

	mapping->fields = calloc(room, sizeof(*mapping->fields));
	mapping->written = calloc(room, sizeof(*mapping->written));
	/* Each field may become another one of the source. */
	mapping->wanted = calloc(room + 1, sizeof(*mapping->wanted));
	return mapping->fields && mapping->written && mapping->wanted ? 0
								      : -ENOMEM;
}

int mapping_open(struct input *in, const char *fields, struct log *log,
		 struct mapping **out)
{
	struct mapping *mapping = calloc(1, sizeof(*mapping));
	struct mapping_builder b = { mapping, log };
	int r;

	if (!mapping)
		return log_no_memory(log, NULL);
	mapping->input = in;
	r = allocate(mapping) ? log_no_memory(log, NULL)
			      : add_fields(&b, fields);
	r = r ? r : find_classes(&b);
	for (size_t i = 0; i < mapping->num_fields && !r; i++)
		set_written(&b, i);
	if (r)
		mapping_close(mapping);
	else
		*out = mapping;
	return r;
}

void mapping_close(struct mapping *mapping)
{
	if (!mapping)
		return;
	for (size_t i = 0; mapping->fields && i < mapping->num_fields; i++) {
		struct mapping_field *f = &mapping->fields[i];

		for (size_t k = 0; k < f->num_classes; k++)
			free(f->classes[k]);
		free(f->classes);
	}
	free(mapping->fields);
	free(mapping->written);
	free(mapping->wanted);
	free(mapping);
}

/* --- what it is ---------------------------------------------------------- */

bool mapping_has_images(const struct mapping *mapping)
{
	for (size_t i = 0; i < mapping->num_fields; i++) {
		if (mapping->written[i].type == BETON_TYPE_IMAGE)
			return true;
	}
	return false;
}

static size_t classes_of(const struct mapping *mapping, size_t i)
{
	const struct mapping_field *f = &mapping->fields[i];

	if (mapping->written[i].type != BETON_TYPE_INT)
		return 0;
	return f->conversion->has_classes
		       ? f->num_classes
		       : mapping->input->fields[f->from].num_classes;
}

size_t mapping_num_classes(const struct mapping *mapping)
{
	for (size_t i = 0; i < mapping->num_fields; i++) {
		if (classes_of(mapping, i))
			return classes_of(mapping, i);
	}
	return 0;
}

void mapping_print(const struct mapping *mapping, FILE *out)
{
	for (size_t i = 0; i < mapping->num_fields; i++) {
		const struct mapping_field *f = &mapping->fields[i];
		const struct writer_field *w = &mapping->written[i];
		const struct input_field *source =
			&mapping->input->fields[f->from];

		fprintf(out, "  %-16s %s", f->name,
			field_type_by_id(w->type)->name);
		if (w->dtype[0])
			fprintf(out, " %s", w->dtype);
		for (uint32_t k = 0; k < w->ndim; k++)
			fprintf(out, "%s%llu", k ? "x" : " ",
				(unsigned long long)w->shape[k]);
		if (classes_of(mapping, i))
			fprintf(out, ", %zu classes", classes_of(mapping, i));
		if (strcmp(f->name, source->name))
			fprintf(out, ", from %s", source->name);
		fputc('\n', out);
	}
}

/* --- values -------------------------------------------------------------- */

void mapping_make(const struct mapping *mapping, struct encoder *encoder,
		  const struct input_value *values, uint64_t number,
		  struct made *made)
{
	struct mapping_making m = {
		.encoder = encoder,
		.number = number,
		.made = made,
	};
	int r = 0;

	*made = (struct made){
		.values =
			calloc(mapping->num_fields + 1, sizeof(*made->values)),
	};
	if (!made->values)
		r = input_refuse(&made->error, -ENOMEM, "out of memory");
	for (size_t i = 0; i < mapping->num_fields && !r; i++) {
		m.field = &mapping->fields[i];
		m.source = &mapping->input->fields[m.field->from];
		m.from = &values[m.field->from];
		r = m.field->conversion->convert(&m, &made->values[i]);
		made->size += r ? 0 : made->values[i].size;
	}
	made->status = r;
}

void made_fini(const struct mapping *mapping, struct made *made)
{
	for (size_t i = 0; made->values && i < mapping->num_fields; i++)
		free((void *)made->values[i].bytes);
	free(made->values);
	made->values = NULL;
}
