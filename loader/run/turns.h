/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns of a ring: the batches between fetching and release, their states,
 * and the lock that guards them. Only the files that make up the ring include
 * this header: fetcher, workers, report and ring.
 *
 * The fetching thread begins turns in the order of delivery, and workers run
 * their rows. The user's thread takes each turn when it is done. Its release
 * makes the turn free.
 *
 * Unless a function documents otherwise, the caller holds ring->lock.
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
#include "loader/run/ring_options.h"
#include "loader/run/throughput.h"

enum { TURNS_WHY_SIZE = 600 };

/* Indices of ring->lanes. Worker i has lane LANE_WORKERS + i. */
enum { LANE_TRAINER, LANE_FETCHER, LANE_WORKERS };

/* A turn passes through these states in this order, under the lock. */
enum turn_state {
	TURN_FREE,
	TURN_FETCHING,
	TURN_RUNNING,
	TURN_STARTING,
	TURN_DONE,
	TURN_HELD,
};

/* A step and its place in the ring. The lock guards every member, but not the
   step that `step` points to. */
struct turn {
	struct step *step;
	struct turn *prev, *next;
	const struct step
		*of;  /* cached step whose tensors it shares, or NULL */
	bool is_kept; /* later turns may share its tensors until ring_close() */
	enum turn_state state;
	uint64_t sequence; /* number in the order of delivery */
	uint32_t next_row;
	uint32_t rows_left; /* rows that no worker has finished */
	struct throughput_times times;
	int error;
};

struct worker;

struct ring {
	struct ring_options options;
	pthread_mutex_t lock; /* guards all members down to worker_error */
	pthread_cond_t room;  /* wakes the fetching thread */
	pthread_cond_t work;  /* wakes the workers */
	pthread_cond_t ready; /* wakes the user's thread */
	bool stopping;
	struct turn *turns; /* all but free ones, in order of sequence */
	struct turn *free_turns;
	struct turn *kept_turns; /* kept turns that the user has released */
	uint32_t num_free;
	uint32_t in_flight; /* turns from TURN_FETCHING to TURN_DONE */
	uint64_t epochs_end;
	struct cursor produced;
	uint64_t produced_sequence;
	struct cursor given;	 /* only the user's thread writes it */
	uint64_t given_sequence; /* turns with a smaller sequence are stale */
	bool epoch_over;	 /* ring_next() has reported the end */
	struct offload balance;
	uint64_t last_given_ns;	      /* 0: no batch of this epoch was given */
	struct throughput throughput; /* only the user's thread writes it */
	uint64_t opened_ns;
	struct rank_figures
		reported; /* last report; only the fetching thread uses it */
	int worker_error; /* negative errno value that ended a thread, or 0 */

	pthread_t fetcher;
	bool has_fetcher;
	struct worker *workers;
	uint32_t num_workers; /* threads that were started */
	struct lane *lanes;
	atomic_uint_fast64_t failed_samples;
};

/* Shows the calling thread's work under this name in NVIDIA's profilers, until
   the matching pop. Without the lock. */
void turns_push_range(struct ring *ring, const char *name);
void turns_pop_range(struct ring *ring);

/* Waits for `cond` and adds the nanoseconds to a counter that only the calling
   thread writes. */
void turns_wait_counted(struct ring *ring, pthread_cond_t *cond,
			atomic_uint_fast64_t *counter);

/* Whether a seek has made the turn useless. False for a turn that the user
   holds. */
bool turn_is_stale(const struct ring *ring, const struct turn *t);

/* Takes a free turn, or allocates one. The caller fills it and appends it to
   ring->turns. Fails as step_open() does. */
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

/* Writes the text of an error to `out`. If the GPU failed, the text is that of
   its driver. The caller may hold the lock or not. */
void turns_explain_error(const struct ring *ring, int error, bool by_device,
			 char *out, size_t size);
/* Stops the ring from beginning turns. ring_next() returns the error once no
   turn is ready. */
void turns_give_up(struct ring *ring, int error);

/* Write the message that ring_next() returns for a failed batch. Only for the
   thread that works on the turn, without the lock. */
void turn_note_reason(const struct ring *ring, struct turn *t, uint64_t epoch,
		      uint64_t number, const char *why);
void turn_note_failure(const struct ring *ring, struct turn *t, uint64_t epoch,
		       uint64_t number, int error, bool by_device);

#endif
