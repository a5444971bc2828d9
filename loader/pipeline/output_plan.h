/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything needed to run one output: the shape and size of its row, and its
 * chain, prepared.
 */
#ifndef LOADER_PIPELINE_OUTPUT_PLAN_H
#define LOADER_PIPELINE_OUTPUT_PLAN_H

#include "loader/graph/graph.h"
#include "loader/jit/tail.h"
#include "loader/util/value.h"

/*
 * One pass over an image: geometry, then value operations that touch each pixel
 * once, and then operations on the whole result. The next pass begins with that
 * result, as if the dataset had stored it raw.
 */
struct pass {
	struct chain chain;
	struct chain head; /* operations of the CPU */
	size_t num_geometry;
	struct tail tail;
	const struct node *images; /* in place, on the tail's result */
	size_t num_images;
	bool is_fixed; /* refuses images of another size */
};

struct plan {
	struct pipeline_output out;
	const struct chain *chain;
	const struct node *pair; /* mixes two rows; NULL: none */
	uint64_t value_size;	 /* arrays: bytes of a value */
	struct pass *passes;	 /* of images, as all below; at least one */
	size_t num_passes;
	size_t first_half;    /* passes before `pair', or all */
	struct chain rest;    /* operations of a GPU, after the last pass */
	enum quality quality; /* of the first pass, and of kept images */
	uint64_t cache_size;  /* bytes; 0: no cache */
	size_t cache_at;      /* geometries before cache() */
	struct stash *stash;  /* NULL: keeps nothing */
	bool is_lent;	      /* belongs to another plan */
};

/*
 * Plans an output of a field. The chain must outlive the plan. -EINVAL: the
 * message is set. Needs plan_fini() even if it fails.
 */
int plan_init(struct plan *plan, const struct chain *chain,
	      const struct pipeline_field *f, const struct complaint *c);
/* Sets the node that mixes rows, and the type of its values. */
size_t plan_pair_at(const struct plan *plan);
const struct type *plan_pair_type(const struct plan *plan);

/* The number in all passes together. */
size_t plan_num_geometry(const struct plan *plan);
/* The largest number in one pass. */
size_t plan_max_floats(const struct plan *plan);

/* The pass of an image whose engine is the slowest. */
const struct tail *plan_slowest(const struct plan *plan);

/*
 * Moves the operations after cuda() from head to rest, if they are worth a
 * kernel; arrays are too small for one. -ENOMEM.
 */
int plan_split(struct plan *plan);
/* Whether cuda() lets the loader choose where later operations run. */
bool plan_is_auto(const struct plan *plan);

/* Whether both keep the same image of every sample. */
bool plan_keeps_alike(const struct plan *a, const struct plan *b);
void plan_fini(struct plan *plan);

#endif
