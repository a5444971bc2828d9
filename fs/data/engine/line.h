/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait in line for memory, first come, first served. There is one
 * exception: a thread delays those that need at most half as much only for half
 * a second, because other processes may hold its memory without a time limit. A
 * thread tries when it is its turn, and waits until memory was freed:
 *
 *	line_enter(line, &me);
 *	do {
 *		frees = line_frees(line);
 *		if (line_is_turn(line, &me) && try())
 *			break;
 *		line_wait(line, frees);
 *	} while (time is left);
 *	line_leave(line, &me);
 *
 * line.lock guards it, and no other lock is taken under it.
 */
#ifndef FS_DATA_ENGINE_LINE_H
#define FS_DATA_ENGINE_LINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A thread in the line; it owns this. */
struct line_place {
	struct line_place *prev, *next;
	uint64_t bytes;	  /* the memory it needs; set before line_enter() */
	int64_t since_ms; /* when it entered the line */
};

struct line {
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t freed;
	uint64_t frees;		   /* number of line_freed() calls */
	struct line_place *places; /* in the order of arrival */
	uint64_t wait_ns;
};

struct line_stats {
	uint64_t waiting; /* threads in the line */
	uint64_t wait_ns; /* of all waits together */
};

void line_init(struct line *line);
void line_destroy(struct line *line);

void line_enter(struct line *line, struct line_place *me);
void line_leave(struct line *line, struct line_place *me);
/* Returns whether no earlier thread delays this one, which need not be in the
   line yet. */
bool line_is_turn(struct line *line, const struct line_place *me);
bool line_is_empty(struct line *line);

/* Call after memory was freed: all waiting threads try again. */
void line_freed(struct line *line);
/* Returns the number of line_freed() calls so far, for line_wait(). */
uint64_t line_frees(struct line *line);
/* Returns if line_freed() was called after line_frees() returned `frees`, but
   after 50 ms at the latest, because some slots become free by the passing of
   time alone. */
void line_wait(struct line *line, uint64_t frees);

void line_stats(struct line *line, struct line_stats *out);

#endif
