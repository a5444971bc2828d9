/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts how often each integer occurs, up to CENSUS_MAX different ones. Values
 * are sorted in batches, so no input is slow. One thread.
 */
#ifndef LOADER_TOOLS_GALLERY_CENSUS_H
#define LOADER_TOOLS_GALLERY_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest ImageNet has 21,841 classes. */
enum { CENSUS_MAX = 1 << 15 };

struct census_count {
	int64_t value;
	uint64_t n;
};

struct census;

int census_open(struct census **out);
void census_close(struct census *c);

/* -ENOMEM */
int census_add(struct census *c, int64_t value);

/*
 * The counts in ascending order of values, and in *n their number. They are
 * valid until the next census_add(). NULL, and 0 in *n: there are more than
 * CENSUS_MAX. Call census_end() first.
 */
const struct census_count *census_counts(const struct census *c, size_t *n);
/* -ENOMEM */
int census_end(struct census *c);

#endif
