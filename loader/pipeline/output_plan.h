/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything needed to run one output: the shape and size of its row, and its
 * chain, prepared.
 */
#ifndef LOADER_PIPELINE_OUTPUT_PLAN_H
#define LOADER_PIPELINE_OUTPUT_PLAN_H

#include "loader/graph/graph.h"
#include "loader/jit/pointwise.h"
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
	struct pointwise pointwise;
	const struct node
		*images; /* OP_IMAGE, on the pointwise stage's result */
	size_t num_images;
	size_t num_redraws; /* of them, those that are not in place */
	bool is_fixed;	    /* refuses images of another size */
};

struct output_plan {
	struct pipeline_output out;
	const struct chain *chain;
	const struct node *pair; /* mixes two rows; NULL: none */
	size_t num_views;	 /* images of a sample; 1 in other outputs */
	uint64_t value_size;	 /* arrays: bytes of a value */
	struct pass *passes;	 /* of images, as all below; at least one */
	size_t num_passes;
	/* Value operations in parentheses that follow one another; passes
	   without geometry and operations on images. */
	struct pass *nested;
	size_t num_nested;
	size_t first_half;    /* passes before `pair', or all */
	struct chain rest;    /* operations of a GPU, after the last pass */
	enum quality quality; /* of the first pass, and of cached images */
	uint64_t cache_size;  /* bytes; 0: no cache */
	size_t cache_at;      /* geometries before cache() */
	struct value_store *cache; /* NULL: keeps nothing */
	bool is_grid;		   /* grid_worker.h makes it */
	bool is_shared;		   /* belongs to another plan */
};

/*
 * Plans an output of a field. The chain must outlive the plan. -EINVAL: the
 * message is set. Needs output_plan_fini() even if it fails.
 */
int output_plan_init(struct output_plan *plan, const struct chain *chain,
		     const struct pipeline_field *f,
		     const struct diagnostic *c);
/* Sets the node that mixes rows, and the type of its values. */
size_t output_plan_pair_at(const struct output_plan *plan);
const struct type *output_plan_pair_type(const struct output_plan *plan);

/* The one of plan->nested whose first node is `first`. */
const struct pass *output_plan_nested(const struct output_plan *plan,
				      const struct node *first);

/* The number in all passes together. */
size_t output_plan_num_geometry(const struct output_plan *plan);
/* The largest number in one pass. */
size_t output_plan_max_floats(const struct output_plan *plan);

/* The pass of an image whose engine is the slowest. */
const struct pointwise *output_plan_slowest(const struct output_plan *plan);

/*
 * Moves the operations after cuda() from head to rest, if they are worth a
 * kernel; arrays are too small for one. -ENOMEM.
 */
int output_plan_split(struct output_plan *plan);
/* Whether cuda() lets the loader choose where later operations run. */
bool output_plan_is_auto(const struct output_plan *plan);

/* Whether both keep the same image of every sample. */
bool output_plan_keeps_alike(const struct output_plan *a,
			     const struct output_plan *b);
void output_plan_fini(struct output_plan *plan);

#endif
