/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on an image in memory, which change it in place: those that are no
 * pass of their own, and those in parentheses.
 */
#ifndef LOADER_PIPELINE_NESTED_H
#define LOADER_PIPELINE_NESTED_H

#include "loader/pipeline/worker_job.h"
#include "loader/pixels/byte_map.h"
#include "loader/util/image.h"
#include "loader/util/scratch.h"

/* The memory of one thread. */
struct nested {
	float *operands;       /* of a pointwise stage */
	struct byte_map map;   /* of its bytes */
	struct buffer scratch; /* of an operation */
	struct buffer beside;  /* the result of one that cannot work in place */
	char message[320];     /* why a function failed */
};

/* For pointwise stages of at most that many floats. -ENOMEM. */
int nested_init(struct nested *m, size_t max_floats);
void nested_fini(struct nested *m);

/* Runs an operation on an image in place. On failure, m->message contains the
   reason. */
int nested_run(struct nested *m, const struct worker_job *job,
	       const struct node *n, const struct image *image);

/* Reserves the memory that an operation asks for. -ENOMEM: the message is set.
 */
int nested_reserve(struct nested *m, const struct node *n, struct size size);

/* Whether an image has the size of a type. The other two return the error, and
   set a message, if the image must have that size, or if memory is short. */
bool nested_fits(struct size size, const struct type *type);
int nested_refuse(struct nested *m, const struct worker_job *job,
		  struct size size, const struct type *want);
int nested_no_memory(struct nested *m, struct size size);

#endif
