/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/resize/rows.h"

#include <string.h>

#include "fs/base/util/bytes.h"

enum {
	CHANNELS = 3,
	/* Any class reads or writes at most as many numbers past a row. */
	ROWS_BLOCK = 32,
};

size_t rows_size(uint32_t width)
{
	return align_up((uint64_t)width * CHANNELS, ROWS_BLOCK) + ROWS_BLOCK;
}

/*
 * A row of numbers is one of pixels, which needs less room. Four bytes are
 * copied at once where the input has them; the next pixel overwrites the last.
 */
static void nearest_across(const struct rows_across *a)
{
	uint32_t count = a->x->part.count, last = a->x->span - 1;
	const uint32_t *first = a->x->first;
	uint8_t *out = (uint8_t *)a->out;

	for (uint32_t i = 0; i < count; i++, out += CHANNELS) {
		const uint8_t *in = a->in + (size_t)first[i] * CHANNELS;

		if (first[i] < last)
			memcpy(out, in, CHANNELS + 1);
		else
			memcpy(out, in, CHANNELS);
	}
}

static void nearest_down(const struct rows_down *d)
{
	memcpy(d->out, d->rows[0], (size_t)d->x->part.count * CHANNELS);
}

const struct rows_class nearest_rows = {
	.across = nearest_across,
	.down = nearest_down,
};

const struct rows_class *rows_class(const struct axis *x)
{
	if (x->is_blend)
		return ISA_BEST(blend_rows);
	switch (x->kind) {
	case AXIS_NEAREST:
		return &nearest_rows;
	case AXIS_CUBIC:
	case AXIS_LANCZOS:
		return ISA_BEST(signed_rows);
	default:
		return &ISA_BEST(rows)->of[x->kind];
	}
}
