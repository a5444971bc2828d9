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
	/* Bits of a value that an entry has room for as its second. */
	SECOND_SIZE_MAX = 7,
	/* Where values lie in a pair that is taken for a number. */
	VALUE1_AT = 8 * offsetof(struct huffman_pair, value1),
	VALUE2_AT = 8 * offsetof(struct huffman_pair, value2),
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

/* A code, and the windows that begin with it. */
struct code {
	uint8_t symbol;
	unsigned length;
	unsigned first;
	unsigned count;
};

/*
 * Calls for each code of up to `bits` bits, in the order of the windows.
 * Returns the first window that begins with none of them.
 */
static unsigned each_code(const uint8_t *definition, unsigned bits, void *arg,
			  void (*call)(void *arg, const struct code *code))
{
	const uint8_t *symbol = definition + HUFFMAN_CODE_MAX;
	struct code code = { 0 };

	for (unsigned n = 1; n <= bits; n++) {
		code.length = n;
		code.count = 1u << (bits - n);
		for (unsigned i = 0; i < definition[n - 1]; i++) {
			code.symbol = *symbol++;
			call(arg, &code);
			code.first += code.count;
		}
	}
	return code.first;
}

/*
 * Tables are made for each file that has its own, so in few instructions for a
 * window: for each a first symbol, and what it adds to an entry as the second.
 */
struct making {
	uint64_t firsts[AC_WINDOWS]; /* struct huffman_pair */
	uint64_t seconds[AC_WINDOWS];
	uint32_t skips[AC_WINDOWS]; /* bits, advance, length of the code */
};

static uint64_t pack(struct huffman_pair pair)
{
	uint64_t v;

	_Static_assert(sizeof(pair) == sizeof(v), "a pair is a word");
	memcpy(&v, &pair, sizeof(v));
	return v;
}

/* As the second symbol: more bits than any window has left. */
static const struct huffman_pair NO_SECOND = { .bits = 64 };

static void add_miss(struct making *m, const struct code *c)
{
	struct huffman_pair pair = {
		.advance = HUFFMAN_MISS,
		.value1 = c->symbol,
		.bits1 = (uint8_t)c->length,
	};

	for (unsigned i = c->first; i < c->first + c->count; i++) {
		m->firsts[i] = pack(pair);
		m->seconds[i] = pack(NO_SECOND);
	}
}

/* What a symbol adds to an entry of another, but for its value. */
static struct huffman_pair second_of(const struct huffman_pair *first,
				     unsigned size)
{
	if (size > SECOND_SIZE_MAX)
		return NO_SECOND;
	return (struct huffman_pair){
		.bits = first->bits,
		.advance = first->advance,
		.skip2 = first->skip1,
	};
}

/* All windows of a symbol, with the value that each has after the code. */
static void add_values(struct making *m, const struct code *c)
{
	unsigned size = c->symbol & 15;
	unsigned run = c->symbol >> 4;
	unsigned bits = c->length + size;
	struct huffman_pair pair = {
		.bits = (uint8_t)bits,
		.bits1 = (uint8_t)bits,
		.advance = c->symbol ? (uint8_t)(run + 1) : HUFFMAN_END,
		.skip1 = (uint8_t)run,
		.skip2 = c->symbol ? (uint8_t)(run + 1) : 0,
	};
	uint64_t first = pack(pair);
	uint64_t second = pack(second_of(&pair, size));

	for (unsigned i = c->first; i < c->first + c->count; i++) {
		uint32_t v = i >> (HUFFMAN_AC_BITS - bits);
		uint16_t value = (uint16_t)huffman_value(v, size);

		m->firsts[i] = first | (uint64_t)value << VALUE1_AT;
		m->seconds[i] = second | (uint64_t)value << VALUE2_AT;
	}
}

static void set_skips(struct making *m, unsigned at, unsigned n, unsigned bits,
		      unsigned advance, unsigned length)
{
	uint32_t skip = bits | advance << 8 | length << 16;

	for (unsigned i = at; i < at + n; i++)
		m->skips[i] = skip;
}

static void add_code(void *arg, const struct code *c)
{
	struct making *m = arg;
	unsigned bits = c->length + (c->symbol & 15);

	set_skips(m, c->first, c->count, bits,
		  c->symbol ? (c->symbol >> 4) + 1 : HUFFMAN_END, c->length);
	if (bits > HUFFMAN_AC_BITS)
		add_miss(m, c);
	else
		add_values(m, c);
}

/* Windows of codes that are longer, or of none. */
static void add_rest(struct making *m, unsigned at)
{
	struct code rest = { .first = at, .count = AC_WINDOWS - at };

	add_miss(m, &rest);
	set_skips(m, at, AC_WINDOWS - at, 0, HUFFMAN_MISS, HUFFMAN_CODE_MAX);
}

/* The second too, if it is whole in the bits that the first leaves. */
static uint64_t join(const struct making *m, unsigned window)
{
	uint64_t first = m->firsts[window];
	unsigned bits = first & 0xff;
	uint64_t second = m->seconds[window << bits & (AC_WINDOWS - 1)];
	bool both = (bits + (second & 0xff) <= HUFFMAN_AC_BITS) &
		    ((first >> 8 & 0xff) < HUFFMAN_END);

	/* Members are added all at once; none overflows. */
	return first + (second & -(uint64_t)both);
}

/* The second code too, if the window has it. A third would gain nothing. */
static uint16_t join_skips(const struct making *m, unsigned window)
{
	uint32_t first = m->skips[window];
	unsigned bits = first & 0xff;
	uint32_t second = m->skips[window << bits & (AC_WINDOWS - 1)];
	bool both = (bits + (second >> 16) <= HUFFMAN_AC_BITS) &
		    ((first >> 8 & 0xff) < HUFFMAN_END);

	return (uint16_t)(first + (second & -(uint32_t)both));
}

static void make_ac(struct huffman_ac *t, const uint8_t *definition)
{
	struct making m;

	add_rest(&m, each_code(definition, HUFFMAN_AC_BITS, &m, add_code));
	for (unsigned i = 0; i < AC_WINDOWS; i++) {
		uint64_t entry = join(&m, i);
		uint16_t skip = join_skips(&m, i);

		memcpy(&t->entries[i], &entry, sizeof(entry));
		store16(&t->skips[i], skip);
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
		if (!huffman_is_ac(definition[k]))
			return NULL;
	if (count_codes(definition, size, &t->codes))
		return NULL;
	make_ac(t, definition);
	remember(h, &h->ac_origin[oldest], definition, size);
	return t;
}

static void add_dc_code(void *arg, const struct code *c)
{
	struct huffman_dc *t = arg;

	for (unsigned i = c->first; i < c->first + c->count; i++) {
		t->entries[i].bits = (uint8_t)(c->length + c->symbol);
		t->entries[i].size = c->symbol;
	}
}

static void make_dc(struct huffman_dc *t, const uint8_t *definition)
{
	memset(t->entries, 0, sizeof(t->entries));
	each_code(definition, HUFFMAN_DC_BITS, t, add_dc_code);
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
	make_dc(t, definition);
	remember(h, &h->dc_origin[oldest], definition, size);
	return t;
}
