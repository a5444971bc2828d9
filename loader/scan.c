/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/scan.h"

#include <stdbool.h>

#include "fs/bytes.h"
#include "loader/entry.h"
#include "loader/huffman.h"

/* Compiled for machines with and without the instructions that make it fast. */
#define INLINE static inline __attribute__((always_inline))

enum {
	BLOCK_END = IDCT_SIZE,
	/* After a refill there are 56 bits: five windows of eleven. */
	LOOKUPS = 5,
	REFILLED = 56,
	/* What makes any predictor one that is refused. */
	DC_NONE = 1 << 16,
};

/*
 * The next bits are the highest of `window`. How many are there is the lowest
 * byte of `left`; its others mean nothing, so that a whole entry, whose lowest
 * byte is a number of bits, can be subtracted.
 */
struct reader {
	uint64_t window;
	uint64_t left;
	const uint8_t *at;
};

/* What does not change while a run is decoded. */
struct decoder {
	const struct scan *scan;
	idct_fn *idct;
	int16_t *coefficients; /* of a block, all 0 between blocks */
};

size_t scan_unstuff(const uint8_t *bytes, size_t size, uint8_t *out, size_t *n)
{
	size_t at = 0;
	size_t to = 0;

	while (at < size) {
		const uint8_t *ff = memchr(bytes + at, 0xff, size - at);
		size_t run = ff ? (size_t)(ff - bytes) - at : size - at;

		memcpy(out + to, bytes + at, run);
		at += run;
		to += run;
		if (size - at < 2 || bytes[at + 1])
			break;
		out[to++] = 0xff;
		at += 2;
	}
	memset(out + to, 0, SCAN_PAD);
	*n = to;
	return at;
}

/* Up to 63 bits, at least 56. Bits that are there already stay the same. */
INLINE void refill(struct reader *r)
{
	uint64_t left = r->left & 0xff;

	r->window |= __builtin_bswap64(load64(r->at)) >> left;
	r->at += (63 - left) >> 3;
	r->left = left | REFILLED;
}

INLINE void skip_bits(struct reader *r, uint64_t n)
{
	r->window <<= n & 63;
	r->left -= n;
}

INLINE uint64_t position(const struct reader *r, const uint8_t *start)
{
	return (uint64_t)(r->at - start) * 8 - (r->left & 0xff);
}

INLINE void seek(struct reader *r, const uint8_t *start, uint64_t bit)
{
	*r = (struct reader){ .at = start + bit / 8 };
	refill(r);
	skip_bits(r, bit % 8);
}

/* By bits that were skipped. */
INLINE void go_back(struct reader *r, uint64_t n)
{
	uint64_t ahead = (r->left & 0xff) + n;

	seek(r, r->at - (ahead + 7) / 8, -ahead & 7);
}

INLINE unsigned advance_of(uint64_t entry)
{
	return (entry >> 8) & 0xff;
}

INLINE unsigned skip1_of(uint64_t entry)
{
	return (entry >> 16) & 0xff;
}

INLINE unsigned skip2_of(uint64_t entry)
{
	return (entry >> 24) & 0xff;
}

INLINE int16_t value1_of(uint64_t entry)
{
	return (int16_t)(entry >> 32);
}

INLINE unsigned bits1_of(uint64_t entry)
{
	return (entry >> 48) & 0xff;
}

INLINE int16_t value2_of(uint64_t entry)
{
	return (int16_t)((int64_t)entry >> 56);
}

/*
 * Takes entries until one goes past the block's end, which is returned; *k is
 * then where it began. Values are stored if `out` is not NULL.
 */
INLINE uint64_t take_entries(struct reader *r, const struct huffman_ac *ac,
			     int16_t *out, unsigned *k)
{
	for (;;) {
		refill(r);
#pragma GCC unroll 5
		for (int i = 0; i < LOOKUPS; i++) {
			uint64_t e = ac->entries[r->window >>
						 (64 - HUFFMAN_AC_BITS)];
			unsigned next = *k + advance_of(e);

			if (out) {
				const uint8_t *place = IDCT_PLACE + *k;

				out[place[skip1_of(e)]] = value1_of(e);
				out[place[skip2_of(e)]] = value2_of(e);
			}
			skip_bits(r, e);
			if (next >= BLOCK_END)
				return e;
			*k = next;
		}
	}
}

/*
 * Takes a symbol that is too long for the table. Returns the next k, more than
 * BLOCK_END for an end of the block, or 0: there is no such code.
 */
