/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/parquet/thrift.h"

#include "fs/util/bytes.h"

/* Structs within structs. Parquet's own have less than ten. */
enum { DEPTH_MAX = 32 };

static uint8_t take(struct thrift *t)
{
	if (t->bad || t->at == t->end) {
		t->bad = true;
		return 0;
	}
	return *t->at++;
}

static uint64_t take_varint(struct thrift *t)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte = take(t);

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return t->bad ? 0 : v;
	}
	t->bad = true;
	return 0;
}

static int64_t take_zigzag(struct thrift *t)
{
	uint64_t v = take_varint(t);

	return (int64_t)(v >> 1 ^ -(v & 1));
}

static void skip_bytes(struct thrift *t, uint64_t n)
{
	if (t->bad || n > (uint64_t)(t->end - t->at))
		t->bad = true;
	else
		t->at += n;
}

bool thrift_next(struct thrift *t, struct thrift_field *f)
{
	uint8_t byte = take(t);

	if (t->bad || !byte)
		return false;
	f->type = byte & 15;
	if (byte >> 4)
		f->id += byte >> 4;
	else
		f->id = (int16_t)take_zigzag(t);
	if (f->id < INT16_MIN || f->id > INT16_MAX || f->type > THRIFT_STRUCT)
		t->bad = true;
	return !t->bad;
}

int64_t thrift_int(struct thrift *t, const struct thrift_field *f)
{
	if (f->type == THRIFT_I8)
		return (int8_t)take(t);
	if (f->type >= THRIFT_I16 && f->type <= THRIFT_I64)
		return take_zigzag(t);
	t->bad = true;
	return 0;
}

bool thrift_bool(struct thrift *t, const struct thrift_field *f)
{
	if (f->type != THRIFT_TRUE && f->type != THRIFT_FALSE)
		t->bad = true;
	return f->type == THRIFT_TRUE;
}

const char *thrift_binary(struct thrift *t, const struct thrift_field *f,
			  size_t *size)
{
	uint64_t n;
	const uint8_t *bytes;

	if (f->type != THRIFT_BINARY)
		t->bad = true;
	n = take_varint(t);
	bytes = t->at;
	skip_bytes(t, n);
	*size = t->bad ? 0 : (size_t)n;
	return (const char *)bytes;
}

static uint64_t take_list(struct thrift *t, enum thrift_type *of)
{
	uint8_t byte = take(t);
	uint64_t n = byte >> 4;

	if (n == 15)
		n = take_varint(t);
	*of = byte & 15;
	if (t->bad || n > (uint64_t)(t->end - t->at)) {
		t->bad = true;
		return 0;
	}
	return n;
}

uint64_t thrift_list(struct thrift *t, const struct thrift_field *f,
		     enum thrift_type of)
{
	enum thrift_type found;
	uint64_t n;

	if (f->type != THRIFT_LIST)
		t->bad = true;
	n = take_list(t, &found);
	if (n && found != of)
		t->bad = true;
	return t->bad ? 0 : n;
}

bool thrift_struct(struct thrift *t, const struct thrift_field *f)
{
	if (f->type != THRIFT_STRUCT)
		t->bad = true;
	return !t->bad;
}

static void skip_value(struct thrift *t, enum thrift_type type, unsigned depth);

static void skip_list(struct thrift *t, unsigned depth)
{
	enum thrift_type of;
	uint64_t n = take_list(t, &of);

	for (; n && !t->bad; n--) {
		/* A boolean is a byte in a list, and none in a struct. */
		if (of == THRIFT_TRUE || of == THRIFT_FALSE)
			take(t);
		else
			skip_value(t, of, depth);
	}
}

static void skip_map(struct thrift *t, unsigned depth)
{
	uint64_t n = take_varint(t);
	uint8_t types = n ? take(t) : 0;

	if (n > (uint64_t)(t->end - t->at))
		t->bad = true;
	for (; n && !t->bad; n--) {
		skip_value(t, types >> 4, depth);
		skip_value(t, types & 15, depth);
	}
}

static void skip_struct(struct thrift *t, unsigned depth)
{
	struct thrift_field f = { 0 };

	while (thrift_next(t, &f))
		skip_value(t, f.type, depth);
}

static void skip_value(struct thrift *t, enum thrift_type type, unsigned depth)
{
	if (depth > DEPTH_MAX) {
		t->bad = true;
		return;
	}
	switch (type) {
	case THRIFT_TRUE:
	case THRIFT_FALSE:
		return;
	case THRIFT_I8:
		take(t);
		return;
	case THRIFT_I16:
	case THRIFT_I32:
	case THRIFT_I64:
		take_varint(t);
		return;
	case THRIFT_DOUBLE:
		skip_bytes(t, 8);
		return;
	case THRIFT_BINARY:
		skip_bytes(t, take_varint(t));
		return;
	case THRIFT_LIST:
	case THRIFT_SET:
		skip_list(t, depth + 1);
		return;
	case THRIFT_MAP:
		skip_map(t, depth + 1);
		return;
	case THRIFT_STRUCT:
		skip_struct(t, depth + 1);
		return;
	}
	t->bad = true;
}

void thrift_skip(struct thrift *t, const struct thrift_field *f)
{
	skip_value(t, f->type, 0);
}
