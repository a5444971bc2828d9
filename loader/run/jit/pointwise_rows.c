/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/pointwise_rows.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/base/util/stream_copy.h"
#include "loader/run/jit/definition.h"

/* --- rows, by the definition --- */

/* The source of a row, from its first pixel or, mirrored, its last. */
struct pointwise_origin {
	const uint8_t *channel[POINTWISE_CHANNELS];
	ptrdiff_t step;
};

/* The destination of a row, in elements of its type. */
struct pointwise_target {
	void *start;
	size_t plane; /* from a channel to the next */
	size_t step;  /* from a pixel to the next */
};

/* put_values() for elements of 8, 16, 32 and 64 bits. */
#define DEFINE_LOOK_UP(bits)                                                   \
	static void look_up_##bits(const union pointwise_table *table,         \
				   const struct pointwise_origin *from,        \
				   size_t width,                               \
				   const struct pointwise_target *target)      \
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
			g[x] = t[POINTWISE_VALUES + p[1][at]];                 \
			b[x] = t[2 * POINTWISE_VALUES + p[2][at]];             \
		}                                                              \
	}

DEFINE_LOOK_UP(8)
DEFINE_LOOK_UP(16)
DEFINE_LOOK_UP(32)
DEFINE_LOOK_UP(64)

/*
 * Writes planes of narrow elements 32 bits at a time. CPUs whose first cache
 * has ECC over words pay double for narrower stores to alternating places.
 */
#define DEFINE_PACK(bits)                                                      \
	static void pack_##bits(const union pointwise_table *table,            \
				const struct pointwise_origin *from,           \
				size_t width,                                  \
				const struct pointwise_target *target)         \
	{                                                                      \
		const uint##bits##_t *t = table->of_##bits;                    \
		uint##bits##_t *restrict r = target->start;                    \
		uint##bits##_t *restrict g = r + target->plane;                \
		uint##bits##_t *restrict b = g + target->plane;                \
		const uint8_t *const *p = from->channel;                       \
		struct pointwise_target rest = *target;                        \
		struct pointwise_origin left = *from;                          \
		ptrdiff_t at = 0;                                              \
		size_t x = 0;                                                  \
                                                                               \
		for (; x + 32 / (bits) <= width; x += 32 / (bits)) {           \
			uint32_t rs = 0, gs = 0, bs = 0;                       \
                                                                               \
			for (unsigned i = 0; i < 32;                           \
			     i += (bits), at += from->step) {                  \
				rs |= (uint32_t)t[p[0][at]] << i;              \
				gs |= (uint32_t)t[POINTWISE_VALUES + p[1][at]] \
				      << i;                                    \
				bs |= (uint32_t)t[2 * POINTWISE_VALUES +       \
						  p[2][at]]                    \
				      << i;                                    \
			}                                                      \
			store32(r + x, rs);                                    \
			store32(g + x, gs);                                    \
			store32(b + x, bs);                                    \
		}                                                              \
		rest.start = r + x;                                            \
		for (unsigned c = 0; c < POINTWISE_CHANNELS; c++)              \
			left.channel[c] += at;                                 \
		look_up_##bits(table, &left, width - x, &rest);                \
	}

DEFINE_PACK(8)
DEFINE_PACK(16)

typedef void look_up_fn(const union pointwise_table *table,
			const struct pointwise_origin *from, size_t width,
			const struct pointwise_target *target);

/* By the size of an element, for interleaved and for planar results. */
static look_up_fn *const look_ups[][2] = {
	[1] = { look_up_8, pack_8 },
	[2] = { look_up_16, pack_16 },
	[4] = { look_up_32, look_up_32 },
	[8] = { look_up_64, look_up_64 },
};

/* Element 0 of the first row. */
static struct pointwise_origin origin_of(const struct band *band,
					 const struct pointwise_image *image)
{
	struct pointwise_origin o = { .step = (ptrdiff_t)band->step };

	for (unsigned c = 0; c < POINTWISE_CHANNELS; c++) {
		o.channel[c] = band->channel[c];
		if (image->mirror)
			o.channel[c] += (image->size.width - 1) * band->step;
	}
	if (image->mirror)
		o.step = -o.step;
	return o;
}

static void origin_next(struct pointwise_origin *o, const struct band *band)
{
	for (unsigned c = 0; c < POINTWISE_CHANNELS; c++)
		o->channel[c] += band->stride;
}

