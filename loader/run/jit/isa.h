/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instruction sets: the tables that are compiled once for each, and the flags
 * for code that is compiled at run time. Results never depend on which one
 * runs.
 */
#ifndef LOADER_RUN_JIT_ISA_H
#define LOADER_RUN_JIT_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/run/jit/kernel.h"
#include "loader/util/isa_choice.h"

/* Reorders rows of pixels; memory does not overlap. */
struct gather {
	/* Interleaved -> planes, `stride` apart. */
	void (*split)(const uint8_t *restrict in, size_t count,
		      uint8_t *restrict planes, size_t stride);
	/* Planes -> interleaved. */
	void (*join)(const uint8_t *const in[3], size_t count,
		     uint8_t *restrict out);
	/* The last byte becomes the first. */
	void (*reverse)(const uint8_t *restrict in, size_t count,
			uint8_t *restrict out);
	/* Interleaved; the last pixel becomes the first. */
	void (*turn)(const uint8_t *restrict in, size_t count,
		     uint8_t *restrict out);
};

/* A kernel that is part of the library. */
struct prebuilt {
	uint64_t hash[2]; /* emit_hash() of its emit_chain() */
	kernel_fn *run;
};

enum { ISA_FLAGS_MAX = 3 };

struct isa {
	const char *name; /* also of its directory in the cache */
	const char *flags[ISA_FLAGS_MAX + 1]; /* for compilers; NULL ends */
	bool (*is_supported)(void);
	/* Has no instructions that permute bytes or make float16. A table of
	   256 values is then faster than a kernel that needs either. */
	bool is_weak;
	const struct gather *gather;
	const struct prebuilt *prebuilt; /* run == NULL ends */
};

/* Row i, from the best to the one that every machine has; NULL past the end. */
const struct isa *isa_row(size_t i);
const struct isa *isa_best(void);

/* The prebuilt kernel of a text; NULL: none. */
kernel_fn *isa_find(const struct isa *isa, const char *text);

#endif
