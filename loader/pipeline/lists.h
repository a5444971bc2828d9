/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs chains whose values are lists: rows, as many as a sample has. Each
 * operation reads the result of the one before it from memory that belongs to
 * one thread.
 */
#ifndef LOADER_PIPELINE_LISTS_H
#define LOADER_PIPELINE_LISTS_H

#include "loader/graph/graph.h"
#include "loader/util/scratch.h"

enum { LISTS_MESSAGE_SIZE = 320 };

/* Zero-initialize. */
struct lists {
	struct buffer results[2]; /* an operation reads one, fills the other */
	struct scratch moves;	  /* of the image that the chain follows */
	struct buffer kept;	  /* of each row of the list that follows it */
	uint64_t num_kept;
	struct lists *of; /* for the list that the chain follows */
	struct buffer of_rows;
	char message[LISTS_MESSAGE_SIZE]; /* why the last run failed */
};

void lists_fini(struct lists *l);

/* Whether a chain's values are lists, at least before its operations. */
bool lists_are_of(const struct chain *chain);

/*
 * The most rows of the chain's result for a value of `size` bytes; UINT64_MAX:
 * more than that.
 */
uint64_t lists_most(const struct chain *chain, uint64_t size);

/*
 * Runs a chain of at least one operation on a value. `out` has room for
 * lists_most() rows, or for the array that the result is. Sets *rows for a
 * list. -EINVAL, -ENOMEM, with l->message.
 */
int lists_run(struct lists *l, const struct chain *chain,
	      const struct pipeline_value *value,
	      const struct pipeline_row *row, void *out, uint64_t *rows);

#endif
