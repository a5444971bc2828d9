/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/scratch.h"

#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#	define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { PAGE = 4096 };

/* Maps memory, or more memory at `at` unless something else is there. */
static uint8_t *map(uint8_t *at, uint64_t size)
{
	const int flags =
		MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0);
	uint8_t *bytes = mmap(at, size, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (bytes == MAP_FAILED)
		return NULL;
	/* Old kernels ignore the flag and map elsewhere. */
	if (at && bytes != at) {
		munmap(bytes, size);
		return NULL;
	}
	return bytes;
}

/* Maps huge pages, at a multiple of their size. */
static uint8_t *map_huge(uint64_t size)
{
	uint8_t *bytes = map(NULL, size + BUFFER_UNIT);
	uint64_t before;

	if (!bytes)
		return NULL;
	before = align_up((uintptr_t)bytes, BUFFER_UNIT) - (uintptr_t)bytes;
	if (before)
		munmap(bytes, before);
	munmap(bytes + before + size, BUFFER_UNIT - before);
	madvise(bytes + before, size, MADV_HUGEPAGE);
	return bytes + before;
}

int buffer_reserve(struct buffer *b, uint64_t size)
{
	bool is_huge = size >= BUFFER_UNIT;
	uint64_t capacity;
	uint8_t *bytes;

	if (size <= b->capacity)
		return 0;
	if (size > INT64_MAX / 2)
		return -ENOMEM;
	/* Allocates some more than requested, since sizes differ a little from
	   batch to batch. */
	capacity = align_up(size + size / 16, is_huge ? BUFFER_UNIT : PAGE);
	bytes = is_huge ? map_huge(capacity) : map(NULL, capacity);
	if (!bytes)
		return -ENOMEM;
	buffer_fini(b);
	b->bytes = bytes;
	b->capacity = capacity;
	return 0;
}

/* Maps pages again at the place of those that mremap() took. */
static void fill_hole(struct buffer *b, uint64_t keep)
{
	uint8_t *at = b->bytes + keep;

	if (map(at, b->capacity - keep)) {
		madvise(at, b->capacity - keep, MADV_HUGEPAGE);
		b->split = keep;
		return;
	}
	/* Another thread has mapped memory there. */
	munmap(b->bytes, keep);
	*b = (struct buffer){ .bytes = NULL };
}

void buffer_move_end(struct buffer *to, struct buffer *from, uint64_t keep)
{
	uint64_t size;

	keep = align_up(keep, BUFFER_UNIT);
	if (from->capacity <= keep)
		return;
	size = from->capacity - keep;
	/* The kernel moves the pages of one mapping at a time. */
	if (to->capacity != from->capacity || from->split > keep) {
		madvise(from->bytes + keep, size, MADV_DONTNEED);
		return;
	}
	if (mremap(from->bytes + keep, size, size,
		   MREMAP_MAYMOVE | MREMAP_FIXED,
		   to->bytes + keep) == MAP_FAILED) {
		/* The kernel may have freed the pages of `to` before it
		   failed. */
		map(to->bytes + keep, size);
		madvise(from->bytes + keep, size, MADV_DONTNEED);
		return;
	}
	to->split = keep;
	fill_hole(from, keep);
}

void buffer_fini(struct buffer *b)
{
	if (b->bytes)
		munmap(b->bytes, b->capacity);
	*b = (struct buffer){ .bytes = NULL };
}
