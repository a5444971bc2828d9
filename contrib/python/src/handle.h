/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference counts of a loader and of its held batches. Any thread can free
 * tensors in any order, long after the Python object of their loader. Therefore
 * no function here calls Python, except handle_lock().
 *
 * A child of fork() has the memory, but not the threads. Therefore functions do
 * nothing there.
 */
#ifndef PYTHON_HANDLE_H
#define PYTHON_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "beton/batch.h"
#include "beton/loader.h"

enum { MESSAGES_MAX = 64 };

struct message {
	enum beton_log_level level;
	char *text;
};

struct handle {
	atomic_uint refs;
	struct beton_loader *loader;
	pid_t pid;
	pthread_mutex_t lock; /* for state that one thread at a time may use */
	atomic_bool closed;   /* written under the lock */
	/* Guarded by the lock. */
	bool ended;	/* the epoch */
	bool fresh;	/* the position is that of the next iteration */
	uint64_t epoch; /* if not: epoch of the last batch */
	uint64_t turn;	/* number of the iteration; older ones fail */

	pthread_mutex_t log_lock; /* guards the messages */
	struct message messages[MESSAGES_MAX];
	atomic_uint num_messages;
};

struct handle *handle_new(void);
void handle_get(struct handle *handle);
void handle_put(struct handle *handle);

/* A beton_log_fn; arg is the handle. Drops messages beyond MESSAGES_MAX. */
void handle_log(void *arg, enum beton_log_level level, const char *message);

/* Whether this process opened the loader. */
bool handle_is_ours(const struct handle *handle);

/* Stops the loader. Called with the lock. */
void handle_stop(struct handle *handle);

/* A batch that the user holds, as long as any part of it is referenced. */
struct hold {
	atomic_uint refs;
	struct handle *handle;
	const struct beton_batch *batch;
	bool on_stream; /* has outputs in GPU memory */
	void *stream;	/* CUDA stream of the first acquisition */
};

/* Takes ownership of the batch. If memory is short, returns NULL, and the
   caller still owns the batch. */
struct hold *hold_new(struct handle *handle, const struct beton_batch *batch,
		      bool on_stream, void *stream);
void hold_get(struct hold *hold);
void hold_put(struct hold *hold);

#endif
