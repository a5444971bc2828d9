/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in ascending order, and the median of them. Pure functions. */
#ifndef LOADER_TOOLS_UI_SORT_H
#define LOADER_TOOLS_UI_SORT_H

#include <stddef.h>
#include <stdint.h>

void sort_reals(double *values, size_t n);
void sort_integers(int64_t *values, size_t n);

/* Returns the median of n > 0 sorted values: the mean of the middle two if n is
   even. */
double sort_median(const double *sorted, size_t n);

#endif
