/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an image's pipeline: it turns pixels into the values, type and
 * layout of the tensor, and touches each pixel once. A chain becomes one
 * function, prebuilt or compiled (jit.h). Until that is ready, the definitions
 * of the operations make the same bits more slowly. An 8-bit value of a channel
 * has only 256 results, so the definitions are called once per value. If an
 * operation needs the three values of a pixel, they are called once per pixel.
 */
#ifndef LOADER_JIT_TAIL_H
#define LOADER_JIT_TAIL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "loader/graph/graph.h"
#include "loader/jit/isa.h"
#include "loader/pixels/byte_map.h"
#include "loader/util/image.h"

enum { TAIL_CHANNELS = IMAGE_CHANNELS, TAIL_VALUES = 256 };

/* [TAIL_CHANNELS][TAIL_VALUES] elements of one of these sizes in bits. */
union tail_table {
	uint8_t of_8[TAIL_CHANNELS * TAIL_VALUES];
	uint16_t of_16[TAIL_CHANNELS * TAIL_VALUES];
	uint32_t of_32[TAIL_CHANNELS * TAIL_VALUES];
	uint64_t of_64[TAIL_CHANNELS * TAIL_VALUES];
};

/* The engine that makes the rows of a tail, the slowest first. */
enum tail_engine {
	TAIL_GENERIC,
	TAIL_PREBUILT,
	TAIL_GENERATED,
	TAIL_NOTHING, /* pixels are copied */
};

struct tail {
	const struct chain *chain;
	const struct isa *isa;
	char *code; /* the kernel's text; NULL until own_load() is done */
	_Atomic(kernel_fn *) kernel;	 /* NULL: the definitions; only ever set
					    once */
	_Atomic enum tail_engine engine; /* set before it */
	enum dtype dtype;		 /* of the result */
	enum layout layout;
	bool plain;	   /* values do not change */
	bool flat;	   /* kind of kernel, see */
	bool varies;	   /* operands differ from sample to sample */
	bool is_own;	   /* no definition but the kernel */
	bool is_wide;	   /* has OP_PIXEL: `table` is not used */
	bool is_of_bytes;  /* the result of a byte is a byte */
	bool has_map;	   /* unless operands vary: the same one for all
			      channels, `map` */
	size_t num_floats; /* of operands as tail_operands() makes them */
	float *operands;   /* unless they vary */
	union tail_table table;
	struct byte_map map;
};

/*
 * Initializes the tail of a chain whose source is an image; skips geometry.
 * -ENOMEM. Needs tail_fini() even if it fails.
 */
int tail_init(struct tail *tail, const struct chain *chain,
	      const struct isa *isa);
void tail_fini(struct tail *tail);

/* Sets the kernel's text; custom operations are loaded. -ENOMEM. */
int tail_emit(struct tail *tail);

/* Whether pixels are only copied. */
bool tail_is_copy(const struct tail *tail);

/*
 * Whether the kernel makes the same rows as the definitions, if there are any.
 */
bool tail_agrees(const struct tail *tail, kernel_fn *run);

/* Uses this function for rows from now on. Thread-safe. */
void tail_set_kernel(struct tail *tail, kernel_fn *run,
		     enum tail_engine engine);

/* Thread-safe, and its name: "generic", "prebuilt", "generated" or "none". */
enum tail_engine tail_engine(const struct tail *tail);
const char *tail_engine_name(const struct tail *tail);

/*
 * The operands of an image: tail->operands, or made in `scratch`, which has
 * room for tail->num_floats.
 */
const float *tail_operands(const struct tail *tail,
			   const struct pipeline_row *row, float *scratch);

/* What an image's bytes become, tail->map or made in `scratch`; NULL: a kernel
   makes the rows, or the definitions. */
const struct byte_map *tail_map(const struct tail *tail, const float *operands,
				struct byte_map *scratch);

/* An image to be written to a tensor. */
struct tail_image {
	struct size size;
	bool mirror;		    /* left and right are exchanged */
	const float *operands;	    /* tail_operands() */
	const struct byte_map *map; /* tail_map() */
	void *out; /* the tensor of the whole image: width * height * 3 values
		      aligned as their type */
};

/* Writes the band's rows of the tensor. */
void tail_band(const struct tail *tail, const struct tail_image *image,
	       const struct band *band);

#endif
