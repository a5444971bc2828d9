/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/beta.h"

#include <stdbool.h>

#include "loader/util/exact_math.h"

/* Each attempt is accepted with a probability of at least 1/2. */
enum { ATTEMPTS = 100 };

static double next_number(struct uniform uniform)
{
	return uniform.next(uniform.arg);
}

/* Joehnk's method, for alpha up to 1. Uses logarithms, which do not
   underflow. */
static bool try_powers(double alpha, struct uniform uniform, double *out)
{
	double x = exact_log(1 - next_number(uniform)) / alpha;
	double y = exact_log(1 - next_number(uniform)) / alpha;

	if (exact_exp(x) + exact_exp(y) > 1)
		return false;
	*out = 1 / (1 + exact_exp(y - x));
	return true;
}

/* Ulrich's method, for alpha above 1/2: a point in the upper half disc. */
static bool try_polar(double alpha, struct uniform uniform, double *out)
{
	double u = next_number(uniform);
	double v = 2 * next_number(uniform) - 1;
	double s = u * u + v * v;

	if (!(s > 0) || s > 1)
		return false;
	*out = 0.5 + u * v / s *
			     exact_sqrt(1 - exact_exp(2 / (2 * alpha - 1) *
						      exact_log(s)));
	return true;
}

double beta_draw(double alpha, struct uniform uniform)
{
	double v = 0.5;

	for (int i = 0; i < ATTEMPTS; i++) {
		if (alpha > 1 ? try_polar(alpha, uniform, &v)
			      : try_powers(alpha, uniform, &v))
			break;
	}
	return v;
}

/* Makes a normally distributed number from two uniform ones. */
static double draw_normal(struct uniform uniform)
{
	double u = uniform.next(uniform.arg), v = uniform.next(uniform.arg);

	return exact_sqrt(-2 * exact_log(1 - u)) * exact_sine(v + 0.25);
}

/* Draws from Gamma(shape), shape >= 1, by the method of Marsaglia and Tsang. */
static double draw_gamma(double shape, struct uniform uniform)
{
	double d = shape - 1.0 / 3, c = 1 / exact_sqrt(9 * d);

	for (int i = 0; i < ATTEMPTS; i++) {
		double x = draw_normal(uniform), v = 1 + c * x;
		double u = uniform.next(uniform.arg);

		v = v * v * v;
		if (v > 0 &&
		    exact_log(1 - u) < x * x / 2 + d - d * v + d * exact_log(v))
			return d * v;
	}
	return d;
}

/* Draws the logarithm of a number of Gamma(alpha), because the number can
   underflow. */
static double draw_log_gamma(double alpha, struct uniform uniform)
{
	double u;

	if (alpha >= 1)
		return exact_log(draw_gamma(alpha, uniform));
	u = uniform.next(uniform.arg);
	return exact_log(1 - u) / alpha +
	       exact_log(draw_gamma(alpha + 1, uniform));
}

void beta_shares(double alpha, unsigned count, struct uniform uniform,
		 double *out)
{
	double most = 0, sum = 0;

	for (unsigned i = 0; i < count; i++) {
		out[i] = draw_log_gamma(alpha, uniform);
		most = !i || out[i] > most ? out[i] : most;
	}
	for (unsigned i = 0; i < count; i++) {
		out[i] = exact_exp(out[i] - most);
		sum += out[i];
	}
	for (unsigned i = 0; i < count; i++)
		out[i] /= sum;
}
