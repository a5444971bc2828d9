/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one row of a grid output. Each operation runs on the whole result of
 * the previous one. Crops and mirrors only move the view.
 */
#ifndef LOADER_RUN_TRANSFORM_GRID_WORKER_H
#define LOADER_RUN_TRANSFORM_GRID_WORKER_H

#include "loader/run/transform/worker_job.h"

struct grid_worker;

int grid_worker_open(struct grid_worker **out);
/* Takes NULL. */
void grid_worker_close(struct grid_worker *w);

/* Implements worker_run() for a plan with is_grid. */
int grid_worker_run(struct grid_worker *w, const struct worker_job *job);

/* Returns the reason of the last failure. Valid until the next run. */
const char *grid_worker_message(const struct grid_worker *w);

#endif
