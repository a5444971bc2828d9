/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/exact_math.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "fs/base/util/rng.h"
#include "tests/unit/t.h"

/* 113 bits, computed without libm, to measure 53 against. */
#ifdef __SIZEOF_FLOAT128__
typedef __float128 quad;
#else
typedef long double quad;
#endif

enum { ROUNDS = 100000 };

static uint64_t bits_of(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static double of_bits(uint64_t bits)
{
	double x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static quad quad_exp(quad x)
{
	quad sum = 1;
	quad term = 1;

	x /= 1024;
	for (int i = 1; i < 24; i++) {
		term = term * x / i;
		sum += term;
	}
	for (int i = 0; i < 10; i++)
		sum *= sum;
	return sum;
}

/* One step of Halley's method from a start that is good to 2^-50. */
static quad quad_log(quad x, double start)
{
	quad y = quad_exp(start);

	return start + 2 * (x - y) / (x + y);
}

/* The distance in units of the last place of `got`. */
static double ulps(double got, quad want)
{
	double ulp = of_bits(bits_of(got) & (uint64_t)0x7ff << 52) * 0x1p-52;
	quad error = (got - want) / ulp;

	return (double)(error < 0 ? -error : error);
}

static double uniform(struct rng *rng, double low, double high)
{
	return low + (high - low) * rng_uniform(rng);
}

static void exp_is_within_one_ulp(void)
{
	struct rng rng = { .key = 1 };
	double worst = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double range = i % 2 ? 1 : 700;
		double x = uniform(&rng, -range, range);
		double error = ulps(exact_exp(x), quad_exp(x));

		worst = error > worst ? error : worst;
	}
	printf("exp: %.3f ulp\n", worst);
	CHECK(worst < 1);
}

static void log_is_within_one_ulp(void)
{
	struct rng rng = { .key = 2 };
	double worst = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double x = i % 2 ? uniform(&rng, 0.5, 2)
				 : exact_exp(uniform(&rng, -700, 700));
		double got = exact_log(x);
		double error = ulps(got, quad_log(x, got));

		worst = error > worst ? error : worst;
	}
	printf("log: %.3f ulp\n", worst);
	CHECK(worst < 1);
}

/* By its series, of an angle of less than half a turn. */
static quad quad_sine(quad turns)
{
	const quad two_pi =
		2 * (3.14159265358979311600 + (quad)1.2246467991473531772e-16);
	quad x = turns * two_pi, term = x, sum = x;

	for (int i = 2; i < 60; i += 2) {
		term = -term * x * x / (i * (i + 1));
		sum += term;
	}
	return sum;
}

static void sine_is_within_two_ulp(void)
{
	struct rng rng = { .key = 4 };
	double worst = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double x = uniform(&rng, -0.5, 0.5);
		double error = ulps(exact_sine(x), quad_sine(x));

		worst = error > worst ? error : worst;
		CHECK(exact_sine(x + 8) == exact_sine((x + 8) - 8));
	}
	printf("sine: %.3f ulp\n", worst);
	CHECK(worst < 2);
	for (int i = -9; i < 9; i++)
		CHECK(exact_sine(i * 0.25) == (i % 2 ? (i & 2 ? -1 : 1) : 0));
}

static void the_edges_are_those_of_c(void)
{
	double infinity = __builtin_inf();

	CHECK(exact_exp(0) == 1);
	CHECK(exact_exp(infinity) == infinity);
	CHECK(exact_exp(-infinity) == 0);
	CHECK(exact_exp(710) == infinity);
	CHECK(exact_exp(709.782712893384) < infinity);
	CHECK(exact_exp(-745.2) == 0);
	CHECK(exact_exp(-745) > 0);
	CHECK(exact_exp(__builtin_nan("")) != exact_exp(__builtin_nan("")));
	CHECK(exact_log(1) == 0);
	CHECK(exact_log(0) == -infinity);
	CHECK(exact_log(infinity) == infinity);
	CHECK(exact_log(-1) != exact_log(-1));
	CHECK(exact_log(__builtin_nan("")) != exact_log(__builtin_nan("")));
	CHECK(exact_log(0x1p-1074) == -0x1.74385446d71c3p+9);
}

static void sqrt_is_exact(void)
{
	CHECK(exact_sqrt(0) == 0);
	CHECK(exact_sqrt(65025) == 255);
	CHECK(exact_sqrt(2) == 0x1.6a09e667f3bcdp+0);
	CHECK(exact_sqrt(-1) != exact_sqrt(-1));
}

static void round_takes_halves_to_even(void)
{
	static const double cases[][2] = {
		{ 0.5, 0 },	    { 1.5, 2 },
		{ 2.5, 2 },	    { -0.5, 0 },
		{ -1.5, -2 },	    { 0.49999999999999994, 0 },
		{ 223.5, 224 },	    { 0x1p52 - 0.5, 0x1p52 },
		{ 0x1p60, 0x1p60 }, { -7.2, -7 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK(exact_round(cases[i][0]) == cases[i][1]);
	CHECK(__builtin_signbit(exact_round(-0.25)));
}

/* Also across compilers, C libraries and instruction sets. */
static void the_bits_never_change(void)
{
	struct rng rng = { .key = 3 };
	uint64_t sum = 0, sines = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double x = uniform(&rng, -3, 3);
		double y = exact_exp(x);

		sum = rng_mix(sum ^ bits_of(y));
		sum = rng_mix(sum ^ bits_of(exact_log(y + rng_uniform(&rng))));
		sum = rng_mix(sum ^ bits_of(exact_sqrt(y)));
		sines = rng_mix(sines ^ bits_of(exact_sine(x)));
	}
	printf("bits: %016llx %016llx\n", (unsigned long long)sum,
	       (unsigned long long)sines);
	CHECK(sum == 0xd34476f93cb589e5);
	CHECK(sines == 0x1a4cb7199bb05da3);
}

int main(void)
{
	exp_is_within_one_ulp();
	log_is_within_one_ulp();
	sine_is_within_two_ulp();
	the_edges_are_those_of_c();
	sqrt_is_exact();
	round_takes_halves_to_even();
	the_bits_never_change();
	return 0;
}
