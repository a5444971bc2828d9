/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "tests/unit/t.h"

/* Golden numbers of this file come from tests/e2e/orders.py. */

static void mixing_is_as_specified(void)
{
	CHECK(rng_mix(0) == 0);
	CHECK(rng_mix(1) == 0x5692161d100b05e5u);
	CHECK(rng_mix((uint64_t)1 << 63) == 0x25c26ea579cea98au);
	CHECK(rng_mix(UINT64_MAX) == 0xb4d055fcf2cbbd7bu);
}

static void keys_depend_on_words_their_order_and_their_number(void)
{
	CHECK(rng_key(NULL, 0) == 0xe220a8397b1dcdafu);
	CHECK(rng_key((const uint64_t[]){ 0 }, 1) == 0x5e41ab087439611eu);
	CHECK(rng_key((const uint64_t[]){ 0, 0 }, 2) == 0x1956ecd1a275ec95u);
	CHECK(rng_key((const uint64_t[]){ 1, 2, 3 }, 3) == 0x4e2889b21ba43ff3u);
	CHECK(rng_key((const uint64_t[]){ 3, 2, 1 }, 3) == 0x863577b9137ca9fbu);
}

static void keys_of_texts_are_as_specified(void)
{
	CHECK(rng_key_of_text("") == 0xe220a8397b1dcdafu);
	CHECK(rng_key_of_text("crop") == 0x658f03c9ae894dd0u);
	CHECK(rng_key_of_text("flip") == 0xc7d0557b13fd1014u);
}

static void streams_depend_on_key_and_position_alone(void)
{
	static const uint64_t golden[] = {
		0xbdd732262feb6e95u,
		0x28efe333b266f103u,
		0x47526757130f9f52u,
		0x581ce1ff0e4ae394u,
	};
	struct rng rng = { .key = 42 };

	for (size_t i = 0; i < ARRAY_LEN(golden); i++)
		CHECK(rng_next(&rng) == golden[i]);
	rng = (struct rng){ .key = 42, .position = 2 };
	CHECK(rng_next(&rng) == golden[2] && rng.position == 3);
}

static void uniform_numbers_are_in_range_and_even(void)
{
	enum { N = 100000, BUCKETS = 64 };
	unsigned counts[BUCKETS] = { 0 };
	struct rng rng = { .key = 1 };
	double v, chi2 = 0, expected = (double)N / BUCKETS;

	for (int i = 0; i < N; i++) {
		v = rng_uniform(&rng);
		CHECK(v >= 0 && v < 1);
		counts[(int)(v * BUCKETS)]++;
	}
	for (int i = 0; i < BUCKETS; i++)
		chi2 += (counts[i] - expected) * (counts[i] - expected) /
			expected;
	/* 63 degrees of freedom: mean 63, deviation 11. */
	CHECK(chi2 > 25 && chi2 < 115);
}

static void permutations_are_as_specified(void)
{
	static const uint64_t of_10[] = { 6, 0, 1, 8, 2, 7, 3, 5, 4, 9 };
	static const uint64_t of_64[] = { 17, 0, 39, 26, 2, 14, 35, 56 };
	static const uint64_t of_65[] = { 38, 17, 33, 1, 26, 37, 20, 56 };
	static const uint64_t of_1000[] = { 305, 441, 260, 790, 478, 462 };
	const uint64_t big = ((uint64_t)1 << 40) + 12345;
	static const struct {
		uint64_t n;
		const uint64_t *golden;
		size_t size;
	} table[] = {
		{ 10, of_10, ARRAY_LEN(of_10) },
		{ 64, of_64, ARRAY_LEN(of_64) },
		{ 65, of_65, ARRAY_LEN(of_65) },
		{ 1000, of_1000, ARRAY_LEN(of_1000) },
	};
	struct permutation p;

	for (size_t t = 0; t < ARRAY_LEN(table); t++) {
		p = permutation_init(table[t].n, 7);
		for (size_t i = 0; i < table[t].size; i++)
			CHECK(permutation_at(&p, i) == table[t].golden[i]);
	}
	p = permutation_init(big, 99);
	CHECK(permutation_at(&p, 0) == 882267114873);
	CHECK(permutation_at(&p, (uint64_t)1 << 39) == 218237731106);
	CHECK(permutation_at(&p, big - 1) == 214423927798);
}

static void check_bijection(uint64_t n, uint64_t key)
{
	const struct permutation p = permutation_init(n, key);
	uint8_t *seen = calloc(n + 1, 1);
	uint64_t at;

	CHECK(seen);
	for (uint64_t i = 0; i < n; i++) {
		at = permutation_at(&p, i);
		CHECK(at < n && !seen[at]);
		CHECK(permutation_inverse(&p, at) == i);
		seen[at] = 1;
	}
	free(seen);
}

