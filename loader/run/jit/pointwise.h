/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an image's pipeline: it turns pixels into the values, type and
 * layout of the tensor, and touches each pixel once. A chain becomes one
 * function, prebuilt or compiled (jit.h). Until that is ready, the definitions
 * of the operations make the same bits more slowly. An 8-bit value of a channel
 * has only 256 results, so the definitions are called once per value. If an
 * operation needs the three values of a pixel, they are called once per pixel.
 */
#ifndef LOADER_RUN_JIT_POINTWISE_H
#define LOADER_RUN_JIT_POINTWISE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "loader/image/pixels/byte_map.h"
#include "loader/pipeline/graph/graph.h"
#include "loader/run/jit/isa.h"
#include "loader/util/image.h"

enum { POINTWISE_CHANNELS = IMAGE_CHANNELS, POINTWISE_VALUES = 256 };

/* [POINTWISE_CHANNELS][POINTWISE_VALUES] elements of one of these sizes in
 * bits. */
union pointwise_table {
	uint8_t of_8[POINTWISE_CHANNELS * POINTWISE_VALUES];
	uint16_t of_16[POINTWISE_CHANNELS * POINTWISE_VALUES];
	uint32_t of_32[POINTWISE_CHANNELS * POINTWISE_VALUES];
	uint64_t of_64[POINTWISE_CHANNELS * POINTWISE_VALUES];
};

/* The engine that makes the rows of a pointwise stage, the slowest first. */
enum pointwise_engine {
	POINTWISE_GENERIC,
	POINTWISE_PREBUILT,
	POINTWISE_GENERATED,
	POINTWISE_NOTHING, /* pixels are copied */
};

struct pointwise {
	const struct chain *chain;
	const struct isa *isa;
	char *code; /* the kernel's text; NULL until own_load() is done */
	_Atomic(kernel_fn *) kernel; /* NULL: the definitions; only ever set
					once */
	_Atomic enum pointwise_engine engine; /* set before it */
	enum dtype dtype;		      /* of the result */
	enum layout layout;
	bool plain;	   /* values do not change */
	bool flat;	   /* kind of kernel, see */
	bool varies;	   /* operands differ from sample to sample */
	bool is_custom;	   /* no definition but the kernel */
	bool is_wide;	   /* has OP_PIXEL: `table` is not used */
	bool is_of_bytes;  /* the result of a byte is a byte */
	bool has_map;	   /* unless operands vary: the same one for all
			      channels, `map` */
	size_t num_floats; /* of operands as pointwise_operands() makes them */
	float *operands;   /* unless they vary */
	union pointwise_table table;
	struct byte_map map;
};

/*
 * Initializes the pointwise stage of a chain whose source is an image; skips
 * geometry. -ENOMEM. Needs pointwise_fini() even if it fails.
 */
int pointwise_init(struct pointwise *stage, const struct chain *chain,
		   const struct isa *isa);
void pointwise_fini(struct pointwise *stage);

/* Sets the kernel's text; custom operations are loaded. -ENOMEM. */
int pointwise_emit(struct pointwise *stage);

/* Whether pixels are only copied. */
bool pointwise_is_copy(const struct pointwise *stage);

/* Uses this function for rows from now on. Thread-safe. */
void pointwise_set_kernel(struct pointwise *stage, kernel_fn *run,
			  enum pointwise_engine engine);

/* Thread-safe, and its name: "generic", "prebuilt", "generated" or "none". */
enum pointwise_engine pointwise_engine(const struct pointwise *stage);
const char *pointwise_engine_name(const struct pointwise *stage);

/*
 * The operands of an image: stage->operands, or made in `scratch`,
 * which has room for stage->num_floats.
 */
const float *pointwise_operands(const struct pointwise *stage,
				const struct pipeline_row *row, float *scratch);

/* Fills the table of a stage whose values depend on one channel. Returns whether
   values do not change. */
bool pointwise_fill_table(const struct pointwise *stage, const float *operands,
			  union pointwise_table *table);

/* The table of a chain that maps bytes to bytes: stage->map, or made in
   `scratch`. NULL: there is none; run the kernel or the definitions. */
const struct byte_map *pointwise_map(const struct pointwise *stage,
				     const float *operands,
				     struct byte_map *scratch);

#endif
