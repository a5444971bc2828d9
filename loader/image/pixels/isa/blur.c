/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/pixels/blur_loops.h"
#include "loader/util/shorts.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 4")

/* Vectors that are summed together, for one load of a weight. */
enum { BLOCK = 4 };

/*
 * The two pixels that are equally far from the middle have one weight, at most
 * 2^14, so their sum or mean is multiplied by it once, doubled.
 */
INLINE shorts pair_of_bytes(const uint8_t *a, const uint8_t *b)
{
	return (shorts_load_bytes(a) + shorts_load_bytes(b))
	       << (BLUR_POINT - 1);
}

INLINE void down_vectors(const struct blur *blur, const uint8_t *const *rows,
			 size_t at, unsigned vectors, int16_t *out)
{
	unsigned half = blur->size / 2;
	shorts w = shorts_of(blur->weights[half]), sum[BLOCK];

	UNROLL
	for (unsigned i = 0; i < vectors; i++)
		sum[i] = shorts_scale(
			shorts_load_bytes(rows[half] + at + i * SHORTS)
				<< BLUR_POINT,
			w);
	for (unsigned k = 0; k < half; k++) {
		const uint8_t *a = rows[k] + at;
		const uint8_t *b = rows[blur->size - 1 - k] + at;

		w = shorts_of(2 * blur->weights[k]);
		UNROLL
		for (unsigned i = 0; i < vectors; i++)
			sum[i] = shorts_add(
				sum[i],
				shorts_scale(pair_of_bytes(a + i * SHORTS,
							   b + i * SHORTS),
					     w));
	}
	UNROLL
	for (unsigned i = 0; i < vectors; i++)
		shorts_store(out + i * SHORTS, sum[i]);
}

/* The rest of a row that is no whole vector. */
static void down_rest(const struct blur *blur, const uint8_t *const *rows,
		      size_t at, size_t count, int16_t *out)
{
	uint8_t bytes[BLUR_SIZE_MAX][SHORTS];
	const uint8_t *copies[BLUR_SIZE_MAX];
	int16_t sums[SHORTS];

	memset(bytes, 0, blur->size * sizeof(*bytes));
	for (unsigned k = 0; k < blur->size; k++) {
		memcpy(bytes[k], rows[k] + at, count - at);
		copies[k] = bytes[k];
	}
	down_vectors(blur, copies, 0, 1, sums);
	memcpy(out, sums, (count - at) * sizeof(*sums));
}

static void down(const struct blur *blur, const uint8_t *const *rows,
		 size_t count, int16_t *out)
{
	size_t at = 0;

	for (; at + BLOCK * SHORTS <= count; at += BLOCK * SHORTS)
		down_vectors(blur, rows, at, BLOCK, out + at);
	for (; at + SHORTS <= count; at += SHORTS)
		down_vectors(blur, rows, at, 1, out + at);
	if (at < count)
		down_rest(blur, rows, at, count, out + at);
}

INLINE void across_vectors(const struct blur *blur, const int16_t *in,
			   unsigned vectors, uint8_t *out)
{
	unsigned half = blur->size / 2;
	shorts w = shorts_of(blur->weights[half]), sum[BLOCK];

	UNROLL
	for (unsigned i = 0; i < vectors; i++)
		sum[i] = shorts_scale(shorts_load(in + 3 * half + i * SHORTS),
				      w);
	for (unsigned k = 0; k < half; k++) {
		const int16_t *a = in + 3 * (size_t)k;
		const int16_t *b = in + 3 * (size_t)(blur->size - 1 - k);

		w = shorts_of(2 * blur->weights[k]);
		UNROLL
		for (unsigned i = 0; i < vectors; i++)
			sum[i] = shorts_add(
				sum[i],
				shorts_scale(
					shorts_mean(
						shorts_load(a + i * SHORTS),
						shorts_load(b + i * SHORTS)),
					w));
	}
	UNROLL
	for (unsigned i = 0; i < vectors; i++)
		shorts_store_bytes(
			out + i * SHORTS,
			shorts_add(sum[i], shorts_of(1 << (BLUR_POINT - 1))) >>
				BLUR_POINT);
}

static void across(const struct blur *blur, const int16_t *in, size_t count,
		   uint8_t *out)
{
	uint8_t bytes[SHORTS];
	size_t at = 0;

	for (; at + BLOCK * SHORTS <= count; at += BLOCK * SHORTS)
		across_vectors(blur, in + at, BLOCK, out + at);
	for (; at + SHORTS <= count; at += SHORTS)
		across_vectors(blur, in + at, 1, out + at);
	if (at == count)
		return;
	across_vectors(blur, in + at, 1, bytes);
	memcpy(out + at, bytes, count - at);
}

/* Sums of one order, whatever the vector. */
enum { REALS = 32 };

static void reals(const float *restrict weights, unsigned size,
		  const float *restrict in, size_t step, size_t count,
		  float *restrict out)
{
	for (; count >= REALS; count -= REALS, in += REALS, out += REALS) {
		float sum[REALS] = { 0 };

		for (unsigned k = 0; k < size; k++)
			for (unsigned i = 0; i < REALS; i++)
				sum[i] += weights[k] * in[k * step + i];
		memcpy(out, sum, sizeof(sum));
	}
	for (size_t i = 0; i < count; i++) {
		float sum = 0;

		for (unsigned k = 0; k < size; k++)
			sum += weights[k] * in[k * step + i];
		out[i] = sum;
	}
}

const struct blur_loops ISA_NAME(blur_loops) = {
	.down = down,
	.across = across,
	.reals = reals,
};