static struct pointwise_target target_of(const struct pointwise *stage,
					 const struct pointwise_image *image,
					 size_t y)
{
	size_t width = image->size.width, size = dtype_size(stage->dtype);
	struct pointwise_target t = { .plane = 1, .step = POINTWISE_CHANNELS };

	if (stage->layout == LAYOUT_CHW) {
		t.plane = width * image->size.height;
		t.step = 1;
	}
	t.start = (uint8_t *)image->out + y * width * t.step * size;
	return t;
}

/* Writes values of a channel to a tensor, `step` elements apart. */
static void scatter(const uint8_t *values, size_t count, size_t size,
		    size_t step, uint8_t *to)
{
	if (step == 1) {
		memcpy(to, values, count * size);
		return;
	}
	for (size_t i = 0; i < count; i++)
		memcpy(to + i * step * size, values + i * size, size);
}

/* Makes a row pixel by pixel, since an operation needs all three values. */
static void define_row(const struct pointwise *stage,
		       const struct pointwise_image *image,
		       const struct pointwise_origin *from,
		       const struct pointwise_target *target)
{
	size_t size = dtype_size(stage->dtype), width = image->size.width;
	uint8_t *to = target->start;
	struct definition_lot lot;

	for (size_t x = 0; x < width; x += lot.count) {
		definition_begin(&lot, 0, POINTWISE_CHANNELS,
				 width - x < DEFINITION_LOT ? width - x
							    : DEFINITION_LOT);
		for (unsigned c = 0; c < POINTWISE_CHANNELS; c++) {
			const uint8_t *in =
				from->channel[c] + from->step * (ptrdiff_t)x;

			for (size_t i = 0; i < lot.count; i++)
				lot.now[c].byte[i] =
					in[from->step * (ptrdiff_t)i];
		}
		definition_run(stage->chain, image->operands, &lot);
		for (unsigned c = 0; c < POINTWISE_CHANNELS; c++)
			scatter(lot.now[c].byte, lot.count, size, target->step,
				to + (x * target->step + c * target->plane) *
						size);
	}
}

static void define_band(const struct pointwise *stage,
			const struct pointwise_image *image,
			const struct band *band)
{
	look_up_fn *look_up =
		look_ups[dtype_size(stage->dtype)][stage->layout == LAYOUT_CHW];
	const union pointwise_table *table = &stage->table;
	struct pointwise_origin from = origin_of(band, image);
	union pointwise_table own;

	if (stage->varies && !stage->is_wide) {
		pointwise_fill_table(stage, image->operands, &own);
		table = &own;
	}
	for (uint32_t y = 0; y < band->rows; y++, origin_next(&from, band)) {
		struct pointwise_target target =
			target_of(stage, image, band->y + y);

		if (stage->is_wide)
			define_row(stage, image, &from, &target);
		else
			look_up(table, &from, image->size.width, &target);
	}
}

/* --- rows, by a kernel --- */

/* Pixels that are reordered for a kernel, or streamed, at a time. */
enum { PIECE = 512 };

/* On the stack, pieces begin with a cache line. Otherwise the frames of callers
   decide how many of a kernel's stores cross lines, and whether that costs a
   third of an image of 224 pixels. */
enum { CACHE_LINE = 64 };

struct pointwise_piece {
	_Alignas(CACHE_LINE) uint8_t bytes[2][POINTWISE_CHANNELS * PIECE];
};

static bool is_in_order(const struct pointwise *stage,
			const struct pointwise_origin *from)
{
	return from->step == (stage->flat ? POINTWISE_CHANNELS : 1);
}

/*
 * Copies `count` pixels from x on, in the order of the result, to the memory of
 * the piece, unless they are in the order that the kernel needs.
 */
