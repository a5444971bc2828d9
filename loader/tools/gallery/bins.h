/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram for people: bins that begin at round numbers. */
#ifndef LOADER_TOOLS_GALLERY_BINS_H
#define LOADER_TOOLS_GALLERY_BINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BINS_MAX = 32 };

/* Bin i is from first + i * width to before the next. */
struct bins {
	double first;
	double width;
	size_t n;
	uint64_t count[BINS_MAX];
	/* A few values are so far away that they are counted in the first, or
	   in the last one, as if they were there. */
	bool more_below;
	bool more_above;
};

/*
 * Of finite values in ascending order; `whole`: of integers, where no bin is
 * narrower than 1. False: there is nothing to see, they are all the same, or
 * none, or too far from each other for a double.
 */
bool bins_fill(struct bins *b, const double *values, size_t n, bool whole);

#endif
