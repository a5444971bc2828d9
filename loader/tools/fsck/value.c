/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/value.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/image/codec/structure.h"
#include "loader/tools/fsck/json_text.h"
#include "loader/util/array.h"

static const enum check_id of_part[] = {
	[STRUCTURE_START] = CHECK_JPEG_START,
	[STRUCTURE_HEADER] = CHECK_JPEG_HEADER,
	[STRUCTURE_SCAN] = CHECK_JPEG_SCAN,
	[STRUCTURE_END] = CHECK_JPEG_END,
};

static bool __attribute__((format(printf, 3, 4)))
fault(struct finding *out, enum check_id check, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(out->why, sizeof(out->why), format, args);
	va_end(args);
	out->check = check;
	return false;
}

/* Decodes the image. Damage becomes a finding of `check`. */
static bool decode(struct value_checker *c, const struct value_span *v,
		   const uint8_t *bytes, enum check_id check,
		   struct finding *out)
{
	const char *why = "";
	int r = decoder_check(c->decoder, bytes, v->size, v->width, v->height,
			      &why);

	if (r == -ENOMEM)
		return fault(out, CHECK_TOO_LARGE,
			     "not decoded: there is not enough memory");
	if (r == -EUCLEAN)
		check = CHECK_JPEG_INDEX;
	if (r == -EINVAL)
		check = CHECK_JPEG_ODD;
	return r ? fault(out, check, "%s", why) : true;
}

/* The decoder decides about a JPEG that looks damaged, because it may have all
   of its data. */
static bool check_jpeg(struct value_checker *c, const struct value_span *v,
		       const uint8_t *bytes, struct finding *out)
{
	struct structure s;
	enum structure_part part = codec_structure(bytes, v->size, &s);

	if (s.has_frame && (s.width != v->width || s.height != v->height))
		return fault(out, CHECK_JPEG_SIDES,
			     "a JPEG of %u x %u, the record has %u x %u",
			     s.width, s.height, v->width, v->height);
	if (part != STRUCTURE_SOUND) {
		bool is_sound = decode(c, v, bytes, of_part[part], out);

		if (!is_sound && out->check == of_part[part])
			return fault(out, of_part[part], "%s", s.why);
		if (!is_sound && out->check != CHECK_JPEG_ODD)
			return false;
		return fault(out, CHECK_JPEG_ODD, "%s, but it can be decoded",
			     s.why);
	}
	return c->is_deep ? decode(c, v, bytes, CHECK_JPEG_DECODE, out) : true;
}

static bool check_json(struct value_checker *c, const struct value_span *v,
		       const uint8_t *bytes, struct finding *out)
{
	const uint8_t *nul = memchr(bytes, 0, v->size);
	const char *why;
	size_t at;

	if (!nul)
		return fault(out, CHECK_JSON_END, "a text without its NUL");
	if (nul != bytes + v->size - 1)
		return fault(out, CHECK_JSON_END, "a NUL inside the text");
	if (!c->is_deep)
		return true;
	why = json_text_check((const char *)bytes, v->size - 1, &at);
	return why ? fault(out, CHECK_JSON_TEXT, "%s, at its byte %zu", why, at)
		   : true;
}

/* Values without the mark are any bytes. */
static bool check_bytes(const struct value_span *v, const uint8_t *bytes,
			struct finding *out)
{
	const size_t mark = sizeof(BETON_ARRAY_MAGIC) - 1;
	struct array array;

	if (v->size < mark || memcmp(bytes, BETON_ARRAY_MAGIC, mark) != 0 ||
	    array_parse(bytes, v->size, v->size, &array))
		return true;
	return fault(out, CHECK_BYTES_ARRAY,
		     "it begins like an array, but its header is not one");
}

bool value_has_rules(const struct field *f)
{
	return field_is_image(f) || f->type->column == COLUMN_RAGGED;
}

bool value_check(struct value_checker *c, const struct value_span *v,
		 const uint8_t *bytes, struct finding *out)
{
	const struct field *f = &c->format->fields[v->field];

	*out = (struct finding){
		.sample = v->sample,
		.field = v->field,
		.off = v->off,
		.size = v->size,
	};
	if (v->is_jpeg)
		return check_jpeg(c, v, bytes, out);
	if (f->type->ends_in_nul)
		return check_json(c, v, bytes, out);
	if (f->type->column == COLUMN_RAGGED)
		return check_bytes(v, bytes, out);
	return true;
}
