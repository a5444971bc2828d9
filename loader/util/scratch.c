/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/scratch.h"

#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20, PAGE = 4096 };

int buffer_reserve(struct buffer *b, uint64_t size)
{
	uint64_t capacity;
	void *bytes;

	if (size <= b->capacity)
		return 0;
	if (size > INT64_MAX / 2)
		return -ENOMEM;
	/* Allocates some more than requested, since sizes differ a little from
	   batch to batch. */
	capacity = align_up(size + size / 16,
			    size >= HUGE_PAGE ? HUGE_PAGE : PAGE);
	bytes = mmap(NULL, capacity, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		return -ENOMEM;
	if (capacity >= HUGE_PAGE)
		madvise(bytes, capacity, MADV_HUGEPAGE);
	buffer_fini(b);
	b->bytes = bytes;
	b->capacity = capacity;
	return 0;
}

void buffer_fini(struct buffer *b)
{
	if (b->bytes)
		munmap(b->bytes, b->capacity);
	*b = (struct buffer){ NULL, 0 };
}
