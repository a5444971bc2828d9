/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns of a ring, their states and the lock that guards them. For the
 * files that make up the ring: fetcher, workers, told and ring itself.
 *
 * Unless a function says otherwise, the caller holds ring->lock.
 */
#ifndef LOADER_RUN_TURNS_H
#define LOADER_RUN_TURNS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/metrics/rank_figures.h"
#include "loader/run/offload.h"
#include "loader/run/pace.h"
#include "loader/run/ring_options.h"

enum { TURNS_WHY_SIZE = 600 };

/* Whose lane it is; each worker has one from LANE_WORKERS on. */
enum { LANE_TRAINER, LANE_FETCHER, LANE_WORKERS };

/* A step is in one state, changed under the lock, in this order. */
enum turn_state {
	TURN_FREE,
	TURN_FETCHING,
	TURN_RUNNING,
	TURN_STARTING,
	TURN_DONE,
	TURN_HELD,
};

/* A step and its place in the ring. All but `step` is guarded by the lock. */
struct turn {
	struct step *step;
	struct turn *prev, *next;
	const struct step *of; /* whom the step borrows from; NULL: nobody */
	bool is_kept;	       /* others may borrow, for as long as the ring */
	enum turn_state state;
	uint64_t sequence; /* of the batches, in the order of delivery */
	uint32_t next_row;
	uint32_t rows_left; /* not finished yet */
	struct pace_times times;
	int error;
};

struct worker;

struct ring {
	struct ring_options options;
	pthread_mutex_t lock; /* guards all down to worker_error */
	pthread_cond_t room;  /* for the fetching thread */
	pthread_cond_t work;  /* for the workers */
	pthread_cond_t ready; /* for the user */
	bool stopping;
	struct turn *turns; /* all but TURN_FREE, in order of sequence */
	struct turn *free_turns;
	struct turn *kept_turns; /* that were given back */
	uint32_t num_free;
	uint32_t in_flight; /* TURN_FETCHING to TURN_DONE */
	uint64_t epochs_end;
	struct cursor produced;
	uint64_t produced_sequence;
	struct cursor given;	 /* written by the user's thread alone */
	uint64_t given_sequence; /* what has a smaller one is stale */
	bool epoch_over;	 /* the user was told so */
	struct balance balance;
	uint64_t last_given_ns; /* 0: not in this epoch */
	struct pace pace;	/* written by the user's thread alone */
	uint64_t opened_ns;
	struct figures told; /* the fetching thread's */
	int worker_error;    /* why a thread cannot go on */

	pthread_t fetcher;
	bool has_fetcher;
	struct worker *workers;
	uint32_t num_workers; /* that were started */
	struct lane *lanes;
	atomic_uint_fast64_t failed_rows;
};

/* Names the calling thread's work for NVIDIA's profilers, until the matching
   pop. Without the lock. */
void turns_push_range(struct ring *ring, const char *name);
void turns_pop_range(struct ring *ring);

/* Waits for `cond` and adds the nanoseconds to a counter that only the calling
   thread writes. */
void turns_wait_counted(struct ring *ring, pthread_cond_t *cond,
			atomic_uint_fast64_t *counter);

/* Whether a seek has made the turn useless. False for a turn that the user
   holds. */
bool turn_is_stale(const struct ring *ring, const struct turn *t);

/* A free turn for the caller to fill and to append to ring->turns. Opens a new
   one if none is left. -ENOMEM */
int turn_take_free(struct ring *ring, struct turn **out);
/* Marks all rows as not run yet and wakes the workers. */
void turn_begin_rows(struct ring *ring, struct turn *t);
/* Marks the turn as done, with an error or 0, and wakes the user. Recycles a
   stale turn. */
void turn_finish(struct ring *ring, struct turn *t, int error);
/* Takes the turn off ring->turns, returns its batch file to the feed, and makes
   the turn free. */
void turn_recycle(struct ring *ring, struct turn *t);
/* Frees a turn that is in no list. */
void turn_close(struct ring *ring, struct turn *t);

/* Describes an error; a failure of the GPU in the words of its driver. With or
   without the lock. */
void turns_explain_error(const struct ring *ring, int error, bool by_device,
			 char *out, size_t size);
/* Ends the ring: ring_next() returns the error once no batch is ready. */
void turns_give_up(struct ring *ring, int error);

/* Write the message of a batch that failed. For the thread that works on the
   turn; without the lock. */
void turn_note_reason(const struct ring *ring, struct turn *t, uint64_t epoch,
		      uint64_t number, const char *why);
void turn_note_failure(const struct ring *ring, struct turn *t, uint64_t epoch,
		       uint64_t number, int error, bool by_device);

#endif
