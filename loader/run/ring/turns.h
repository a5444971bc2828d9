/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns of a ring: the batches between fetching and release, their states,
 * and the lock that guards them. Private to the ring: no other directory may
 * include this header (FACE in tests/lint/layers.py). makers.h passes its structs
 * to loader/run/link, too.
 * The fetching thread begins turns in the order of delivery, and workers run
 * their rows. The user's thread takes each turn when it is done. On release the
 * turn becomes free.
 *
 * Unless a function documents otherwise, the caller holds ring->lock.
 */
#ifndef LOADER_RUN_RING_TURNS_H
#define LOADER_RUN_RING_TURNS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/base/metrics/rank_figures.h"
#include "loader/run/loop/offload.h"
#include "loader/run/loop/throughput.h"
#include "loader/run/ring/losses.h"
#include "loader/run/ring/options.h"

enum { TURNS_WHY_SIZE = 600 };

/* Indices of ring->lanes. Worker i has lane LANE_WORKERS + i. Links share a lane,
   which they change under the lock. */
enum { LANE_TRAINER, LANE_FETCHER, LANE_LINKS, LANE_WORKERS };

/* States of a turn, in their order. Change them under the lock. */
enum turn_state {
	TURN_FREE,
	TURN_OPEN,   /* waits for a side that makes it, if there are makers */
	TURN_REMOTE, /* a maker makes it */
	TURN_FETCHING,
	TURN_RUNNING,
	TURN_STARTING,
	TURN_DONE,
	TURN_HELD,
};

/* The memory that a turn may use (residence.h). A free turn has it from the last
   batch, and a bare one has none yet. */
enum turn_memory {
	TURN_BARE,
	TURN_HEAD,
	TURN_WHOLE,
};

/* The name of a batch. */
struct name {
	uint64_t epoch;
	uint64_t number;
};

/* The most names that wait; the oldest ones are dropped. */
enum { NAMED_MAX = 64 };

/* Names that the user has asked for, in their order (named.h). */
struct named {
	struct name names[NAMED_MAX + 1];
	unsigned num;
	uint32_t in_flight; /* their turns from TURN_FETCHING to TURN_DONE */
};

/* A step and its state in the ring. The lock guards every member, but not the
   content of `step`. */
struct turn {
	struct step *step;
	struct turn *prev, *next;
	const struct step
		*of;	/* the cached step with the shared tensors, or NULL */
	bool is_cached; /* cached: later turns may share its tensors until
			 ring_close() */
	enum turn_state state;
	uint64_t sequence; /* its number in the order of delivery */
	enum turn_memory memory;
	bool is_lean;	/* its step has no such memory */
	bool gets_body; /* a worker moves memory to it */
	uint64_t short_ns; /* when workers began to wait for its body, or 0 */
	uint64_t held_up_ns; /* how long they waited */
	bool is_named;	   /* the user has asked for it by name, and it has the
			      number TURN_NAMED */
	struct name name;
	bool is_padding; /* at the end of an epoch: repeats a batch of another
			    rank */
	uint32_t next_row;
	uint32_t rows_left; /* unfinished rows */
	struct throughput_times times;
	int error;
	/* For makers.h, like the members below. */
	struct link *link; /* of TURN_REMOTE */
	uint64_t asked_ns; /* when its maker was asked */
	bool is_stalled;   /* another side should make it as well */
	bool is_repeated;  /* there was another turn of this sequence */
	bool is_refused;   /* a maker could not make it */
};

/* The state of residence.h. */
struct residence {
	uint64_t wait_until_ns; /* the user may release a batch until then */
	bool has_released;	/* and has done so */
	bool releases;		/* and did so with the batch before */
	bool is_short;		/* workers wait for a body */
	uint32_t complete;	/* as in the options, or more */
	uint64_t begun_ns;	/* the last batches: their begin, their number, */
	uint32_t given;
	uint64_t lost_ns; /* and what the user waited because workers had */
	bool loses;	  /* that was much in the batches before these */
	uint32_t gifts;		/* modulo a constant */
	uint32_t surplus;	/* free turns that no gift has needed */
};

/* The state of the rest (residence.h). */
struct rest {
	bool is_resting;
	unsigned users;	    /* calls that ask for batches now */
	uint64_t asked_ns;  /* the end of the last such call */
	uint64_t given_ns;  /* when the user got the last batch, or 0 */
	uint64_t period_ns; /* from one batch to the next; the longest of the
			       last times */
};

/* Batches that a maker is asked for at a time: the one that it makes, and the
   following one. */
enum { MAKERS_WINDOW = 2 };

/* A maker of the ring, and the turns that it was asked for, in their order. */
struct link {
	struct link *prev, *next;
	int fd;
	struct turn *turns[MAKERS_WINDOW];
	unsigned num_turns;
	bool is_ready; /* counted in makers.num_ready */
	bool is_late;  /* its maker should have answered long ago */
	/* Only for the link's thread: refusals in a row, and when it began to
	   wait for the answer, and the answer began. */
	unsigned refusals;
	uint64_t waits_ns;
	uint64_t answered_ns;
};

/* Last times that are remembered. The longest is about the 98th percentile. */
enum { MAKERS_TIMES = 64 };

struct makers {
	struct link *links;
	unsigned num_links;
	unsigned num_ready;	/* links whose sides have greeted each other */
	bool is_fetching;	/* the fetching thread has a turn */
	pthread_cond_t open;	/* wakes links */
	pthread_cond_t removed; /* wakes makers_stop() */
	uint64_t times_ns[MAKERS_TIMES]; /* from asking to receiving */
	uint64_t num_times;		 /* ever */
	struct beton_makers_stats stats;
};

