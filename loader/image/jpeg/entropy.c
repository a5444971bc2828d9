/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/entropy.h"

#include <stdbool.h>

#include "fs/base/util/bytes.h"
#include "loader/image/jpeg/entry_index.h"
#include "loader/image/jpeg/huffman.h"
#include "loader/image/jpeg/stuffing.h"

/*
 * Compiled with and without the instructions that make it fast, and for full
 * and reduced images. A constant `side` gains some percent.
 */
#define INLINE static inline __attribute__((always_inline))

enum {
	BLOCK_END = IDCT_SIZE,
	/* A block, and what is written past its end, aligned. */
	BLOCK_ROOM = IDCT_SIZE + IDCT_ALIGN,
	REFILLED = 56, /* bits; five windows of eleven */
	/* A difference that turns any predictor into a refused one. */
	DC_NONE = 1 << 16,
};

/* The next bits are the highest of `window`; `left` counts the valid ones. */
struct entropy_reader {
	uint64_t window;
	uint64_t left;
	const uint8_t *at;
};

struct entropy_decoder {
	const struct entropy_scan *scan;
	int16_t *blocks; /* two */
	int16_t *next;	 /* coefficients of the next one; all are 0 */
	/* The last decoded block. It has a component, or there is none. */
	const struct entropy_component *component;
	int16_t *last;
	uint8_t *out;
};

size_t entropy_unstuff(const uint8_t *bytes, size_t size, uint8_t *out,
		       size_t *n)
{
	size_t read = stuffing_remove(bytes, size, out, n);

	memset(out + *n, 0, ENTROPY_PAD);
	return read;
}

/*
 * Refills the window to at least 56 and at most 63 bits. Valid bits stay the
 * same.
 */
INLINE void refill(struct entropy_reader *r)
{
	r->window |= __builtin_bswap64(load64(r->at)) >> r->left;
	r->at += (63 - r->left) >> 3;
	r->left |= REFILLED;
}

INLINE void skip_bits(struct entropy_reader *r, uint64_t n)
{
	r->window <<= n & 63;
	r->left -= n;
}

INLINE uint64_t position(const struct entropy_reader *r, const uint8_t *start)
{
	return (uint64_t)(r->at - start) * 8 - r->left;
}

INLINE void seek(struct entropy_reader *r, const uint8_t *start, uint64_t bit)
{
	*r = (struct entropy_reader){ .at = start + bit / 8 };
	refill(r);
	skip_bits(r, bit % 8);
}

/* Drops the skipped bits. */
INLINE void go_back(struct entropy_reader *r, uint64_t n)
{
	uint64_t ahead = r->left + n;

	seek(r, r->at - (ahead + 7) / 8, -ahead & 7);
}

/*
 * Decodes an entry. True: it ends past the block's end, and *k is where it
 * began.
 */
INLINE bool take_entry(struct entropy_reader *r, const struct huffman_ac *ac,
		       int16_t *out, unsigned *k,
		       const struct huffman_pair **entry)
{
	const struct huffman_pair *e =
		&ac->entries[r->window >> (64 - HUFFMAN_AC_BITS)];
	const uint8_t *place = IDCT_PLACE + *k;
	unsigned next = *k + e->advance;

	skip_bits(r, e->bits);
	out[place[e->skip1]] = e->value1;
	out[place[e->skip2]] = e->value2;
	*entry = e;
	if (next >= BLOCK_END)
		return true;
	*k = next;
	return false;
}

/* Decodes entries to the block's end. A refill lasts for five. */
INLINE const struct huffman_pair *take_entries(struct entropy_reader *r,
					       const struct huffman_ac *ac,
					       int16_t *out, unsigned *k)
{
	const struct huffman_pair *e;

	do {
		refill(r);
	} while (!take_entry(r, ac, out, k, &e) &&
		 !take_entry(r, ac, out, k, &e) &&
		 !take_entry(r, ac, out, k, &e) &&
		 !take_entry(r, ac, out, k, &e) &&
		 !take_entry(r, ac, out, k, &e));
	return e;
}

/*
 * Decodes a symbol that is too long for the table. Returns the next k, which is
 * above BLOCK_END for an end of the block. 0: there is no such code.
 */
