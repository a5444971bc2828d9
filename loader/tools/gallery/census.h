/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each integer was seen, as long as there are not too many different
 * ones. Sorted as they come, so that no choice of them is slow. One thread.
 */
#ifndef LOADER_TOOLS_GALLERY_CENSUS_H
#define LOADER_TOOLS_GALLERY_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ImageNet's largest set has 21,841 classes. */
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
 * What was added, by value, valid until the next call of census_add(); *n of
 * them. NULL, and *n is 0: there are more than CENSUS_MAX. Call census_end()
 * before.
 */
const struct census_count *census_counts(const struct census *c, size_t *n);
/* -ENOMEM */
int census_end(struct census *c);

#endif