static void gather_piece(const struct pointwise *stage,
			 const struct pointwise_origin *from, uint32_t x,
			 uint32_t count, struct pointwise_piece *piece,
			 const uint8_t *in[POINTWISE_CHANNELS])
{
	const struct gather *g = stage->isa->gather;
	ptrdiff_t first = (ptrdiff_t)x * from->step;

	if (from->step < 0)
		first += (ptrdiff_t)(count - 1) * from->step;
	for (unsigned c = 0; c < POINTWISE_CHANNELS; c++)
		in[c] = from->channel[c] + first;
	if (is_in_order(stage, from))
		return;
	if (stage->flat && from->step == -POINTWISE_CHANNELS) {
		g->turn(in[0], count, piece->bytes[0]);
		in[0] = piece->bytes[0];
		return;
	}
	if (from->step == 3 || from->step == -3) {
		g->split(in[0], count, piece->bytes[0], PIECE);
		for (unsigned c = 0; c < POINTWISE_CHANNELS; c++)
			in[c] = piece->bytes[0] + c * PIECE;
	}
	for (unsigned c = 0; c < POINTWISE_CHANNELS && from->step < 0; c++) {
		g->reverse(in[c], count, piece->bytes[1] + c * PIECE);
		in[c] = piece->bytes[1] + c * PIECE;
	}
	if (stage->flat) {
		uint8_t *joined = piece->bytes[from->step >= 0];

		g->join(in, count, joined);
		in[0] = joined;
	}
}

static void map_span(const struct pointwise *stage, const struct byte_map *map,
		     const struct beton_span *span)
{
	size_t count = span->count;

	if (stage->flat) {
		byte_map_run(map, span->in[0], POINTWISE_CHANNELS * count,
			     span->out[0]);
		return;
	}
	for (unsigned c = 0; c < POINTWISE_CHANNELS; c++)
		byte_map_run(map, span->in[c], count, span->out[c]);
}

/* Without a kernel, by a map. */
static void run_span(const struct pointwise *stage, kernel_fn *run,
		     const struct byte_map *map, const struct beton_span *span)
{
	if (run)
		run(span);
	else
		map_span(stage, map, span);
}

/* Makes the values of at most PIECE pixels in the CPU's caches, then streams
   them to the tensor. */
static void stream_span(const struct pointwise *stage, kernel_fn *run,
			const struct byte_map *map,
			const struct beton_span *span)
{
	_Alignas(CACHE_LINE) uint64_t values[POINTWISE_CHANNELS * PIECE];
	unsigned parts = stage->layout == LAYOUT_CHW ? POINTWISE_CHANNELS : 1;
	size_t size = POINTWISE_CHANNELS / parts * span->count *
		      dtype_size(stage->dtype);
	struct beton_span here = *span;

	for (unsigned i = 0; i < parts; i++)
		here.out[i] = (uint8_t *)values + i * size;
	run_span(stage, run, map, &here);
	for (unsigned i = 0; i < parts; i++)
		stream_piece(span->out[i], here.out[i], size);
}

static void kernel_row(const struct pointwise *stage, kernel_fn *run,
		       const struct pointwise_image *image,
		       const struct pointwise_origin *from,
		       const struct pointwise_target *target,
		       struct beton_span *span)
{
	bool is_whole = is_in_order(stage, from) && !image->is_streamed;
	size_t size = dtype_size(stage->dtype);
	uint32_t count, width = span->width;
	struct pointwise_piece piece;
	const uint8_t *in[POINTWISE_CHANNELS];

	for (uint32_t x = 0; x < width; x += count) {
		count = is_whole ? width : (uint32_t)min_u64(width - x, PIECE);
		gather_piece(stage, from, x, count, &piece, in);
		for (unsigned c = 0; c < POINTWISE_CHANNELS; c++) {
			span->in[c] = in[c];
			span->out[c] =
				(uint8_t *)target->start +
				(x * target->step + c * target->plane) * size;
		}
		span->x = x;
		span->count = count;
		if (image->is_streamed)
			stream_span(stage, run, image->map, span);
		else
			run_span(stage, run, image->map, span);
	}
}

static void kernel_band(const struct pointwise *stage, kernel_fn *run,
			const struct pointwise_image *image,
			const struct band *band)
{
	struct beton_span span = {
		.operands = image->operands,
		.width = image->size.width,
		.height = image->size.height,
	};
	struct pointwise_origin from = origin_of(band, image);

	if (stage->flat)
		span.operands += stage->chain->num_operands;
	for (uint32_t y = 0; y < band->rows; y++, origin_next(&from, band)) {
		struct pointwise_target target =
			target_of(stage, image, band->y + y);

		span.y = band->y + y;
		kernel_row(stage, run, image, &from, &target, &span);
	}
}

/* --- rows, as they are --- */

