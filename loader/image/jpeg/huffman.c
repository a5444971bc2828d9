/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/huffman.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"

enum {
	TABLES = 8, /* tables of each kind; an image has up to three */
	DEFINITION_MAX = HUFFMAN_CODE_MAX + HUFFMAN_SYMBOLS,
	AC_WINDOWS = 1 << HUFFMAN_AC_BITS,
	/* Bits that an entry has for the value of its second symbol. */
	SECOND_SIZE_MAX = 7,
	/* Where the values lie in a pair that is read as one number. */
	VALUE1_AT = 8 * offsetof(struct huffman_pair, value1),
	VALUE2_AT = 8 * offsetof(struct huffman_pair, value2),
};

/* The definition of a table, and when it was last used. */
struct huffman_origin {
	size_t size; /* 0: no table */
	uint64_t used;
	uint8_t definition[DEFINITION_MAX];
};

struct huffman {
	uint64_t clock;
	struct huffman_origin ac_origin[TABLES];
	struct huffman_origin dc_origin[TABLES];
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

/*
 * The number of the table for a definition. If it is not there yet, the least
 * recently used table is dropped for it. TABLES: the definition is too long.
 */
static int find_table(struct huffman *h, struct huffman_origin *origins,
		      const uint8_t *definition, bool *is_there)
{
	size_t size = huffman_size(definition);
	int oldest = 0;

	if (!size)
		return TABLES;
	h->clock++;
	*is_there = true;
	for (int i = 0; i < TABLES; i++) {
		if (origins[i].size == size &&
		    !memcmp(origins[i].definition, definition, size)) {
			origins[i].used = h->clock;
			return i;
		}
		if (origins[i].used < origins[oldest].used)
			oldest = i;
	}
	*is_there = false;
	origins[oldest].size = 0;
	return oldest;
}

static void remember(const struct huffman *h, struct huffman_origin *origin,
		     const uint8_t *definition)
{
	origin->size = huffman_size(definition);
	memcpy(origin->definition, definition, origin->size);
	origin->used = h->clock;
}

/*
 * Codes of a length are consecutive numbers, from twice the number after the
 * last code of one bit less. Codes of all ones are not used: -EINVAL.
 */
static int count_codes(const uint8_t *definition, struct huffman_codes *codes)
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
	memcpy(codes->symbols, definition + HUFFMAN_CODE_MAX, (size_t)symbol);
	return 0;
}

/* As table_symbols(), but fails on symbols of another kind. */
static int check_codes(const uint8_t *definition, bool (*is_symbol)(uint8_t),
		       struct huffman_codes *codes)
{
	size_t size = huffman_size(definition);

	for (size_t k = HUFFMAN_CODE_MAX; k < size; k++)
		if (!is_symbol(definition[k]))
			return -EINVAL;
	return count_codes(definition, codes);
}

/* A code, and the windows that begin with it. */
struct huffman_code {
	uint8_t symbol;
	unsigned length;
	unsigned first;
	unsigned count;
};

/*
 * Calls a function for each code of up to `bits` bits, in the order of the
 * windows. Returns the first window that begins with no such code.
 */
