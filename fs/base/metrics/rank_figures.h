/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics that a loader sends to the daemon: sums since it was opened,
 * which never decrease, and the number of its latest batch. To add a figure,
 * add one row here, and a line in loader/run/ring where it is counted. Header
 * only.
 */
#ifndef FS_BASE_METRICS_RANK_FIGURES_H
#define FS_BASE_METRICS_RANK_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/base/util/bytes.h"

/*
 * A row per figure, in the order of stats.json: its index in the message to the
 * daemon, its number, and the members of a row of struct metric
 * (fs/base/metrics/metric.h). A new figure takes the smallest unused index. If
 * the message changes, increase ZEROCOPY_VERSION.
 */
#define RANK_FIGURES(ROW)                                                      \
	ROW(0, FIGURE_OPEN_NS, "open_s", "rank_open_seconds", "seconds",       \
	    SECONDS, "Time that loaders were open, up to their last report.")  \
	ROW(1, FIGURE_BATCHES, "batches", "rank_batches", NULL, COUNTER,       \
	    "Batches that a rank's trainer received.")                         \
	ROW(2, FIGURE_SAMPLES, "samples", "rank_samples", NULL, COUNTER,       \
	    "Samples in the batches that a rank's trainer received.")          \
	ROW(3, FIGURE_FAILED_SAMPLES, "failed_samples", "rank_failed_samples", \
	    NULL, COUNTER, "Samples that could not be read or decoded.")       \
	ROW(22, FIGURE_ENTRY_HITS, "entry_hits", "rank_entry_hits", NULL,      \
	    COUNTER, "JPEGs decoded with entry points that loaders kept.")     \
	ROW(5, FIGURE_WAITS, "waits", "rank_waits", NULL, COUNTER,             \
	    "Batches that were not ready when the trainer requested them.")    \
	ROW(6, FIGURE_WAIT_NS, "wait_s", "rank_wait_seconds", "seconds",       \
	    SECONDS, "Time that the trainer waited for batches.")              \
	ROW(7, FIGURE_TRAINER_NS, "trainer_s", "rank_trainer_seconds",         \
	    "seconds", SECONDS,                                                \
	    "Time between a batch and the trainer's next request.")            \
	ROW(8, FIGURE_QUEUE_READY, "queue_ready", "rank_queue_ready", NULL,    \
	    COUNTER, "Sum over all requests: batches ready in the queue.")     \
	ROW(9, FIGURE_QUEUE_CAPACITY, "queue_capacity", "rank_queue_capacity", \
	    NULL, COUNTER, "Sum over all requests: capacity of the queue.")    \
	ROW(4, FIGURE_READ_BYTES, "read_bytes", "rank_read_bytes", "bytes",    \
	    COUNTER, "Bytes of batch files that loaders read.")                \
	ROW(10, FIGURE_READ_NS, "stages.read.busy_s", "rank_read_seconds",     \
	    "seconds", SECONDS, "Time that loaders read batch files.")         \
	ROW(14, FIGURE_READ_DELAY_NS, "stages.read.delay_s",                   \
	    "rank_read_delay_seconds", "seconds", SECONDS,                     \
	    "Time that the trainer waited for reading.")                       \
	ROW(11, FIGURE_DECODE_NS, "stages.decode.busy_s",                      \
	    "rank_decode_seconds", "seconds", SECONDS,                         \
	    "Thread time spent decoding.")                                     \
	ROW(15, FIGURE_DECODE_DELAY_NS, "stages.decode.delay_s",               \
	    "rank_decode_delay_seconds", "seconds", SECONDS,                   \
	    "Time that the trainer waited for decoding.")                      \
	ROW(12, FIGURE_TRANSFORM_NS, "stages.transform.busy_s",                \
	    "rank_transform_seconds", "seconds", SECONDS,                      \
	    "Thread time spent transforming.")                                 \
	ROW(16, FIGURE_TRANSFORM_DELAY_NS, "stages.transform.delay_s",         \
	    "rank_transform_delay_seconds", "seconds", SECONDS,                \
	    "Time that the trainer waited for transforming.")                  \
	ROW(13, FIGURE_UPLOAD_NS, "stages.upload.busy_s",                      \
	    "rank_upload_seconds", "seconds", SECONDS,                         \
	    "Thread time spent copying to the GPU.")                           \
	ROW(17, FIGURE_UPLOAD_DELAY_NS, "stages.upload.delay_s",               \
	    "rank_upload_delay_seconds", "seconds", SECONDS,                   \
	    "Time that the trainer waited for copies to the GPU.")             \
	ROW(18, FIGURE_MAKERS_NS, "stages.makers.busy_s",                      \
	    "rank_makers_seconds", "seconds", SECONDS,                         \
	    "Time from a request to a maker to the beginning of its answer.")  \
	ROW(20, FIGURE_MAKERS_DELAY_NS, "stages.makers.delay_s",               \
	    "rank_makers_delay_seconds", "seconds", SECONDS,                   \
	    "Time that the trainer waited for makers to make batches.")        \
	ROW(19, FIGURE_NETWORK_NS, "stages.network.busy_s",                    \
	    "rank_network_seconds", "seconds", SECONDS,                        \
	    "Time in which batches of makers arrived.")                        \
	ROW(21, FIGURE_NETWORK_DELAY_NS, "stages.network.delay_s",             \
	    "rank_network_delay_seconds", "seconds", SECONDS,                  \
	    "Time that the trainer waited for batches of makers to arrive.")

enum figure {
#define ROW(index, figure, ...) figure = index,
	RANK_FIGURES(ROW)
#undef ROW
#define ROW(...) +1
		FIGURES = RANK_FIGURES(ROW)
#undef ROW
};

#define ROW(index, ...) | UINT64_C(1) << (index)
_Static_assert((0 RANK_FIGURES(ROW)) == (UINT64_C(1) << FIGURES) - 1,
	       "every index below FIGURES has a row");
#undef ROW

struct rank_figures {
	uint64_t epoch;	 /* of the last batch that the trainer got */
	uint64_t number; /* of that batch in its epoch */
	uint64_t n[FIGURES];
};

/* The maximum of every member, so that sums fit into JSON's numbers. */
#define RANK_FIGURES_MAX (UINT64_C(1) << 62)

/* Adds the sums; a sum that would exceed the maximum stays there. */
static inline void rank_figures_add(struct rank_figures *to,
				    const struct rank_figures *more)
{
	for (size_t i = 0; i < FIGURES; i++)
		to->n[i] = min_u64(RANK_FIGURES_MAX, to->n[i] + more->n[i]);
}

/* Computes the difference of two reports. Returns false if a sum has
   decreased. */
static inline bool rank_figures_since(const struct rank_figures *before,
				      const struct rank_figures *now,
				      struct rank_figures *out)
{
	*out = *now;
	for (size_t i = 0; i < FIGURES; i++) {
		if (now->n[i] < before->n[i])
			return false;
		out->n[i] = now->n[i] - before->n[i];
	}
	return true;
}

#endif
