/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/jit/tail.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "loader/graph/operands.h"
#include "loader/jit/definition.h"
#include "loader/jit/emit.h"

/* --- tables --- */

/* Returns whether values do not change. */
static bool fill_table(const struct tail *tail, const float *operands,
		       union tail_table *table)
{
	size_t size = TAIL_VALUES * dtype_size(tail->dtype);
	uint8_t *values = (uint8_t *)table;
	bool plain = true;

	for (unsigned c = 0; c < TAIL_CHANNELS; c++)
		plain &= definition_table(tail->chain, operands, c,
					  values + c * size);
	return plain;
}

/* Whether the channels have the same operands. */
static bool is_of_all_channels(const struct chain *chain, const float *operands)
{
	for (size_t i = 0; i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];
		size_t count = n->op->num_operands;
		const float *first = operands + n->first_operand;

		if (!node_is_value(n))
			continue;
		for (size_t k = count; k < TAIL_CHANNELS * count; k++) {
			if (first[k] != first[k - count])
				return false;
		}
	}
	return true;
}

const struct byte_map *tail_map(const struct tail *tail, const float *operands,
				struct byte_map *scratch)
{
	uint8_t table[TAIL_VALUES];

	if (!tail->varies)
		return tail->has_map ? &tail->map : NULL;
	if (!tail->is_of_bytes || !is_of_all_channels(tail->chain, operands))
		return NULL;
	definition_table(tail->chain, operands, 0, table);
	byte_map_init(scratch, table);
	return scratch;
}

/* --- a tail --- */

/* Repeats each operand for all lanes of a flat kernel. */
static void spread(const struct tail *tail, const float *operands, float *out)
{
	const struct chain *chain = tail->chain;

	for (size_t i = 0; i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];
		size_t count = n->op->num_operands;
		const float *from = operands + n->first_operand;

		if (!node_is_value(n))
			continue;
		for (size_t k = 0; k < count * KERNEL_LANES; k++)
			*out++ = from[k % TAIL_CHANNELS * count +
				      k / KERNEL_LANES];
	}
}

const float *tail_operands(const struct tail *tail,
			   const struct pipeline_row *row, float *scratch)
{
	size_t count = tail->chain->num_operands;

	if (!tail->varies)
		return tail->operands;
	operands_fill(tail->chain, row, scratch);
	if (tail->flat)
		spread(tail, scratch, scratch + count);
	return scratch;
}

static void init_facts(struct tail *tail, const struct chain *chain)
{
	const struct type *type = chain_type(chain);

	tail->chain = chain;
	tail->dtype = type->dtype;
	tail->layout = type->layout;
	tail->varies = operands_vary(chain);
	tail->flat = emit_is_flat(chain);
	tail->num_floats = chain->num_operands;
	if (tail->flat)
		tail->num_floats +=
			chain->num_operands / TAIL_CHANNELS * KERNEL_LANES;
	for (size_t i = 0; i < chain->num_nodes; i++) {
		tail->is_own |= chain->nodes[i].own != NULL;
		tail->is_wide |= chain->nodes[i].op->kind == OP_PIXEL;
	}
	tail->is_of_bytes =
		type->dtype == DTYPE_U1 && !tail->is_wide && !tail->is_own;
}

void tail_set_kernel(struct tail *tail, kernel_fn *run, enum tail_engine engine)
{
	atomic_store(&tail->engine, engine);
	atomic_store_explicit(&tail->kernel, run, memory_order_release);
}

int tail_emit(struct tail *tail)
{
	free(tail->code);
	tail->code = emit_chain(tail->chain);
	return tail->code ? 0 : -ENOMEM;
}

static int find_prebuilt(struct tail *tail)
{
	kernel_fn *run;
	int r = tail_emit(tail);

	if (r)
		return r;
	run = isa_find(tail->isa, tail->code);
	if (run)
		tail_set_kernel(tail, run, TAIL_PREBUILT);
	return 0;
}

