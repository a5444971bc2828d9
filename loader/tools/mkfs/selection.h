/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of the source that a dataset gets, and their order: --subset,
 * then --where, then --shuffle, --sort or --cluster, then --limit, then
 * --shard. A selection without conditions takes no memory per sample.
 */
#ifndef LOADER_TOOLS_MKFS_SELECTION_H
#define LOADER_TOOLS_MKFS_SELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/base/util/log.h"
#include "fs/base/util/rng.h"
#include "loader/tools/input/input.h"

/* Samples of one group that --cluster keeps together. */
enum { SELECTION_RUN = 32 };

/* Part `index` of `count`, from 0. */
struct selection_shard {
	uint64_t index;
	uint64_t count; /* 0: all samples */
};

struct selection_options {
	const char *subset;  /* "A-B" or a file of numbers; NULL: all */
	const char *where;   /* NULL: all */
	const char *sort;    /* a field of the source; NULL: as they come */
	const char *cluster; /* the same */
	bool shuffle;
	uint64_t seed;
	uint64_t limit;
	struct selection_shard shard;
};

struct selection {
	uint64_t count; /* samples of this shard */
	uint64_t first; /* position of its first sample among all shards */
	uint64_t total; /* samples of all shards */

	/* Sample i is numbers[i], or base + i if that is NULL; with `shuffle`,
	   i is permuted first. */
	uint64_t base;
	uint64_t *numbers;
	bool shuffle;
	struct permutation order;
};

/* An option_parse_fn for "I/N". */
int selection_parse_shard(const char *text, void *shard);

/* Failures are logged. */
int selection_open(struct input *in, const struct selection_options *options,
		   struct log *log, struct selection *out);
void selection_fini(struct selection *s);

/* Returns the number in the source of sample i of the shard. */
uint64_t selection_at(const struct selection *s, uint64_t i);

#endif
