/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that are made on first use and shared from then on, such as the index
 * of a column. One thread makes an object. Callers that ask for the same object
 * wait for it; callers that ask for others do not.
 *
 * If all objects together take more bytes than a limit, unused ones are freed,
 * the least recently used first. Failures are not remembered. Thread-safe; the
 * lock is not held while an object is made or freed.
 */
#ifndef FS_BASE_MEMORY_MEMO_H
#define FS_BASE_MEMORY_MEMO_H

#include <stdbool.h>
#include <stdint.h>

struct budget;
struct memo;

struct memo_options {
	uint64_t bytes_max;
	/* Charged for indexes; NULL: none. */
	struct budget *budget;
	/* Returns the most bytes that make() uses, and that the object has
	   then. */
	uint64_t (*need)(const void *arg);
	/* Makes an object from the argument of memo_get() and reports its size.
	 */
	int (*make)(const void *arg, void **thing, uint64_t *bytes);
	void (*free)(void *thing);
};

int memo_open(const struct memo_options *options, struct memo **out);
/* Frees everything. No object may be in use. Takes NULL. */
void memo_close(struct memo *memo);

/* Gets the object of a key, to be read until memo_put(). All waiting callers
   get the error of make(), or -ENOMEM. */
int memo_get(struct memo *memo, uint64_t key, const void *arg, void **thing);
void memo_put(struct memo *memo, uint64_t key);

/* Frees unused objects until `bytes` are freed, or none is left. Returns
   whether it freed any. */
bool memo_reclaim(struct memo *memo, uint64_t bytes);

#endif
