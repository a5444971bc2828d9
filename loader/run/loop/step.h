/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One unfinished batch of a training step: the batch file, and the tensors made
 * from it. A step has no threads. The thread that runs a row has exclusive
 * access to that row.
 */
#ifndef LOADER_RUN_LOOP_STEP_H
#define LOADER_RUN_LOOP_STEP_H

#include <stdatomic.h>

#include "beton/loader.h"
#include "loader/pipeline/list/list_rows.h"
#include "loader/run/feed/batch_view.h"
#include "loader/run/feed/feed.h"
#include "loader/run/gpu/device_batch.h"
#include "loader/run/loop/offload.h"
#include "loader/run/transform/phases.h"
#include "loader/util/scratch.h"
#include "loader/util/stages.h"

enum { STEP_MESSAGE_SIZE = 1024 };

/* Most bytes of an output of no fixed size that a maker sends for one sample, on
   average, and of each sample if the lists are padded. Bounds the memory of the
   batch. */
enum { STEP_SENT_MAX = 64 << 20 };

/* The memory behind one tensor. */
struct step_output {
	struct buffer data;
	uint8_t *rows;	/* where workers write rows: `data` or a parcel */
	bool is_column; /* the output is the column of the batch file */
	struct buffer offsets;
	struct buffer parts;	/* values of the first round, to mix */
	struct list_rows lists; /* rows of an output with is_list */
	uint64_t shape[BETON_MAX_NDIM + 1];
};

struct step {
	struct beton_batch batch; /* must be first: the user has its address */
	/* The batch file. If the step copies columns and ids out of it, it needs
	   the file only until all rows are done: shared memory, unless the feed
	   lets the user hold it, and memory of the loader that has little but
	   other values. Otherwise columns need no copy. */
	struct feed_batch input;
	bool keeps_input;	/* tensors are in shared memory */
	struct batch_view view; /* view of `input` */
	bool copies;
	/* `input` is a batch file of rows that a maker made (sent_batch.h). Its
	   fields are the outputs. */
	bool is_sent;
	enum offload_side side;		 /* side that finishes the rows */
	const struct pipeline *pipeline; /* of the epoch and the side */
	struct buffer ids;
	struct step_output *outputs;
	struct device_batch *parcel; /* outputs on a GPU, or NULL */
	struct beton_tensor *tensors;
	struct buffer valid;
	/* If the pipeline mixes samples, workers run all rows twice. The second
	   round mixes the results of the first one. */
	bool has_rounds;
	bool is_second;
	struct buffer unmade; /* [rows][outputs]; 1: the first round failed */
	/* Only a maker has them, as int32_t [outputs][rows]: 0 or the positive
	   errno value of a failed output. */
	struct buffer errors;
	atomic_uint unread; /* rows that were not run */
	atomic_uint failed; /* samples that failed, of those that were run */
	/* Guarded by the caller's lock, down to `message`. The failed row with
	   the lowest number, and the reason. */
	uint32_t failed_row;
	uint32_t lost;	/* failed samples that are losses (losses.h) */
	int read_error; /* errno; 0: it was read */
	char message[STEP_MESSAGE_SIZE];
};

/* The parameters of all steps. */
struct step_plan {
	const struct phases *phases;
	enum beton_on_error on_error;
	enum beton_stage until;
	struct device *device;	    /* NULL: no output is on a GPU */
	const struct phases *whole; /* CPU's side; NULL: only one side */
	bool keeps_errors;	    /* of a maker, for step->errors */
	/* The feed whose shared memory the user may hold. NULL: copy all
	   columns out of it. */
	struct feed *keeper;
};

int step_open(const struct step_plan *plan, struct step **out);
void step_close(struct step *step);

/* Allocates the tensors and fills step->batch. Set step->view and step->is_sent
   before. If `padding` is true, every row is a repeat and not valid. Returns
   -EPROTO if the rows of a maker are not those of the pipeline. */
int step_prepare(struct step *step, const struct step_plan *plan,
		 uint64_t number, bool padding);

/* Returns the field of the batch file that output i is made of. */
uint32_t step_field_of(const struct step *step, uint32_t i,
		       const struct pipeline_output *output);

/* Returns the negative errno value for step->failed_row: -ESTALE if the dataset
   was replaced, otherwise -EIO. */
int step_errno(const struct step *step);

/* Ends a round. Call it after all rows. If it returns true, run all rows again,
   in threads that synchronize with this call. */
bool step_next_round(struct step *step);

/* Counts finished rows. Returns true once, after the last row: then you can
   release the batch file, unless step->keeps_input. */
bool step_rows_done(struct step *step, uint32_t rows);

/* Completes the outputs that are lists. Call it after all rows. Returns
   -ENOMEM. */
int step_join(struct step *step, const struct step_plan *plan);

/* Whether a prepared step has memory for rows that the functions below move:
   not that of outputs of variable size, of columns of the batch file, or on a
   GPU. */
bool step_has_memory(const struct step *step);
/* Exchanges the memory of a step of which no row was run with that of another
   step, whose tensors are free. */
void step_swap_memory(struct step *step, struct step *with);
/* Moves the memory of all rows but the first `rows` from another step, whose
   tensors are free, to the same rows of a step. */
void step_move_body(struct step *to, struct step *from, uint32_t rows);

/* Starts the upload of the outputs on a GPU. Call it after all rows. Returns
   -EIO. */
int step_start(struct step *step);

/* Returns the sum of all bytes of the batch file: the least work of a
   reader. */
uint64_t step_sum(const struct step *step);

#endif
