/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a request as a place that bytes are appended to. Header only.
 */
#ifndef FS_SOURCE_LOCAL_SCATTER_H
#define FS_SOURCE_LOCAL_SCATTER_H

#include <string.h>
#include <sys/uio.h>

#include "fs/base/util/bytes.h"
#include "fs/source/local/source.h"

struct scatter {
	const struct source_request *request;
	unsigned index; /* of the piece of iov */
	size_t skip;	/* bytes of it that are filled */
};

static inline struct iovec scatter_piece(const struct scatter *s)
{
	const struct source_request *q = s->request;

	return q->buf ? (struct iovec){ q->buf, q->size } : q->iov[s->index];
}

/* The memory has room for the bytes. */
static inline void scatter_append(struct scatter *s, const void *data,
				  size_t size)
{
	struct iovec piece;
	size_t n;

	for (const char *from = data; size; from += n, size -= n) {
		piece = scatter_piece(s);
		n = min_u64(piece.iov_len - s->skip, size);
		memcpy((char *)piece.iov_base + s->skip, from, n);
		s->skip += n;
		if (s->skip < piece.iov_len || s->request->buf)
			continue;
		s->index++;
		s->skip = 0;
	}
}

#endif
