/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns of a ring: the batches between fetching and release, their states,
 * and the lock that guards them. No other directory may include this header
 * (FACE in tests/lint/layers.py). loader/run/link gets its structs by makers.h.
 *
 * A turn is a step and its place in the order of delivery. It is the ring's
 * unit of work: an element of a bounded queue whose memory is used again. The
 * fetching thread begins turns in the order of delivery, until `prefetch` of
 * them are in flight. Workers run their rows, a few at a time, of the oldest
 * turn first. The user's thread takes each turn when its sequence is the next
 * one, and holds it until it releases the batch. Then the turn is free, and its
 * memory is that of a later batch:
 *
 *   FREE -> FETCHING -> RUNNING -> FINISHING -> DONE -> HELD -> FREE
 *      `--> QUEUED -> FETCHING       only with makers: the own workers make it,
 *             | `---> REMOTE -> RUNNING           or a maker does
 *             `<---------'           its link failed, or it refused
 *
 * A queue of whole batches would need none of the flags below. Each answers a
 * case in which such a queue was too large, too slow, or did not end its wait:
 *
 * - A batch of 256 float32 images of 224 pixels has 154 MB, and the user holds
 *   one more. `beton bench` had 520 MB, because there was memory for a whole
 *   second batch. Now it has 216 MB, with the same CPU time per image (384 us
 *   before, 390 us now). Workers begin that batch in little memory, its *head*,
 *   and its *body* moves from the batch that the user releases: `memory`,
 *   `is_split`, `is_growing`.
 * - If users do not release in time, workers are *blocked*. One such wait is no
 *   reason for more memory, because a user may keep the first batch. After two
 *   windows of 32 batches that lost 2 % of their time, it is: `blocked_ns`,
 *   `was_slow`, `complete_max`.
 * - Between two epochs the memory is of no use, so an *idle* ring frees it:
 *   `idle`. By this and the head, Python with NumPy came from 719 to 400 MB.
 * - A seek must not wait for workers, and a maker may never answer. So turns
 *   are not removed but become *stale*: delivered_sequence has passed their
 *   sequence. Rows that no worker has begun are dropped, and the last thread
 *   that works on the turn recycles it.
 * - A maker that stalls must not stop a trainer. Another side makes its batch
 *   as well (a hedged request), so that several turns have one sequence:
 *   `is_stalled`, `is_repeated`. All have the same bits, and the first one that
 *   is done counts.
 * - Makers make batches for others, in no order: `is_named`.
 * - A replay delivers batches again, without work, to measure the trainer
 *   alone: `replays`, `is_cached`.
 *
 * turns_check.c has the exact form of these comments: the invariants that hold
 * whenever no thread has the lock.
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
#include "fs/base/util/cleanup.h"
#include "loader/run/loop/offload.h"
#include "loader/run/loop/throughput.h"
#include "loader/run/ring/losses.h"
#include "loader/run/ring/options.h"

/* Indices of ring->lanes. Worker i has lane LANE_WORKERS + i. Links share a
   lane, which they change under the lock. */
enum { LANE_TRAINER, LANE_FETCHER, LANE_LINKS, LANE_WORKERS };

/* States of a turn, in their order. Change them under the lock. A turn is in
   flight from TURN_QUEUED to TURN_DONE. */
enum turn_state {
	TURN_FREE,   /* in ring->free_turns or cached_turns, and in no batch */
	TURN_QUEUED, /* only with makers: waits for a side that makes it */
	TURN_REMOTE, /* a maker makes it; it is in turn->link */
	TURN_FETCHING,	/* only one: the fetching thread has it */
	TURN_RUNNING,	/* has rows that are not done */
	TURN_FINISHING, /* all rows are done: a worker runs the batch callback,
			   or starts the upload */
	TURN_DONE,	/* waits for the user */
	TURN_HELD,	/* the user has it, until ring_release() */
};

/* How much of the memory of its tensors a turn may use (residence.h), if it is
   split. A free turn has that of its last batch. If no turn is split, because
   batches are small, for example, all turns have MEMORY_FULL. The value is the
   number of parts. */
enum turn_memory {
	MEMORY_NONE, /* before the first row: addresses, but no pages */
	MEMORY_HEAD, /* for the first ring_options.head_rows rows */
	MEMORY_FULL, /* for all rows: head and body */
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
	uint32_t in_flight; /* turns with is_named that are in flight */
};

/* A step and its state in the ring. The lock guards every member, but not the
   content of `step`: that is of the thread that fetches, receives or finishes
   the turn, of each worker for its rows, and of the user. */
struct turn {
	struct step *step;
	struct turn *prev, *next;
	enum turn_state state;
	uint64_t sequence; /* its number in the order of delivery */
	struct name name;
	bool is_padding;   /* at the end of an epoch: repeats a batch of another
			      rank */
	bool is_named;	   /* the user has asked for it by name, and it has the
			      number TURN_NAMED */
	uint32_t next_row; /* the first row that no worker has begun */
	uint32_t rows_left; /* rows that are not done */
	int error;	    /* of the whole batch, or 0 */
	struct throughput_times times;

	/* For a replay. */
	const struct step *replays; /* the cached step whose tensors this one
				       shares, or NULL */
	bool is_cached; /* the replay has its step, until ring_close(): later
			   turns may share its tensors */

	/* For residence.h. */
	enum turn_memory memory;
	bool is_split;	 /* its memory comes in two parts, head and body; valid
			    from TURN_RUNNING */
	bool is_growing; /* a worker moves the body to it, without the lock */
	uint64_t blocked_since_ns; /* since when workers waited for its body; 0:
				      they did not */
	uint64_t blocked_ns;	   /* how long they did */

	/* For makers.h. */
	struct link *link; /* of TURN_REMOTE */
	uint64_t asked_ns; /* when its maker was asked */
	bool is_stalled;   /* another side should make it as well */
	bool is_repeated;  /* there was another turn of this sequence */
	bool is_refused;   /* a maker could not make it: only for own workers */
};

/* Which turns get memory, and when more of it pays (residence.h). */
struct residence {
	uint32_t complete_max; /* how many turns, of those that are delivered
				  next, may have more than a head: as in the
				  options, or after slow windows, `prefetch` */
	uint32_t parts;	       /* heads and bodies that turns have */
	bool is_blocked; /* workers wait for a body: wake them if the turns
			    that may get one change */
	/* A user who has just taken a batch is expected to release the previous
	   one until release_due_ns. */
	uint64_t release_due_ns;
	bool has_released; /* and has done so */
	bool had_released; /* and did so after the batch before */
	/* The current window of delivered batches. */
	uint64_t window_begun_ns;
	uint32_t window_batches;
	uint64_t window_blocked_ns; /* the user's waits for blocked workers */
	bool was_slow;		    /* those were long in the last window */
	/* Low-water mark of free turns with full memory, over some grants of a
	   body: so many turns were of no use. */
	uint32_t grants; /* of these */
	uint32_t free_low;
};

/* Whether the ring is idle (residence.h): no call asks for batches, and memory
   of free turns was freed. */
struct idle {
	bool is_idle;
	unsigned calls;	       /* calls that ask for batches now */
	uint64_t called_ns;    /* the end of the last such call */
	uint64_t delivered_ns; /* when the user got the last batch, or 0 */
	uint64_t period_ns;    /* from one batch to the next; the longest of the
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
	bool is_fetching;	/* the fetching thread reads a batch file */
	pthread_cond_t queued;	/* wakes links */
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
	/* Each turn is in one of these lists, but for that from which a worker
	   moves a body. */
	struct turn *turns; /* all turns but free ones, as they were begun */
	struct turn *free_turns;
	struct turn *cached_turns; /* cached turns that the user has released */
	uint32_t num_free;
	struct buffer *inputs; /* memory for batch files, at most `prefetch` */
	uint32_t num_inputs;
	uint32_t in_flight; /* turns without is_named that are in flight */
	uint32_t running;   /* workers that run rows now */
	struct named named;
	struct makers makers;
	struct residence residence;
	struct idle idle;
	uint64_t epochs_end;
	struct cursor begun;	 /* the position of the next turn to begin */
	uint64_t begun_sequence; /* and its sequence */
	struct cursor delivered; /* the position of the next batch to deliver;
				    only the user's thread writes it */
	uint64_t delivered_sequence; /* and its sequence: turns of a smaller one
					that the user does not hold are stale */
	bool epoch_over;	     /* ring_next() has reported the end */
	struct offload balance;
	struct losses losses;
	uint64_t unlogged; /* losses to log; only for the user's thread */
	uint64_t
		last_delivered_ns; /* 0: no batch of this epoch delivered yet */
	struct throughput throughput; /* only the user's thread writes it */
	uint64_t opened_ns;
	struct rank_figures reported; /* time of the last report; only for the
					 fetching thread */
	int worker_error; /* negative errno value that ended a thread, or 0 */

	pthread_t fetcher;
	bool has_fetcher;
	struct worker *workers;
	uint32_t num_workers; /* number of running threads */
	struct stage_lane *lanes;
	atomic_uint_fast64_t failed_samples;
};

/* The unit tests of loaders have a ring that is compiled with TURNS_CHECKED, and so
   have builds with sanitizers. Before each release of the lock it prints the first
   invariant that does not hold, with all turns, and aborts. Other builds check
   nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#	define TURNS_CHECKED 1
#endif
#ifdef TURNS_CHECKED
void turns_check(const struct ring *ring);
#else
static inline void turns_check(const struct ring *ring)
{
	(void)ring;
}
#endif

/* Take and release ring->lock, and wait for a condition without it: until a time of
   clock_in_ms() at the latest, unless that is NULL. turns_wait() returns 0, or
   ETIMEDOUT after that time. */
static inline void turns_lock(struct ring *ring)
{
	pthread_mutex_lock(&ring->lock);
}
static inline void turns_unlock(struct ring *ring)
{
	turns_check(ring);
	pthread_mutex_unlock(&ring->lock);
}
static inline int turns_wait(struct ring *ring, pthread_cond_t *cond,
			     const struct timespec *until)
{
	turns_check(ring);
	return until ? pthread_cond_timedwait(cond, &ring->lock, until)
		     : pthread_cond_wait(cond, &ring->lock);
}

void turns_end_scope(struct ring **ring);
/* Holds the lock until the end of the enclosing block. */
#define turns_scope(ring)                                                      \
	__attribute__((cleanup(turns_end_scope), unused)) struct ring *        \
	SCOPE_NAME(__LINE__) = (turns_lock(ring), (ring))

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

/* Takes a free turn, or allocates one. If memory is granted when rows are run,
   it has none. The caller fills it and appends it to ring->turns. Returns the
   errors of step_open(). */
int turn_take_free(struct ring *ring, struct turn **out);
/* Gives a turn memory for its batch file, if the ring has some. */
void turn_take_input(struct ring *ring, struct turn *t);
/* Returns the memory for the batch file of a turn whose rows are done to the
   ring, if the step does not need it. */
void turn_give_input(struct ring *ring, struct turn *t);
/* Frees the memory for batch files that no turn has. */
void turns_free_inputs(struct ring *ring);
/* Wakes the sides that could take a queued turn. */
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
void turns_wake_blocked(struct ring *ring);
/* Recycles stale turns on which no thread works, and takes the rows of others
   that no worker has begun. */
void turns_drop_stale(struct ring *ring);
/* Frees a turn. No list may contain it. */
void turn_close(struct ring *ring, struct turn *t);

/* Stops the ring after an error of a thread. ring_next() returns the error
   after all ready turns. */
void turns_give_up(struct ring *ring, int error);

#endif
