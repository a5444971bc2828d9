/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/sort.h"

#include <stdlib.h>

static int by_real(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int by_integer(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void sort_reals(double *values, size_t n)
{
	if (n)
		qsort(values, n, sizeof(*values), by_real);
}

void sort_integers(int64_t *values, size_t n)
{
	if (n)
		qsort(values, n, sizeof(*values), by_integer);
}

double sort_median(const double *sorted, size_t n)
{
	return (sorted[n / 2] + sorted[(n - 1) / 2]) / 2;
}
