/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of an engine, and the threads that do it: first tasks, for which
 * readers wait, then the batches that readers are expected to request. Some
 * threads work for each user on each dataset at a time; if others wait, more
 * threads start. Thread-safe.
 */
#ifndef FS_DATA_ENGINE_WORK_H
#define FS_DATA_ENGINE_WORK_H

#include "fs/base/metrics/trace.h"
#include "fs/base/order/spec.h"
#include "fs/data/engine/lane.h"

struct work;

enum task_state { TASK_QUEUED, TASK_RUNNING, TASK_DONE };

/* Something to do, once. It begins with zeros. */
struct task {
	struct lane *lane;	  /* unless it is done */
	struct task *prev, *next; /* in lane.queue while queued */
	enum task_state state;	  /* guarded by work.lock */
};

/* A batch that a reader is expected to request. */
struct coming {
	struct dataset *ds;
	struct spec spec;
	uint64_t epoch;
	uint64_t number;
};

struct work_options {
	struct trace *trace; /* must outlive the work; may be NULL */
	unsigned width;	     /* threads for one user on one dataset */
	unsigned more;	     /* threads for others that wait */
	void (*run)(struct task *task, struct trace_track *track);
	void (*prepare)(void *arg, const struct coming *coming);
	/* Frees what no reader has wanted for a while. Returns whether some is
	   left that a reader may still want. */
	bool (*tidy)(void *arg);
	unsigned patience_s; /* time until then */
	void *arg;
};

/* Starts no threads. */
int work_open(const struct work_options *options, struct work **out);
int work_start(struct work *work);
/* Ends the threads. Takes NULL, and may be called twice. */
void work_stop(struct work *work);
/* Takes NULL. */
void work_close(struct work *work);

/* Queues a task. Returns false if memory is short. */
bool work_submit(struct work *work, struct task *task, struct dataset *ds,
		 uint64_t user);
/* Removes a task from its queue, or waits for its end. Returns false if it is
   running and `waits` is false. */
bool work_withdraw(struct work *work, struct task *task, bool waits);

/* Prepares a batch when no task waits. Ignores it if there are too many, or if
   it is expected already. */
void work_expect(struct work *work, const struct coming *coming);

/* Calls tidy() after a while. */
void work_note_untidy(struct work *work);

#endif
