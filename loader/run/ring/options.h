/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a ring. ring.h passes them to ring_open(), and turns.h
 * keeps them in the ring; neither includes the other.
 */
#ifndef LOADER_RUN_RING_OPTIONS_H
#define LOADER_RUN_RING_OPTIONS_H

#include "loader/run/feed/feed.h"
#include "loader/run/loop/callback.h"
#include "loader/run/loop/cursor.h"
#include "loader/run/loop/replay.h"
#include "loader/run/loop/step.h"

/* Number of rows that a worker takes at a time: a few milliseconds of work, so
   that all workers share the last rows of a batch. */
enum { RING_ROWS = 8 };

struct ring_options {
	struct feed *feed; /* not owned, like log and trace */
	struct log *log;
	struct trace *trace; /* NULL: no trace */
	struct step_plan plan;
	struct cursor start;
	uint64_t epochs_end; /* end of the epochs to prepare */
	uint32_t prefetch;
	/* How many of these batches may be complete, for residence.h. */
	uint32_t complete;
	/* How many rows of the others workers may make; 0: there are none, and
	   all memory of a batch is for all its rows. */
	uint32_t head_rows;
	bool on_demand;	 /* no batch has a place in the order of delivery */
	bool has_makers; /* may have links (makers.h) */
	/* The own workers rest while there is a maker. */
	bool spares_workers;
	uint32_t workers;
	/* Entry points of JPEGs; not owned; NULL: none are kept. */
	const struct entry_store *entries;
	enum offload_mode balance; /* required by plan.whole */
	struct replay *replay;	   /* not owned; NULL: no batch is replayed */
	struct callback *callback; /* not owned; NULL: no callback */
};

#endif
