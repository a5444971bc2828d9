/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/order/draws.h"

#include <stdlib.h>

#include "fs/base/util/bytes.h"

static int by_sample(const void *a, const void *b)
{
	const struct draws_draw *x = a, *y = b;

	if (x->sample != y->sample)
		return x->sample < y->sample ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

void draws_look(struct draws *f, const struct order orders[2], uint64_t n,
		uint64_t epoch, uint64_t first)
{
	uint64_t at = first;

	f->epoch = epoch;
	f->first = first;
	f->end = min_u64(2 * n, first + DRAWS_POSITIONS);
	for (struct draws_draw *d = f->draws; at < f->end; at++, d++) {
		d->sample = order_sample(&orders[at >= n], at % n);
		d->position = at;
	}
	qsort(f->draws, f->end - first, sizeof(*f->draws), by_sample);
}

uint64_t draws_position(const struct draws *f, uint64_t sample, uint64_t nth)
{
	uint64_t n = f->end - f->first, low = 0, high = n, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (f->draws[mid].sample < sample)
			low = mid + 1;
		else
			high = mid;
	}
	if (nth >= n - low || f->draws[low + nth].sample != sample)
		return ORDER_NONE;
	return f->draws[low + nth].position;
}
