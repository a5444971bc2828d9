/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/dtype.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/util/exact_math.h"

/*
 * A conversion loads a value into the widest type of its class, which
 * represents it exactly, and stores the result from there. Therefore no pair of
 * types needs special code.
 */
enum class {
	CLASS_SIGNED,
	CLASS_UNSIGNED,
	CLASS_REAL,
};

struct number {
	enum class class;
	union {
		int64_t i;
		uint64_t u;
		double d;
	};
};

struct row {
	const char *name;
	size_t size;
	enum class class;
	int64_t min; /* integers only */
	uint64_t max;
	/* Reals of 16 bits: conversions from and to float32. */
	float (*widen)(uint16_t bits);
	uint16_t (*narrow)(float v);
};

static const struct row rows[] = {
	[DTYPE_B1] = { "|b1", 1, CLASS_UNSIGNED, 0, 1 },
	[DTYPE_I1] = { "|i1", 1, CLASS_SIGNED, INT8_MIN, INT8_MAX },
	[DTYPE_U1] = { "|u1", 1, CLASS_UNSIGNED, 0, UINT8_MAX },
	[DTYPE_I2] = { "<i2", 2, CLASS_SIGNED, INT16_MIN, INT16_MAX },
	[DTYPE_U2] = { "<u2", 2, CLASS_UNSIGNED, 0, UINT16_MAX },
	[DTYPE_I4] = { "<i4", 4, CLASS_SIGNED, INT32_MIN, INT32_MAX },
	[DTYPE_U4] = { "<u4", 4, CLASS_UNSIGNED, 0, UINT32_MAX },
	[DTYPE_I8] = { "<i8", 8, CLASS_SIGNED, INT64_MIN, INT64_MAX },
	[DTYPE_U8] = { "<u8", 8, CLASS_UNSIGNED, 0, UINT64_MAX },
	[DTYPE_F2] = { "<f2", 2, CLASS_REAL, 0, 0, float_of_half,
		       half_of_float },
	[DTYPE_F4] = { "<f4", 4, CLASS_REAL },
	[DTYPE_F8] = { "<f8", 8, CLASS_REAL },
	[DTYPE_BF2] = { "<V2", 2, CLASS_REAL, 0, 0, float_of_bfloat,
			bfloat_of_float },
};

enum dtype dtype_by_name(const char *name)
{
	for (size_t t = 0; t < ARRAY_LEN(rows); t++) {
		if (!strcmp(rows[t].name, name))
			return (enum dtype)t;
	}
	return DTYPE_OTHER;
}

const char *dtype_name(enum dtype t)
{
	return t < DTYPE_OTHER ? rows[t].name : "";
}

size_t dtype_size(enum dtype t)
{
	return t < DTYPE_OTHER ? rows[t].size : 0;
}

bool dtype_is_whole(enum dtype t)
{
	return t < DTYPE_OTHER && rows[t].class != CLASS_REAL;
}

bool dtype_is_short_real(enum dtype t)
{
	return t < DTYPE_OTHER && rows[t].narrow;
}

bool dtype_holds(enum dtype t, enum dtype other)
{
	return dtype_is_whole(t) && dtype_is_whole(other) &&
	       rows[t].min <= rows[other].min && rows[t].max >= rows[other].max;
}

uint64_t dtype_item_size(const char *name)
{
	uint64_t size = 0;
	bool is_text;

	if (!*name || !strchr("<>|=", *name) || !name[1])
		return 0;
	is_text = name[1] == 'U'; /* four bytes per character */
	for (name += 2; *name >= '0' && *name <= '9'; name++) {
		size = 10 * size + (uint64_t)(*name - '0');
		if (size > UINT32_MAX)
			return 0;
	}
	return is_text ? 4 * size : size;
}

