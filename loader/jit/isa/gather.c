/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/jit/isa.h"

#ifdef __SSSE3__
typedef uint8_t bytes __attribute__((vector_size(16)));

/* Those of a, b and c whose places are 0, 1 and 2 modulo 3. */
static const bytes third[3] = {
	{ 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255 },
	{ 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0 },
	{ 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0 },
};

static bytes choose(bytes a, bytes b, bytes c)
{
	return (a & third[0]) | (b & third[1]) | (c & third[2]);
}

static bytes load(const uint8_t *p)
{
	bytes v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

static void store(uint8_t *p, bytes v)
{
	__builtin_memcpy(p, &v, sizeof(v));
}

static bytes permute(bytes v, bytes places)
{
	typedef char chars __attribute__((vector_size(16)));

	return (bytes)__builtin_ia32_pshufb128((chars)v, (chars)places);
}

/* Where byte i of a plane lies: 3 i + channel, modulo 16. */
static const bytes unmix[3] = {
	{ 0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13 },
	{ 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14 },
	{ 2, 5, 8, 11, 14, 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15 },
};

/* And back: byte j is of pixel (j - channel) / 3, modulo 16. */
static const bytes mix[3] = {
	{ 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5 },
	{ 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10 },
	{ 10, 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15 },
};

/* Sixteen pixels at a time; returns how many. */
static size_t split_blocks(const uint8_t *restrict in, size_t count,
			   uint8_t *restrict planes, size_t stride)
{
	size_t x = 0;

	/* A channel's bytes are in three registers at different places modulo
	   3, since 16 is 1 modulo 3: they never collide. */
	for (; x + 16 <= count; x += 16, in += 48) {
		bytes a = load(in), b = load(in + 16), c = load(in + 32);

		store(planes + x, permute(choose(a, c, b), unmix[0]));
		store(planes + stride + x, permute(choose(b, a, c), unmix[1]));
		store(planes + 2 * stride + x,
		      permute(choose(c, b, a), unmix[2]));
	}
	return x;
}

static size_t join_blocks(const uint8_t *const in[3], size_t count,
			  uint8_t *restrict out)
{
	size_t x = 0;

	for (; x + 16 <= count; x += 16, out += 48) {
		bytes r = permute(load(in[0] + x), mix[0]);
		bytes g = permute(load(in[1] + x), mix[1]);
		bytes b = permute(load(in[2] + x), mix[2]);

		store(out, choose(r, g, b));
		store(out + 16, choose(g, b, r));
		store(out + 32, choose(b, r, g));
	}
	return x;
}
#else
static size_t split_blocks(const uint8_t *restrict in, size_t count,
			   uint8_t *restrict planes, size_t stride)
{
	(void)in;
	(void)count;
	(void)planes;
	(void)stride;
	return 0;
}

static size_t join_blocks(const uint8_t *const in[3], size_t count,
			  uint8_t *restrict out)
{
	(void)in;
	(void)count;
	(void)out;
	return 0;
}
#endif

static void split(const uint8_t *restrict in, size_t count,
		  uint8_t *restrict planes, size_t stride)
{
	for (size_t x = split_blocks(in, count, planes, stride); x < count;
	     x++) {
		planes[x] = in[3 * x];
		planes[stride + x] = in[3 * x + 1];
		planes[2 * stride + x] = in[3 * x + 2];
	}
}

static void join(const uint8_t *const in[3], size_t count,
		 uint8_t *restrict out)
{
	for (size_t x = join_blocks(in, count, out); x < count; x++) {
		out[3 * x] = in[0][x];
		out[3 * x + 1] = in[1][x];
		out[3 * x + 2] = in[2][x];
	}
}

static void reverse(const uint8_t *restrict in, size_t count,
		    uint8_t *restrict out)
{
	for (size_t x = 0; x < count; x++)
		out[x] = in[count - 1 - x];
}

const struct gather ISA_NAME(gather) = { split, join, reverse };
