/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One training step's batch in the making: the batch file, and the tensors made
 * from it. It starts no threads: the thread that runs a row has exclusive
 * access to that row.
 */
#ifndef LOADER_RUN_STEP_H
#define LOADER_RUN_STEP_H

#include <stdatomic.h>

#include "beton/loader.h"
#include "loader/feed/batch_view.h"
#include "loader/feed/feed.h"
#include "loader/gpu/device_batch.h"
#include "loader/pipeline/phases.h"
#include "loader/run/list_rows.h"
#include "loader/run/offload.h"
#include "loader/util/scratch.h"
#include "loader/util/stages.h"

enum { STEP_MESSAGE_SIZE = 1024 };

/* The memory behind one tensor. */
struct step_output {
	struct buffer data;
	uint8_t *rows;	/* rows are made here: in `data` or in a parcel */
	bool is_column; /* the column of the batch file is the output */
	struct buffer offsets;
	struct buffer parts;	/* of the first round, to mix */
	struct list_rows lists; /* of an output with is_list */
	uint64_t shape[BETON_MAX_NDIM + 1];
};

struct step {
	struct beton_batch batch; /* first: the user holds it */
	/* The batch file. Shared memory is released before the user gets the
	   batch, so columns and ids are copied out of it. In memory of the
	   loader they stay where they are. */
	struct feed_batch input;
	struct batch_view view;		 /* view of `input` */
	enum offload_side side;		 /* that finishes the rows */
	const struct pipeline *pipeline; /* for the batch's epoch and side */
	struct buffer ids;
	struct step_output *outputs;
	struct device_batch *parcel; /* outputs on a GPU, or NULL */
	struct beton_tensor *tensors;
	struct buffer valid;
	/* Rows are made in two rounds, if some are mixed with others. The
	   second round mixes what the first one made. */
	bool has_rounds;
	bool is_second;
	struct buffer unmade; /* [rows][outputs]; 1: the first round failed */
	atomic_uint unread;   /* rows that were not run */
	atomic_uint failed;   /* samples that failed, of those that were run */
	/* The lowest row that failed, and the reason. Guarded by the lock of
	   the caller. */
	uint32_t failed_row;
	char message[STEP_MESSAGE_SIZE];
};

/* The parameters of all steps. */
struct step_plan {
	const struct phases *phases;
	enum beton_on_error on_error;
	enum beton_stage until;
	struct device *device;	    /* NULL: no output is on a GPU */
	const struct phases *whole; /* phases of the CPU's side; NULL:
				       there is only one side */
};

int step_open(const struct step_plan *plan, struct step **out);
void step_close(struct step *step);

/* Allocates the tensors and fills step->batch, once step->view is set. With
   `padding` every row counts as a repeat and is not valid. */
int step_prepare(struct step *step, const struct step_plan *plan,
		 uint64_t number, bool padding);

/* The reason why an output of a row could not be made. */
struct step_failure {
	uint32_t row;
	char why[256];
};

/* Makes all outputs of one row, or those of the current round. Returns whether
   one of them failed. A failed output is zeroed, counted and described in
   *failure; with BETON_ON_ERROR_SKIP the row is not valid. Adds to *cost. */
bool step_run_row(struct step *step, const struct step_plan *plan,
		  struct pipeline_worker *worker, uint32_t row,
		  struct step_failure *failure, struct stage_cost *cost);

/* Call after all rows were run. If it returns true, they have to be run once
   more, by threads that synchronize with this call. */
bool step_next_round(struct step *step);

/* Counts rows that were run. Returns true once, after the last row: then the
   batch file is not needed any more. */
bool step_rows_done(struct step *step, uint32_t rows);

/* Completes the outputs that are lists, after all rows were run. -ENOMEM */
int step_join(struct step *step, const struct step_plan *plan);

/* Starts the upload of the outputs on a GPU, after all rows were run. -EIO */
int step_start(struct step *step);

/* The sum of all bytes of the batch file: the least work of a reader. */
uint64_t step_sum(const struct step *step);

#endif
