/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one row of one output from one value, according to an output_plan. A
 * worker owns the memory for it, and belongs to one thread.
 */
#ifndef LOADER_RUN_TRANSFORM_WORKER_H
#define LOADER_RUN_TRANSFORM_WORKER_H

#include "loader/run/transform/worker_job.h"

struct pipeline_worker;

/*
 * Opens a worker for plans with at most `max_geometry` geometries, and
 * `max_floats` floats for their pointwise stages.
 */
int worker_open(size_t max_geometry, size_t max_floats,
		struct pipeline_worker **out);
/* Takes NULL. */
void worker_close(struct pipeline_worker *w);

/* Implement pipeline_run() and pipeline_pair(). */
int worker_run(struct pipeline_worker *w, const struct worker_job *job);
int worker_pair(struct pipeline_worker *w, const struct output_plan *plan,
		const struct pipeline_pair *pair, void *out);

/* Implements pipeline_finish(), for a plan with plan->finish. */
int worker_finish(struct pipeline_worker *w, const struct output_plan *plan,
		  const void *sent, const struct pipeline_row *row, void *out);

/*
 * Returns the reason of the last failure. Valid until the next call.
 */
const char *worker_message(const struct pipeline_worker *w);

#endif
