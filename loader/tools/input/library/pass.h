/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One reading of chosen rows and columns of a source, in blocks of rows that
 * follow each other. While a block is in use, the server reads the next one of
 * each lane.
 */
#ifndef LOADER_TOOLS_INPUT_LIBRARY_PASS_H
#define LOADER_TOOLS_INPUT_LIBRARY_PASS_H

#include "loader/tools/python/block.h"
#include "loader/tools/python/server.h"

struct pass_setup {
	struct server *server;
	const char *path; /* in messages: where the library reads */
	struct log *log;
	const uint32_t *columns; /* fields, by their numbers in the server */
	size_t num_columns;
	const uint64_t *ids; /* `count` rows in ascending order, which the
				caller keeps; NULL: those from `first` on */
	uint64_t first;
	uint64_t count;
	uint64_t rows; /* of a block; the last one may have less */
};

struct pass;

/* Copies the setup and its columns. -ENOMEM. */
int pass_open(const struct pass_setup *setup, struct pass **out);
void pass_close(struct pass *p); /* takes NULL; no block is being read */

uint64_t pass_num_blocks(const struct pass *p);

/* Returns a block, which the caller puts. Any number of threads may ask for any
   block, but only the last ones are remembered. Failures are logged. */
int pass_block(struct pass *p, uint64_t index, struct block **out);

#endif
