/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/idct.h"

#include <stdbool.h>
#include <string.h>

#include "loader/image/jpeg/idct_parts.h"

/*
 * The factors of Loeffler, Ligtenberg and Moschytz' algorithm. Products are
 * arranged as vector code needs them, two at a time: a rotation by
 * z5 = (a + b) * f becomes a * (f + g) + b * f.
 */
enum {
	F_0_298 = 2446,
	F_0_390 = 3196,
	F_0_541 = 4433,
	F_0_765 = 6270,
	F_0_899 = 7373,
	F_1_175 = 9633,
	F_1_501 = 12299,
	F_1_847 = 15137,
	F_1_961 = 16069,
	F_2_053 = 16819,
	F_2_562 = 20995,
	F_3_072 = 25172,
};

enum {
	PASS1_SHIFT = CONST_BITS - PASS1_BITS,
	PASS2_SHIFT = CONST_BITS + PASS1_BITS + 3,
};

static const struct factors
	EVEN_2 = { F_0_541, F_0_541 - F_1_847 }, /* of rows 2 and 6 */
	EVEN_3 = { F_0_541 + F_0_765, F_0_541 },
	ODD_Z3 = { F_1_175 - F_1_961, F_1_175 }, /* of 7 + 3 and 1 + 5 */
	ODD_Z4 = { F_1_175, F_1_175 - F_0_390 },
	ODD_0 = { F_0_298 - F_0_899, -F_0_899 }, /* of 7 and 1 */
	ODD_3 = { -F_0_899, F_1_501 - F_0_899 },
	ODD_1 = { -F_2_562, F_2_053 - F_2_562 }, /* of 3 and 5 */
	ODD_2 = { F_3_072 - F_2_562, -F_2_562 };

/* ROW[r] + COLUMN[c] along the zigzag; test_idct.c has it from a loop. */
const uint8_t IDCT_PLACE[IDCT_SIZE + IDCT_PAST] = {
	56, 50, 9,  40, 3,  60, 52, 13, 34, 24, 57, 18, 44, 5,	58, 54,
	11, 36, 28, 51, 25, 41, 19, 61, 20, 42, 7,  62, 48, 15, 38, 26,
	53, 29, 35, 8,	2,  45, 21, 59, 22, 46, 1,  32, 30, 55, 27, 37,
	12, 4,	43, 23, 63, 16, 49, 31, 39, 10, 6,  47, 17, 33, 14, 0,
	64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
	64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
};

/* Transforms eight numbers. */
static void transform(const int16_t in[IDCT_SIDE], int shift,
		      int16_t out[IDCT_SIDE])
{
	uint32_t t0 = (uint32_t)(wrap(in[0] + in[4]) * (1 << CONST_BITS));
	uint32_t t1 = (uint32_t)(wrap(in[0] - in[4]) * (1 << CONST_BITS));
	uint32_t t2 = products(in[2], in[6], EVEN_2);
	uint32_t t3 = products(in[2], in[6], EVEN_3);
	uint32_t even[] = { t0 + t3, t1 + t2, t1 - t2, t0 - t3 };
	int16_t a = wrap(in[7] + in[3]);
	int16_t b = wrap(in[1] + in[5]);
	uint32_t z3 = products(a, b, ODD_Z3);
	uint32_t z4 = products(a, b, ODD_Z4);
	uint32_t odd[] = {
		products(in[7], in[1], ODD_3) + z4,
		products(in[3], in[5], ODD_2) + z3,
		products(in[3], in[5], ODD_1) + z4,
		products(in[7], in[1], ODD_0) + z3,
	};

	for (int i = 0; i < 4; i++) {
		out[i] = saturate(descale(even[i] + odd[i], shift));
		out[7 - i] = saturate(descale(even[i] - odd[i], shift));
	}
}

/* A column whose rows but the first are all 0 in all columns. */
static void spread(int16_t first, int16_t out[IDCT_SIDE])
{
	for (int r = 0; r < IDCT_SIDE; r++)
		out[r] = wrap(first * (1 << PASS1_BITS));
}

static bool is_first_row_only(const int16_t *coefficients)
{
	for (int r = 1; r < IDCT_SIDE; r++)
		for (int c = 0; c < IDCT_SIDE; c++)
			if (coefficients[ROW[r] + COLUMN[c]])
				return false;
	return true;
}

