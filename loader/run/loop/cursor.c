/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/loop/cursor.h"

#include "fs/base/util/bytes.h"

void cursor_seek(struct cursor *c, uint64_t epoch, uint64_t batches)
{
	uint64_t n = spec_batches(c->spec);

	c->epoch = epoch + (n && batches >= n);
	c->start = batches < n ? batches : 0;
	c->step = 0;
}

uint64_t cursor_steps(const struct cursor *c, uint64_t start)
{
	uint64_t steps = spec_steps(c->spec, start, c->world_size);
	uint64_t n = spec_batches(c->spec);

	/* Only the last step contains padding. */
	if (c->no_padding && steps &&
	    start + (steps - 1) * c->world_size + c->rank >= n)
		steps--;
	return steps;
}

/* All ranks have the same number of steps, if need be with padding. */
static uint64_t common_steps(const struct cursor *c)
{
	return spec_steps(c->spec, c->start, c->world_size);
}

void cursor_finish(struct cursor *c)
{
	c->step = max_u64(c->step, common_steps(c));
}

uint64_t cursor_consumed(const struct cursor *c)
{
	uint64_t n = spec_batches(c->spec);

	/* If drop_last is set, batches at the end that no rank gets count as
	   consumed. Before the end of the epoch, another rank may have one step
	   left. */
	if (c->step >= common_steps(c))
		return n;
	return min_u64(n, c->start + c->step * c->world_size);
}
