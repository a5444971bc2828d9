/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/exact_math.h"

#include <stdint.h>
#include <string.h>

#include "fs/base/util/bytes.h"

/* With -fmath-errno the compiler's builtin would call libm for x < 0. */
#ifdef __SSE2__
#	include <emmintrin.h>
static double square_root(double x)
{
	return _mm_cvtsd_f64(_mm_sqrt_pd(_mm_set1_pd(x)));
}
#else
static double square_root(double x)
{
	return __builtin_sqrt(x);
}
#endif

/* ln 2 in two parts; the high one has 32 bits, so k * high is exact. */
static const double LN2_HIGH = 0x1.62e42feep-1;
static const double LN2_LOW = 0x1.a39ef35793c76p-33;
static const double LN2_INVERSE = 0x1.71547652b82fep+0;

/* Past these the result is infinite, or rounds to 0. */
static const double EXP_MAX = 0x1.62e42fefa39efp+9;
static const double EXP_MIN = -0x1.74910d52d3051p+9;

/*
 * 1 / n! for n = 13 .. 2. If |r| <= ln(2) / 2, the first omitted term is below
 * 2^-57 of the result.
 */
static const double EXP_TERMS[] = {
	1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0,
	1.0 / 3628800.0,    1.0 / 362880.0,    1.0 / 40320.0,
	1.0 / 5040.0,	    1.0 / 720.0,       1.0 / 120.0,
	1.0 / 24.0,	    1.0 / 6.0,	       1.0 / 2.0,
};

/*
 * 2 / n for n = 25, 23 .. 3: the series of log((1 + s) / (1 - s)) / s - 2 in
 * s^2, which is at most 0.0295 here; what is left out is below 2^-67.
 */
static const double LOG_TERMS[] = {
	2.0 / 25.0, 2.0 / 23.0, 2.0 / 21.0, 2.0 / 19.0, 2.0 / 17.0, 2.0 / 15.0,
	2.0 / 13.0, 2.0 / 11.0, 2.0 / 9.0,  2.0 / 7.0,	2.0 / 5.0,  2.0 / 3.0,
};

/*
 * The series of sin(x) / x - 1 and of cos(x) - 1 in x^2, without its first
 * power. |x| is at most pi / 4 here, and what is left out below 2^-58.
 */
static const double SIN_TERMS[] = {
	1.0 / 355687428096000.0,
	-1.0 / 1307674368000.0,
	1.0 / 6227020800.0,
	-1.0 / 39916800.0,
	1.0 / 362880.0,
	-1.0 / 5040.0,
	1.0 / 120.0,
	-1.0 / 6.0,
};
static const double COS_TERMS[] = {
	1.0 / 20922789888000.0,
	-1.0 / 87178291200.0,
	1.0 / 479001600.0,
	-1.0 / 3628800.0,
	1.0 / 40320.0,
	-1.0 / 720.0,
	1.0 / 24.0,
};

static const double TWO_PI = 0x1.921fb54442d18p+2;

static double polynomial(const double *terms, size_t n, double x)
{
	double sum = terms[0];

	for (size_t i = 1; i < n; i++)
		sum = sum * x + terms[i];
	return sum;
}

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

/* 2^k for a normal result. */
static double power_of_two(int k)
{
	return of_bits((uint64_t)(k + 1023) << 52);
}

double exact_exp(double x)
{
	if (x != x)
		return x;
	if (x > EXP_MAX)
		return __builtin_inf();
	if (x < EXP_MIN)
		return 0;

	double k = exact_round(x * LN2_INVERSE);
	double high = x - k * LN2_HIGH;
	double low = k * LN2_LOW;
	double r = high - low;
	double tail = (high - r) - low; /* rounding error of r */
	double p = polynomial(EXP_TERMS, ARRAY_LEN(EXP_TERMS), r);
	double y = 1 + (r + (tail + r * r * p));

	/* Two steps: neither 2^1024 nor 2^-1075 is a normal number. */
	int half = (int)k / 2;

	return y * power_of_two(half) * power_of_two((int)k - half);
}

/* log(x 2^extra) for a positive normal x. */
static double log_of_normal(double x, int extra)
{
	uint64_t bits = bits_of(x);
	int k = (int)(bits >> 52) - 1023 - extra;
	double m = of_bits((bits & 0xfffffffffffff) | (uint64_t)1023 << 52);

	if (m > 0x1.6a09e667f3bcdp+0) {
		m *= 0.5;
		k++;
	}

	/* log(1 + f) = f - (f^2/2 - s (f^2/2 + R)) keeps f's bits exact. */
	double f = m - 1;
	double s = f / (2 + f);
	double z = s * s;
	double r = z * polynomial(LOG_TERMS, ARRAY_LEN(LOG_TERMS), z);
	double h = 0.5 * f * f;

	return k * LN2_HIGH - ((h - (s * (h + r) + k * LN2_LOW)) - f);
}

double exact_log(double x)
{
	if (x == 0)
		return -__builtin_inf();
	if (!(x > 0))
		return __builtin_nan("");
	if (x > 0x1.fffffffffffffp+1023)
		return x;
	if (x < 0x1p-1022)
		return log_of_normal(x * 0x1p54, 54);
	return log_of_normal(x, 0);
}

double exact_sine(double turns)
{
	/* The nearest quarter is subtracted exactly. */
	double quarter = exact_round(4 * turns);
	double x = (turns - 0.25 * quarter) * TWO_PI;
	double z = x * x;
	double sine =
		x + x * (z * polynomial(SIN_TERMS, ARRAY_LEN(SIN_TERMS), z));
	double cosine =
		1 - (0.5 * z -
		     z * z * polynomial(COS_TERMS, ARRAY_LEN(COS_TERMS), z));

	switch ((int64_t)quarter & 3) {
	case 0:
		return sine;
	case 1:
		return cosine;
	case 2:
		return -sine;
	default:
		return -cosine;
	}
}

double exact_sqrt(double x)
{
	return square_root(x);
}

double exact_round(double x)
{
	/* A double of 2^52 or more has no fraction, so adding 2^52 drops it. */
	double magic = __builtin_copysign(0x1p52, x);

	if (!(__builtin_fabs(x) < 0x1p52))
		return x;
	return __builtin_copysign((x + magic) - magic, x);
}
