/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader's threads and the steps between them. One thread fetches batch
 * files in order; workers take rows of the oldest step that has any left; the
 * user takes steps in order and gives them back.
 *
 * At most `prefetch` steps are in the making. A user that keeps many makes the
 * ring allocate more, and the surplus is freed on release.
 */
#ifndef LOADER_RUN_RING_H
#define LOADER_RUN_RING_H

#include "loader/run/ring_options.h"

struct ring;

int ring_open(const struct ring_options *options, struct ring **out);
/* Ends all threads, and frees what the user does not hold. No feed is needed
   any more. Nobody is in ring_next(). */
void ring_stop(struct ring *ring);
/* Batches that were not released become invalid. Takes NULL. */
void ring_close(struct ring *ring);

/* As beton_loader_next() and _release(); `message` receives why not. */
int ring_next(struct ring *ring, const struct beton_batch **out, char *message,
	      size_t message_size);
void ring_release(struct ring *ring, const struct beton_batch *batch);
/* Since ring_next() the user's thread has waited for outputs to be there. */
void ring_waited_for_upload(struct ring *ring);

/* Waits at most so long until ring_next() would not. -EAGAIN: it still would.
 */
int ring_wait(struct ring *ring, uint32_t milliseconds);

/* What a GPU has of a batch; NULL: nothing. -EINVAL: the user does not hold it.
 */
int ring_parcel(struct ring *ring, const struct beton_batch *batch,
		struct parcel **out);

/* Forgets what is in the making, and goes on elsewhere. */
void ring_seek(struct ring *ring, uint64_t epoch, uint64_t batches);

/* Where the user is; for the thread that calls ring_next(). */
const struct cursor *ring_cursor(const struct ring *ring);

/* Which epoch the next batch is of; for any thread. */
uint64_t ring_epoch(struct ring *ring);

/* Who finishes the rows of batches that are begun now, where there is a choice;
   for any thread. */
enum balance_side ring_side(struct ring *ring);

/* As beton_loader_stats(), _pace() and _failed_rows(). */
size_t ring_stats(const struct ring *ring, struct beton_stage_stats *out,
		  size_t max);
void ring_pace(const struct ring *ring, struct beton_pace_stats *out);
uint64_t ring_failed_rows(const struct ring *ring);

#endif