int tail_init(struct tail *tail, const struct chain *chain,
	      const struct isa *isa)
{
	*tail = (struct tail){ .isa = isa };
	init_facts(tail, chain);
	if (!tail->varies) {
		tail->operands =
			calloc(tail->num_floats + 1, sizeof(*tail->operands));
		if (!tail->operands)
			return -ENOMEM;
		operands_fill(chain, NULL, tail->operands);
		if (tail->flat)
			spread(tail, tail->operands,
			       tail->operands + chain->num_operands);
		if (!tail->is_wide)
			tail->plain =
				fill_table(tail, tail->operands, &tail->table);
		tail->has_map = tail->is_of_bytes &&
				is_of_all_channels(chain, tail->operands);
		if (tail->has_map)
			byte_map_init(&tail->map, tail->table.of_8);
	}
	return tail->is_own ? 0 : find_prebuilt(tail);
}

void tail_fini(struct tail *tail)
{
	free(tail->operands);
	free(tail->code);
}

bool tail_is_copy(const struct tail *tail)
{
	return tail->plain && tail->layout == LAYOUT_HWC;
}

enum tail_engine tail_engine(const struct tail *tail)
{
	return tail_is_copy(tail) ? TAIL_NOTHING : atomic_load(&tail->engine);
}

const char *tail_engine_name(const struct tail *tail)
{
	static const char *const names[] = { "generic", "prebuilt", "generated",
					     "none" };

	return names[tail_engine(tail)];
}

/* --- rows, by the definition --- */

/* The source of a row, from its first pixel or, mirrored, its last. */
struct origin {
	const uint8_t *channel[TAIL_CHANNELS];
	ptrdiff_t step;
};

/* The destination of a row, in elements of its type. */
struct target {
	void *start;
	size_t plane; /* from a channel to the next */
	size_t step;  /* from a pixel to the next */
};

/* put_values() for elements of 8, 16, 32 and 64 bits. */
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
 * Writes planes of narrow elements 32 bits at a time. CPUs whose first cache
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

/* Element 0 of the first row. */
static struct origin origin_of(const struct band *band,
			       const struct tail_image *image)
{
	struct origin o = { .step = (ptrdiff_t)band->step };

	for (unsigned c = 0; c < TAIL_CHANNELS; c++) {
		o.channel[c] = band->channel[c];
		if (image->mirror)
			o.channel[c] += (image->size.width - 1) * band->step;
	}
	if (image->mirror)
		o.step = -o.step;
	return o;
}

static void origin_next(struct origin *o, const struct band *band)
{
	for (unsigned c = 0; c < TAIL_CHANNELS; c++)
		o->channel[c] += band->stride;
}

