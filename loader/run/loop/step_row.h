/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of one row of a step, and what becomes of a row that fails. Each
 * row is run by one thread.
 */
#ifndef LOADER_RUN_LOOP_STEP_ROW_H
#define LOADER_RUN_LOOP_STEP_ROW_H

#include "loader/run/loop/step.h"

/* The reason why an output of a row could not be made. */
struct step_failure {
	uint32_t row;
	int error; /* errno of the read; 0: it was read */
	char why[256];
};

/* Makes all outputs of one row for the current round, and adds the time to
   *cost. Returns whether an output failed. Zeros and counts a failed output,
   and describes it in *failure. If on_error is BETON_ON_ERROR_SKIP, marks the
   row as not valid. */
bool step_run_row(struct step *step, const struct step_plan *plan,
		  struct pipeline_worker *worker, uint32_t row,
		  struct step_failure *failure, struct stage_cost *cost);

#endif
