/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on arrays and scalars, one after the other. */
#ifndef LOADER_PIPELINE_ARRAYS_H
#define LOADER_PIPELINE_ARRAYS_H

#include "loader/pipeline/worker_job.h"
#include "loader/util/scratch.h"

/* The memory of one thread. */
struct arrays {
	struct buffer results[2]; /* a step reads one and fills the other */
	char message[320];	  /* why a function failed */
};

void arrays_fini(struct arrays *a);

/* How many operations of a chain change the bytes of an array. */
size_t arrays_steps(const struct chain *chain);

/*
 * Runs the last `left` operations of the chain, at least one, on bytes of its
 * source's type. On failure, a->message contains the reason.
 */
int arrays_run(struct arrays *a, const struct worker_job *job,
	       const struct chain *chain, size_t left, const void *from);

/*
 * The memory for the result of step i from the end; NULL: the message is set.
 */
void *arrays_result(struct arrays *a, size_t i, const struct type *type);

#endif