static struct target target_of(const struct tail *tail,
			       const struct tail_image *image, size_t y)
{
	size_t width = image->size.width, size = dtype_size(tail->dtype);
	struct target t = { .plane = 1, .step = TAIL_CHANNELS };

	if (tail->layout == LAYOUT_CHW) {
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
static void define_row(const struct tail *tail, const struct tail_image *image,
		       const struct origin *from, const struct target *target)
{
	size_t size = dtype_size(tail->dtype), width = image->size.width;
	uint8_t *to = target->start;
	struct definition_lot lot;

	for (size_t x = 0; x < width; x += lot.count) {
		definition_begin(&lot, 0, TAIL_CHANNELS,
				 width - x < DEFINITION_LOT ? width - x
							    : DEFINITION_LOT);
		for (unsigned c = 0; c < TAIL_CHANNELS; c++) {
			const uint8_t *in =
				from->channel[c] + from->step * (ptrdiff_t)x;

			for (size_t i = 0; i < lot.count; i++)
				lot.now[c].byte[i] =
					in[from->step * (ptrdiff_t)i];
		}
		definition_run(tail->chain, image->operands, &lot);
		for (unsigned c = 0; c < TAIL_CHANNELS; c++)
			scatter(lot.now[c].byte, lot.count, size, target->step,
				to + (x * target->step + c * target->plane) *
						size);
	}
}

static void define_band(const struct tail *tail, const struct tail_image *image,
			const struct band *band)
{
	look_up_fn *look_up =
		look_ups[dtype_size(tail->dtype)][tail->layout == LAYOUT_CHW];
	const union tail_table *table = &tail->table;
	struct origin from = origin_of(band, image);
	union tail_table own;

	if (tail->varies && !tail->is_wide) {
		fill_table(tail, image->operands, &own);
		table = &own;
	}
	for (uint32_t y = 0; y < band->rows; y++, origin_next(&from, band)) {
		struct target target = target_of(tail, image, band->y + y);

		if (tail->is_wide)
			define_row(tail, image, &from, &target);
		else
			look_up(table, &from, image->size.width, &target);
	}
}

/* --- rows, by a kernel --- */

/* Pixels that are reordered for a kernel at a time. */
enum { PIECE = 512 };

struct piece {
	uint8_t bytes[2][TAIL_CHANNELS * PIECE];
};

/*
 * Copies `count` pixels from x on, in the order of the result, to the memory of
 * the piece, in the order that the kernel needs.
 */
static void gather_piece(const struct tail *tail, const struct origin *from,
			 uint32_t x, uint32_t count, struct piece *piece,
			 const uint8_t *in[TAIL_CHANNELS])
{
	const struct gather *g = tail->isa->gather;
	ptrdiff_t first = (ptrdiff_t)x * from->step;

	if (from->step < 0)
		first += (ptrdiff_t)(count - 1) * from->step;
	for (unsigned c = 0; c < TAIL_CHANNELS; c++)
		in[c] = from->channel[c] + first;
	if (tail->flat && from->step == -TAIL_CHANNELS) {
		g->turn(in[0], count, piece->bytes[0]);
		in[0] = piece->bytes[0];
		return;
	}
	if (from->step == 3 || from->step == -3) {
		g->split(in[0], count, piece->bytes[0], PIECE);
		for (unsigned c = 0; c < TAIL_CHANNELS; c++)
			in[c] = piece->bytes[0] + c * PIECE;
	}
	for (unsigned c = 0; c < TAIL_CHANNELS && from->step < 0; c++) {
		g->reverse(in[c], count, piece->bytes[1] + c * PIECE);
		in[c] = piece->bytes[1] + c * PIECE;
	}
	if (tail->flat) {
		uint8_t *joined = piece->bytes[from->step >= 0];

		g->join(in, count, joined);
		in[0] = joined;
	}
}

static void map_span(const struct tail *tail, const struct byte_map *map,
		     const struct beton_span *span)
{
	size_t count = span->count;

	if (tail->flat) {
		byte_map_run(map, span->in[0], TAIL_CHANNELS * count,
			     span->out[0]);
		return;
	}
	for (unsigned c = 0; c < TAIL_CHANNELS; c++)
		byte_map_run(map, span->in[c], count, span->out[c]);
}

/* Without a kernel, by a map. */
static void kernel_row(const struct tail *tail, kernel_fn *run,
		       const struct byte_map *map, const struct origin *from,
		       const struct target *target, struct beton_span *span)
{
	bool as_it_is = from->step == (tail->flat ? 3 : 1);
	size_t size = dtype_size(tail->dtype);
	uint32_t count, width = span->width;
	struct piece piece;
	const uint8_t *in[TAIL_CHANNELS];

	for (uint32_t x = 0; x < width; x += count) {
		count = width;
		for (unsigned c = 0; c < TAIL_CHANNELS; c++)
			in[c] = from->channel[c];
		if (!as_it_is) {
			count = width - x < PIECE ? width - x : PIECE;
			gather_piece(tail, from, x, count, &piece, in);
		}
		for (unsigned c = 0; c < TAIL_CHANNELS; c++) {
			span->in[c] = in[c];
			span->out[c] =
				(uint8_t *)target->start +
				(x * target->step + c * target->plane) * size;
		}
		span->x = x;
		span->count = count;
		if (run)
			run(span);
		else
			map_span(tail, map, span);
	}
}

static void kernel_band(const struct tail *tail, kernel_fn *run,
			const struct tail_image *image, const struct band *band)
{
	struct beton_span span = {
		.operands = image->operands,
		.width = image->size.width,
		.height = image->size.height,
	};
	struct origin from = origin_of(band, image);

	if (tail->flat)
		span.operands += tail->chain->num_operands;
	for (uint32_t y = 0; y < band->rows; y++, origin_next(&from, band)) {
		struct target target = target_of(tail, image, band->y + y);

		span.y = band->y + y;
		kernel_row(tail, run, image->map, &from, &target, &span);
	}
}

/* --- rows, as they are --- */

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

/* The same, with left and right exchanged. */
static void turn_rows(const struct tail *tail, const struct band *band,
		      uint32_t width, uint8_t *out)
{
	size_t row = TAIL_CHANNELS * (size_t)width;

	out += band->y * row;
	for (size_t y = 0; y < band->rows; y++)
		tail->isa->gather->turn(band->channel[0] + y * band->stride,
					width, out + y * row);
}

/* Whether a table lookup is faster than `run`. */
static bool is_table_faster(const struct tail *tail,
			    const struct tail_image *image,
			    const struct band *band)
{
	bool as_it_is = !image->mirror &&
			band->step == (tail->flat ? TAIL_CHANNELS : 1);

	if (!tail->isa->is_weak || tail->is_wide || tail->varies)
		return false;
	return !as_it_is || tail->dtype == DTYPE_F2;
}

void tail_band(const struct tail *tail, const struct tail_image *image,
	       const struct band *band)
{
	kernel_fn *run;

	if (tail_is_copy(tail) && band->step == TAIL_CHANNELS) {
		if (image->mirror)
			turn_rows(tail, band, image->size.width, image->out);
		else
			copy_rows(band, image->size.width, image->out);
		return;
	}
	run = atomic_load_explicit(&tail->kernel, memory_order_acquire);
	if (image->map)
		kernel_band(tail, NULL, image, band);
	else if (run && !is_table_faster(tail, image, band))
		kernel_band(tail, run, image, band);
	else
		define_band(tail, image, band);
}

/* --- is a kernel right? --- */

enum { TRIAL_WIDTH = 2 * KERNEL_PIXELS + 23, TRIAL_HEIGHT = 2 };

struct trial {
	uint8_t pixels[TAIL_CHANNELS * TRIAL_WIDTH * TRIAL_HEIGHT];
	uint64_t out[2][TAIL_CHANNELS * TRIAL_WIDTH * TRIAL_HEIGHT];
};

/*
 * Compares a kernel with the definitions, for row 1 and mirrored: operands of
 * row 0, or the first pixels, could hide a compiler's mistake.
 */
static bool try_kernel(const struct tail *tail, kernel_fn *run, struct trial *t,
		       float *scratch)
{
	const struct pipeline_row row = { .id = 1 };
	struct tail_image image = {
		.size = { TRIAL_WIDTH, TRIAL_HEIGHT },
		.mirror = true,
		.operands = tail_operands(tail, &row, scratch),
	};
	struct band band = { .channel = { t->pixels, t->pixels + 1,
					  t->pixels + 2 },
			     .step = TAIL_CHANNELS,
			     .stride = TAIL_CHANNELS * TRIAL_WIDTH,
			     .rows = TRIAL_HEIGHT };
	struct rng rng = { .key = 1 };

	for (size_t i = 0; i < sizeof(t->pixels); i++)
		t->pixels[i] = (uint8_t)rng_next(&rng);
	image.out = t->out[0];
	define_band(tail, &image, &band);
	image.out = t->out[1];
	kernel_band(tail, run, &image, &band);
	return !memcmp(t->out[0], t->out[1], sizeof(t->out[0]));
}

bool tail_agrees(const struct tail *tail, kernel_fn *run)
{
	struct trial *t;
	float *scratch;
	bool agrees;

	if (tail->is_own)
		return true;
	t = calloc(1, sizeof(*t));
	scratch = calloc(tail->num_floats + 1, sizeof(*scratch));
	agrees = t && scratch && try_kernel(tail, run, t, scratch);
	free(t);
	free(scratch);
	return agrees;
}
