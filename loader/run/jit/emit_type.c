/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/emit_type.h"

#include <stdbool.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/run/jit/code.h"

struct helper {
	const char *name;
	const char *text;
};

/*
 * Each uses those before it only. They contain no branches, so that compilers
 * can vectorize them. Adding 2^23 to a float, or 2^52 to a double, that is at
 * most as large leaves no bits for fractions: the CPU rounds to nearest, ties
 * to even.
 */
static const struct helper helpers[] = {
	{ "beton_bits(", "static inline unsigned beton_bits(float v)\n"
			 "{\n"
			 "\tunsigned bits;\n"
			 "\n"
			 "\t__builtin_memcpy(&bits, &v, 4);\n"
			 "\treturn bits;\n"
			 "}\n" },
	{ "beton_float(", "static inline float beton_float(unsigned bits)\n"
			  "{\n"
			  "\tfloat v;\n"
			  "\n"
			  "\t__builtin_memcpy(&v, &bits, 4);\n"
			  "\treturn v;\n"
			  "}\n" },
	{ "beton_whole(", "/* Limited to 0..255, truncated; NaN is 0. */\n"
			  "static inline int beton_whole(float v)\n"
			  "{\n"
			  "\tv = v > 0 ? v : 0;\n"
			  "\tv = v < 255 ? v : 255;\n"
			  "\treturn (int)v;\n"
			  "}\n" },
	{ "beton_byte(", "/* Limited to 0..255, rounded. */\n"
			 "static inline int beton_byte(float v)\n"
			 "{\n"
			 "\tv = v > 0 ? v : 0;\n"
			 "\tv = v < 255 ? v : 255;\n"
			 "\treturn (int)((v + 0x1p23f) - 0x1p23f);\n"
			 "}\n" },
	{ "beton_byte_of_double(",
	  "static inline int beton_byte_of_double(double v)\n"
	  "{\n"
	  "\tv = v > 0 ? v : 0;\n"
	  "\tv = v < 255 ? v : 255;\n"
	  "\treturn (int)((v + 0x1p52) - 0x1p52);\n"
	  "}\n" },
	{ "beton_byte_of_long(",
	  "static inline int beton_byte_of_long(long long v)\n"
	  "{\n"
	  "\treturn v < 0 ? 0 : v > 255 ? 255 : (int)v;\n"
	  "}\n" },
	{ "beton_round(", "static inline double beton_round(double v)\n"
			  "{\n"
			  "\tdouble size = v < 0 ? -v : v;\n"
			  "\tdouble whole = (size + 0x1p52) - 0x1p52;\n"
			  "\n"
			  "\twhole = v < 0 ? -whole : whole;\n"
			  "\treturn size < 0x1p52 ? whole : v;\n"
			  "}\n" },
	{ "beton_int(", "static inline int beton_int(double v)\n"
			"{\n"
			"\tv = v == v ? v : 0;\n"
			"\tv = v > -0x1p31 ? v : -0x1p31;\n"
			"\tv = v < 0x1.fffffffcp30 ? v : 0x1.fffffffcp30;\n"
			"\treturn (int)beton_round(v);\n"
			"}\n" },
	{ "beton_int_of_long(",
	  "static inline int beton_int_of_long(long long v)\n"
	  "{\n"
	  "\tv = v > -0x7fffffffLL - 1 ? v : -0x7fffffffLL - 1;\n"
	  "\treturn (int)(v < 0x7fffffff ? v : 0x7fffffff);\n"
	  "}\n" },
	{ "beton_long(", "static inline long long beton_long(double v)\n"
			 "{\n"
			 "\tif (v != v)\n"
			 "\t\treturn 0;\n"
			 "\tif (v >= 0x1p63)\n"
			 "\t\treturn 0x7fffffffffffffffLL;\n"
			 "\tif (v <= -0x1p63)\n"
			 "\t\treturn -0x7fffffffffffffffLL - 1;\n"
			 "\treturn (long long)beton_round(v);\n"
			 "}\n" },
	{ "beton_half(",
	  "/* Below 2^-14 halves are multiples of 2^-24, as floats at 1/2. */\n"
	  "static inline unsigned short beton_half(float v)\n"
	  "{\n"
	  "\tunsigned bits = beton_bits(v), sign = bits >> 16 & 0x8000;\n"
	  "\tunsigned size = bits & 0x7fffffff;\n"
	  "\tunsigned small = beton_bits(beton_float(size) + 0.5f) - 0x3f000000;\n"
	  "\tunsigned half = (size + 0xfff + (size >> 13 & 1) - (112u << 23)) >> 13;\n"
	  "\n"
	  "\thalf = size < 0x38800000 ? small : half;\n"
	  "\thalf = size >= 0x477ff000 ? 0x7c00 : half;\n"
	  "\thalf = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : half;\n"
	  "\treturn (unsigned short)(sign | half);\n"
	  "}\n" },
	{ "beton_float_of_half(",
	  "static inline float beton_float_of_half(unsigned short h)\n"
	  "{\n"
	  "\tunsigned sign = (unsigned)(h & 0x8000) << 16, size = h & 0x7fff;\n"
	  "\tunsigned small = beton_bits((float)(int)size * 0x1p-24f);\n"
	  "\tunsigned bits = (size << 13) + (112u << 23);\n"
	  "\n"
	  "\tbits = size < 0x400 ? small : bits;\n"
	  "\tbits = size >= 0x7c00 ? 0x7f800000 | (size & 0x3ff) << 13 : bits;\n"
	  "\tbits = size > 0x7c00 ? bits | 0x400000 : bits;\n"
	  "\treturn beton_float(sign | bits);\n"
	  "}\n" },
	{ "beton_bfloat(",
	  "static inline unsigned short beton_bfloat(float v)\n"
	  "{\n"
	  "\tunsigned bits = beton_bits(v), nan = bits >> 16 | 0x40;\n"
	  "\tunsigned near = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;\n"
	  "\n"
	  "\treturn (unsigned short)((bits & 0x7fffffff) > 0x7f800000 ? nan\n"
	  "\t\t: near);\n"
	  "}\n" },
	{ "beton_float_of_bfloat(",
	  "static inline float beton_float_of_bfloat(unsigned short b)\n"
	  "{\n"
	  "\tunsigned bits = (unsigned)b << 16;\n"
	  "\n"
	  "\tbits = (b & 0x7fff) > 0x7f80 ? bits | 0x400000 : bits;\n"
	  "\treturn beton_float(bits);\n"
	  "}\n" },
	{ "beton_bfloats(",
	  "/* `count` is a multiple of 32. */\n"
	  "static inline void beton_bfloats(unsigned short *restrict to,\n"
	  "\tconst float *restrict v, int count)\n"
	  "{\n"
	  "#ifdef __AVX2__\n"
	  "\ttypedef float floats __attribute__((vector_size(32)));\n"
	  "\ttypedef int ints __attribute__((vector_size(32)));\n"
	  "\ttypedef unsigned bits __attribute__((vector_size(32)));\n"
	  "\tconst ints order = { 0, 1, 4, 5, 2, 3, 6, 7 };\n"
	  "\n"
	  "\tfor (int i = 0; i < count; i += 16) {\n"
	  "\t\tints n[2];\n"
	  "\n"
	  "\t\tfor (int k = 0; k < 2; k++) {\n"
	  "\t\t\tfloats f;\n"
	  "\t\t\tbits high, near;\n"
	  "\n"
	  "\t\t\t__builtin_memcpy(&f, v + i + 8 * k, sizeof(f));\n"
	  "\t\t\thigh = (bits)f >> 16;\n"
	  "\t\t\tnear = ((bits)f + 0x7fff + (high & 1)) >> 16;\n"
	  "\t\t\tn[k] = (ints)__builtin_ia32_blendvps256((floats)near,\n"
	  "\t\t\t\t(floats)(high | 0x40), (floats)(f != f));\n"
	  "\t\t}\n"
	  "\t\tn[0] = (ints)__builtin_ia32_packusdw256(n[0], n[1]);\n"
	  "\t\tn[0] = (ints)__builtin_ia32_permvarsi256(n[0], order);\n"
	  "\t\t__builtin_memcpy(to + i, n, sizeof(n[0]));\n"
	  "\t}\n"
	  "#else\n"
	  "\tfor (int i = 0; i < count; i++)\n"
	  "\t\tto[i] = beton_bfloat(v[i]);\n"
	  "#endif\n"
	  "}\n" },
	{ "beton_halves(",
	  "/* `count` is a multiple of 32, `v` is aligned to 32 bytes. */\n"
	  "static inline void beton_halves(unsigned short *restrict to,\n"
	  "\tconst float *restrict v, int count)\n"
	  "{\n"
	  "#ifdef __F16C__\n"
	  "\ttypedef float floats __attribute__((vector_size(32)));\n"
	  "\ttypedef short halves __attribute__((vector_size(16)));\n"
	  "\n"
	  "\tfor (int i = 0; i < count; i += 8) {\n"
	  "\t\tfloats f;\n"
	  "\t\thalves h;\n"
	  "\n"
	  "\t\t__builtin_memcpy(&f, v + i, sizeof(f));\n"
	  "\t\th = (halves)__builtin_ia32_vcvtps2ph256(f, 0);\n"
	  "\t\t__builtin_memcpy(to + i, &h, sizeof(h));\n"
	  "\t}\n"
	  "#else\n"
	  "\tfor (int i = 0; i < count; i++)\n"
	  "\t\tto[i] = beton_half(v[i]);\n"
	  "#endif\n"
	  "}\n" },
	{ "beton_wholes(",
	  "/* beton_whole() of floats. `count` is a multiple of 32. */\n"
	  "static inline void beton_wholes(unsigned char *restrict to,\n"
	  "\tconst float *restrict v, int count)\n"
	  "{\n"
	  "#ifdef __AVX2__\n"
	  "\ttypedef float floats __attribute__((vector_size(32)));\n"
	  "\ttypedef int ints __attribute__((vector_size(32)));\n"
	  "\ttypedef short shorts __attribute__((vector_size(32)));\n"
	  "\tconst floats most = (floats){ 0 } + 255;\n"
	  "\tconst ints order = { 0, 4, 1, 5, 2, 6, 3, 7 };\n"
	  "\n"
	  "\tfor (int i = 0; i < count; i += 32) {\n"
	  "\t\tints n[4];\n"
	  "\t\tshorts low, high;\n"
	  "\n"
	  "\t\tfor (int k = 0; k < 4; k++) {\n"
	  "\t\t\tfloats f;\n"
	  "\n"
	  "\t\t\t/* NaN stays, and becomes a number below 0. */\n"
	  "\t\t\t__builtin_memcpy(&f, v + i + 8 * k, sizeof(f));\n"
	  "\t\t\tf = __builtin_ia32_minps256(most, f);\n"
	  "\t\t\tn[k] = (ints)__builtin_ia32_cvttps2dq256(f);\n"
	  "\t\t}\n"
	  "\t\tlow = (shorts)__builtin_ia32_packssdw256(n[0], n[1]);\n"
	  "\t\thigh = (shorts)__builtin_ia32_packssdw256(n[2], n[3]);\n"
	  "\t\tn[0] = (ints)__builtin_ia32_packuswb256(low, high);\n"
	  "\t\tn[0] = (ints)__builtin_ia32_permvarsi256(n[0], order);\n"
	  "\t\t__builtin_memcpy(to + i, n, sizeof(n[0]));\n"
	  "\t}\n"
	  "#else\n"
	  "\tfor (int i = 0; i < count; i++)\n"
	  "\t\tto[i] = beton_whole(v[i]);\n"
	  "#endif\n"
	  "}\n" },
	{ "beton_pixels(",
	  "/* 32 bytes of each channel become pixels. BETON_AT is the pixel that\n"
	  "   byte i of vector k shows in channel c; -1: none. */\n"
	  "#define BETON_AT(k, c, i) \\\n"
	  "\t((16 * k + i - c) % 3 ? -1 : (16 * k + i - c) / 3)\n"
	  "#define BETON_FOUR(k, c, i) BETON_AT(k, c, i), \\\n"
	  "\tBETON_AT(k, c, i + 1), BETON_AT(k, c, i + 2), BETON_AT(k, c, i + 3)\n"
	  "#define BETON_LANE(k, c) BETON_FOUR(k, c, 0), BETON_FOUR(k, c, 4), \\\n"
	  "\tBETON_FOUR(k, c, 8), BETON_FOUR(k, c, 12)\n"
	  "#define BETON_PICK(k, c) (bytes)__builtin_ia32_pshufb256(in[c], \\\n"
	  "\t(bytes){ BETON_LANE(k, c), BETON_LANE(k, c) })\n"
	  "#define BETON_MIX(k) BETON_PICK(k, 0) | BETON_PICK(k, 1) | BETON_PICK(k, 2)\n"
	  "static inline void beton_pixels(unsigned char *restrict to,\n"
	  "\tconst unsigned char *restrict from)\n"
	  "{\n"
	  "#ifdef __AVX2__\n"
	  "\ttypedef char bytes __attribute__((vector_size(32)));\n"
	  "\tbytes in[3];\n"
	  "\n"
	  "\t__builtin_memcpy(in, from, sizeof(in));\n"
	  "\tbytes out[3] = { BETON_MIX(0), BETON_MIX(1), BETON_MIX(2) };\n"
	  "\tfor (int i = 0; i < 6; i++)\n"
	  "\t\t__builtin_memcpy(to + 16 * i,\n"
	  "\t\t\t(char *)&out[i % 3] + i / 3 * 16, 16);\n"
	  "#else\n"
	  "\tfor (int i = 0; i < 32; i++) {\n"
	  "\t\tto[3 * i] = from[i];\n"
	  "\t\tto[3 * i + 1] = from[32 + i];\n"
	  "\t\tto[3 * i + 2] = from[64 + i];\n"
	  "\t}\n"
	  "#endif\n"
	  "}\n" },
};

