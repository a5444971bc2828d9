/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments with numbers that may depend on the epoch: "160", "0.08,1", or
 * "0=160,10=192,14=224". The numbers after EPOCH= apply from that epoch on.
 * Does not check the numbers themselves.
 */
#ifndef LOADER_TEXT_SCHEDULE_H
#define LOADER_TEXT_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* An epoch, and the first one for which a schedule has other numbers. */
struct epochs {
	uint64_t now;
	uint64_t end; /* first epoch with other numbers; UINT64_MAX: none */
};

/*
 * Whether numbers that apply from `first` on apply in epochs->now. If not,
 * limits epochs->end to `first`.
 */
bool epochs_reach(struct epochs *epochs, uint64_t first);

/* An argument while it is read, part by part. */
struct schedule {
	const char *rest; /* not read yet; at first all of it; NULL: no more */
	const char *at;	  /* the part, or the wrong piece of it */
	uint64_t epoch;	  /* first epoch of the part */
	const char *numbers;
	const char *end;   /* end of its numbers, exclusive */
	bool is_scheduled; /* it has EPOCH=; else it is the only part */
	char wrong[96];
};

/*
 * Moves to the next part. Requires that rest is not NULL. The first part has
 * epoch 0, epochs increase. -EINVAL, with the reason in `wrong'.
 */
int schedule_next(struct schedule *s);

#endif
