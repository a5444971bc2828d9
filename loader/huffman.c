/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/huffman.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "fs/bytes.h"

enum {
	TABLES = 8, /* of each kind; an image has up to three */
	DEFINITION_MAX = HUFFMAN_CODE_MAX + HUFFMAN_SYMBOLS,
	AC_WINDOWS = 1 << HUFFMAN_AC_BITS,
	ZEROS = 0xf0, /* the symbol of sixteen zeros */
	RUN_MAX = 15,
};

/* What a table was made from, and when it was last asked for. */
struct origin {
	size_t size; /* 0: there is no table */
	uint64_t used;
	uint8_t definition[DEFINITION_MAX];
};

struct huffman {
	uint64_t clock;
	struct origin ac_origin[TABLES];
	struct origin dc_origin[TABLES];
	struct huffman_ac ac[TABLES];
	struct huffman_dc dc[TABLES];
};

int huffman_open(struct huffman **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void huffman_close(struct huffman *h)
{
	free(h);
}

size_t huffman_size(const uint8_t *definition)
{
	size_t n = 0;

	for (int i = 0; i < HUFFMAN_CODE_MAX; i++)
		n += definition[i];
	return n <= HUFFMAN_SYMBOLS ? HUFFMAN_CODE_MAX + n : 0;
}

/* The number of that table, or TABLES; *oldest may be replaced. */
static int find(struct huffman *h, struct origin *origins,
		const uint8_t *definition, size_t size, int *oldest)
{
	*oldest = 0;
	h->clock++;
	for (int i = 0; i < TABLES; i++) {
		if (origins[i].size == size &&
		    !memcmp(origins[i].definition, definition, size)) {
			origins[i].used = h->clock;
			return i;
		}
		if (origins[i].used < origins[*oldest].used)
			*oldest = i;
	}
	return TABLES;
}

static void remember(const struct huffman *h, struct origin *origin,
		     const uint8_t *definition, size_t size)
{
	memcpy(origin->definition, definition, size);
	origin->size = size;
	origin->used = h->clock;
}

/*
 * Codes of a length are consecutive numbers, from twice what follows those one
 * bit shorter. Those of all ones are not used: -EINVAL.
 */
static int count_codes(const uint8_t *definition, size_t size,
		       struct huffman_codes *codes)
{
	uint32_t code = 0;
	int32_t symbol = 0;

	for (int n = 1; n <= HUFFMAN_CODE_MAX; n++) {
		uint32_t count = definition[n - 1];

		codes->first[n] = symbol - (int32_t)code;
		code += count;
		symbol += (int32_t)count;
		if (count && code >= 1u << n)
			return -EINVAL;
		codes->limit[n] = code << (HUFFMAN_CODE_MAX - n);
		code <<= 1;
	}
	memcpy(codes->symbols, definition + HUFFMAN_CODE_MAX,
	       size - HUFFMAN_CODE_MAX);
	return 0;
}

static uint64_t pack(struct huffman_pair pair)
{
	uint64_t v;

	_Static_assert(sizeof(pair) == sizeof(v), "an entry is one word");
	memcpy(&v, &pair, sizeof(v));
	return v;
}

static struct huffman_pair unpack(uint64_t v)
{
	struct huffman_pair pair;

	memcpy(&pair, &v, sizeof(pair));
	return pair;
}

static struct huffman_pair miss(uint8_t symbol, unsigned length)
{
	return (struct huffman_pair){
		.advance = HUFFMAN_MISS,
		.value1 = symbol,
		.bits1 = (uint8_t)length,
	};
}

static bool is_ac_symbol(uint8_t symbol)
{
	unsigned size = symbol & 15;

	return size ? size <= HUFFMAN_AC_SIZE_MAX : !symbol || symbol == ZEROS;
}

/* What is read at window `at`, if it begins with that symbol. */
static struct huffman_pair single(uint8_t symbol, unsigned length, unsigned at)
{
	unsigned size = symbol & 15;
	unsigned bits = length + size;
	unsigned run = symbol >> 4;
	int32_t value = 0;

	if (bits > HUFFMAN_AC_BITS)
		return miss(symbol, length);
	if (size)
		value = huffman_value(at >> (HUFFMAN_AC_BITS - bits) &
					      ((1u << size) - 1),
				      size);
	if (!symbol)
		return (struct huffman_pair){
			.bits = (uint8_t)bits,
			.bits1 = (uint8_t)bits,
			.advance = HUFFMAN_END,
		};
	return (struct huffman_pair){
		.bits = (uint8_t)bits,
		.bits1 = (uint8_t)bits,
		.advance = (uint8_t)(run + 1),
		.skip1 = (uint8_t)run,
		.skip2 = (uint8_t)(run + 1),
		.value1 = (int16_t)value,
	};
}

/* A symbol for each window; those of a code are consecutive. */
static void fill_single(struct huffman_ac *t)
{
	unsigned at = 0;
	uint8_t symbol = 0;

	while (at < AC_WINDOWS) {
		uint64_t window = (uint64_t)at << (64 - HUFFMAN_AC_BITS);
		unsigned n = huffman_find(&t->codes, window, &symbol);
		unsigned end = at + 1;

		if (n && n <= HUFFMAN_AC_BITS)
			end = at + (1u << (HUFFMAN_AC_BITS - n));
		else
			n = 0;
		for (; at < end; at++)
			t->entries[at] =
				pack(n ? single(symbol, n, at) : miss(0, 0));
	}
}

/* Both, if the second is whole in the bits that the first leaves. */
static struct huffman_pair join(struct huffman_pair a, struct huffman_pair b)
{
	if (a.advance >= HUFFMAN_END || b.advance >= HUFFMAN_MISS ||
	    a.bits + b.bits > HUFFMAN_AC_BITS || b.value1 != (int8_t)b.value1)
		return a;
	a.bits = (uint8_t)(a.bits + b.bits);
	a.skip2 = (uint8_t)(a.advance + b.skip1);
	a.advance = (uint8_t)(a.advance + b.advance);
	a.value2 = (int8_t)b.value1;
	return a;
}

static void fill_pairs(struct huffman_ac *t)
{
	uint64_t singles[AC_WINDOWS];

	memcpy(singles, t->entries, sizeof(singles));
	for (unsigned at = 0; at < AC_WINDOWS; at++) {
		struct huffman_pair a = unpack(singles[at]);
		unsigned rest = at << a.bits & (AC_WINDOWS - 1);

		t->entries[at] = pack(join(a, unpack(singles[rest])));
	}
}

const struct huffman_ac *huffman_ac(struct huffman *h,
				    const uint8_t *definition)
{
	size_t size = huffman_size(definition);
	int oldest;
	int i;

	if (!size)
		return NULL;
	i = find(h, h->ac_origin, definition, size, &oldest);
	if (i < TABLES)
		return &h->ac[i];

	struct huffman_ac *t = &h->ac[oldest];

	h->ac_origin[oldest].size = 0;
	for (size_t k = HUFFMAN_CODE_MAX; k < size; k++)
		if (!is_ac_symbol(definition[k]))
			return NULL;
	if (count_codes(definition, size, &t->codes))
		return NULL;
	fill_single(t);
	fill_pairs(t);
	remember(h, &h->ac_origin[oldest], definition, size);
	return t;
}

static void fill_dc(struct huffman_dc *t)
{
	for (unsigned at = 0; at < ARRAY_LEN(t->entries); at++) {
		uint64_t window = (uint64_t)at << (64 - HUFFMAN_DC_BITS);
		uint8_t size = 0;
		unsigned n = huffman_find(&t->codes, window, &size);

		if (n > HUFFMAN_DC_BITS)
			n = 0;
		t->entries[at].bits = n ? (uint8_t)(n + size) : 0;
		t->entries[at].size = n ? size : 0;
	}
}

const struct huffman_dc *huffman_dc(struct huffman *h,
				    const uint8_t *definition)
{
	size_t size = huffman_size(definition);
	int oldest;
	int i;

	if (!size)
		return NULL;
	i = find(h, h->dc_origin, definition, size, &oldest);
	if (i < TABLES)
		return &h->dc[i];

	struct huffman_dc *t = &h->dc[oldest];

	h->dc_origin[oldest].size = 0;
	for (size_t k = HUFFMAN_CODE_MAX; k < size; k++)
		if (definition[k] > HUFFMAN_DC_SIZE_MAX)
			return NULL;
	if (count_codes(definition, size, &t->codes))
		return NULL;
	fill_dc(t);
	remember(h, &h->dc_origin[oldest], definition, size);
	return t;
}
