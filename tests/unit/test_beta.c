/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/beta.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "tests/unit/t.h"

enum { DRAWS = 40000 };

static double next(void *rng)
{
	return rng_uniform(rng);
}

static double draw(double alpha, struct rng *rng)
{
	return beta_draw(alpha, (struct uniform){ next, rng });
}

static double cdf_half(double x)
{
	return 2 / M_PI * asin(sqrt(x));
}

static double cdf_one(double x)
{
	return x;
}

static double cdf_two(double x)
{
	return x * x * (3 - 2 * x);
}

static double cdf_three(double x)
{
	return x * x * x * (10 - 15 * x + 6 * x * x);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov's distance: above this once in a thousand times. */
static void check_distribution(double alpha, double (*cdf)(double))
{
	static double v[DRAWS];
	struct rng rng = { .key = 11 };
	double worst = 0;

	for (size_t i = 0; i < DRAWS; i++)
		v[i] = draw(alpha, &rng);
	qsort(v, DRAWS, sizeof(*v), compare);
	for (size_t i = 0; i < DRAWS; i++)
		worst = fmax(worst, fabs(cdf(v[i]) - (i + 0.5) / DRAWS));
	printf("alpha %g: %.4f\n", alpha, worst);
	CHECK(worst < 1.95 / sqrt(DRAWS));
}

static void draws_are_distributed_so(void)
{
	check_distribution(0.5, cdf_half);
	check_distribution(1, cdf_one);
	check_distribution(2, cdf_two);
	check_distribution(3, cdf_three);
}

/* The variance is 1 / (4 (2 alpha + 1)). */
static void extreme_alphas_are_no_trouble(void)
{
	static const double alphas[] = { 0x1p-10, 0.01, 0.2,   0.4,
					 1.0001,  20,	0x1p10 };

	for (size_t i = 0; i < ARRAY_LEN(alphas); i++) {
		double want = 1 / (4 * (2 * alphas[i] + 1)), sum = 0,
		       squares = 0;
		struct rng rng = { .key = i };

		for (int k = 0; k < DRAWS; k++) {
			double x = draw(alphas[i], &rng);

			CHECK(x >= 0 && x <= 1);
			sum += x - 0.5;
			squares += (x - 0.5) * (x - 0.5);
		}
		CHECK(fabs(sum / DRAWS) < 4 * sqrt(want / DRAWS));
		CHECK(fabs(squares / DRAWS / want - 1) < 0.05);
	}
}

static double constant(void *value)
{
	return *(double *)value;
}

static void it_ends_for_any_random_numbers(void)
{
	static const double values[] = { 0, 0.5, 0x1.fffffffffffffp-1 };

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		double v = values[i];
		const struct uniform u = { constant, &v };

		CHECK(beta_draw(0.2, u) == 0.5);
		CHECK(beta_draw(0x1p-10, u) == 0.5);
		CHECK(beta_draw(2, u) >= 0 && beta_draw(2, u) <= 1);
	}
}

/* Also across compilers, C libraries and instruction sets. */
static void the_bits_never_change(void)
{
	struct rng rng = { .key = 5 };
	uint64_t sum = 0, bits;

	for (int i = 0; i < DRAWS; i++) {
		double x = draw(0.01 + 3 * rng_uniform(&rng), &rng);

		memcpy(&bits, &x, sizeof(bits));
		sum = rng_mix(sum ^ bits);
	}
	printf("bits: %016llx\n", (unsigned long long)sum);
	CHECK(sum == 0x34e4e40371f9836d);
}

int main(void)
{
	draws_are_distributed_so();
	extreme_alphas_are_no_trouble();
	it_ends_for_any_random_numbers();
	the_bits_never_change();
	return 0;
}
