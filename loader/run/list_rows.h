/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of an output while its batch is made: samples are made in any
 * order, and how many rows one has is known only then. Each has a place with
 * room for the most rows that it can have; once all are made, the rows are
 * joined, maybe cut, or padded to the longest.
 */
#ifndef LOADER_RUN_LIST_ROWS_H
#define LOADER_RUN_LIST_ROWS_H

#include <stdint.h>

#include "loader/util/scratch.h"
#include "loader/util/value.h"

/* Zero-initialize. */
struct list_rows {
	struct buffer rows;   /* all places */
	struct buffer starts; /* uint64_t: the place of each sample in `rows` */
	struct buffer counts; /* uint64_t: rows of each sample; 0 at first */
	uint32_t samples;
	uint64_t size; /* of all places so far */
};

/* Forgets the last batch. -ENOMEM */
int list_rows_begin(struct list_rows *g, uint32_t samples);
/* Adds a sample whose rows take at most `size` bytes. -ENOMEM */
int list_rows_add(struct list_rows *g, uint32_t sample, uint64_t size);
/* After all samples were added. -ENOMEM */
int list_rows_reserve(struct list_rows *g);
void list_rows_fini(struct list_rows *g);

/* The place of a sample, and how many rows are there. */
uint8_t *list_rows_place(const struct list_rows *g, uint32_t sample);
uint64_t *list_rows_count(const struct list_rows *g, uint32_t sample);

/*
 * Cuts the longest samples to one length, the greatest with which all samples
 * together have at most `most` rows. If rows are then left of this limit, the
 * first of the cut samples keep one more row each.
 */
void list_rows_cut(const struct list_rows *g, uint64_t most);

/* Joins all rows at the start of g->rows, and sets offsets[samples + 1], of
   rows. */
void list_rows_join(const struct list_rows *g, uint64_t item_size,
		    int64_t *offsets);

/* Copies all rows to `out`, each sample's filled up to the length of the
   longest, which *length receives. -ENOMEM */
int list_rows_pad(const struct list_rows *g, const struct pipeline_output *o,
		  struct buffer *out, uint64_t *length);

#endif
