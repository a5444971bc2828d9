/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples whose bytes cannot be read, because a server fails or the dataset was
 * replaced. Damaged samples, and those of a bad sector, are not lost ones: they
 * fail alone, while a loss usually is the first of many. Therefore a ring logs
 * one line and a number for many losses, and does not skip samples for the
 * length of an outage. No threads: the caller has the lock of the ring.
 */
#ifndef LOADER_RUN_RING_LOSSES_H
#define LOADER_RUN_RING_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

/* Lost samples in a row after which a ring fails instead of skipping more. */
enum { LOSSES_MAX = 128 };

struct losses {
	bool is_remote;	   /* the loader reads a URL, so that EIO is a loss */
	uint64_t unlogged; /* since the line of the first one */
	bool is_logged;	   /* the first one */
	uint64_t samples;  /* in batches without any other sample, in a row */
	uint64_t batches;
};

/* Returns whether the error of a value (batch_view_value.error) is a loss. */
bool losses_have(const struct losses *losses, int error);

/* A worker has lost a sample. Returns whether to log its reason. */
bool losses_add(struct losses *losses);

/*
 * The user takes a batch of `samples` with `lost` ones. Returns whether too
 * many were lost in a row: LOSSES_MAX, or all samples of so many batches as an
 * epoch has. If it is the first batch after losses, *unlogged receives the
 * number of those that were not logged, otherwise 0.
 */
bool losses_take(struct losses *losses, uint32_t samples, uint32_t lost,
		 uint64_t batches_of_epoch, uint64_t *unlogged);

/* The losses end here, for the log. Returns the number of those that were not
   logged. */
uint64_t losses_end(struct losses *losses);

#endif
