/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a loader tells the daemon of itself: sums since it was opened, none of
 * which ever falls, and where it is. Header only.
 */
#ifndef FS_METRICS_RANK_FIGURES_H
#define FS_METRICS_RANK_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum figure {
	FIGURE_OPEN_NS, /* how long it has been open */
	FIGURE_BATCHES, /* that the trainer was given */
	FIGURE_SAMPLES,
	FIGURE_FAILED_ROWS,
	FIGURE_READ_BYTES,
	FIGURE_WAITS, /* of the trainer, for batches */
	FIGURE_WAIT_NS,
	FIGURE_TRAINER_NS,   /* from one batch to the call for the next */
	FIGURE_QUEUE_READY,  /* batches that were ready, at each call, */
	FIGURE_QUEUE_PLACES, /* and that could have been */
	FIGURE_READ_NS,	     /* the stages at work, over all threads */
	FIGURE_DECODE_NS,
	FIGURE_TRANSFORM_NS,
	FIGURE_UPLOAD_NS,
	FIGURE_READ_DELAY_NS, /* the trainer's wait, by stage */
	FIGURE_DECODE_DELAY_NS,
	FIGURE_TRANSFORM_DELAY_NS,
	FIGURE_UPLOAD_DELAY_NS,
	FIGURES,
};

struct figures {
	uint64_t epoch; /* of the last batch given, as the next */
	uint64_t number;
	uint64_t n[FIGURES];
};

/* Of every member: all fit into JSON's numbers, also added up. */
#define FIGURES_MAX (UINT64_C(1) << 62)

/* What came between; false if any sum has fallen. */
static inline bool figures_since(const struct figures *before,
				 const struct figures *now, struct figures *out)
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
