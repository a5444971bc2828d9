/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/gallery/bins.h"

#include <math.h>

enum {
	/* The number of bins is about the square root of the number of
	   values. */
	BINS_LEAST = 6,
	BINS_WANTED = 24,
	/* At each end a hundredth of the values may be outliers. */
	FEW = 100,
};

/* Returns the smallest of ..., 1, 2, 5, 10, ... that is at least v. 0: there is
   none. */
static double round_up(double v)
{
	static const double steps[] = { 1, 2, 5, 10 };
	double power = pow(10, floor(log10(v)));

	for (size_t i = 0; isnormal(power) && i < 4; i++)
		if (steps[i] * power >= v * (1 - 1e-9))
			return steps[i] * power;
	return 0;
}

/* Excludes outliers: values farther from the rest than the rest is wide. */
static void find_range(struct bins *b, const double *v, size_t n, double *low,
		       double *high)
{
	double left = v[n / FEW], right = v[n - 1 - n / FEW];

	*low = v[0];
	*high = v[n - 1];
	if (!(right > left))
		return;
	b->more_below = left - *low > right - left;
	b->more_above = *high - right > right - left;
	*low = b->more_below ? left : *low;
	*high = b->more_above ? right : *high;
}

static size_t bin_of(const struct bins *b, double v)
{
	double i = (v - b->first) / b->width;

	return i < 0 ? 0 : i < (double)b->n ? (size_t)i : b->n - 1;
}

bool bins_fill(struct bins *b, const double *v, size_t n, bool whole)
{
	double low, high, wanted = sqrt((double)n);

	*b = (struct bins){ .n = 0 };
	if (!n || v[0] == v[n - 1])
		return false;
	find_range(b, v, n, &low, &high);
	if (!isfinite(high - low))
		return false;
	wanted = fmin(fmax(wanted, BINS_LEAST), BINS_WANTED);
	b->width = round_up((high - low) / wanted);
	if (whole && b->width < 1)
		b->width = 1;
	b->first = floor(low / b->width) * b->width;
	if (!(b->width > 0) || !isfinite(b->first))
		return false;
	/* Rounding of both ends may add a bin at each. */
	b->n = (size_t)fmin(floor((high - b->first) / b->width) + 1, BINS_MAX);
	for (size_t i = 0; i < n; i++)
		b->count[bin_of(b, v[i])]++;
	return true;
}
