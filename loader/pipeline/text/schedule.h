/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses schedules: arguments whose numbers can depend on the epoch, such as
 * "160", "0.08,1" or "0=160,10=192,14=224". The numbers after EPOCH= apply from
 * that epoch on. Does not check the numbers.
 */
#ifndef LOADER_PIPELINE_TEXT_SCHEDULE_H
#define LOADER_PIPELINE_TEXT_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* An epoch, and the next epoch with other numbers. */
struct epochs {
	uint64_t now;
	uint64_t end; /* first epoch with other numbers; UINT64_MAX: none */
};

/*
 * Returns whether numbers from epoch `first` on apply in epochs->now. If not,
 * limits epochs->end to `first`.
 */
bool epochs_reach(struct epochs *epochs, uint64_t first);

/* The state of parsing an argument part by part. */
struct schedule {
	const char *rest; /* the unread rest; NULL: at the end */
	const char *at;	  /* the part, or the wrong piece of it */
	uint64_t epoch;	  /* first epoch of the part */
	const char *numbers;
	const char *end;   /* end of its numbers, exclusive */
	bool is_scheduled; /* it has EPOCH=; else it is the only part */
	char wrong[96];
};

/*
 * Moves to the next part. Requires that rest is not NULL. Checks that the first
 * part has epoch 0 and that epochs increase. Returns -EINVAL, with the reason
 * in `wrong'.
 */
int schedule_next(struct schedule *s);

#endif