/* The sequence of turns that have no place in the order of delivery. */
#define TURN_NAMED UINT64_MAX

struct worker;

struct ring {
	struct ring_options options;
	pthread_mutex_t lock; /* guards all members down to worker_error */
	pthread_cond_t room;  /* wakes the fetching thread */
	pthread_cond_t work;  /* wakes the workers */
	pthread_cond_t ready; /* wakes the user's thread */
	bool stopping;
	struct turn *turns; /* all turns but free ones, as they were begun */
	struct turn *free_turns;
	struct turn *cached_turns; /* cached turns that the user has released */
	uint32_t num_free;
	struct buffer *inputs; /* memory for batch files, at most `prefetch` */
	uint32_t num_inputs;
	uint32_t in_flight; /* turns from TURN_FETCHING to TURN_DONE, in the
			       order of delivery */
	struct named named;
	struct makers makers;
	struct residence residence;
	struct rest rest;
	uint64_t epochs_end;
	struct cursor produced;
	uint64_t produced_sequence;
	struct cursor given;	 /* only the user's thread writes it */
	uint64_t given_sequence; /* turns of a smaller sequence are stale */
	bool epoch_over;	 /* ring_next() has reported the end */
	struct offload balance;
	struct losses losses;
	uint64_t unlogged; /* losses to log; only for the user's thread */
	uint64_t last_given_ns; /* 0: no batch of this epoch delivered yet */
	struct throughput throughput; /* only the user's thread writes it */
	uint64_t opened_ns;
	struct rank_figures reported; /* time of the last report; only for the
					 fetching thread */
	int worker_error; /* negative errno value that ended a thread, or 0 */

	pthread_t fetcher;
	bool has_fetcher;
	struct worker *workers;
	uint32_t num_workers; /* number of running threads */
	struct lane *lanes;
	atomic_uint_fast64_t failed_samples;
};

/* Names the calling thread's work in NVIDIA's profilers, until the matching
   pop. Called without the lock. */
void turns_push_range(struct ring *ring, const char *name);
void turns_pop_range(struct ring *ring);

/* Waits for `cond`, until a time of stage_now_ns() at the latest unless that is
   0, and adds the nanoseconds to a counter that only the calling thread
   writes. */
void turns_wait_counted(struct ring *ring, pthread_cond_t *cond,
			uint64_t until_ns, atomic_uint_fast64_t *counter);

/* Whether a seek has made the turn obsolete. Returns false for a turn that the
   user holds. */
bool turn_is_stale(const struct ring *ring, const struct turn *t);

/* Returns the free turn that was used last, of those with this memory, or
   NULL. */
struct turn *turns_find_free(const struct ring *ring, enum turn_memory memory);
/* Remove a turn from the free ones, and add it. */
void turns_remove_free(struct ring *ring, struct turn *t);
void turns_add_free(struct ring *ring, struct turn *t);
/* Removes a free turn and frees it. */
void turns_drop_free(struct ring *ring, struct turn *t);

/* Takes a free turn, or allocates one. If memory is given when rows are run, it
   has none. The caller fills it and appends it to ring->turns. Returns the
   errors of step_open(). */
int turn_take_free(struct ring *ring, struct turn **out);
/* Gives a turn memory for its batch file, if the ring has some. */
void turn_take_input(struct ring *ring, struct turn *t);
/* Returns the memory for the batch file of a turn whose rows are done to the ring,
   if the step does not need it. */
void turn_give_input(struct ring *ring, struct turn *t);
/* Frees the memory for batch files that no turn has. */
void turns_free_inputs(struct ring *ring);
/* Wakes the sides that could take a turn, if there are makers. */
void turns_offer(struct ring *ring);
/* Begins a free turn, at the end of ring->turns. */
void turn_begin(struct ring *ring, struct turn *t);
/* Marks all rows as not run yet and wakes the workers. */
void turn_begin_rows(struct ring *ring, struct turn *t);
/* Marks the turn as done, with an error or 0, and wakes the user. Recycles a
   stale turn. */
void turn_finish(struct ring *ring, struct turn *t, int error);
/* Counts the turn as no longer in flight. */
void turn_land(struct ring *ring, const struct turn *t);
/* Removes the turn from ring->turns, releases its batch file, and makes the
   turn free. */
void turn_recycle(struct ring *ring, struct turn *t);
/* Wakes the workers, if the turns that they may run can have changed with the
   batches that the user holds. */
void turns_note_user(struct ring *ring);
/* Recycles stale turns on which no thread works, and takes the rows of others
   that no worker has begun. */
void turns_drop_stale(struct ring *ring);
/* Frees a turn. No list may contain it. */
void turn_close(struct ring *ring, struct turn *t);

/* Writes the message of an error to `out`. If the GPU failed, writes its
   driver's message. The caller may hold the lock or not. */
void turns_explain_error(const struct ring *ring, int error, bool by_device,
			 char *out, size_t size);
/* Stops the ring after an error of a thread. ring_next() returns the error
   after all ready turns. */
void turns_give_up(struct ring *ring, int error);

/* Write the message of ring_next() for a failed batch. Only for the thread that
   works on the turn, without the lock. */
void turn_note_reason(const struct ring *ring, struct turn *t, uint64_t epoch,
		      uint64_t number, const char *why);
void turn_note_failure(const struct ring *ring, struct turn *t, uint64_t epoch,
		       uint64_t number, int error, bool by_device);

#endif