/* A type of outputs. */
struct emit_type_row {
	const char *name;
	const char *element;
	/* Casts to it. */
	const char *of_whole;
	const char *of_float;
	const char *of_double;
	/* Reals of 16 bits: the cast to float, and the conversion of many. */
	const char *to_float;
	const char *of_floats;
};

static const struct emit_type_row rows[] = {
	[DTYPE_U1] = { "int", "unsigned char", "beton_byte_of_long",
		       "beton_byte", "beton_byte_of_double" },
	[DTYPE_I4] = { "int", "int", "beton_int_of_long", "beton_int",
		       "beton_int" },
	[DTYPE_I8] = { "long long", "long long", "", "beton_long",
		       "beton_long" },
	[DTYPE_F2] = { "unsigned short", "unsigned short", "beton_half",
		       "beton_half", "beton_half", "beton_float_of_half",
		       "beton_halves" },
	[DTYPE_F4] = { "float", "float", "(float)", "(float)", "(float)" },
	[DTYPE_F8] = { "double", "double", "(double)", "(double)", "(double)" },
	[DTYPE_BF2] = { "unsigned short", "unsigned short", "beton_bfloat",
			"beton_bfloat", "beton_bfloat", "beton_float_of_bfloat",
			"beton_bfloats" },
};

const char *emit_type_name(enum dtype type)
{
	return rows[type].name;
}

const char *emit_type_element(enum dtype type)
{
	return rows[type].element;
}

const char *emit_type_cast(enum dtype from, enum dtype to)
{
	if (rows[from].to_float)
		return rows[from].to_float;
	if (from == DTYPE_F4)
		return rows[to].of_float;
	if (from == DTYPE_F8)
		return rows[to].of_double;
	return dtype_holds(to, from) ? "" : rows[to].of_whole;
}

const char *emit_type_many(enum dtype type)
{
	return rows[type].of_floats;
}

void emit_type_helpers(struct code *c, const char *text)
{
	bool used[ARRAY_LEN(helpers)] = { false };

	for (size_t i = ARRAY_LEN(helpers); i-- > 0;) {
		used[i] = strstr(text, helpers[i].name);
		for (size_t k = i + 1; k < ARRAY_LEN(helpers); k++)
			used[i] = used[i] ||
				  (used[k] &&
				   strstr(helpers[k].text, helpers[i].name));
	}
	for (size_t i = 0; i < ARRAY_LEN(helpers); i++) {
		if (used[i]) {
			code_put(c, helpers[i].text);
			code_put(c, "\n");
		}
	}
}
