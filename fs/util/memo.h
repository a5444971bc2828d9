/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Things that are made on first use and shared from then on, such as the index
 * of a column. One thread makes a thing, and whoever else asks for that one
 * waits; nobody else does. While all together take more bytes than a given
 * number, those that nobody uses are forgotten, the longest unused first. A
 * failure is not remembered. Thread-safe; its lock is not held while a thing
 * is made or freed.
 */
#ifndef FS_UTIL_MEMO_H
#define FS_UTIL_MEMO_H

#include <stdint.h>

struct memo;

struct memo_options {
	uint64_t bytes_max;
	/* Makes a thing out of what memo_get() was given; says its size. */
	int (*make)(const void *arg, void **thing, uint64_t *bytes);
	void (*free)(void *thing);
};

int memo_open(const struct memo_options *options, struct memo **out);
/* Nothing is in use. Takes NULL. */
void memo_close(struct memo *memo);

/* The thing of a key, the caller's to look at until memo_put(). What make()
   returned, to all who waited for it, or -ENOMEM. */
int memo_get(struct memo *memo, uint64_t key, const void *arg, void **thing);
void memo_put(struct memo *memo, uint64_t key);

#endif
