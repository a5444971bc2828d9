/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of pages that wait to be written: a ring of memory, filled by any
 * thread and emptied by one. A producer never waits: if there is no room, its
 * pages are not stored and will be read again.
 */
#ifndef FS_SOURCE_TIER_QUEUE_H
#define FS_SOURCE_TIER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/source/tier/store.h"

enum {
	TIER_QUEUE_RUNS = 1024,
};

struct tier_run {
	uint64_t first; /* page of the object */
	size_t at;	/* page of the ring */
	size_t pages;
};

/* The owner's lock guards it, but for the memory of runs: each belongs to its
   producer until it is ready, and then to the consumer. */
struct tier_queue {
	uint8_t *ring;
	size_t pages;	   /* of the ring */
	size_t used, next; /* pages */
	struct tier_run runs[TIER_QUEUE_RUNS];
	bool is_ready[TIER_QUEUE_RUNS];
	unsigned first_run, num_runs;
};

/* -ENOMEM. */
int tier_queue_init(struct tier_queue *queue, size_t pages);
void tier_queue_fini(struct tier_queue *queue);

/* Reserves room. Returns the number of the run, or -1. */
int tier_queue_reserve(struct tier_queue *queue, uint64_t first, size_t pages);
/* Returns the memory of one page of a run. */
uint8_t *tier_queue_page(const struct tier_queue *queue, int run, size_t page);
/* The bytes of the run are there. */
void tier_queue_ready(struct tier_queue *queue, int run);

/* Returns the oldest run, if its bytes are there, and its memory. */
const struct tier_run *tier_queue_first(const struct tier_queue *queue,
					struct tier_piece pieces[2]);
/* The oldest run has been written. */
void tier_queue_pop(struct tier_queue *queue);

#endif