void idct_plain(int16_t *coefficients, const int16_t *quant, uint8_t *out,
		size_t stride)
{
	bool flat = is_first_row_only(coefficients);
	int16_t columns[IDCT_SIDE][IDCT_SIDE];
	int16_t line[IDCT_SIDE];

	for (int c = 0; c < IDCT_SIDE; c++) {
		dequant_column(coefficients, quant, c, line);
		if (flat)
			spread(line[0], columns[c]);
		else
			transform(line, PASS1_SHIFT, columns[c]);
	}
	memset(coefficients, 0, IDCT_SIZE * sizeof(*coefficients));
	for (int r = 0; r < IDCT_SIDE; r++) {
		for (int c = 0; c < IDCT_SIDE; c++)
			line[c] = columns[c][r];
		transform(line, PASS2_SHIFT, line);
		for (int c = 0; c < IDCT_SIDE; c++)
			out[(size_t)r * stride + (size_t)c] =
				to_sample(line[c]);
	}
}

/* The lowest bits of a number with a sign. */
static int low_bits(int v, int bits)
{
	int32_t above = 1 << (bits - 1);

	return ((v & (2 * above - 1)) ^ above) - above;
}

/* Each step drops the same bits as libjpeg's. */
uint8_t idct_flat(int dc, int quant, unsigned side)
{
	int v = dc * quant;

	if (side == 1)
		v = low_bits(v + 4, 13);
	else if (side == 2)
		v = low_bits(v + 4, 15);
	else
		v = low_bits(v, 14) + 4;
	return to_sample(v >> 3);
}

#ifdef __x86_64__
/* 16-bit sums in the upper halves of pairs, as 13 bits more, and rounded. */
AVX2_INLINE __m256i scale8(__m256i v, int shift)
{
	__m256i upper = _mm256_set1_epi32((int32_t)0xffff0000);

	v = _mm256_srai_epi32(_mm256_and_si256(v, upper), 16 - CONST_BITS);
	return _mm256_add_epi32(v, _mm256_set1_epi32(1 << (shift - 1)));
}

/* transform() of eight columns; p71 and so on are pairs. */
AVX2_INLINE void transform8(__m256i p71, __m256i p35, __m256i p26, __m256i p04,
			    int shift, __m256i out[IDCT_SIDE])
{
	__m256i p00 = _mm256_slli_epi32(p04, 16);
	__m256i t0 = scale8(_mm256_add_epi16(p00, p04), shift);
	__m256i t1 = scale8(_mm256_sub_epi16(p00, p04), shift);
	__m256i t2 = products8(p26, EVEN_2);
	__m256i t3 = products8(p26, EVEN_3);
	__m256i sums = _mm256_add_epi16(p71, p35);
	__m256i z3 = products8(sums, ODD_Z3);
	__m256i z4 = products8(sums, ODD_Z4);
	__m256i even[] = {
		_mm256_add_epi32(t0, t3),
		_mm256_add_epi32(t1, t2),
		_mm256_sub_epi32(t1, t2),
		_mm256_sub_epi32(t0, t3),
	};
	__m256i odd[] = {
		_mm256_add_epi32(products8(p71, ODD_3), z4),
		_mm256_add_epi32(products8(p35, ODD_2), z3),
		_mm256_add_epi32(products8(p35, ODD_1), z4),
		_mm256_add_epi32(products8(p71, ODD_0), z3),
	};

#	pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		__m256i a = _mm256_add_epi32(even[i], odd[i]);
		__m256i b = _mm256_sub_epi32(even[i], odd[i]);

		out[i] = _mm256_srai_epi32(a, shift);
		out[7 - i] = _mm256_srai_epi32(b, shift);
	}
}

/*
 * Rows, each of columns 7 1 3 5 | 0 4 2 6, to pairs of columns: packing two
 * rows to 16 bits makes the pairs, the rest sorts them by row.
 */