static void copy_rows(const struct band *band, uint32_t width, uint8_t *out)
{
	size_t row = POINTWISE_CHANNELS * (size_t)width;

	out += band->y * row;
	if (band->stride == row) {
		memcpy(out, band->channel[0], row * band->rows);
		return;
	}
	for (size_t y = 0; y < band->rows; y++)
		memcpy(out + y * row, band->channel[0] + y * band->stride, row);
}

/* The same, with left and right exchanged. */
static void turn_rows(const struct pointwise *stage, const struct band *band,
		      uint32_t width, uint8_t *out)
{
	size_t row = POINTWISE_CHANNELS * (size_t)width;

	out += band->y * row;
	for (size_t y = 0; y < band->rows; y++)
		stage->isa->gather->turn(band->channel[0] + y * band->stride,
					 width, out + y * row);
}

/* Whether a table lookup is faster than `run`. */
static bool is_table_faster(const struct pointwise *stage,
			    const struct pointwise_image *image,
			    const struct band *band)
{
	bool as_it_is = !image->mirror &&
			band->step == (stage->flat ? POINTWISE_CHANNELS : 1);

	if (!stage->isa->is_weak || stage->is_wide || stage->varies)
		return false;
	return !as_it_is || dtype_is_short_real(stage->dtype);
}

bool pointwise_gains_by_stream(const struct pointwise *stage, uint32_t width)
{
	size_t size = dtype_size(stage->dtype);
	size_t step = stage->layout == LAYOUT_CHW ? 1 : POINTWISE_CHANNELS;

	return STREAM_COPY_IS_STREAM && size >= sizeof(float) &&
	       width * step * size % STREAM_COPY_LINE == 0;
}

void pointwise_band(const struct pointwise *stage,
		    const struct pointwise_image *image,
		    const struct band *band)
{
	kernel_fn *run;

	if (pointwise_is_copy(stage) && band->step == POINTWISE_CHANNELS) {
		if (image->mirror)
			turn_rows(stage, band, image->size.width, image->out);
		else
			copy_rows(band, image->size.width, image->out);
		return;
	}
	run = atomic_load_explicit(&stage->kernel, memory_order_acquire);
	if (image->map)
		kernel_band(stage, NULL, image, band);
	else if (run && !is_table_faster(stage, image, band))
		kernel_band(stage, run, image, band);
	else
		define_band(stage, image, band);
}

/* --- is a kernel right? --- */

enum { TRIAL_WIDTH = 2 * KERNEL_PIXELS + 23, TRIAL_HEIGHT = 2 };

struct trial {
	uint8_t pixels[POINTWISE_CHANNELS * TRIAL_WIDTH * TRIAL_HEIGHT];
	uint64_t out[2][POINTWISE_CHANNELS * TRIAL_WIDTH * TRIAL_HEIGHT];
};

/*
 * Compares a kernel with the definitions, for row 1 and mirrored: operands of
 * row 0, or the first pixels, could hide a compiler's mistake.
 */
static bool try_kernel(const struct pointwise *stage, kernel_fn *run,
		       struct trial *t, float *scratch)
{
	const struct pipeline_row row = { .id = 1 };
	struct pointwise_image image = {
		.size = { TRIAL_WIDTH, TRIAL_HEIGHT },
		.mirror = true,
		.operands = pointwise_operands(stage, &row, scratch),
	};
	struct band band = { .channel = { t->pixels, t->pixels + 1,
					  t->pixels + 2 },
			     .step = POINTWISE_CHANNELS,
			     .stride = POINTWISE_CHANNELS * TRIAL_WIDTH,
			     .rows = TRIAL_HEIGHT };
	struct rng rng = { .key = 1 };

	for (size_t i = 0; i < sizeof(t->pixels); i++)
		t->pixels[i] = (uint8_t)rng_next(&rng);
	image.out = t->out[0];
	define_band(stage, &image, &band);
	image.out = t->out[1];
	kernel_band(stage, run, &image, &band);
	return !memcmp(t->out[0], t->out[1], sizeof(t->out[0]));
}

bool pointwise_agrees(const struct pointwise *stage, kernel_fn *run)
{
	struct trial *t;
	float *scratch;
	bool agrees;

	if (stage->is_custom)
		return true;
	t = calloc(1, sizeof(*t));
	scratch = calloc(stage->num_floats + 1, sizeof(*scratch));
	agrees = t && scratch && try_kernel(stage, run, t, scratch);
	free(t);
	free(scratch);
	return agrees;
}
