/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/cursor.h"

#include "fs/util/bytes.h"

void cursor_seek(struct cursor *c, uint64_t epoch, uint64_t batches)
{
	uint64_t n = spec_batches(c->spec);

	c->epoch = epoch + (n && batches >= n);
	c->start = batches < n ? batches : 0;
	c->step = 0;
}

uint64_t cursor_consumed(const struct cursor *c)
{
	uint64_t n = spec_batches(c->spec);

	/* With drop_last, batches at the end that no rank gets count as
	   consumed. */
	if (cursor_at_end(c))
		return n;
	return min_u64(n, c->start + c->step * c->world);
}