INLINE unsigned take_symbol(struct entropy_reader *r,
			    const struct huffman_ac *ac,
			    const struct huffman_pair *e, int16_t *out,
			    unsigned k)
{
	uint8_t symbol = (uint8_t)e->value1;
	unsigned length = e->bits1;

	refill(r);
	if (!length)
		length = huffman_find(&ac->codes, r->window, &symbol);
	if (!length)
		return 0;
	skip_bits(r, length);

	unsigned size = symbol & 15;
	unsigned at = k + (symbol >> 4);

	if (!symbol)
		return HUFFMAN_END;
	if (at >= BLOCK_END)
		return 0;
	if (!size)
		return at + 1;
	if (out)
		out[IDCT_PLACE[at]] = (int16_t)huffman_value(
			(uint32_t)(r->window >> (64 - size)), size);
	skip_bits(r, size);
	return at + 1;
}

/* The meaning of an entry that ends past the block's end. */
enum end {
	END_NOT_YET,
	END_GOOD,
	END_FLAT, /* and all AC coefficients are 0 */
	END_DAMAGED,
};

/*
 * If the entry's first symbol fills the block, the second belongs to the next
 * block.
 */
INLINE enum end end_pair(struct entropy_reader *r, const struct huffman_pair *e,
			 unsigned k)
{
	unsigned first = k + e->skip1 + 1;

	if (first > BLOCK_END)
		return END_DAMAGED;
	if (first == BLOCK_END) {
		if (e->bits1 != e->bits)
			go_back(r, e->bits - e->bits1);
		return END_GOOD;
	}
	if (e->advance == HUFFMAN_END && k == 1)
		return END_FLAT;
	if (e->advance >= HUFFMAN_END || k + e->advance == BLOCK_END)
		return END_GOOD;
	return END_DAMAGED;
}

INLINE enum end end_entry(struct entropy_reader *r, const struct huffman_ac *ac,
			  const struct huffman_pair *e, int16_t *out,
			  unsigned *k)
{
	if (e->advance < HUFFMAN_MISS)
		return end_pair(r, e, *k);
	*k = take_symbol(r, ac, e, out, *k);
	if (*k >= BLOCK_END)
		return END_GOOD;
	return *k ? END_NOT_YET : END_DAMAGED;
}

/* Decodes the AC coefficients from k on. */
INLINE enum end take_ac(struct entropy_reader *r, const struct huffman_ac *ac,
			int16_t *out, unsigned k)
{
	enum end end;

	do {
		const struct huffman_pair *e = take_entries(r, ac, out, &k);

		end = end_entry(r, ac, e, out, &k);
	} while (end == END_NOT_YET);
	return end;
}

/* As take_entry(), without values. */
INLINE bool skip_entry(struct entropy_reader *r, const struct huffman_ac *ac,
		       unsigned *k, const struct huffman_skip **entry)
{
	const struct huffman_skip *e =
		&ac->skips[r->window >> (64 - HUFFMAN_AC_BITS)];
	unsigned next = *k + e->advance;

	skip_bits(r, e->bits);
	*entry = e;
	if (next >= BLOCK_END)
		return true;
	*k = next;
	return false;
}

/* Whether a block ends exactly where the entry ends. */
INLINE bool is_end(const struct huffman_skip *e, unsigned k)
{
	if (e->advance < HUFFMAN_END)
		return k + e->advance == BLOCK_END;
	return e->advance < HUFFMAN_MISS &&
	       k + e->advance - HUFFMAN_END < BLOCK_END;
}

/* Skips the AC coefficients. False: damage. A refill lasts for two entries. */
INLINE bool skip_ac(struct entropy_reader *r, const struct huffman_ac *ac)
{
	static const struct huffman_pair unknown;
	const struct huffman_skip *e;
	unsigned k = 1;

	for (;;) {
		do {
			refill(r);
		} while (!skip_entry(r, ac, &k, &e) &&
			 !skip_entry(r, ac, &k, &e));
		if (is_end(e, k))
			return true;
		go_back(r, e->bits);
		k = take_symbol(r, ac, &unknown, NULL, k);
		if (k >= BLOCK_END)
			return true;
		if (!k)
			return false;
	}
}