static uint32_t bits_of_float(float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static float float_of_bits(uint32_t bits)
{
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

uint16_t half_of_float(float v)
{
	uint32_t bits = bits_of_float(v), sign = bits >> 16 & 0x8000;
	uint32_t size = bits & 0x7fffffff;

	if (size > 0x7f800000) /* convert a NaN to a quiet NaN */
		return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
	if (size >= 0x477ff000) /* 65520, half way to 2^16, rounds up */
		return (uint16_t)(sign | 0x7c00);
	/*
	 * Below 2^-14, halves are multiples of 2^-24, like float32 between 1/2
	 * and 1. Therefore the CPU rounds when 1/2 is added.
	 */
	if (size < 0x38800000)
		return (uint16_t)(sign |
				  (bits_of_float(float_of_bits(size) + 0.5F) -
				   bits_of_float(0.5F)));
	size += 0xfff + (size >> 13 & 1);
	return (uint16_t)(sign | (size - (112U << 23)) >> 13);
}

float float_of_half(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, size = h & 0x7fff;

	if (size >= 0x7c00)
		return float_of_bits(sign | 0x7f800000 | (size & 0x3ff) << 13);
	if (size < 0x400) /* subnormal: a multiple of 2^-24 */
		return float_of_bits(sign |
				     bits_of_float((float)size * 0x1p-24F));
	return float_of_bits(sign | ((size << 13) + (112U << 23)));
}

uint16_t bfloat_of_float(float v)
{
	uint32_t bits = bits_of_float(v);

	if ((bits & 0x7fffffff) > 0x7f800000) /* a quiet NaN, as for halves */
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float float_of_bfloat(uint16_t b)
{
	return float_of_bits((uint32_t)b << 16);
}

static struct number load_integer(const struct row *row, const void *p)
{
	bool is_signed = row->class == CLASS_SIGNED;
	uint64_t v = 0;
	unsigned unused = 64 - 8 * (unsigned)row->size;

	memcpy(&v, p, row->size);
	if (is_signed)
		return (struct number){ .class = CLASS_SIGNED,
					.i = (int64_t)(v << unused) >> unused };
	/* A byte of a bool array can have any value. Treat every value but 0 as
	   true, like NumPy. */
	return (struct number){ .class = CLASS_UNSIGNED,
				.u = row->max == 1 ? v != 0 : v };
}

static struct number load_number(enum dtype t, const void *p)
{
	struct number n = { .class = CLASS_REAL };
	uint32_t bits;

	if (rows[t].class != CLASS_REAL)
		return load_integer(&rows[t], p);
	if (t == DTYPE_F8) {
		memcpy(&n.d, p, sizeof(n.d));
	} else if (t == DTYPE_F4) {
		memcpy(&bits, p, sizeof(bits));
		n.d = (double)float_of_bits(bits);
	} else {
		n.d = (double)rows[t].widen(load16(p));
	}
	return n;
}

/* Returns the bits of the integer nearest to n in the range of the type. */
static uint64_t saturate(const struct row *row, struct number n)
{
	if (n.class == CLASS_REAL) {
		double v = exact_round(n.d);

		if (v != v)
			return 0;
		/* The maximum, converted to double, can be one too large: hence
		   >=. */
		if (v >= (double)row->max)
			return row->max;
		if (v <= (double)row->min)
			return (uint64_t)row->min;
		return v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
	}
	if (n.class == CLASS_SIGNED && n.i < 0)
		return (uint64_t)(n.i < row->min ? row->min : n.i);
	return n.u < row->max ? n.u : row->max;
}

static float to_float(struct number n)
{
	if (n.class == CLASS_SIGNED)
		return (float)n.i;
	return n.class == CLASS_UNSIGNED ? (float)n.u : (float)n.d;
}

static double to_double(struct number n)
{
	if (n.class == CLASS_SIGNED)
		return (double)n.i;
	return n.class == CLASS_UNSIGNED ? (double)n.u : n.d;
}

static void store_number(enum dtype t, struct number n, void *p)
{
	double d;

	if (rows[t].class != CLASS_REAL) {
		uint64_t v = saturate(&rows[t], n);

		memcpy(p, &v, rows[t].size);
	} else if (t == DTYPE_F8) {
		d = to_double(n);
		memcpy(p, &d, sizeof(d));
	} else if (t == DTYPE_F4) {
		store32(p, bits_of_float(to_float(n)));
	} else {
		store16(p, rows[t].narrow(to_float(n)));
	}
}

/* Converts types that images need in loops without a type check per value.
   Returns false for other types. */
static bool convert_quickly(enum dtype from, const uint8_t *in, enum dtype to,
			    uint8_t *out, size_t count)
{
	uint16_t (*narrow)(float v) = rows[to].narrow;
	uint32_t bits;

	if (from == DTYPE_U1 && to == DTYPE_F4) {
		for (size_t i = 0; i < count; i++)
			store32(out + 4 * i, bits_of_float((float)in[i]));
		return true;
	}
	if (from != DTYPE_F4 || !narrow)
		return false;
	for (size_t i = 0; i < count; i++) {
		bits = load32(in + 4 * i);
		store16(out + 2 * i, narrow(float_of_bits(bits)));
	}
	return true;
}

void dtype_convert(enum dtype from, const void *in, enum dtype to, void *out,
		   size_t count)
{
	const uint8_t *source = in;
	uint8_t *target = out;

	if (from == to) {
		memcpy(out, in, count * rows[to].size);
		return;
	}
	if (convert_quickly(from, source, to, target, count))
		return;
	for (size_t i = 0; i < count; i++)
		store_number(to,
			     load_number(from, source + i * rows[from].size),
			     target + i * rows[to].size);
}
