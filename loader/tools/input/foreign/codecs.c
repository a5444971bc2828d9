/* SPDX-License-Identifier: Apache-2.0 */
/* Values that MDS and LitData write in the same form. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "loader/tools/input/foreign/records.h"
#include "loader/tools/input/foreign/values.h"

static int refuse_size(const struct record_codec *codec, uint64_t size,
		       struct input_error *error)
{
	return input_refuse(error, -EBADMSG, "%" PRIu64 " bytes, but %s has %u",
			    size, codec->name, codec->size);
}

int record_read_integer(const struct record_codec *codec, const uint8_t *bytes,
			uint64_t size, struct input_value *out,
			struct input_error *error)
{
	unsigned shift = 64 - 8 * codec->size;
	uint64_t v = 0;

	if (size != codec->size)
		return refuse_size(codec, size, error);
	memcpy(&v, bytes, size);
	if (codec->is_unsigned && v > INT64_MAX)
		return input_refuse(error, -EFBIG,
				    "%" PRIu64 ", but a dataset holds integers "
				    "up to %" PRId64,
				    v, INT64_MAX);
	out->integer = codec->is_unsigned ? (int64_t)v
					  : (int64_t)(v << shift) >> shift;
	return 0;
}

int record_read_float(const struct record_codec *codec, const uint8_t *bytes,
		      uint64_t size, struct input_value *out,
		      struct input_error *error)
{
	float narrow;

	if (size != codec->size)
		return refuse_size(codec, size, error);
	if (size == 2) {
		out->real = input_half_float(load16(bytes));
	} else if (size == 4) {
		memcpy(&narrow, bytes, sizeof(narrow));
		out->real = (double)narrow;
	} else {
		memcpy(&out->real, bytes, sizeof(out->real));
	}
	return 0;
}

int record_read_decimal(const struct record_codec *codec, const uint8_t *bytes,
			uint64_t size, struct input_value *out,
			struct input_error *error)
{
	char text[64], *end = text;

	errno = 0;
	if (size && size < sizeof(text)) {
		memcpy(text, bytes, size);
		text[size] = '\0';
		if (codec->type == INPUT_INT)
			out->integer = strtoll(text, &end, 10);
		else
			out->real = strtod(text, &end);
	}
	if (end == text || *end || end != text + size ||
	    (errno && codec->type == INPUT_INT))
		return input_refuse(error, -EBADMSG,
				    "not a number that a dataset holds");
	return 0;
}

int record_read_pixels(const struct record_codec *codec, const uint8_t *bytes,
		       uint64_t size, struct input_value *out,
		       struct input_error *error)
{
	static const struct {
		const char *mode;
		uint32_t channels;
	} modes[] = { { "L", 1 }, { "RGB", 3 }, { "RGBA", 4 } };
	uint64_t n, pixels;

	(void)codec;
	if (size < 12 || load32(bytes + 8) > size - 12)
		return input_refuse(error, -EBADMSG,
				    "%" PRIu64 " bytes of "
				    "pixels",
				    size);
	n = load32(bytes + 8);
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (n == strlen(modes[i].mode) &&
		    !memcmp(bytes + 12, modes[i].mode, n))
			out->channels = modes[i].channels;
	if (!out->channels)
		return input_refuse(error, -ENOTSUP,
				    "pixels of another mode than L, RGB and "
				    "RGBA");
	out->width = load32(bytes);
	out->height = load32(bytes + 4);
	out->bytes = bytes + 12 + n;
	out->size = size - 12 - n;
	pixels = (uint64_t)out->width * out->height;
	if (!pixels || pixels > UINT32_MAX ||
	    pixels * out->channels != out->size)
		return input_refuse(error, -EBADMSG,
				    "%u x %u pixels in %" PRIu64 " bytes",
				    out->width, out->height, out->size);
	return 0;
}

bool record_set_dtype(struct record_array *a, const char *name)
{
	static const struct {
		const char *name;
		const char *dtype;
		unsigned element;
	} rows[] = {
		{ "bool", "|b1", 1 },	 { "int8", "|i1", 1 },
		{ "uint8", "|u1", 1 },	 { "int16", "<i2", 2 },
		{ "uint16", "<u2", 2 },	 { "float16", "<f2", 2 },
		{ "int32", "<i4", 4 },	 { "uint32", "<u4", 4 },
		{ "float32", "<f4", 4 }, { "int64", "<i8", 8 },
		{ "uint64", "<u8", 8 },	 { "float64", "<f8", 8 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		memcpy(a->dtype, rows[i].dtype, strlen(rows[i].dtype) + 1);
		a->element = rows[i].element;
		return true;
	}
	return false;
}
