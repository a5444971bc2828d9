/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work for one user on one dataset. A few threads work in each lane, so
 * that a user or a dataset on a slow disk does not delay the others. Not
 * thread-safe: work locks.
 */
#ifndef FS_DATA_ENGINE_LANE_H
#define FS_DATA_ENGINE_LANE_H

#include <stdbool.h>
#include <stdint.h>

struct dataset;
struct task;

/* Exists while there is work in it. */
struct lane {
	struct lane *prev, *next; /* in lanes.list, the next turn first */
	const struct dataset *ds;
	uint64_t user;
	struct task *queue;
	unsigned running; /* threads */
};

struct lanes {
	struct lane *list;
	unsigned width; /* threads that may work in a lane at a time */
};

/* Returns the lane of a user on a dataset. NULL: no memory. */
struct lane *lane_need(struct lanes *lanes, const struct dataset *ds,
		       uint64_t user);
/* Frees a lane that has neither a queue nor threads. */
void lane_drop(struct lanes *lanes, struct lane *lane);

/* A thread begins to work in the lane. Moves the lane to the end of the
   list. */
void lane_enter(struct lanes *lanes, struct lane *lane);
/* The thread has ended its work; may free the lane. */
void lane_leave(struct lanes *lanes, struct lane *lane);

/* Returns the lane whose first ticket a thread should run. NULL: no ticket
   waits, or enough threads work in every lane that has tickets. */
struct lane *lanes_next(const struct lanes *lanes);

/* Returns whether fewer threads work on the dataset, for all users, than a lane
   may have. */
bool lanes_have_room(const struct lanes *lanes, const struct dataset *ds);

#endif
