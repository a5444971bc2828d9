/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reusable memory that only grows: scratch for arrays of one thread, buffers
 * for batches.
 */
#ifndef LOADER_UTIL_SCRATCH_H
#define LOADER_UTIL_SCRATCH_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"

/* Alignment to a line of the CPU's cache, so that vectors do not cross
   lines. */
enum { SCRATCH_ALIGN = 64 };

struct scratch {
	void *p;
	size_t size;
};

/* Ensures room for n elements. Growing loses the old values. Returns
   -ENOMEM. */
static inline int scratch_grow(struct scratch *s, uint64_t n, size_t element)
{
	uint64_t bytes;

	if (!mul_ok(n, element, &bytes) || bytes > INT64_MAX)
		return -ENOMEM;
	if (bytes <= s->size)
		return 0;
	free(s->p);
	s->size = 0;
	s->p = aligned_alloc(SCRATCH_ALIGN, align_up(bytes, SCRATCH_ALIGN));
	if (!s->p)
		return -ENOMEM;
	s->size = bytes;
	return 0;
}

static inline void scratch_fini(struct scratch *s)
{
	free(s->p);
	*s = (struct scratch){ 0 };
}

/* The size of a huge page. */
enum { BUFFER_UNIT = 2 << 20 };

/* A page-aligned buffer for O_DIRECT and pinning. Large buffers use huge pages,
   and begin at a multiple of their size. */
struct buffer {
	uint8_t *bytes; /* NULL while capacity is 0 */
	uint64_t capacity;
	uint64_t split; /* where buffer_move_end() has divided the mapping; 0:
			   nowhere */
};

/* Makes room for `size` bytes. Growing loses the content. */
int buffer_reserve(struct buffer *buffer, uint64_t size);
/*
 * Moves all pages but those of the first `keep` bytes, rounded up to units, to
 * the same place of another buffer, with their content and without copying it.
 * The pages that were there are freed. Afterwards `from` has zeros there, which
 * take no memory.
 *
 * If pages cannot be moved, they are freed. If `from` cannot stay as it is, it
 * becomes empty.
 */
void buffer_move_end(struct buffer *to, struct buffer *from, uint64_t keep);
void buffer_fini(struct buffer *buffer);

#endif
