/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One training step's batch on its way: the batch file as it came, and the
 * tensors made of it. Knows no threads: whoever runs a row has it to itself.
 */
#ifndef LOADER_RUN_STEP_H
#define LOADER_RUN_STEP_H

#include <stdatomic.h>

#include "beton/loader.h"
#include "loader/feed/batch_view.h"
#include "loader/feed/feed.h"
#include "loader/gpu/device_batch.h"
#include "loader/pipeline/phases.h"
#include "loader/run/offload.h"
#include "loader/util/scratch.h"
#include "loader/util/stages.h"

enum { STEP_MESSAGE_SIZE = 1024 };

/* The memory behind one tensor. */
struct step_output {
	struct buffer data;
	uint8_t *rows;	/* where rows are made: there, or in a parcel */
	bool is_column; /* the data stands in the batch file as it is wanted */
	struct buffer offsets;
	struct buffer parts; /* rows that are to be mixed with one another */
	uint64_t shape[BETON_MAX_NDIM + 1];
};

struct step {
	struct beton_batch batch; /* first: what the user holds */
	/*
	 * The batch file. What is lent goes back before the user sees the
	 * batch, so columns and ids are copied then; in memory of our own they
	 * stay where they are.
	 */
	struct feed_batch input;
	struct view view;	/* of it */
	enum balance_side side; /* that finishes it, by who begins it */
	const struct pipeline *pipeline; /* of its epoch and side */
	struct buffer ids;
	struct step_output *outputs;
	struct parcel *parcel; /* what a GPU gets; NULL: nothing */
	struct beton_tensor *tensors;
	struct buffer valid;
	/* Rows are made in two rounds: in the second those before them are
	   there to be mixed with. */
	bool has_rounds;
	bool is_second;
	struct buffer unmade; /* [rows][outputs], 1: not even in the first */
	atomic_uint unread;   /* rows that were not run yet */
	atomic_uint failed;   /* rows, as far as they were run */
	/* The first row that failed, and why; of equal rows the first field.
	   Guarded by the lock that the caller passes to step_failed(). */
	uint32_t failed_row;
	char message[STEP_MESSAGE_SIZE];
};

/* What rows are run with. */
struct step_plan {
	const struct phases *phases;
	enum beton_on_error on_error;
	enum beton_stage until;
	struct device *device;	    /* NULL: no output is a GPU's */
	const struct phases *whole; /* of the processor's side; NULL: there
				       is no choice */
};

int step_open(const struct step_plan *plan, struct step **out);
void step_close(struct step *step);

/*
 * After step->view is there: makes room for the tensors and sets up
 * step->batch. `padding`: every row counts as repeated, not valid.
 */
int step_prepare(struct step *step, const struct step_plan *plan,
		 uint64_t number, bool padding);

/* Why an output of a row could not be made. */
struct step_failure {
	uint32_t row;
	char why[256];
};

/*
 * Makes all outputs of one row, or what can be made in this round. A failing
 * one is zeroed (and, by on_error, the row's valid cleared), counted and
 * described in *failure; true if there is one. *cost is increased.
 */
bool step_run_row(struct step *step, const struct step_plan *plan,
		  struct pipeline_worker *worker, uint32_t row,
		  struct step_failure *failure, struct stage_cost *cost);

/* After all rows: whether they are to be run once more. Who runs rows now has
   to know of it. */
bool step_next_round(struct step *step);

/* Counts rows that were run; true, once, for who ran the last: the batch file
   is not looked at any more. */
bool step_rows_done(struct step *step, uint32_t rows);

/* After all rows: what is a GPU's goes there. -EIO */
int step_start(struct step *step);

/* Every byte of the batch file, added up once: what a reader at least does. */
uint64_t step_sum(const struct step *step);

#endif
