/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/beta.h"

#include <stdbool.h>

#include "loader/util/exact_math.h"

/* Each attempt is accepted with a probability of at least 1/2. */
enum { ATTEMPTS = 100 };

static double next_number(struct uniform uniform)
{
	return uniform.next(uniform.arg);
}

/* Joehnk's method, for alpha up to 1. Logarithms do not underflow. */
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