/* Decodes the difference to the last DC coefficient. DC_NONE: no such code. */
INLINE int32_t take_dc(struct entropy_reader *r, const struct huffman_dc *dc)
{
	unsigned i = (unsigned)(r->window >> (64 - HUFFMAN_DC_BITS));
	unsigned bits = dc->entries[i].bits;
	unsigned size = dc->entries[i].size;

	if (__builtin_expect(!bits, 0)) {
		uint8_t symbol = 0;

		bits = huffman_find(&dc->codes, r->window, &symbol);
		if (!bits)
			return DC_NONE;
		size = symbol;
		bits += size;
	}

	uint32_t v = (uint32_t)(r->window >> (64 - bits));

	skip_bits(r, bits);
	return huffman_value(v, size);
}

/* The value of all samples, without a transform. */
INLINE void put_flat(const struct entropy_component *c, uint32_t side,
		     int32_t dc, uint8_t *out)
{
	uint8_t v = idct_flat(dc, c->quant[IDCT_PLACE[0]], side);

	for (size_t i = 0; i < side; i++, out += c->stride)
		if (side == IDCT_SIDE)
			store64(out, v * 0x0101010101010101u);
		else if (side == 4)
			store32(out, v * 0x01010101u);
		else if (side == 2)
			store16(out, (uint16_t)(v * 0x0101u));
		else
			*out = v;
}

/*
 * Transforms the previous block. Coefficients that were just written, two bytes
 * at a time, cannot be read as vectors without a wait.
 */
INLINE void put_last(struct entropy_decoder *d)
{
	const struct entropy_component *c = d->component;

	if (c)
		c->idct(d->last, c->quant, d->out, c->stride);
}

INLINE void put_block(struct entropy_decoder *d,
		      const struct entropy_component *c, int16_t *coefficients,
		      uint8_t *out)
{
	put_last(d);
	d->next = d->component ? d->last : d->blocks + BLOCK_ROOM;
	d->last = coefficients;
	d->component = c;
	d->out = out;
}

/* Changes a predictor; false: damage. */
INLINE bool add_dc(struct entropy_reader *r, const struct entropy_component *c,
		   int32_t *dc)
{
	refill(r);
	*dc += take_dc(r, c->dc);
	return *dc >= ENTRY_DC_MIN && *dc <= ENTRY_DC_MAX;
}

/* Turns a block into samples, unless it is damaged. */
INLINE bool put_end(struct entropy_decoder *d,
		    const struct entropy_component *c, uint32_t side,
		    int32_t dc, int16_t *coefficients, enum end end,
		    uint8_t *out)
{
	if (end == END_DAMAGED)
		return false;
	if (end == END_FLAT) {
		put_flat(c, side, dc, out);
		return true;
	}
	coefficients[IDCT_PLACE[0]] = (int16_t)dc;
	put_block(d, c, coefficients, out);
	return true;
}

INLINE bool take_block(struct entropy_reader *r, struct entropy_decoder *d,
		       const struct entropy_component *c, uint32_t side,
		       int32_t *dc, uint8_t *out)
{
	int16_t *to = d->next;
	enum end end;

	if (!add_dc(r, c, dc))
		return false;
	end = take_ac(r, c->ac, to, 1);
	return put_end(d, c, side, *dc, to, end, out);
}

INLINE bool skip_block(struct entropy_reader *r,
		       const struct entropy_component *c, int32_t *dc)
{
	return add_dc(r, c, dc) && skip_ac(r, c->ac);
}

/* Decodes a block. For a single sample, the DC coefficient is enough. */
INLINE bool take_or_skip(struct entropy_reader *r, struct entropy_decoder *d,
			 const struct entropy_component *c, uint32_t side,
			 int32_t *dc, uint8_t *out)
{
	if (out && side > 1)
		return take_block(r, d, c, side, dc, out);
	if (!skip_block(r, c, dc))
		return false;
	if (out)
		put_flat(c, side, *dc, out);
	return true;
}

/* A block of an MCU. */
struct entropy_block {
	const struct entropy_component *component;
	int32_t *dc; /* the component's predictor */
	uint32_t x;  /* in the MCU */
	uint32_t y;
	uint8_t *row; /* samples of the row of blocks; NULL: not wanted */
};

/* Lists the blocks of an MCU in the order of the data. Returns their number. */
static unsigned list_blocks(const struct entropy_scan *scan,
			    int32_t dc[ENTROPY_COMPONENTS],
			    struct entropy_block blocks[ENTROPY_BLOCKS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < scan->components; i++) {
		const struct entropy_component *c = &scan->component[i];

		for (uint32_t y = 0; y < c->blocks_down; y++)
			for (uint32_t x = 0; x < c->blocks_across; x++)
				blocks[n++] =
					(struct entropy_block){ c, &dc[i], x, y,
								NULL };
	}
	return n;
}

