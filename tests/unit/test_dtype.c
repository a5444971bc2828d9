/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/pipeline/op/dtype.h"
#include "tests/unit/t.h"

static void every_half_survives_the_way_through_float(void)
{
	for (uint32_t h = 0; h <= UINT16_MAX; h++) {
		float v = float_of_half((uint16_t)h);

		if (isnan(v))
			CHECK((half_of_float(v) & 0x7e00) == 0x7e00);
		else
			CHECK(half_of_float(v) == h);
	}
}

/* Returns the nearer of two neighbors, or the even one if both are equally
   near. */
static uint16_t nearest_half(float v)
{
	uint16_t below = 0, sign = signbit(v) ? 0x8000 : 0;
	double size = fabs((double)v), low, high;

	while (below < 0x7bff &&
	       (double)float_of_half((uint16_t)(below + 1)) <= size)
		below++;
	low = size - (double)float_of_half(below);
	/* The value after the largest half would be 2^16. */
	high = (below == 0x7bff
			? 65536.0
			: (double)float_of_half((uint16_t)(below + 1))) -
	       size;
	if (high < low || (high == low && below & 1))
		below++;
	return sign | below;
}

static void halves_are_the_nearest_ones(void)
{
	static const float odd[] = {
		65504,	      65519.996F,   65520,	1e30F,
		0x1p-24F,     0x1p-25F,	    0x1.8p-24F, 0x1.000002p-25F,
		0x1.ffcp-15F, 0x1.ffep-15F, -0.0F
	};
	struct rng rng = { .key = 1 };

	for (size_t i = 0; i < ARRAY_LEN(odd); i++)
		CHECK(half_of_float(odd[i]) == nearest_half(odd[i]));
	for (int i = 0; i < 2000; i++) {
		float v = (float)ldexp(rng_uniform(&rng) - 0.5,
				       (int)(rng_next(&rng) % 44) - 26);

		CHECK(half_of_float(v) == nearest_half(v));
	}
	CHECK(half_of_float(INFINITY) == 0x7c00);
	CHECK(half_of_float(-INFINITY) == 0xfc00);
}

/* Adds half of the last place in a wider type, and lets ties go to even. */
static uint16_t nearest_bfloat(float v)
{
	uint32_t bits, rest;
	uint16_t b;

	memcpy(&bits, &v, sizeof(bits));
	b = (uint16_t)(bits >> 16);
	rest = bits & 0xffff;
	if (rest > 0x8000 || (rest == 0x8000 && b & 1))
		b++;
	return b;
}

static void bfloats_are_the_nearest_ones(void)
{
	struct rng rng = { .key = 2 };

	for (uint32_t b = 0; b <= UINT16_MAX; b++) {
		float v = float_of_bfloat((uint16_t)b);

		if (isnan(v))
			CHECK(bfloat_of_float(v) == (b | 0x40));
		else
			CHECK(bfloat_of_float(v) == b);
	}
	for (int i = 0; i < 100000; i++) {
		uint32_t bits = (uint32_t)rng_next(&rng);
		float v;

		if (i % 2)
			bits = (bits & 0xffff0000) | 0x8000;
		memcpy(&v, &bits, sizeof(v));
		if (isnan(v))
			CHECK(isnan(float_of_bfloat(bfloat_of_float(v))));
		else
			CHECK(bfloat_of_float(v) == nearest_bfloat(v));
	}
	CHECK(bfloat_of_float(1.00390625F) == 0x3f80);
	CHECK(bfloat_of_float(3.4e38F) == 0x7f80 &&
	      bfloat_of_float(NAN) == 0x7fc0);
}

