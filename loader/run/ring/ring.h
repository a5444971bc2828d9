/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader's threads and the batches between them. One thread fetches batch
 * files in order. Workers run the rows of the oldest batch that has rows left.
 * The user's thread takes batches in order and releases them.
 *
 * The ring prefetches at most `prefetch` batches. If the user holds many, the
 * ring allocates more and frees the surplus on release.
 */
#ifndef LOADER_RUN_RING_RING_H
#define LOADER_RUN_RING_RING_H

#include "loader/run/loop/telemetry.h"
#include "loader/run/ring/options.h"

struct ring;

int ring_open(const struct ring_options *options, struct ring **out);
/* Ends the workers, and the fetching thread as soon as its feed returns.
   ring_next() fails with -ECANCELED from now on; no thread may be in
   ring_next() during the call. Waits for the batch callback, but not for
   data. */
void ring_halt(struct ring *ring);
/* Ends all threads and frees the batches that the user does not hold.
   Afterwards the ring does not use the feed. */
void ring_stop(struct ring *ring);
/* Frees the ring, and invalidates the batches that the user still holds. Takes
   NULL. */
void ring_close(struct ring *ring);

/* Implement beton_loader_next() and _release(). On failure, `message` receives
   the reason. */
int ring_next(struct ring *ring, const struct beton_batch **out, char *message,
	      size_t message_size);
void ring_release(struct ring *ring, const struct beton_batch *batch);
/* Implement beton_loader_ask() and beton_loader_make(), for a number within the
   epoch. */
int ring_ask(struct ring *ring, uint64_t epoch, uint64_t number,
	     uint32_t milliseconds);
int ring_make(struct ring *ring, uint64_t epoch, uint64_t number,
	      const struct beton_batch **out, char *message,
	      size_t message_size);
/* Counts the time since ring_next() returned as a wait for the upload. Only for
   the user's thread. */
void ring_waited_for_upload(struct ring *ring);

/* Waits up to `milliseconds` until ring_next() can return without blocking.
   Returns -EAGAIN on timeout. */
int ring_wait(struct ring *ring, uint32_t milliseconds);

/* Sets *out to the GPU part of a batch, or NULL. Returns -EINVAL if the user
   does not hold the batch. */
int ring_parcel(struct ring *ring, const struct beton_batch *batch,
		struct device_batch **out);

/* Discards all prefetched batches, and moves to the position after `batches`
   batches of the epoch's global sequence. */
void ring_seek(struct ring *ring, uint64_t epoch, uint64_t batches);

/* Returns the position of the user's thread. Only for this thread. */
const struct cursor *ring_cursor(const struct ring *ring);

/* Returns the epoch of the next batch. For any thread. */
uint64_t ring_epoch(struct ring *ring);

/* Returns the side, CPU or GPU, that finishes the samples of new batches. For
   any thread. */
enum offload_side ring_side(struct ring *ring);

/* Implement beton_loader_stats(), _throughput() and _failed_samples(). */
size_t ring_stats(const struct ring *ring, struct beton_stage_stats *out,
		  size_t max);
void ring_throughput(const struct ring *ring,
		     struct beton_throughput_stats *out);
uint64_t ring_failed_samples(const struct ring *ring);
/* Returns the figures for a watching process. */
void ring_totals(const struct ring *ring, struct telemetry_totals *out);
/* Implements beton_loader_makers(). For any thread. */
void ring_makers(struct ring *ring, struct beton_makers_stats *out);

#endif
