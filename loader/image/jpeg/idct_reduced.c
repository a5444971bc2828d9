/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mean of neighbors x = 2i, 2i + 1 of cos((2x + 1) k pi / 16) is
 * cos(k pi / 16) cos((2i + 1) k pi / 8): a transform of half the side, of
 * coefficients times the first factor, which is 0 for k = 4. A quarter of the
 * side applies the same step twice, and needs no rows and columns 2, 4 and 6.
 */
#include <stdbool.h>
#include <string.h>

#include "loader/image/jpeg/idct.h"
#include "loader/image/jpeg/idct_parts.h"

/*
 * Shifts take back that row 0 counts 2 or 4, of side 4 or 2. The others'
 * factors are such, times sqrt(2), times the cosines: of side 4, cos(k pi / 16)
 * times cos((2i + 1) k pi / 8), of side 2, cos(k pi / 16) cos(k pi / 8) times
 * cos((2i + 1) k pi / 4).
 */
enum {
	SHIFT4_1 = CONST_BITS + 1 - PASS1_BITS,
	SHIFT4_2 = CONST_BITS + 1 + PASS1_BITS + 3,
	SHIFT2_1 = CONST_BITS + 2 - PASS1_BITS,
	SHIFT2_2 = CONST_BITS + 2 + PASS1_BITS + 3,
};

/* Factors of rows 7 and 1, 3 and 5, 2 and 6; outer is i = 0 and 3, inner 1 and
   2. */
static const struct factors OUTER_71 = { -4176,
					 20995 }, /* 0.509795579, 2.562915447 */
	OUTER_35 = { 7373, -4926 },		  /* 0.899976223, 0.601344887 */
	INNER_71 = { -1730, 8697 },		  /* 0.211164243, 1.061594337 */
	INNER_35 = { -17799, 11893 },		  /* 2.172734803, 1.451774981 */
	EVEN_26 = { 15137, -6270 },		  /* 1.847759065, 0.765366865 */
	TWO_71 = { -5906, 29692 },		  /* 0.720959822, 3.624509785 */
	TWO_35 = { -10426, 6967 };		  /* 1.272758580, 0.850430095 */

/* Transforms eight numbers to four. */
static void transform4(const int16_t in[IDCT_SIDE], int shift, int16_t out[4])
{
	uint32_t t0 = (uint32_t)(in[0] * (1 << (CONST_BITS + 1)));
	uint32_t t2 = products(in[2], in[6], EVEN_26);
	uint32_t outer = products(in[7], in[1], OUTER_71) +
			 products(in[3], in[5], OUTER_35);
	uint32_t inner = products(in[7], in[1], INNER_71) +
			 products(in[3], in[5], INNER_35);

	out[0] = saturate(descale(t0 + t2 + outer, shift));
	out[1] = saturate(descale(t0 - t2 + inner, shift));
	out[2] = saturate(descale(t0 - t2 - inner, shift));
	out[3] = saturate(descale(t0 + t2 - outer, shift));
}

/* Whether all needed coefficients are 0 but for the first row. */
static bool is_first_row_only(const int16_t *coefficients)
{
	for (int r = 1; r < IDCT_SIDE; r++)
		for (int c = 0; r != 4 && c < IDCT_SIDE; c++)
			if (coefficients[ROW[r] + COLUMN[c]])
				return false;
	return true;
}

void idct_plain4(int16_t *coefficients, const int16_t *quant, uint8_t *out,
		 size_t stride)
{
	bool flat = is_first_row_only(coefficients);
	int16_t columns[4][IDCT_SIDE], line[IDCT_SIDE], four[4];

	for (int c = 0; c < IDCT_SIDE; c++) {
		dequant_column(coefficients, quant, c, line);
		transform4(line, SHIFT4_1, four);
		for (int r = 0; r < 4; r++)
			columns[r][c] = flat ? wrap(line[0] * (1 << PASS1_BITS))
					     : four[r];
	}
	memset(coefficients, 0, IDCT_SIZE * sizeof(*coefficients));
	for (int r = 0; r < 4; r++, out += stride) {
		transform4(columns[r], SHIFT4_2, four);
		for (int c = 0; c < 4; c++)
			out[c] = to_sample(four[c]);
	}
}

/* Eight numbers into two; the first may have more than 16 bits. */
static void transform2(int32_t first, const int16_t in[IDCT_SIDE], int shift,
		       int32_t out[2])
{
	uint32_t t = (uint32_t)first << (CONST_BITS + 2);
	uint32_t odd =
		products(in[7], in[1], TWO_71) + products(in[3], in[5], TWO_35);

	out[0] = descale(t + odd, shift);
	out[1] = descale(t - odd, shift);
}

