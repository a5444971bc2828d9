/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/order/spec.h"

#include "fs/base/util/bytes.h"

bool spec_equal(const struct spec *a, const struct spec *b)
{
	return a->order == b->order && a->batch == b->batch &&
	       a->seed == b->seed && a->drop_last == b->drop_last &&
	       a->block == b->block && a->window == b->window &&
	       a->bucket == b->bucket && a->draws == b->draws &&
	       a->first == b->first && a->end == b->end &&
	       !a->subset == !b->subset &&
	       (!a->subset || a->subset->hash == b->subset->hash);
}

uint64_t spec_positions(const struct spec *spec)
{
	return spec->draws ? spec->draws : spec->end - spec->first;
}

bool spec_repeats(const struct spec *spec)
{
	return spec->draws || (spec->subset && spec->subset->repeats);
}

uint64_t spec_batches(const struct spec *spec)
{
	uint64_t n = spec_positions(spec);

	return n / spec->batch + (n % spec->batch && !spec->drop_last);
}

uint32_t spec_batch_samples(const struct spec *spec, uint64_t batch)
{
	uint64_t n = spec_positions(spec);

	return (uint32_t)min_u64(spec->batch, n - batch * spec->batch);
}

uint64_t spec_steps(const struct spec *spec, uint64_t consumed,
		    uint32_t world_size)
{
	uint64_t left = spec_batches(spec) - consumed;

	return left / world_size + (left % world_size && !spec->drop_last);
}