/* Sets the rows of a row of MCUs. */
static void set_rows(struct entropy_block *blocks, unsigned n, uint32_t y)
{
	for (struct entropy_block *b = blocks; b < blocks + n; b++) {
		const struct entropy_component *c = b->component;
		uint32_t row = y * c->blocks_down + b->y - c->y;

		b->row = NULL;
		if (row < c->height)
			b->row = c->samples + (size_t)row * c->side * c->stride;
	}
}

INLINE bool take_mcu(struct entropy_reader *r, struct entropy_decoder *d,
		     const struct entropy_block *blocks, unsigned n,
		     bool reduced, uint32_t x)
{
	for (const struct entropy_block *b = blocks; b < blocks + n; b++) {
		const struct entropy_component *c = b->component;
		uint32_t side = reduced ? c->side : IDCT_SIDE;
		uint32_t at = x * c->blocks_across + b->x - c->x;
		uint8_t *out = NULL;

		if (at < c->width && b->row)
			out = b->row + (size_t)at * side;
		if (!take_or_skip(r, d, c, side, b->dc, out))
			return false;
	}
	return true;
}

INLINE const char *decode(struct entropy_decoder *d, struct entropy_run *run,
			  bool reduced)
{
	const struct entropy_scan *scan = d->scan;
	const uint8_t *end = run->bytes + run->size + 16;
	uint32_t x = run->mcu % scan->mcus_across;
	uint32_t y = run->mcu / scan->mcus_across;
	int32_t dc[ENTROPY_COMPONENTS] = { run->dc[0], run->dc[1], run->dc[2] };
	struct entropy_block blocks[ENTROPY_BLOCKS];
	unsigned n = list_blocks(scan, dc, blocks);
	struct entropy_mark *mark = run->marks;
	uint32_t first_due = mark ? 0 : UINT32_MAX;
	uint32_t due = first_due;
	struct entropy_reader r;

	set_rows(blocks, n, y);
	seek(&r, run->bytes, run->bit);
	for (uint32_t i = 0; i < run->n; i++) {
		if (x == due) {
			*mark++ = (struct entropy_mark){
				position(&r, run->bytes),
				{ dc[0], dc[1], dc[2] },
			};
			due += run->step;
		}
		if (!take_mcu(&r, d, blocks, n, reduced, x))
			return "a code that no encoder writes";
		if (r.at > end)
			break;
		if (++x == scan->mcus_across) {
			x = 0;
			set_rows(blocks, n, ++y);
			due = first_due;
		}
	}
	put_last(d);
	run->bit = position(&r, run->bytes);
	if (run->bit > (uint64_t)run->size * 8)
		return "a premature end of the data";
	memcpy(run->dc, dc, sizeof(dc));
	run->mcu += run->n;
	run->n = 0;
	return NULL;
}

#ifdef __x86_64__
#	define AVX2 __attribute__((target("avx2,bmi,bmi2")))

AVX2 static const char *decode_avx2(struct entropy_decoder *d,
				    struct entropy_run *run)
{
	return decode(d, run, false);
}

AVX2 static const char *reduce_avx2(struct entropy_decoder *d,
				    struct entropy_run *run)
{
	return decode(d, run, true);
}
#endif

static const char *decode_plain(struct entropy_decoder *d,
				struct entropy_run *run)
{
	return decode(d, run, false);
}

static const char *reduce_plain(struct entropy_decoder *d,
				struct entropy_run *run)
{
	return decode(d, run, true);
}

static bool is_reduced(const struct entropy_scan *scan)
{
	for (unsigned i = 0; i < scan->components; i++)
		if (scan->component[i].side < IDCT_SIDE)
			return true;
	return false;
}

const char *entropy_decode(const struct entropy_scan *scan,
			   struct entropy_run *run)
{
	_Alignas(IDCT_ALIGN) int16_t blocks[2 * BLOCK_ROOM] = { 0 };
	struct entropy_decoder d = {
		.scan = scan,
		.blocks = blocks,
		.next = blocks,
	};

	bool reduced = is_reduced(scan);

#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
		return reduced ? reduce_avx2(&d, run) : decode_avx2(&d, run);
#endif
	return reduced ? reduce_plain(&d, run) : decode_plain(&d, run);
}
