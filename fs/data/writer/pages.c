/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/writer/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"

enum {
	/* The buffer ends at a multiple of its size in the file, because the
	   kernel copies bytes to an odd offset at less than half the speed. */
	BUFFER_SIZE = 4 << 20,
	/* For fewer bytes, a copy within the kernel costs more than it saves.
	 */
	COPY_MIN = 64 << 10,
};

int pages_init(struct pages *p)
{
	p->buffer = malloc(BUFFER_SIZE);
	return p->buffer ? 0 : -ENOMEM;
}

void pages_fini(struct pages *p)
{
	free(p->buffer);
	p->buffer = NULL;
}

/* Returns the offset in the file that follows the buffer's bytes. */
static uint64_t buffer_end(const struct pages *p)
{
	return p->end - p->pending.size;
}

/* Returns how many more bytes the buffer takes. */
static size_t buffer_room(const struct pages *p)
{
	return BUFFER_SIZE - (size_t)(buffer_end(p) % BUFFER_SIZE);
}

static int flush_buffer(struct pages *p)
{
	size_t size = p->buffered;

	p->buffered = 0;
	if (!size)
		return 0;
	return output_write(p->file, p->buffer, size, buffer_end(p) - size);
}

/* Writes the buffer if its last byte is there. */
static int flush_full(struct pages *p)
{
	return buffer_end(p) % BUFFER_SIZE ? 0 : flush_buffer(p);
}

/* Reads the beginning of the pending range into the buffer. */
static int read_pending(struct pages *p)
{
	struct pages_range *from = &p->pending;
	size_t n = (size_t)min_u64(from->size, buffer_room(p));
	int r = source_read(from->source, p->buffer + p->buffered, n,
			    from->off);

	if (r)
		return r;
	p->buffered += n;
	from->off += n;
	from->size -= n;
	return flush_full(p);
}

/* Copies the beginning of the pending range; the buffer is empty. 0 bytes: it
   has to be read instead. */
static int64_t copy_pending(struct pages *p)
{
	struct pages_range *from = &p->pending;
	uint64_t at = 0, left = 0;
	int fd = source_descriptor(from->source, from->off, &at, &left);
	int64_t n = 0;

	if (fd >= 0)
		n = output_copy(p->file, fd, at, min_u64(from->size, left),
				p->end - from->size);
	if (n > 0) {
		from->off += (uint64_t)n;
		from->size -= (uint64_t)n;
	}
	return n;
}

/* Copies the pending range, or as much of it as the kernel can. */
static int copy_most(struct pages *p)
{
	int64_t n = flush_buffer(p);

	if (n)
		return (int)n;
	do
		n = copy_pending(p);
	while (n > 0 && p->pending.size);
	return n < 0 ? (int)n : 0;
}

int pages_settle(struct pages *p)
{
	int r = p->pending.size < COPY_MIN ? 0 : copy_most(p);

	while (!r && p->pending.size)
		r = read_pending(p);
	return r;
}

int pages_flush(struct pages *p)
{
	int r = pages_settle(p);

	return r ? r : flush_buffer(p);
}

/* Appends the first bytes: to the buffer, or if it is empty and they fill it,
   to the file. Returns how many, or an error. */
static int64_t put_some(struct pages *p, const uint8_t *bytes, uint64_t size)
{
	size_t n = (size_t)min_u64(size, buffer_room(p));
	int r;

	if (!p->buffered && n == BUFFER_SIZE) {
		r = output_write(p->file, bytes, n, p->end);
		p->end += n;
		return r ? r : (int64_t)n;
	}
	memcpy(p->buffer + p->buffered, bytes, n);
	p->buffered += n;
	p->end += n;
	r = flush_full(p);
	return r ? r : (int64_t)n;
}

int pages_put(struct pages *p, const void *bytes, uint64_t size)
{
	const uint8_t *at = bytes;
	int r = pages_settle(p);
	int64_t n;

	for (; !r && size; size -= (uint64_t)n, at += n) {
		n = put_some(p, at, size);
		if (n < 0)
			return (int)n;
	}
	return r;
}

int pages_copy(struct pages *p, const struct pages_range *range)
{
	struct pages_range *last = &p->pending;
	int r;

	if (last->size && last->source == range->source &&
	    last->off + last->size == range->off) {
		last->size += range->size;
		p->end += range->size;
		return 0;
	}
	r = pages_settle(p);
	if (r)
		return r;
	*last = *range;
	p->end += range->size;
	return 0;
}

int pages_skip(struct pages *p, uint64_t to)
{
	int r = pages_flush(p);

	p->end = to;
	return r;
}
