/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the lists of an output while workers make a batch. Workers make
 * samples in any order, and the number of rows is unknown before. Therefore
 * each sample gets an offset with room for its maximum number of rows. When all
 * samples are complete, the functions join the rows, cut them, or pad them to
 * the longest list.
 */
#ifndef LOADER_PIPELINE_LIST_LIST_ROWS_H
#define LOADER_PIPELINE_LIST_LIST_ROWS_H

#include <stdint.h>

#include "loader/util/scratch.h"
#include "loader/util/value.h"

/* Zero-initialize. */
struct list_rows {
	struct buffer rows;   /* all places */
	struct buffer starts; /* uint64_t: offset of each sample in `rows` */
	struct buffer counts; /* uint64_t: rows of each sample; 0 at first */
	uint32_t samples;
	uint64_t size; /* bytes of `rows` in use */
};

/* Starts a batch of `samples` samples. Returns -ENOMEM. */
int list_rows_begin(struct list_rows *g, uint32_t samples);
/* Adds a sample whose rows take at most `size` bytes. Returns -ENOMEM. */
int list_rows_add(struct list_rows *g, uint32_t sample, uint64_t size);
/* Allocates the memory. Call it after adding all samples. Returns -ENOMEM. */
int list_rows_reserve(struct list_rows *g);
void list_rows_fini(struct list_rows *g);

/* Return the memory of a sample's rows, and their number. */
uint8_t *list_rows_place(const struct list_rows *g, uint32_t sample);
uint64_t *list_rows_count(const struct list_rows *g, uint32_t sample);

/*
 * Cuts the longest lists to one length, the greatest with which all samples
 * together have at most `most` rows. If the total is below this limit, the
 * first cut lists keep one more row each.
 */
void list_rows_cut(const struct list_rows *g, uint64_t most);

/* Joins all rows at the start of g->rows, and sets offsets[samples + 1] in
   rows. */
void list_rows_join(const struct list_rows *g, uint64_t item_size,
		    int64_t *offsets);

/* Copies all rows to `out` and pads each list to the longest. *length receives
   the length of the longest list. Returns -ENOMEM. */
int list_rows_pad(const struct list_rows *g, const struct pipeline_output *o,
		  struct buffer *out, uint64_t *length);

#endif
