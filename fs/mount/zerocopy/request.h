/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loader's request for a batch, from its GET to its answer. The engine's
 * threads work on it and pass it back in shared->done; all other calls are for
 * the thread of zero-copy delivery. If its loader disconnects while a thread of
 * the engine works on it, the request moves to shared->given_up, because that
 * thread may wait for a disk, and other loaders would wait too.
 */
#ifndef FS_MOUNT_ZEROCOPY_REQUEST_H
#define FS_MOUNT_ZEROCOPY_REQUEST_H

#include "fs/data/engine/engine.h"
#include "fs/mount/zerocopy/shared.h"

struct zerocopy_request {
	struct zerocopy_request *prev, *next; /* in `in` */
	struct requests *in;	       /* of its connection, or given up */
	struct connection *connection; /* NULL: its loader has disconnected */
	struct zerocopy_shared *shared;
	uint64_t number;
	struct stream *stream; /* owned */
	uint64_t at;	       /* number of the batch in the stream */
	struct batch *batch;   /* NULL until it is laid out */
	struct ticket *ticket; /* of the layout, then of the batch */
	struct job *job;
	uint64_t bytes; /* counted in shared->bytes */
	int64_t asked_ns;
	bool is_stalled; /* the batch was not ready at the GET */
	/* These are guarded by zerocopy.lock until the thread has removed the
	   request from shared->done. */
	struct zerocopy_request *prev_done, *next_done; /* in zerocopy.done */
	bool is_done;
	int result;
	struct slot *slot; /* NULL and no error: the layout is complete */
};

/* Creates a request, which owns the stream. If memory is short, closes the
   stream and returns NULL. */
struct zerocopy_request *request_new(struct zerocopy_shared *shared,
				     struct stream *stream, uint64_t at);
void requests_add(struct requests *list, struct zerocopy_request *request);

/* Returns whether the layout of the batch was cached; then the request has
   it. */
bool request_is_laid_out(struct zerocopy_request *request);
/* Starts to lay out or to collate the batch, on threads of the engine. */
int request_lay_out(struct zerocopy_request *request);
int request_collate(struct zerocopy_request *request, uint64_t bytes);

/* Cancels a request, and waits for the thread that works on it. */
void request_free(struct zerocopy_request *request);
/* Cancels a request without a wait. */
void request_give_up(struct zerocopy_request *request);

/* Returns the next request that threads of the engine have finished, or
   NULL. */
struct zerocopy_request *requests_next_done(struct zerocopy_shared *shared);
/* Waits for canceled requests that still run, after all connections closed. */
void requests_wait(struct zerocopy_shared *shared);

#endif