INLINE unsigned take_symbol(struct reader *r, const struct huffman_ac *ac,
			    uint64_t e, int16_t *out, unsigned k)
{
	uint8_t symbol = (uint8_t)value1_of(e);
	unsigned length = bits1_of(e);

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

/*
 * Whether the block ends properly with an entry. Where already its first symbol
 * fills the block, the second is of the next one.
 */
INLINE bool end_block(struct reader *r, uint64_t e, unsigned k)
{
	unsigned first = k + skip1_of(e) + 1;

	if (first > BLOCK_END)
		return false;
	if (first < BLOCK_END)
		return advance_of(e) >= HUFFMAN_END ||
		       k + advance_of(e) == BLOCK_END;
	if (bits1_of(e) != (e & 0xff))
		go_back(r, (e & 0xff) - bits1_of(e));
	return true;
}

/* The AC coefficients. Where the last is, 0 if all are 0; negative: damage. */
INLINE int take_ac(struct reader *r, const struct huffman_ac *ac, int16_t *out)
{
	unsigned k = 1;

	for (;;) {
		uint64_t e = take_entries(r, ac, out, &k);

		if (advance_of(e) < HUFFMAN_MISS) {
			if (!end_block(r, e, k))
				return -1;
			return k == 1 && advance_of(e) == HUFFMAN_END ? 0
								      : (int)k;
		}
		unsigned next = take_symbol(r, ac, e, out, k);

		if (next >= BLOCK_END)
			return (int)k;
		if (!next)
			return -1;
		k = next;
	}
}

/* The difference to the last DC coefficient; DC_NONE: there is no code. */
INLINE int32_t take_dc(struct reader *r, const struct huffman_dc *dc)
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

	uint32_t mask = (1u << size) - 1;
	uint32_t v = (uint32_t)(r->window >> (64 - bits)) & mask;

	skip_bits(r, bits);
	return (int32_t)v - (int32_t)(2 * v <= mask ? mask : 0);
}

/* `out` is NULL where nobody wants the block. */
INLINE bool take_block(struct reader *r, const struct decoder *d,
		       const struct scan_component *c, int32_t *dc,
		       uint8_t *out)
{
	int16_t *to = out ? d->coefficients : NULL;
	int32_t difference;
	int last;

	refill(r);
	difference = take_dc(r, c->dc);
	last = take_ac(r, c->ac, to);
	*dc += difference;
	if (last < 0 || *dc < ENTRY_DC_MIN || *dc > ENTRY_DC_MAX)
		return false;
	if (!out)
		return true;
	if (!last) {
		uint64_t flat = idct_flat(*dc, c->quant[IDCT_PLACE[0]]) *
				0x0101010101010101u;

		for (size_t i = 0; i < IDCT_SIDE; i++)
			store64(out + i * c->stride, flat);
		return true;
	}
	to[IDCT_PLACE[0]] = (int16_t)*dc;
	d->idct(to, c->quant, out, c->stride);
	memset(to, 0, IDCT_SIZE * sizeof(*to));
	return true;
}

/* Where the samples of a block go; NULL: nowhere. */
INLINE uint8_t *place_of(const struct scan_component *c, uint32_t x, uint32_t y)
{
	x -= c->x;
	y -= c->y;
	if (x >= c->width || y >= c->height)
		return NULL;
	return c->samples + (size_t)y * IDCT_SIDE * c->stride +
	       (size_t)x * IDCT_SIDE;
}

INLINE bool take_mcu(struct reader *r, const struct decoder *d, int32_t dc[],
		     uint32_t x, uint32_t y)
{
	for (unsigned i = 0; i < d->scan->components; i++) {
		const struct scan_component *c = &d->scan->component[i];

		for (uint32_t v = 0; v < c->blocks_down; v++)
			for (uint32_t h = 0; h < c->blocks_across; h++) {
				uint8_t *out =
					place_of(c, x * c->blocks_across + h,
						 y * c->blocks_down + v);

				if (out ? !take_block(r, d, c, &dc[i], out)
					: !take_block(r, d, c, &dc[i], NULL))
					return false;
			}
	}
	return true;
}

INLINE bool skip_mcu(struct reader *r, const struct decoder *d, int32_t dc[])
{
	for (unsigned i = 0; i < d->scan->components; i++) {
		const struct scan_component *c = &d->scan->component[i];

		for (uint32_t n = c->blocks_down * c->blocks_across; n; n--)
			if (!take_block(r, d, c, &dc[i], NULL))
				return false;
	}
	return true;
}

INLINE const char *decode(const struct decoder *d, struct scan_run *run)
{
	const struct scan *scan = d->scan;
	const uint8_t *end = run->bytes + run->size + 16;
	uint32_t x = run->mcu % scan->mcus_across;
	uint32_t y = run->mcu / scan->mcus_across;
	int32_t dc[SCAN_COMPONENTS] = { run->dc[0], run->dc[1], run->dc[2] };
	struct reader r;

	seek(&r, run->bytes, run->bit);
	for (uint32_t i = 0; i < run->n; i++) {
		bool wanted =
			x - scan->x < scan->width && y - scan->y < scan->height;

		if (!(wanted ? take_mcu(&r, d, dc, x, y) : skip_mcu(&r, d, dc)))
			return "a code that no encoder writes";
		if (r.at > end)
			break;
		if (++x == scan->mcus_across) {
			x = 0;
			y++;
		}
	}
	run->bit = position(&r, run->bytes);
	if (run->bit > (uint64_t)run->size * 8)
		return "a premature end of the data";
	memcpy(run->dc, dc, sizeof(dc));
	run->mcu += run->n;
	run->n = 0;
	return NULL;
}

#ifdef __x86_64__
__attribute__((target("avx2,bmi,bmi2"))) static const char *
decode_avx2(const struct decoder *d, struct scan_run *run)
{
	return decode(d, run);
}
#endif

static const char *decode_plain(const struct decoder *d, struct scan_run *run)
{
	return decode(d, run);
}

const char *scan_decode(const struct scan *scan, struct scan_run *run)
{
	_Alignas(IDCT_ALIGN) int16_t coefficients[IDCT_SIZE + 1] = { 0 };
	struct decoder d = {
		.scan = scan,
		.idct = idct_best(),
		.coefficients = coefficients,
	};

#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
		return decode_avx2(&d, run);
#endif
	return decode_plain(&d, run);
}