void idct_plain2(int16_t *coefficients, const int16_t *quant, uint8_t *out,
		 size_t stride)
{
	int16_t columns[2][IDCT_SIDE], line[IDCT_SIDE];
	int32_t first[2], two[2];

	for (int c = IDCT_SIDE - 1; c >= 0; c--) {
		dequant_column(coefficients, quant, c, line);
		transform2(line[0], line, SHIFT2_1, first);
		for (int r = 0; r < 2; r++)
			columns[r][c] = saturate(first[r]);
	}
	memset(coefficients, 0, IDCT_SIZE * sizeof(*coefficients));
	for (int r = 0; r < 2; r++, out += stride) {
		transform2(first[r], columns[r], SHIFT2_2, two);
		for (int c = 0; c < 2; c++)
			out[c] = to_sample(two[c]);
	}
}

#ifdef __x86_64__
AVX2_INLINE __m128i products4(__m128i pairs, struct factors f)
{
	return _mm_madd_epi16(pairs, _mm_set1_epi32(both_factors(f)));
}

/* The first row of pairs with `bits` bits more, and rounded. */
AVX2_INLINE __m256i first8(__m256i p04, int bits, int shift)
{
	__m256i v = _mm256_srai_epi32(_mm256_slli_epi32(p04, 16), 16 - bits);

	return _mm256_add_epi32(v, _mm256_set1_epi32(1 << (shift - 1)));
}

/* transform4() of eight columns; p71 and so on are pairs. */
AVX2_INLINE void columns4(__m256i p71, __m256i p35, __m256i p26, __m256i p04,
			  __m256i out[4])
{
	__m256i t0 = first8(p04, CONST_BITS + 1, SHIFT4_1);
	__m256i t2 = products8(p26, EVEN_26);
	__m256i outer = _mm256_add_epi32(products8(p71, OUTER_71),
					 products8(p35, OUTER_35));
	__m256i inner = _mm256_add_epi32(products8(p71, INNER_71),
					 products8(p35, INNER_35));
	__m256i sum = _mm256_add_epi32(t0, t2);
	__m256i difference = _mm256_sub_epi32(t0, t2);

	out[0] = _mm256_add_epi32(sum, outer);
	out[1] = _mm256_add_epi32(difference, inner);
	out[2] = _mm256_sub_epi32(difference, inner);
	out[3] = _mm256_sub_epi32(sum, outer);
	for (int r = 0; r < 4; r++)
		out[r] = _mm256_srai_epi32(out[r], SHIFT4_1);
}

/* Processes four rows. */
AVX2_INLINE void rows4(__m128i p71, __m128i p35, __m128i p26, __m128i p04,
		       __m128i out[4])
{
	__m128i t0 =
		_mm_srai_epi32(_mm_slli_epi32(p04, 16), 16 - CONST_BITS - 1);
	__m128i t2 = products4(p26, EVEN_26);
	__m128i outer = _mm_add_epi32(products4(p71, OUTER_71),
				      products4(p35, OUTER_35));
	__m128i inner = _mm_add_epi32(products4(p71, INNER_71),
				      products4(p35, INNER_35));
	__m128i sum, difference;

	t0 = _mm_add_epi32(t0, _mm_set1_epi32(1 << (SHIFT4_2 - 1)));
	sum = _mm_add_epi32(t0, t2);
	difference = _mm_sub_epi32(t0, t2);
	out[0] = _mm_add_epi32(sum, outer);
	out[1] = _mm_add_epi32(difference, inner);
	out[2] = _mm_sub_epi32(difference, inner);
	out[3] = _mm_sub_epi32(sum, outer);
	for (int c = 0; c < 4; c++)
		out[c] = _mm_srai_epi32(out[c], SHIFT4_2);
}

/* Columns of four rows to samples. */
AVX2_INLINE void store4(const __m128i columns[4], uint8_t *out, size_t stride)
{
	__m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3,
				      7, 11, 15);
	__m128i left = _mm_packs_epi32(columns[0], columns[1]);
	__m128i right = _mm_packs_epi32(columns[2], columns[3]);
	__m128i v = _mm_packs_epi16(left, right);
	int32_t rows[4];

	v = _mm_xor_si128(v, _mm_set1_epi8((char)CENTER));
	_mm_storeu_si128((__m128i *)rows, _mm_shuffle_epi8(v, order));
	for (size_t r = 0; r < 4; r++)
		memcpy(out + r * stride, &rows[r], 4);
}

