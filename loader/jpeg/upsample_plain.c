/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of the inner loops; other machines use it too. */
#include "loader/jpeg/upsample.h"
#include "loader/jpeg/upsample_class.h"

static void sum(const uint8_t *near, const uint8_t *far, size_t n, int16_t *out)
{
	for (size_t x = 0; x < n; x++)
		out[x] = (int16_t)(far ? 3 * near[x] + far[x] : near[x]);
}

static void twice(const int16_t *in, size_t n, struct fancy_rule rule,
		  uint8_t *out)
{
	for (size_t x = 0; x < n; x++) {
		int here = 3 * in[x], left = in[(ptrdiff_t)x - 1];

		out[2 * x] =
			(uint8_t)((here + left + rule.add_left) >> rule.shift);
		out[2 * x + 1] =
			(uint8_t)((here + in[x + 1] + rule.add_right) >>
				  rule.shift);
	}
}

static uint8_t limited(int v)
{
	return (uint8_t)(v < 0 ? 0 : v > UINT8_MAX ? UINT8_MAX : v);
}

static int rounded(int v)
{
	return (v + (1 << (FANCY_POINT - 1))) >> FANCY_POINT;
}

static void colour(const uint8_t *const in[3], size_t n, uint8_t *out)
{
	for (size_t x = 0; x < n; x++, out += 3) {
		int y = in[0][x];
		int cb = in[1][x] - FANCY_ZERO_CHROMA;
		int cr = in[2][x] - FANCY_ZERO_CHROMA;

		out[0] = limited(y + rounded(FANCY_RED_OF_CR * cr));
		out[1] = limited(y + rounded(FANCY_GREEN_OF_CB * cb +
					     FANCY_GREEN_OF_CR * cr));
		out[2] = limited(y + rounded(FANCY_BLUE_OF_CB * cb));
	}
}

const struct fancy_class fancy_plain = {
	.sum = sum,
	.twice = twice,
	.colour = colour,
};
