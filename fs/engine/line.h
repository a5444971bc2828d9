/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait in line for memory: who came first is served first. But a
 * thread holds up those that need at most half as much for half a second only:
 * what it needs may be held for as long as other processes like. A thread tries
 * when it is its turn, and waits until something was freed:
 *
 *	line_enter(line, &me);
 *	do {
 *		frees = line_frees(line);
 *		if (line_is_turn(line, &me) && try())
 *			break;
 *		line_wait(line, frees);
 *	} while (it is not too late);
 *	line_leave(line, &me);
 *
 * line.lock guards it, and no other lock is taken under it.
 */
#ifndef FS_ENGINE_LINE_H
#define FS_ENGINE_LINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A thread in the line; it owns this. */
struct line_place {
	struct line_place *prev, *next;
	uint64_t bytes;	  /* what it needs; set before line_enter() */
	int64_t since_ms; /* when it entered the line */
};

struct line {
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t freed;
	uint64_t frees;		   /* times that something became free */
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
/* Whether no thread before this one holds it up, which need not be in the line
   yet. */
bool line_is_turn(struct line *line, const struct line_place *me);
bool line_is_empty(struct line *line);

/* Something became free: all who wait try again. */
void line_tell(struct line *line);
/* How often something has become free, for line_wait(). */
uint64_t line_frees(struct line *line);
/* Waits for line_tell() since line_frees() returned this, at most 50 ms: some
   memory becomes free by the passing of time, which nothing tells. */
void line_wait(struct line *line, uint64_t frees);

void line_stats(struct line *line, struct line_stats *out);

#endif
