/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers that differ from epoch to epoch: an argument is "160" or "0.08,1", or
 * "0=160,10=192,14=224", where EPOCH= says from which epoch on the numbers
 * behind it are meant. Knows no operation; what numbers may be is for others to
 * say.
 */
#ifndef LOADER_GRAPH_SCHEDULE_H
#define LOADER_GRAPH_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* The epoch that is asked about, and how long the answer holds. */
struct epochs {
	uint64_t now;
	uint64_t end; /* the first that differs; UINT64_MAX: none does */
};

/*
 * Whether what begins with an epoch has begun. If not, epochs->end is not past
 * it any more.
 */
bool epochs_reach(struct epochs *epochs, uint64_t first);

/* An argument on its way through its parts. */
struct schedule {
	const char *rest; /* in the beginning all of it; NULL: no more */
	const char *at;	  /* the part; if it is wrong, what is wrong of it */
	uint64_t epoch;	  /* from which on it holds, and its numbers, up to */
	const char *numbers;
	const char *end;   /* this, exclusive */
	bool is_scheduled; /* it says so; else it is the only part */
	char wrong[96];
};

/*
 * Moves to the next part; there is one, as long as rest is not NULL. The first
 * is of epoch 0, epochs increase. -EINVAL: `wrong' tells.
 */
int schedule_next(struct schedule *s);

#endif
