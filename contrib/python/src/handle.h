/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loader and the batches that are held of it, counted by those who use them.
 * Tensors die on any thread, in any order and long after the Python object of
 * their loader. So no function here calls Python, except handle_lock().
 *
 * A child of fork() has the memory and none of the threads: what it puts there
 * is left alone.
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
	pthread_mutex_t lock; /* of what belongs to one thread at a time */
	atomic_bool closed;   /* written under the lock */
	/* Guarded by the lock. */
	bool ended;	/* the epoch */
	bool fresh;	/* it stands where the next iteration begins */
	uint64_t epoch; /* of the last batch, where it is not */
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

/* Whether this is the process that opened it. */
bool handle_is_ours(const struct handle *handle);

/* Stops the loader; with the lock held. */
void handle_stop(struct handle *handle);

/* A batch that the user holds, as long as any part of it is referenced. */
struct hold {
	atomic_uint refs;
	struct handle *handle;
	const struct beton_batch *batch;
	bool on_stream; /* some of it is in a GPU's memory */
	void *stream;	/* of the GPU, for which it was acquired first */
};

/* Takes over the batch; NULL: no memory, and the batch is not taken. */
struct hold *hold_new(struct handle *handle, const struct beton_batch *batch,
		      bool on_stream, void *stream);
void hold_get(struct hold *hold);
void hold_put(struct hold *hold);

#endif
