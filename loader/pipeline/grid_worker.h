/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one row of an output that is a grid. Operations run one after the
 * other, each on the whole result of the one before it; crops and mirrors only
 * move the view of it.
 */
#ifndef LOADER_PIPELINE_GRID_WORKER_H
#define LOADER_PIPELINE_GRID_WORKER_H

#include "loader/pipeline/worker_job.h"

struct grid_worker;

int grid_worker_open(struct grid_worker **out);
/* Takes NULL. */
void grid_worker_close(struct grid_worker *w);

/* As worker_run(), for a plan with is_grid. */
int grid_worker_run(struct grid_worker *w, const struct worker_job *job);

/* The reason why the last run failed; valid until the next. */
const char *grid_worker_message(const struct grid_worker *w);

#endif
