/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What running one output needs to know: its row's shape and size, and its
 * chain made ready.
 */
#ifndef LOADER_PIPELINE_OUTPUT_PLAN_H
#define LOADER_PIPELINE_OUTPUT_PLAN_H

#include "loader/graph/graph.h"
#include "loader/jit/tail.h"
#include "loader/util/value.h"

/*
 * Once over an image: geometry, then values, each pixel touched once, and then
 * operations on all of the result. What follows those begins with their image,
 * as if a dataset had it raw.
 */
struct pass {
	struct chain chain;
	struct chain head; /* what of it the processor does */
	size_t num_geometry;
	struct tail tail;
	const struct node *images; /* in place, on what the tail made */
	size_t num_images;
	bool is_fixed; /* images of another size than the type's are refused */
};

struct plan {
	struct pipeline_output out;
	const struct chain *chain;
	const struct node *pair; /* rows are mixed there; NULL: they are not */
	uint64_t value_size;	 /* arrays: bytes of a value */
	struct pass *passes;	 /* images, as all below; one at least */
	size_t num_passes;
	size_t first_half;    /* so many of them come before `pair', or all */
	struct chain rest;    /* what a GPU does after the last */
	enum quality quality; /* of the first, as what is kept */
	uint64_t cache_size;  /* bytes; 0: no cache */
	size_t cache_at;      /* that many geometries are before it */
	struct stash *stash;  /* NULL: nothing is kept */
	bool is_lent;	      /* it is another plan's */
};

/*
 * For an output of a field; the chain must outlive the plan. -EINVAL: told.
 * Needs plan_fini() whether it succeeds or not.
 */
int plan_init(struct plan *plan, const struct chain *chain,
	      const struct pipeline_field *f, const struct complaint *c);
/* Which node it is, and the type of the values that it mixes. */
size_t plan_pair_at(const struct plan *plan);
const struct type *plan_pair_type(const struct plan *plan);

/* Of all passes together. */
size_t plan_num_geometry(const struct plan *plan);
/* The most that one of them has. */
size_t plan_max_floats(const struct plan *plan);

/* Of an image's passes the one whose engine is the slowest. */
const struct tail *plan_slowest(const struct plan *plan);

/*
 * Moves what comes after cuda() from head to rest, if that is worth a kernel:
 * arrays are small. -ENOMEM.
 */
int plan_split(struct plan *plan);
/* Whether cuda() leaves open who does what comes after it. */
bool plan_is_auto(const struct plan *plan);

/* Whether both keep the same of every sample. */
bool plan_keeps_alike(const struct plan *a, const struct plan *b);
void plan_fini(struct plan *plan);

#endif
