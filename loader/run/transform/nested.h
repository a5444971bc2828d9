/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs operations on an image in place: those without a separate pass, and
 * those in parentheses.
 */
#ifndef LOADER_RUN_TRANSFORM_NESTED_H
#define LOADER_RUN_TRANSFORM_NESTED_H

#include "loader/image/pixels/byte_map.h"
#include "loader/run/transform/worker_job.h"
#include "loader/util/image.h"
#include "loader/util/scratch.h"

/* The memory of one thread. */
struct nested {
	float *operands;       /* of a pointwise stage */
	struct byte_map map;   /* of its bytes */
	struct buffer scratch; /* of an operation */
	struct buffer beside;  /* result of an operation not in place */
	char message[320];     /* reason of the last failure */
};

/* Opens the memory for pointwise stages of at most `max_floats` floats. Returns
   -ENOMEM. */
int nested_init(struct nested *m, size_t max_floats);
void nested_fini(struct nested *m);

/* Runs an operation on an image in place. On failure, m->message contains the
   reason. */
int nested_run(struct nested *m, const struct worker_job *job,
	       const struct node *n, const struct image *image);

/* Reserves an operation's scratch memory. On failure, sets the message and
   returns -ENOMEM. */
int nested_reserve(struct nested *m, const struct node *n, struct size size);

/* nested_fits() returns whether an image has the size of a type. If the image
   must have that size, or if memory is short, the other functions set a message
   and return an error. */
bool nested_fits(struct size size, const struct type *type);
int nested_refuse(struct nested *m, const struct worker_job *job,
		  struct size size, const struct type *want);
int nested_no_memory(struct nested *m, struct size size);

#endif
