/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tail.h"

#include <stddef.h>
#include <string.h>

#include "fs/bytes.h"

/* What becomes of one value; `p` has room for any type. */
static void run_chain(const struct chain *chain, unsigned channel, void *p)
{
	enum dtype type = chain->source.dtype;
	uint64_t next;
	float v;

	for (size_t i = 0; i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];

		if (n->op->kind == OP_POINT) {
			dtype_convert(type, p, DTYPE_F4, &v, 1);
			v = n->op->ref(&n->args, channel, v);
			memcpy(p, &v, sizeof(v));
			type = DTYPE_F4;
		}
		if (n->type.dtype != type) {
			dtype_convert(type, p, n->type.dtype, &next, 1);
			memcpy(p, &next, sizeof(next));
			type = n->type.dtype;
		}
	}
}

void tail_init(struct tail *tail, const struct chain *chain)
{
	const struct type *type = chain_type(chain);
	size_t size = dtype_size(type->dtype);
	uint8_t *to = tail->table.of_8;

	*tail = (struct tail){ .dtype = type->dtype, .layout = type->layout };
	tail->plain = type->dtype == DTYPE_U1;
	for (unsigned c = 0; c < TAIL_CHANNELS; c++) {
		for (unsigned v = 0; v < TAIL_VALUES; v++, to += size) {
			uint64_t value = v;

			run_chain(chain, c, &value);
			memcpy(to, &value, size);
			tail->plain = tail->plain && value == v;
		}
	}
}

/* Where a row of the result goes, in elements of its type. */
struct target {
	void *start;
	size_t plane; /* from a channel to the next */
	size_t step;  /* from a pixel to the next */
};

/* The same for elements of 8, 16, 32 and 64 bits. */
#define DEFINE_LOOK_UP(bits)                                                   \
	static void look_up_##bits(const union tail_table *table,              \
				   const uint8_t *restrict p, ptrdiff_t step,  \
				   size_t width, const struct target *target)  \
	{                                                                      \
		const uint##bits##_t *t = table->of_##bits;                    \
		uint##bits##_t *restrict r = target->start;                    \
		uint##bits##_t *restrict g = r + target->plane;                \
		uint##bits##_t *restrict b = g + target->plane;                \
		size_t to = target->step;                                      \
                                                                               \
		for (size_t x = 0; x < width * to; x += to, p += step) {       \
			r[x] = t[p[0]];                                        \
			g[x] = t[TAIL_VALUES + p[1]];                          \
			b[x] = t[2 * TAIL_VALUES + p[2]];                      \
		}                                                              \
	}

DEFINE_LOOK_UP(8)
DEFINE_LOOK_UP(16)
DEFINE_LOOK_UP(32)
DEFINE_LOOK_UP(64)

/*
 * Planes of narrow elements, 32 bits at a time: processors whose first cache
 * has ECC over words pay double for narrower stores to alternating places.
 */
#define DEFINE_PACK(bits)                                                      \
	static void pack_##bits(const union tail_table *table,                 \
				const uint8_t *restrict p, ptrdiff_t step,     \
				size_t width, const struct target *target)     \
	{                                                                      \
		const uint##bits##_t *t = table->of_##bits;                    \
		uint##bits##_t *restrict r = target->start;                    \
		uint##bits##_t *restrict g = r + target->plane;                \
		uint##bits##_t *restrict b = g + target->plane;                \
		struct target rest = *target;                                  \
		size_t x = 0;                                                  \
                                                                               \
		for (; x + 32 / (bits) <= width; x += 32 / (bits)) {           \
			uint32_t rs = 0, gs = 0, bs = 0;                       \
                                                                               \
			for (unsigned at = 0; at < 32;                         \
			     at += (bits), p += step) {                        \
				rs |= (uint32_t)t[p[0]] << at;                 \
				gs |= (uint32_t)t[TAIL_VALUES + p[1]] << at;   \
				bs |= (uint32_t)t[2 * TAIL_VALUES + p[2]]      \
				      << at;                                   \
			}                                                      \
			store32(r + x, rs);                                    \
			store32(g + x, gs);                                    \
			store32(b + x, bs);                                    \
		}                                                              \
		rest.start = r + x;                                            \
		look_up_##bits(table, p, step, width - x, &rest);              \
	}

DEFINE_PACK(8)
DEFINE_PACK(16)

typedef void look_up_fn(const union tail_table *table, const uint8_t *p,
			ptrdiff_t step, size_t width,
			const struct target *target);

/* By the size of an element, for interleaved and for planar results. */
static look_up_fn *const look_ups[][2] = {
	[1] = { look_up_8, pack_8 },
	[2] = { look_up_16, pack_16 },
	[4] = { look_up_32, look_up_32 },
	[8] = { look_up_64, look_up_64 },
};

static void copy_rows(const struct image *in, uint8_t *out)
{
	size_t row = 3 * (size_t)in->width;

	if (in->stride == row) {
		memcpy(out, in->pixels, row * in->height);
		return;
	}
	for (size_t y = 0; y < in->height; y++)
		memcpy(out + y * row, in->pixels + y * in->stride, row);
}

void tail_run(const struct tail *tail, const struct image *in, bool mirror,
	      void *out)
{
	bool planar = tail->layout == LAYOUT_CHW;
	size_t size = dtype_size(tail->dtype), width = in->width;
	look_up_fn *look_up = look_ups[size][planar];
	struct target target = {
		.plane = planar ? width * in->height : 1,
		.step = planar ? 1 : TAIL_CHANNELS,
	};

	if (tail->plain && !planar && !mirror) {
		copy_rows(in, out);
		return;
	}
	for (size_t y = 0; y < in->height; y++) {
		const uint8_t *row = in->pixels + y * in->stride;

		target.start = (uint8_t *)out + y * width * target.step * size;
		look_up(&tail->table, mirror ? row + 3 * (width - 1) : row,
			mirror ? -3 : 3, width, &target);
	}
}