static void integers_saturate_and_round_half_to_even(void)
{
	static const float in[] = { 0.5F,   1.5F,   2.5F, -1,
				    254.5F, 255.5F, 1e9F, NAN };
	static const uint8_t want[] = { 0, 2, 2, 0, 254, 255, 255, 0 };
	uint8_t out[8];
	int64_t wide[] = { INT64_MIN, -1, INT64_MAX, 7 };
	int32_t narrow[4];
	double huge[] = { 1e300, -1e300, 0x1p63, -0x1p63 };

	dtype_convert(DTYPE_F4, in, DTYPE_U1, out, 8);
	CHECK(!memcmp(out, want, 8));
	dtype_convert(DTYPE_I8, wide, DTYPE_I4, narrow, 4);
	CHECK(narrow[0] == INT32_MIN && narrow[1] == -1);
	CHECK(narrow[2] == INT32_MAX && narrow[3] == 7);
	dtype_convert(DTYPE_I8, wide, DTYPE_U1, out, 4);
	CHECK(out[0] == 0 && out[1] == 0 && out[2] == 255 && out[3] == 7);
	dtype_convert(DTYPE_F8, huge, DTYPE_I8, wide, 4);
	CHECK(wide[0] == INT64_MAX && wide[1] == INT64_MIN);
	CHECK(wide[2] == INT64_MAX && wide[3] == INT64_MIN);
}

static void integers_become_floats_with_one_rounding(void)
{
	/* Through a double this would round twice, to 2^60. */
	int64_t v = (INT64_C(1) << 60) + (INT64_C(1) << 36) + 1;
	uint64_t u = UINT64_MAX;
	float f;
	double d;

	dtype_convert(DTYPE_I8, &v, DTYPE_F4, &f, 1);
	CHECK(f == 0x1.000002p60F);
	dtype_convert(DTYPE_U8, &u, DTYPE_F8, &d, 1);
	CHECK(d == 0x1p64);
	dtype_convert(DTYPE_U8, &u, DTYPE_I8, &v, 1);
	CHECK(v == INT64_MAX);
}

static void every_pair_of_types_agrees_on_small_numbers(void)
{
	for (int a = 0; a < DTYPE_OTHER; a++) {
		for (int b = 0; b < DTYPE_OTHER; b++) {
			uint64_t x = 0, y = 0, z = 0;
			uint8_t one = 1;

			dtype_convert(DTYPE_U1, &one, (enum dtype)a, &x, 1);
			dtype_convert((enum dtype)a, &x, (enum dtype)b, &y, 1);
			dtype_convert(DTYPE_U1, &one, (enum dtype)b, &z, 1);
			CHECK(y == z);
		}
	}
}

static void names_are_numpys(void)
{
	for (int t = 0; t < DTYPE_OTHER; t++) {
		const char *name = dtype_name((enum dtype)t);

		CHECK(dtype_by_name(name) == (enum dtype)t);
		CHECK(dtype_item_size(name) == dtype_size((enum dtype)t));
	}
	CHECK(dtype_by_name(">f4") == DTYPE_OTHER);
	CHECK(dtype_by_name("") == DTYPE_OTHER);
	CHECK(dtype_item_size("<U3") == 12 && dtype_item_size("|S5") == 5);
	CHECK(dtype_item_size("<M8[s]") == 8 && dtype_item_size("<c16") == 16);
	CHECK(!dtype_item_size("") && !dtype_item_size("f4"));
	CHECK(!dtype_item_size("<") &&
	      !dtype_item_size("<f99999999999999999999"));
}

static void a_bool_is_whatever_is_not_zero(void)
{
	uint8_t in[] = { 0, 1, 2, 255 };
	int64_t out[4];

	dtype_convert(DTYPE_B1, in, DTYPE_I8, out, 4);
	CHECK(out[0] == 0 && out[1] == 1 && out[2] == 1 && out[3] == 1);
}

int main(void)
{
	every_half_survives_the_way_through_float();
	halves_are_the_nearest_ones();
	bfloats_are_the_nearest_ones();
	integers_saturate_and_round_half_to_even();
	integers_become_floats_with_one_rounding();
	every_pair_of_types_agrees_on_small_numbers();
	names_are_numpys();
	a_bool_is_whatever_is_not_zero();
	return 0;
}
