/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of sample numbers: a bitmap in pieces that are allocated when they get
 * their first member, up to a limit of memory. One thread.
 */
#ifndef LOADER_TOOLS_FSCK_BAD_SET_H
#define LOADER_TOOLS_FSCK_BAD_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bad_set {
	uint64_t samples;
	uint64_t **pieces; /* owned; NULL: no member */
	uint64_t count;	   /* of members */
	size_t room;	   /* bytes of further pieces */
	bool incomplete;   /* there was no room for a member */
};

/* -ENOMEM. */
int bad_set_init(struct bad_set *s, uint64_t samples, size_t room);
void bad_set_fini(struct bad_set *s);

/* Returns whether the sample was no member before. Numbers from `samples` on
   are ignored. */
bool bad_set_add(struct bad_set *s, uint64_t sample);
bool bad_set_has(const struct bad_set *s, uint64_t sample);

/* Returns the first member from `from` on, or `samples`. */
uint64_t bad_set_next(const struct bad_set *s, uint64_t from);

#endif
