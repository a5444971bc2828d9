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

/* Where a row comes from, from its first pixel or, mirrored, its last. */
struct origin {
	const uint8_t *channel[TAIL_CHANNELS];
	ptrdiff_t step;
};

/* Where a row of the result goes, in elements of its type. */
struct target {
	void *start;
	size_t plane; /* from a channel to the next */
	size_t step;  /* from a pixel to the next */
};

/* The same for elements of 8, 16, 32 and 64 bits. */
#define DEFINE_LOOK_UP(bits)                                                   \
	static void look_up_##bits(const union tail_table *table,              \
				   const struct origin *from, size_t width,    \
				   const struct target *target)                \
	{                                                                      \
		const uint##bits##_t *t = table->of_##bits;                    \
		uint##bits##_t *restrict r = target->start;                    \
		uint##bits##_t *restrict g = r + target->plane;                \
		uint##bits##_t *restrict b = g + target->plane;                \
		const uint8_t *const *p = from->channel;                       \
		ptrdiff_t at = 0;                                              \
		size_t to = target->step;                                      \
                                                                               \
		for (size_t x = 0; x < width * to;                             \
		     x += to, at += from->step) {                              \
			r[x] = t[p[0][at]];                                    \
			g[x] = t[TAIL_VALUES + p[1][at]];                      \
			b[x] = t[2 * TAIL_VALUES + p[2][at]];                  \
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
				const struct origin *from, size_t width,       \
				const struct target *target)                   \
	{                                                                      \
		const uint##bits##_t *t = table->of_##bits;                    \
		uint##bits##_t *restrict r = target->start;                    \
		uint##bits##_t *restrict g = r + target->plane;                \
		uint##bits##_t *restrict b = g + target->plane;                \
		const uint8_t *const *p = from->channel;                       \
		struct target rest = *target;                                  \
		struct origin left = *from;                                    \
		ptrdiff_t at = 0;                                              \
		size_t x = 0;                                                  \
                                                                               \
		for (; x + 32 / (bits) <= width; x += 32 / (bits)) {           \
			uint32_t rs = 0, gs = 0, bs = 0;                       \
                                                                               \
			for (unsigned i = 0; i < 32;                           \
			     i += (bits), at += from->step) {                  \
				rs |= (uint32_t)t[p[0][at]] << i;              \
				gs |= (uint32_t)t[TAIL_VALUES + p[1][at]]      \
				      << i;                                    \
				bs |= (uint32_t)t[2 * TAIL_VALUES + p[2][at]]  \
				      << i;                                    \
			}                                                      \
			store32(r + x, rs);                                    \
			store32(g + x, gs);                                    \
			store32(b + x, bs);                                    \
		}                                                              \
		rest.start = r + x;                                            \
		for (unsigned c = 0; c < TAIL_CHANNELS; c++)                   \
			left.channel[c] += at;                                 \
		look_up_##bits(table, &left, width - x, &rest);                \
	}

DEFINE_PACK(8)
DEFINE_PACK(16)

typedef void look_up_fn(const union tail_table *table,
			const struct origin *from, size_t width,
			const struct target *target);

/* By the size of an element, for interleaved and for planar results. */
static look_up_fn *const look_ups[][2] = {
	[1] = { look_up_8, pack_8 },
	[2] = { look_up_16, pack_16 },
	[4] = { look_up_32, look_up_32 },
	[8] = { look_up_64, look_up_64 },
};

static struct origin origin_of(const struct band *band, uint32_t row,
			       uint32_t width, bool mirror)
{
	struct origin o = { .step = (ptrdiff_t)band->step };

	for (unsigned c = 0; c < TAIL_CHANNELS; c++) {
		o.channel[c] = band->channel[c] + row * band->stride;
		if (mirror)
			o.channel[c] += (width - 1) * band->step;
	}
	if (mirror)
		o.step = -o.step;
	return o;
}

static bool is_copy(const struct tail *tail, const struct band *band,
		    bool mirror)
{
	return tail->plain && tail->layout == LAYOUT_HWC && !mirror &&
	       band->step == TAIL_CHANNELS;
}

static void copy_rows(const struct band *band, uint32_t width, uint8_t *out)
{
	size_t row = TAIL_CHANNELS * (size_t)width;

	out += band->y * row;
	if (band->stride == row) {
		memcpy(out, band->channel[0], row * band->rows);
		return;
	}
	for (size_t y = 0; y < band->rows; y++)
		memcpy(out + y * row, band->channel[0] + y * band->stride, row);
}

void tail_band(const struct tail *tail, struct size image,
	       const struct band *band, bool mirror, void *out)
{
	bool planar = tail->layout == LAYOUT_CHW;
	size_t size = dtype_size(tail->dtype), width = image.width;
	look_up_fn *look_up = look_ups[size][planar];
	struct target target = {
		.plane = planar ? width * image.height : 1,
		.step = planar ? 1 : TAIL_CHANNELS,
	};

	if (is_copy(tail, band, mirror)) {
		copy_rows(band, image.width, out);
		return;
	}
	for (uint32_t y = 0; y < band->rows; y++) {
		struct origin from = origin_of(band, y, image.width, mirror);
		size_t at = (band->y + y) * width * target.step;

		target.start = (uint8_t *)out + at * size;
		look_up(&tail->table, &from, width, &target);
	}
}

void tail_run(const struct tail *tail, const struct image *in, bool mirror,
	      void *out)
{
	const struct band all = {
		.channel = { in->pixels, in->pixels + 1, in->pixels + 2 },
		.step = TAIL_CHANNELS,
		.stride = in->stride,
		.rows = in->height,
	};

	tail_band(tail, (struct size){ in->width, in->height }, &all, mirror,
		  out);
}
