/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of one output: the shape and size of its row, and the passes of its
 * chain.
 */
#ifndef LOADER_RUN_TRANSFORM_OUTPUT_PLAN_H
#define LOADER_RUN_TRANSFORM_OUTPUT_PLAN_H

#include "loader/pipeline/graph/graph.h"
#include "loader/run/jit/pointwise.h"
#include "loader/util/value.h"

/*
 * One pass over an image: geometry, then value operations that touch each pixel
 * once, and then operations on the whole result. The next pass starts with that
 * result, as if it were a raw image of the dataset.
 */
struct pass {
	struct chain chain;
	struct chain head; /* operations of the CPU */
	size_t num_geometry;
	struct pointwise pointwise;
	const struct node
		*images; /* OP_IMAGE, on the pointwise stage's result */
	size_t num_images;
	size_t num_redraws; /* number of them that do not work in place */
	bool is_fixed;	    /* refuses images of another size */
};

struct output_plan {
	struct pipeline_output out;
	const struct chain *chain;
	const struct node *pair; /* mixes two rows; NULL: none */
	size_t num_views;	 /* images per sample; 1 in other outputs */
	uint64_t value_size;	 /* arrays: bytes of a value */
	struct pass *passes; /* images only, like all members below; at least
				one pass */
	size_t num_passes;
	/* Groups of adjacent value operations in parentheses, as passes without
	   geometry and without operations on images. */
	struct pass *nested;
	size_t num_nested;
	size_t first_half; /* number of passes before `pair'; all if there is no
			      `pair' */
	struct chain rest; /* operations for a GPU, after the last pass */
	/* The operations of a trainer after the row that a maker sends, up to
	   the end of the last pass. No nodes: none. */
	struct pass finish;
	enum quality quality;	   /* of the first pass, and of cached images */
	uint64_t cache_size;	   /* bytes; 0: no cache */
	size_t cache_at;	   /* number of geometries before cache() */
	struct value_store *cache; /* NULL: no cache */
	/* Entry points of JPEGs, shared by all plans, not owned. NULL: none. */
	struct entry_store *entries;
	bool is_grid;	/* run it by grid_worker.h */
	bool is_shared; /* another plan owns the store */
};

/*
 * Plans an output of a field. The chain must outlive the plan. On failure, sets
 * the message and returns -EINVAL; call output_plan_fini() in either case.
 */
int output_plan_init(struct output_plan *plan, const struct chain *chain,
		     const struct pipeline_field *f,
		     const struct diagnostic *c);
/* Return the index of the node that mixes rows, and the type of its values. */
size_t output_plan_pair_at(const struct output_plan *plan);
const struct type *output_plan_pair_type(const struct output_plan *plan);

/* Returns the pass of plan->nested that starts with node `first`. */
const struct pass *output_plan_nested(const struct output_plan *plan,
				      const struct node *first);

/* Returns the number of geometries in all passes. */
size_t output_plan_num_geometry(const struct output_plan *plan);
/* Returns the largest number of floats of one pass. */
size_t output_plan_max_floats(const struct output_plan *plan);

/* Returns the pointwise stage with the slowest engine. */
const struct pointwise *output_plan_slowest(const struct output_plan *plan);

/*
 * Moves the operations after cuda() from head to rest, if a kernel is
 * worthwhile. Arrays are too small for a kernel. Returns -ENOMEM.
 */
int output_plan_split(struct output_plan *plan);
/*
 * Divide the work between a maker and a trainer (link.h). A maker sends an image
 * as 8-bit pixels if it ever has that form, after the last operation that
 * results in it. output_plan_cut() drops the operations that the maker leaves
 * to the trainer, and all use of a GPU. output_plan_finish() makes plan->finish;
 * call it after output_plan_split(). Both return -ENOMEM.
 */
int output_plan_cut(struct output_plan *plan);
int output_plan_finish(struct output_plan *plan);

/* Whether cuda() lets the loader choose the execution device of later
   operations. */
bool output_plan_is_auto(const struct output_plan *plan);

/* Whether both plans cache the same image of every sample. */
bool output_plan_keeps_alike(const struct output_plan *a,
			     const struct output_plan *b);
void output_plan_fini(struct output_plan *plan);

#endif