/* is_first_row_only(), of coefficients. */
AVX2_INLINE bool is_first_row_only8(const int16_t *coefficients)
{
	const __m256i *p = (const __m256i *)coefficients;
	__m256i any = _mm256_load_si256(p);

	for (int i = 1; i < 3; i++)
		any = _mm256_or_si256(any, _mm256_load_si256(p + i));
	return _mm256_testz_si256(any, any);
}

AVX2 static void idct_avx2_4(int16_t *coefficients, const int16_t *quant,
			     uint8_t *out, size_t stride)
{
	__m256i p71 = dequant8(coefficients, quant, 0);
	__m256i p35 = dequant8(coefficients, quant, 1);
	__m256i p26 = dequant8(coefficients, quant, 2);
	__m256i p04 = dequant8(coefficients, quant, 3);
	__m256i v[4], r01, r23, even, odd;
	__m128i columns[4];

	columns4(p71, p35, p26, p04, v);
	if (is_first_row_only8(coefficients))
		v[0] = v[1] = v[2] = v[3] = _mm256_srai_epi32(
			_mm256_slli_epi32(p04, 16 + PASS1_BITS), 16);
	clear(coefficients);
	/* Packing two rows, each 7 1 3 5 | 0 4 2 6, makes pairs of columns. */
	r01 = _mm256_packs_epi32(v[0], v[1]);
	r23 = _mm256_packs_epi32(v[2], v[3]);
	even = PICK(r01, r23, 0x88); /* 7 1 | 0 4 */
	odd = PICK(r01, r23, 0xdd);  /* 3 5 | 2 6 */
	rows4(_mm256_castsi256_si128(even), _mm256_castsi256_si128(odd),
	      _mm256_extracti128_si256(odd, 1),
	      _mm256_extracti128_si256(even, 1), columns);
	store4(columns, out, stride);
}

AVX2 static void idct_avx2_2(int16_t *coefficients, const int16_t *quant,
			     uint8_t *out, size_t stride)
{
	__m256i p71 = dequant8(coefficients, quant, 0);
	__m256i p35 = dequant8(coefficients, quant, 1);
	__m256i p04 = dequant8(coefficients, quant, 3);
	__m256i t = first8(p04, CONST_BITS + 2, SHIFT2_1);
	__m256i odd = _mm256_add_epi32(products8(p71, TWO_71),
				       products8(p35, TWO_35));
	__m256i r0 = _mm256_srai_epi32(_mm256_add_epi32(t, odd), SHIFT2_1);
	__m256i r1 = _mm256_srai_epi32(_mm256_sub_epi32(t, odd), SHIFT2_1);
	__m128i pairs, first, sums, v;

	clear(coefficients);
	/* Columns 7 1 3 5 of both rows, and column 0 in 32 bits. */
	pairs = _mm_packs_epi32(_mm256_castsi256_si128(r0),
				_mm256_castsi256_si128(r1));
	sums = _mm_madd_epi16(pairs, _mm_set_epi32(both_factors(TWO_35),
						   both_factors(TWO_71),
						   both_factors(TWO_35),
						   both_factors(TWO_71)));
	sums = _mm_hadd_epi32(sums, sums); /* of row 0, of row 1, twice */
	first = _mm_unpacklo_epi32(_mm256_extracti128_si256(r0, 1),
				   _mm256_extracti128_si256(r1, 1));
	first = _mm_add_epi32(_mm_slli_epi32(first, CONST_BITS + 2),
			      _mm_set1_epi32(1 << (SHIFT2_2 - 1)));
	v = _mm_unpacklo_epi32(_mm_add_epi32(first, sums),
			       _mm_sub_epi32(first, sums));
	v = _mm_srai_epi32(v, SHIFT2_2);
	v = _mm_packs_epi16(_mm_packs_epi32(v, v), v);
	v = _mm_xor_si128(v, _mm_set1_epi8((char)CENTER));

	uint32_t four = (uint32_t)_mm_cvtsi128_si32(v);

	memcpy(out, &four, 2);
	four >>= 16;
	memcpy(out + stride, &four, 2);
}

idct_fn *idct_reduced_best(unsigned side)
{
	bool fast = __builtin_cpu_supports("avx2");

	if (side == 4)
		return fast ? idct_avx2_4 : idct_plain4;
	return side == 2 ? fast ? idct_avx2_2 : idct_plain2 : NULL;
}
#else
idct_fn *idct_reduced_best(unsigned side)
{
	return side == 4 ? idct_plain4 : side == 2 ? idct_plain2 : NULL;
}
#endif
