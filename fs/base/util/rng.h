/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers and permutations, specified to the bit in beton-orders(7):
 * integer arithmetic only, no state but a key and a position, the same on every
 * machine. Not for cryptography.
 */
#ifndef FS_BASE_UTIL_RNG_H
#define FS_BASE_UTIL_RNG_H

#include <stddef.h>
#include <stdint.h>

/* A bijection of 64-bit words that mixes every input bit into every output. */
uint64_t rng_mix(uint64_t x);

/* One key out of `n` words; the order of the words matters. */
uint64_t rng_key(const uint64_t *words, size_t n);

/* The key of a text, which names a stream of random numbers. */
uint64_t rng_key_of_text(const char *text);

/* A stream of numbers: the i-th depends on the key and on i alone. */
struct rng {
	uint64_t key;
	uint64_t position;
};

uint64_t rng_next(struct rng *rng);
/* Uniform in [0, 1): the upper 53 bits of rng_next() by 2^-53. */
double rng_uniform(struct rng *rng);

/*
 * A keyed bijection of [0, n), evaluated at any place in O(1) time and memory:
 * a Feistel network on the bits of n - 1 (at least 6), walked until it lands
 * below n: less than twice on average from n = 33 on.
 */
struct permutation {
	uint64_t n;
	uint64_t key;
	unsigned low_bits;
	unsigned high_bits;
};

struct permutation permutation_init(uint64_t n, uint64_t key);
/* Requires i < n. */
uint64_t permutation_at(const struct permutation *p, uint64_t i);
/* The inverse: the place that permutation_at() maps to i. Requires i < n. */
uint64_t permutation_inverse(const struct permutation *p, uint64_t i);

#endif
