/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies structs that begin with `size_t size` from callers compiled for
 * another version of the library. An older caller has fewer members: missing
 * members become 0, the default of every member. A later caller has more
 * members: they must be 0, because this library does not support them.
 */
#ifndef LOADER_SIZED_H
#define LOADER_SIZED_H

#include <stddef.h>

enum {
	/* The largest plausible size of a caller's struct. Above it, the caller
	   did not set the size. */
	SIZED_MAX = 4096,
};

/* Copies a caller's struct to `to`, which has `size` bytes and begins with its
   size. `first` is the size of the struct's first version. Returns -EINVAL if
   no version has the caller's size, or if the caller sets members of a later
   version. */
int sized_take(void *to, size_t size, const void *from, size_t first);

/* Copies this library's struct of `size` bytes to a caller's, whose size is
   there already and stays. The size must be at least that of a size_t. */
void sized_give(void *to, const void *from, size_t size);

#endif
