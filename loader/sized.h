/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs that begin with `size_t size`, from callers that were compiled for
 * another version of the library. An older caller has fewer members: the missing
 * ones become 0, which is the default of every member. A later caller has more:
 * they must be 0, because this library cannot do what they ask for.
 */
#ifndef LOADER_SIZED_H
#define LOADER_SIZED_H

#include <stddef.h>

enum {
	/* The largest size of a caller's struct. A larger one was never set. */
	SIZED_MAX = 4096,
};

/* Copies a caller's struct to `to`, which has `size` bytes and begins with its
   size. `first` is the size of the struct's first version. -EINVAL if the
   caller's size is no size of any version, or sets members of a later one. */
int sized_take(void *to, size_t size, const void *from, size_t first);

#endif
