/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the operations of a chain on arrays and scalars. */
#ifndef LOADER_RUN_TRANSFORM_ARRAYS_H
#define LOADER_RUN_TRANSFORM_ARRAYS_H

#include "loader/run/transform/worker_job.h"
#include "loader/util/scratch.h"

/* The memory of one thread. */
struct arrays {
	struct buffer results[2]; /* operations read one and write the other */
	char message[320];	  /* reason of the last failure */
};

void arrays_fini(struct arrays *a);

/* Returns the number of operations in a chain that change the bytes of an
   array. */
size_t arrays_steps(const struct chain *chain);

/*
 * Runs the last `left` operations of the chain, at least one, on bytes of the
 * source's type. On failure, a->message contains the reason.
 */
int arrays_run(struct arrays *a, const struct worker_job *job,
	       const struct chain *chain, size_t left, const void *from);

/*
 * Returns the memory for the result of operation i, counted from the end. On
 * failure, sets the message and returns NULL.
 */
void *arrays_result(struct arrays *a, size_t i, const struct type *type);

#endif
