/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs chains on lists, whose number of rows differs between samples. Each
 * operation reads the result of the previous one from memory of one thread.
 */
#ifndef LOADER_RUN_TRANSFORM_LISTS_H
#define LOADER_RUN_TRANSFORM_LISTS_H

#include "loader/pipeline/graph/graph.h"
#include "loader/util/scratch.h"

enum { LISTS_MESSAGE_SIZE = 320 };

/* Zero-initialize. */
struct lists {
	struct buffer results[2]; /* operations read one and write the other */
	struct scratch moves; /* moves of the image that the chain follows */
	struct buffer kept;   /* for each row of that list: 1 if it remains */
	uint64_t num_kept;
	struct lists *of; /* memory for the list that the chain follows */
	struct buffer of_rows;
	char message[LISTS_MESSAGE_SIZE]; /* reason of the last failure */
};

void lists_fini(struct lists *l);

/* Whether the source of a chain is a list. */
bool lists_are_of(const struct chain *chain);

/*
 * Returns the maximum number of rows of the chain's result for a value of
 * `size` bytes, or UINT64_MAX on overflow.
 */
uint64_t lists_most(const struct chain *chain, uint64_t size);

/*
 * Runs a chain of at least one operation on a value. `out` has room for
 * lists_most() rows, or for the resulting array. If the result is a list, sets
 * *rows. Returns -EINVAL or -ENOMEM, and sets l->message.
 */
int lists_run(struct lists *l, const struct chain *chain,
	      const struct pipeline_value *value,
	      const struct pipeline_row *row, void *out, uint64_t *rows);

#endif