static void permutations_are_bijections(void)
{
	for (uint64_t n = 1; n <= 600; n++) {
		check_bijection(n, n * 77);
		check_bijection(n, UINT64_MAX - n);
	}
	for (unsigned bits = 10; bits <= 17; bits++) {
		check_bijection(((uint64_t)1 << bits) - 1, bits);
		check_bijection((uint64_t)1 << bits, bits);
		check_bijection(((uint64_t)1 << bits) + 1, bits);
	}
}

static void huge_permutations_stay_in_range(void)
{
	const struct permutation p = permutation_init(UINT64_MAX, 5);

	for (uint64_t i = 0; i < 1000; i++)
		CHECK(permutation_at(&p, UINT64_MAX - 1 - i) < UINT64_MAX);
}

/* Over many keys, every element must land everywhere equally often. */
static double uneven(uint64_t n, unsigned keys)
{
	unsigned *counts = calloc(n * n, sizeof(*counts));
	double expected = (double)keys / (double)n, chi2 = 0, d;
	struct permutation p;

	CHECK(counts);
	for (uint64_t key = 0; key < keys; key++) {
		p = permutation_init(n, rng_mix(key + 1000));
		for (uint64_t i = 0; i < n; i++)
			counts[i * n + permutation_at(&p, i)]++;
	}
	for (uint64_t i = 0; i < n * n; i++) {
		d = counts[i] - expected;
		chi2 += d * d / expected;
	}
	free(counts);
	return chi2;
}

static void huge_permutations_are_inverted(void)
{
	static const uint64_t sizes[] = {
		((uint64_t)1 << 32) - 1,  ((uint64_t)1 << 32) + 1,
		((uint64_t)1 << 40) + 11, ((uint64_t)1 << 61) - 7,
		(uint64_t)1 << 63,	  UINT64_MAX,
	};
	struct permutation p;
	uint64_t i;

	for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
		p = permutation_init(sizes[s], s);
		for (uint64_t n = 0; n < 1000; n++) {
			i = rng_mix(n + s) % sizes[s];
			CHECK(permutation_inverse(&p, permutation_at(&p, i)) ==
			      i);
			CHECK(permutation_at(&p, permutation_inverse(&p, i)) ==
			      i);
		}
	}
}

static void every_element_lands_everywhere_equally_often(void)
{
	static const uint64_t sizes[] = { 2, 3, 5, 16, 33, 48, 64, 65, 100 };
	double freedom, chi2;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		freedom = (double)((sizes[i] - 1) * (sizes[i] - 1));
		chi2 = uneven(sizes[i], 6000);
		/* Six deviations of a chi-square distribution. */
		CHECK(fabs(chi2 - freedom) < 6 * sqrt(2 * freedom) + 10);
	}
}

/* All orders of four elements must come up equally often. */
static void all_orders_of_four_are_equally_likely(void)
{
	enum { KEYS = 24000 };
	unsigned counts[256] = { 0 }, kinds = 0;
	struct permutation p;
	double chi2 = 0, d;
	unsigned code;

	for (uint64_t key = 0; key < KEYS; key++) {
		p = permutation_init(4, rng_mix(key));
		code = 0;
		for (uint64_t i = 0; i < 4; i++)
			code = code * 4 + (unsigned)permutation_at(&p, i);
		counts[code]++;
	}
	for (unsigned i = 0; i < 256; i++) {
		if (!counts[i])
			continue;
		kinds++;
		d = counts[i] - KEYS / 24.0;
		chi2 += d * d / (KEYS / 24.0);
	}
	/* 23 degrees of freedom: mean 23, deviation 6.8. */
	CHECK(kinds == 24 && chi2 < 60);
}

/* Neighbors must not stay neighbors more often than chance has it. */
static void neighbours_are_torn_apart(void)
{
	enum { N = 1000, KEYS = 300 };
	unsigned near = 0;
	struct permutation p;
	uint64_t a, b;

	for (uint64_t key = 0; key < KEYS; key++) {
		p = permutation_init(N, rng_mix(key));
		for (uint64_t i = 0; i + 1 < N; i++) {
			a = permutation_at(&p, i);
			b = permutation_at(&p, i + 1);
			near += a + 1 == b || b + 1 == a;
		}
	}
	/* Two of N expected for every key; a deviation is about sqrt(2). */
	CHECK(fabs(near - 2.0 * KEYS) < 6 * sqrt(2.0 * KEYS));
}

int main(void)
{
	mixing_is_as_specified();
	keys_depend_on_words_their_order_and_their_number();
	keys_of_texts_are_as_specified();
	streams_depend_on_key_and_position_alone();
	uniform_numbers_are_in_range_and_even();
	permutations_are_as_specified();
	permutations_are_bijections();
	huge_permutations_stay_in_range();
	huge_permutations_are_inverted();
	every_element_lands_everywhere_equally_often();
	all_orders_of_four_are_equally_likely();
	neighbours_are_torn_apart();
	return 0;
}