static unsigned each_code(const uint8_t *definition, unsigned bits, void *arg,
			  void (*call)(void *arg,
				       const struct huffman_code *code))
{
	const uint8_t *symbol = definition + HUFFMAN_CODE_MAX;
	struct huffman_code code = { 0 };

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
 * Files with tables of their own make this code hot, so it takes few
 * instructions for a window. It computes first what each window adds to an
 * entry as the second symbol. Then it computes for each code what may follow
 * it, which is the same for all its values.
 */
struct huffman_making {
	struct huffman_ac *table;
	uint64_t seconds[AC_WINDOWS]; /* struct huffman_pair */
	uint32_t skips[AC_WINDOWS];   /* bits, advance, length of the code */
};

/* The entries after a code with its value. */
struct rest {
	unsigned n; /* windows for each value */
	uint64_t pairs[AC_WINDOWS];
	uint16_t skips[AC_WINDOWS];
};

static uint64_t pack(struct huffman_pair pair)
{
	uint64_t v;

	_Static_assert(sizeof(pair) == sizeof(v), "a pair is a word");
	memcpy(&v, &pair, sizeof(v));
	return v;
}

/* The second symbol: more bits than any window has. */
static const struct huffman_pair NO_SECOND = { .bits = 64 };

static void add_miss(struct huffman_making *m, const struct huffman_code *c)
{
	struct huffman_pair pair = {
		.advance = HUFFMAN_MISS,
		.value1 = c->symbol,
		.bits1 = (uint8_t)c->length,
	};

	for (unsigned i = c->first; i < c->first + c->count; i++) {
		m->table->entries[i] = pair;
		m->seconds[i] = pack(NO_SECOND);
	}
}

static unsigned bits_of(const struct huffman_code *c)
{
	return c->length + (c->symbol & 15);
}

static unsigned advance_of(const struct huffman_code *c)
{
	return c->symbol ? (c->symbol >> 4) + 1u : HUFFMAN_END;
}

/* An entry of a single symbol, without its value. */
static uint64_t first_of(const struct huffman_code *c)
{
	return pack((struct huffman_pair){
		.bits = (uint8_t)bits_of(c),
		.bits1 = (uint8_t)bits_of(c),
		.advance = (uint8_t)advance_of(c),
		.skip1 = c->symbol >> 4,
		.skip2 = c->symbol ? (uint8_t)advance_of(c) : 0,
	});
}

/* The part that a second symbol adds to an entry, without its value. */
static uint64_t second_of(const struct huffman_code *c)
{
	if ((c->symbol & 15) > SECOND_SIZE_MAX)
		return pack(NO_SECOND);
	return pack((struct huffman_pair){
		.bits = (uint8_t)bits_of(c),
		.advance = (uint8_t)advance_of(c),
		.skip2 = c->symbol >> 4,
	});
}

static uint64_t value_of(unsigned v, const struct huffman_code *c)
{
	return (uint16_t)huffman_value(v, c->symbol & 15);
}

static void add_seconds(struct huffman_making *m, const struct huffman_code *c)
{
	unsigned n = 1u << (HUFFMAN_AC_BITS - bits_of(c));
	uint64_t *out = m->seconds + c->first;

	for (unsigned v = 0; v < 1u << (c->symbol & 15); v++) {
		uint64_t second = second_of(c) | value_of(v, c) << VALUE2_AT;

		for (unsigned i = 0; i < n; i++)
			*out++ = second;
	}
}

static void set_skips(struct huffman_making *m, const struct huffman_code *c,
		      unsigned bits, unsigned advance, unsigned length)
{
	uint32_t skip = bits | advance << 8 | length << 16;

	for (unsigned i = c->first; i < c->first + c->count; i++) {
		m->skips[i] = skip;
		store16(&m->table->skips[i], (uint16_t)skip);
	}
}

static void add_code(void *arg, const struct huffman_code *c)
{
	struct huffman_making *m = arg;

	set_skips(m, c, bits_of(c), advance_of(c), c->length);
	if (bits_of(c) > HUFFMAN_AC_BITS)
		add_miss(m, c);
	else
		add_seconds(m, c);
}

/* Windows that begin with a longer code, or with none. */
static void add_others(struct huffman_making *m, unsigned at)
{
	struct huffman_code others = { .first = at, .count = AC_WINDOWS - at };

	add_miss(m, &others);
	set_skips(m, &others, 0, HUFFMAN_MISS, HUFFMAN_CODE_MAX);
}

/*
 * A second symbol, if it is whole in the bits that the first leaves; of those
 * that are skipped the code. A third would gain nothing.
 */
static void make_rest(const struct huffman_making *m,
		      const struct huffman_code *c, struct rest *out)
{
	unsigned bits = bits_of(c);
	unsigned left = c->symbol ? HUFFMAN_AC_BITS - bits : 0;
	uint32_t skip = m->skips[c->first];

	out->n = 1u << (HUFFMAN_AC_BITS - bits);
	for (unsigned i = 0; i < out->n; i++) {
		uint64_t pair = m->seconds[i << bits];
		uint32_t next = m->skips[i << bits];

		if (!left || (pair & 0xff) > left)
			pair = 0;
		if (!left || next >> 16 > left)
			next = 0;
		out->pairs[i] = pair;
		out->skips[i] = (uint16_t)(skip + next);
	}
}

/* Adds all members at once; none overflows. */
static void join(void *arg, const struct huffman_code *c)
{
	struct huffman_making *m = arg;
	struct huffman_pair *out = m->table->entries + c->first;
	struct rest rest;

	if (bits_of(c) > HUFFMAN_AC_BITS)
		return;
	make_rest(m, c, &rest);
	for (unsigned v = 0; v < 1u << (c->symbol & 15); v++) {
		uint64_t first = first_of(c) | value_of(v, c) << VALUE1_AT;

		for (unsigned i = 0; i < rest.n; i++, out++) {
			uint64_t entry = first + rest.pairs[i];

			memcpy(out, &entry, sizeof(entry));
		}
		memcpy(m->table->skips + c->first + v * rest.n, rest.skips,
		       rest.n * sizeof(*rest.skips));
	}
}

static void make_ac(struct huffman_ac *t, const uint8_t *definition)
{
	struct huffman_making m;

	m.table = t;
	add_others(&m, each_code(definition, HUFFMAN_AC_BITS, &m, add_code));
	each_code(definition, HUFFMAN_AC_BITS, &m, join);
}

const struct huffman_ac *huffman_ac(struct huffman *h,
				    const uint8_t *definition)
{
	struct huffman_ac *t;
	bool is_there;
	int i = find_table(h, h->ac_origin, definition, &is_there);

	if (i == TABLES)
		return NULL;
	t = &h->ac[i];
	if (is_there)
		return t;
	if (check_codes(definition, huffman_is_ac, &t->codes))
		return NULL;
	make_ac(t, definition);
	remember(h, &h->ac_origin[i], definition);
	return t;
}

static void add_dc_code(void *arg, const struct huffman_code *c)
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

static bool is_dc(uint8_t symbol)
{
	return symbol <= HUFFMAN_DC_SIZE_MAX;
}

const struct huffman_dc *huffman_dc(struct huffman *h,
				    const uint8_t *definition)
{
	struct huffman_dc *t;
	bool is_there;
	int i = find_table(h, h->dc_origin, definition, &is_there);

	if (i == TABLES)
		return NULL;
	t = &h->dc[i];
	if (is_there)
		return t;
	if (check_codes(definition, is_dc, &t->codes))
		return NULL;
	make_dc(t, definition);
	remember(h, &h->dc_origin[i], definition);
	return t;
}