AVX2_INLINE void turn8(const __m256i rows[IDCT_SIDE], __m256i *p71,
		       __m256i *p35, __m256i *p26, __m256i *p04)
{
	__m256i r01 = _mm256_packs_epi32(rows[0], rows[1]);
	__m256i r23 = _mm256_packs_epi32(rows[2], rows[3]);
	__m256i r45 = _mm256_packs_epi32(rows[4], rows[5]);
	__m256i r67 = _mm256_packs_epi32(rows[6], rows[7]);
	__m256i a = PICK(r01, r23, 0x88);
	__m256i b = PICK(r45, r67, 0x88);
	__m256i c = PICK(r01, r23, 0xdd);
	__m256i d = PICK(r45, r67, 0xdd);

	*p71 = _mm256_permute2x128_si256(a, b, 0x20);
	*p04 = _mm256_permute2x128_si256(a, b, 0x31);
	*p35 = _mm256_permute2x128_si256(c, d, 0x20);
	*p26 = _mm256_permute2x128_si256(c, d, 0x31);
}

AVX2_INLINE void put_row(uint8_t *out, __m128i two, bool upper)
{
	if (upper)
		two = _mm_unpackhi_epi64(two, two);
	_mm_storel_epi64((__m128i *)out, two);
}

/* Columns of eight rows to samples. */
AVX2_INLINE void store8(const __m256i columns[IDCT_SIDE], uint8_t *out,
			size_t stride)
{
	__m256i order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
		0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
	__m256i center = _mm256_set1_epi8((char)CENTER);
	__m256i c01 = _mm256_packs_epi32(columns[0], columns[1]);
	__m256i c23 = _mm256_packs_epi32(columns[2], columns[3]);
	__m256i c45 = _mm256_packs_epi32(columns[4], columns[5]);
	__m256i c67 = _mm256_packs_epi32(columns[6], columns[7]);
	__m256i left = _mm256_packs_epi16(c01, c23);
	__m256i right = _mm256_packs_epi16(c45, c67);

	left = _mm256_shuffle_epi8(_mm256_xor_si256(left, center), order);
	right = _mm256_shuffle_epi8(_mm256_xor_si256(right, center), order);

	__m256i r01 = _mm256_unpacklo_epi32(left, right); /* and 4, 5 */
	__m256i r23 = _mm256_unpackhi_epi32(left, right); /* and 6, 7 */
	__m128i half[] = {
		_mm256_castsi256_si128(r01),
		_mm256_castsi256_si128(r23),
		_mm256_extracti128_si256(r01, 1),
		_mm256_extracti128_si256(r23, 1),
	};

#	pragma GCC unroll 4
	for (size_t i = 0; i < 4; i++) {
		put_row(out + 2 * i * stride, half[i], false);
		put_row(out + (2 * i + 1) * stride, half[i], true);
	}
}

/* is_first_row_only(); by products, where equal factors cannot matter: a
   product of 0 with other coefficients left to transform8() is the same. */
AVX2_INLINE bool is_first_row_only8(const int16_t *coefficients)
{
	const __m256i *p = (const __m256i *)coefficients;
	__m256i fourth = _mm256_set1_epi32((int32_t)0xffff0000);
	__m256i any = _mm256_and_si256(_mm256_load_si256(p + 3), fourth);

	for (int i = 0; i < 3; i++)
		any = _mm256_or_si256(any, _mm256_load_si256(p + i));
	return _mm256_testz_si256(any, any);
}

AVX2 static void idct_avx2(int16_t *coefficients, const int16_t *quant,
			   uint8_t *out, size_t stride)
{
	__m256i p71 = dequant8(coefficients, quant, 0);
	__m256i p35 = dequant8(coefficients, quant, 1);
	__m256i p26 = dequant8(coefficients, quant, 2);
	__m256i p04 = dequant8(coefficients, quant, 3);
	__m256i v[IDCT_SIDE];

	if (is_first_row_only8(coefficients)) {
		__m256i first = _mm256_slli_epi32(p04, 16 + PASS1_BITS);

		for (int r = 0; r < IDCT_SIDE; r++)
			v[r] = _mm256_srai_epi32(first, 16);
	} else {
		transform8(p71, p35, p26, p04, PASS1_SHIFT, v);
	}
	clear(coefficients);
	turn8(v, &p71, &p35, &p26, &p04);
	transform8(p71, p35, p26, p04, PASS2_SHIFT, v);
	store8(v, out, stride);
}

static idct_fn *best(void)
{
	return __builtin_cpu_supports("avx2") ? idct_avx2 : idct_plain;
}
#else
static idct_fn *best(void)
{
	return idct_plain;
}
#endif

idct_fn *idct_best(unsigned side)
{
	return side == IDCT_SIDE ? best() : idct_reduced_best(side);
}
