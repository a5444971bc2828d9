/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/util/rng.h"

/* 2^64 divided by the golden ratio, odd: the step of a Weyl sequence. */
static const uint64_t WEYL = 0x9e3779b97f4a7c15;

/* If there are fewer than ten rounds, permutations of some dozens of elements
   are visibly uneven (tests/unit/test_rng.c measures it). Ten cost 15 ns. */
enum { ROUNDS = 10 };

/*
 * The smallest network has 6 bits, for halves of one or two bits mix poorly. A
 * permutation of a few elements therefore walks through 64: at n = 2 some 32
 * steps, half a microsecond.
 */
enum { BITS_MIN = 6 };

/* Multiply-xorshift with the constants of Stafford's 13th mixer. */
uint64_t rng_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

uint64_t rng_key(const uint64_t *words, size_t n)
{
	uint64_t key = rng_mix(WEYL + n);

	for (size_t i = 0; i < n; i++)
		key = rng_mix((key ^ words[i]) + WEYL);
	return key;
}

uint64_t rng_key_of_text(const char *text)
{
	uint64_t key = rng_mix(WEYL);

	for (; *text; text++)
		key = rng_mix((key ^ (unsigned char)*text) + WEYL);
	return key;
}

uint64_t rng_next(struct rng *rng)
{
	return rng_mix(rng->key + WEYL * ++rng->position);
}

double rng_uniform(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

struct permutation permutation_init(uint64_t n, uint64_t key)
{
	struct permutation p = { .n = n, .key = key };
	unsigned bits = n > 1 ? 64 - (unsigned)__builtin_clzll(n - 1) : 0;

	if (bits < BITS_MIN)
		bits = BITS_MIN;
	p.low_bits = bits / 2;
	p.high_bits = bits - p.low_bits;
	return p;
}

/* Returns the number that a round adds to a half of `width` bits, computed from
   the other half. */
static uint64_t round_of(const struct permutation *p, uint64_t round,
			 uint64_t other, unsigned width)
{
	uint64_t key = rng_mix(p->key + WEYL * (round + 1));

	return rng_mix(key ^ other) >> (64 - width);
}

/*
 * One pass over the network. Halves of unequal width swap roles every round,
 * so after an even number of rounds each has its own width again.
 */
static uint64_t permute_once(const struct permutation *p, uint64_t i)
{
	unsigned wa = p->high_bits, wb = p->low_bits, w;
	uint64_t a = i >> wb, b = i & (((uint64_t)1 << wb) - 1), t;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		t = a ^ round_of(p, round, b, wa);
		a = b;
		b = t;
		w = wa;
		wa = wb;
		wb = w;
	}
	return a << wb | b;
}

/* The same rounds from the last to the first. */
static uint64_t unpermute_once(const struct permutation *p, uint64_t i)
{
	unsigned wa = p->high_bits, wb = p->low_bits, w;
	uint64_t a = i >> wb, b = i & (((uint64_t)1 << wb) - 1), t;

	for (uint64_t round = ROUNDS; round-- > 0;) {
		w = wa;
		wa = wb;
		wb = w;
		t = b ^ round_of(p, round, a, wa);
		b = a;
		a = t;
	}
	return a << wb | b;
}

uint64_t permutation_at(const struct permutation *p, uint64_t i)
{
	if (p->n == 1)
		return 0;
	do
		i = permute_once(p, i);
	while (i >= p->n);
	return i;
}

/* Walks as permutation_at() does, but backwards: it passed only values that
   were not below n. */
uint64_t permutation_inverse(const struct permutation *p, uint64_t i)
{
	if (p->n == 1)
		return 0;
	do
		i = unpermute_once(p, i);
	while (i >= p->n);
	return i;
}
