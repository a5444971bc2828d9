/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/writer/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"

enum {
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

static int flush_buffer(struct pages *p)
{
	size_t size = p->buffered;

	p->buffered = 0;
	if (!size)
		return 0;
	return output_write(p->file, p->buffer, size,
			    p->end - p->pending.size - size);
}

/* Reads the beginning of the pending range into the buffer. */
static int read_pending(struct pages *p)
{
	struct pages_range *from = &p->pending;
	size_t n = (size_t)min_u64(from->size, BUFFER_SIZE - p->buffered);
	int r = source_read(from->source, p->buffer + p->buffered, n,
			    from->off);

	if (r)
		return r;
	p->buffered += n;
	from->off += n;
	from->size -= n;
	return 0;
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

	while (!r && p->pending.size) {
		r = p->buffered < BUFFER_SIZE ? 0 : flush_buffer(p);
		r = r ? r : read_pending(p);
	}
	return r;
}

int pages_flush(struct pages *p)
{
	int r = pages_settle(p);

	return r ? r : flush_buffer(p);
}

int pages_put(struct pages *p, const void *bytes, uint64_t size)
{
	int r = pages_settle(p);

	if (!r && p->buffered + size > BUFFER_SIZE)
		r = flush_buffer(p);
	if (r)
		return r;
	if (size > BUFFER_SIZE) {
		r = output_write(p->file, bytes, size, p->end);
	} else {
		memcpy(p->buffer + p->buffered, bytes, size);
		p->buffered += size;
	}
	p->end += size;
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
