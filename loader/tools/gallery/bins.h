/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram whose bins begin at round numbers. */
#ifndef LOADER_TOOLS_GALLERY_BINS_H
#define LOADER_TOOLS_GALLERY_BINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BINS_MAX = 32 };

/* Bin i starts at first + i * width, and ends before the start of bin i + 1. */
struct bins {
	double first;
	double width;
	size_t n;
	uint64_t count[BINS_MAX];
	/* Outliers below the first bin or above the last one, which count
	   them. */
	bool more_below;
	bool more_above;
};

/*
 * Makes a histogram of finite values in ascending order. `whole`: the values
 * are integers, and no bin is narrower than 1. Returns false if there are no
 * values, all are equal, or their range exceeds a double.
 */
bool bins_fill(struct bins *b, const double *values, size_t n, bool whole);

#endif
