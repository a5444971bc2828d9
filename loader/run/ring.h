/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader's threads and the batches between them. One thread fetches batch
 * files in order. Workers run the rows of the oldest batch that has rows left.
 * The user's thread takes batches in order and releases them.
 *
 * At most `prefetch` batches are in the making. If the user holds many, the
 * ring allocates more and frees the surplus on release.
 */
#ifndef LOADER_RUN_RING_H
#define LOADER_RUN_RING_H

#include "loader/run/ring_options.h"

struct ring;

int ring_open(const struct ring_options *options, struct ring **out);
/* Ends the workers, and the fetching thread once its feed returns. ring_next()
   fails with -ECANCELED from now on. No thread may be in ring_next() meanwhile.
   Waits for no data, but for the batch callback. */
void ring_halt(struct ring *ring);
/* Ends all threads and frees the batches that the user does not hold. Does not
   use the feed afterwards. */
void ring_stop(struct ring *ring);
/* Also invalidates the batches that the user still holds. Takes NULL. */
void ring_close(struct ring *ring);

/* As beton_loader_next() and _release(). On failure `message` receives the
   reason. */
int ring_next(struct ring *ring, const struct beton_batch **out, char *message,
	      size_t message_size);
void ring_release(struct ring *ring, const struct beton_batch *batch);
/* Counts the time since ring_next() returned as a wait for the upload. For the
   user's thread. */
void ring_waited_for_upload(struct ring *ring);

/* Waits up to `milliseconds` until ring_next() can return without blocking.
   -EAGAIN on timeout. */
int ring_wait(struct ring *ring, uint32_t milliseconds);

/* The part of a batch that is on a GPU, or NULL. -EINVAL: the user does not
   hold the batch. */
int ring_parcel(struct ring *ring, const struct beton_batch *batch,
		struct device_batch **out);

/* Discards the batches in the making. The next batch is the one after `batches`
   of the epoch's global sequence. */
void ring_seek(struct ring *ring, uint64_t epoch, uint64_t batches);

/* The position of the user's thread, which alone may call this. */
const struct cursor *ring_cursor(const struct ring *ring);

/* The epoch of the next batch. For any thread. */
uint64_t ring_epoch(struct ring *ring);

/* The side, CPU or GPU, that finishes the samples of new batches. For
   any thread. */
enum offload_side ring_side(struct ring *ring);

/* As beton_loader_stats(), _throughput() and _failed_samples(). */
size_t ring_stats(const struct ring *ring, struct beton_stage_stats *out,
		  size_t max);
void ring_throughput(const struct ring *ring,
		     struct beton_throughput_stats *out);
uint64_t ring_failed_samples(const struct ring *ring);

#endif
