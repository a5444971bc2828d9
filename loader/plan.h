/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What running one output needs to know: its row's shape and size, and its
 * chain made ready.
 */
#ifndef LOADER_PLAN_H
#define LOADER_PLAN_H

#include "loader/frame.h"
#include "loader/graph.h"
#include "loader/pipeline.h"
#include "loader/tail.h"

struct plan {
	struct pipeline_output out;
	const struct chain *chain;
	struct chain head;    /* what of it the processor does, */
	struct chain rest;    /* and a GPU after that */
	uint64_t value_size;  /* arrays: bytes of a value */
	enum quality quality; /* images, as all below */
	size_t num_geometry;
	uint64_t cache_size; /* bytes; 0: no cache */
	size_t cache_at;     /* that many geometries are before it */
	struct stash *stash; /* NULL: nothing is kept */
	bool is_lent;	     /* it is another plan's */
	struct tail *tail;
};

/*
 * For an output of a field; the chain must outlive the plan. -EINVAL: told.
 * Needs plan_fini() whether it succeeds or not.
 */
int plan_init(struct plan *plan, const struct chain *chain,
	      const struct pipeline_field *f, const struct complaint *c);
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
