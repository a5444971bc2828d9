/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of upsample.c, on a vector of numbers at a time. */
#include "loader/image/jpeg/upsample.h"
#include "loader/image/jpeg/upsample_class.h"
#include "loader/util/byte16.h"
#include "loader/util/isa_choice.h"
#include "loader/util/shorts.h"

#define INLINE static inline __attribute__((always_inline))

static void sum(const uint8_t *near, const uint8_t *far, size_t n, int16_t *out)
{
	for (size_t x = 0; x < n; x += SHORTS) {
		shorts v = shorts_load_bytes(near + x);

		if (far)
			v = 3 * v + shorts_load_bytes(far + x);
		shorts_store(out + x, v);
	}
}

/* No sum is negative. The left sample is the lower byte of a number. */
INLINE void twice_by(const int16_t *in, size_t n, struct upsample_rule rule,
		     int shift, uint8_t *out)
{
	for (size_t x = 0; x < n; x += SHORTS) {
		shorts here = 3 * shorts_load(in + x);
		shorts left = here + shorts_load(in + x - 1) + rule.add_left;
		shorts right = here + shorts_load(in + x + 1) + rule.add_right;
		ushorts bytes = (ushorts)(right >> shift) << 8;

		shorts_store(out + 2 * x, (left >> shift) | (shorts)bytes);
	}
}

static void twice(const int16_t *in, size_t n, struct upsample_rule rule,
		  uint8_t *out)
{
	if (rule.shift == 4)
		twice_by(in, n, rule, 4, out);
	else
		twice_by(in, n, rule, rule.shift, out);
}

/*
 * (a k + 2^15) >> 16 for a from -128 to 127 and any k of 16 bits. The caller
 * doubles a, so that the bit that rounds survives the multiplication.
 */
INLINE shorts scale_part(shorts doubled, int k)
{
	return (shorts_high(doubled, shorts_of(k)) + 1) >> 1;
}

/* Pixels [x, x + SHORTS) of Y, Cb and Cr become R, G and B. */
INLINE void convert(const uint8_t *const in[3], size_t x, uint8_t *r,
		    uint8_t *g, uint8_t *b)
{
	const int whole = 1 << UPSAMPLE_POINT;
	shorts y = shorts_load_bytes(in[0] + x);
	shorts cb = shorts_load_bytes(in[1] + x) - UPSAMPLE_ZERO_CHROMA;
	shorts cr = shorts_load_bytes(in[2] + x) - UPSAMPLE_ZERO_CHROMA;
	shorts red = scale_part(2 * cr, UPSAMPLE_RED_OF_CR - whole) + cr;
	shorts green = shorts_blend(cb, UPSAMPLE_GREEN_OF_CB, cr,
				    UPSAMPLE_GREEN_OF_CR + whole) -
		       cr;
	shorts blue =
		scale_part(2 * cb, UPSAMPLE_BLUE_OF_CB - 2 * whole) + 2 * cb;

	shorts_store_bytes(r, y + red);
	shorts_store_bytes(g, y + green);
	shorts_store_bytes(b, y + blue);
}

static void color(const uint8_t *const in[3], size_t n, uint8_t *out)
{
	uint8_t r[BYTE16], g[BYTE16], b[BYTE16];

	for (size_t x = 0; x < n; x += BYTE16) {
		for (size_t i = 0; i < BYTE16; i += SHORTS)
			convert(in, x + i, r + i, g + i, b + i);
		byte16_store_rgb(out + 3 * x, byte16_load(r), byte16_load(g),
				 byte16_load(b));
	}
}

const struct upsample_class ISA_NAME(fancy) = {
	.sum = sum,
	.twice = twice,
	.color = color,
};
