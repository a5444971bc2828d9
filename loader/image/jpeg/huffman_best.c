/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/huffman_best.h"

#include <string.h>

#include "fs/base/util/bytes.h"

enum {
	/* One leaf more than symbols: the code of all ones is not used. */
	LEAVES_MAX = HUFFMAN_SYMBOLS + 1,
	NODES_MAX = 2 * LEAVES_MAX,
	RUN_MAX = 15,
	END = 0x00, /* end of a block */
};

/* Natural order along the zigzag. */
static const uint8_t ZIGZAG[SYMBOLS_BLOCK] = {
	0,  1,	8,  16, 9,  2,	3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,	7,  14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

void symbols_add(struct symbols *to, const struct symbols *more)
{
	for (int t = 0; t < SYMBOLS_TABLES; t++)
		for (int i = 0; i < HUFFMAN_SYMBOLS; i++)
			to->counts[t][i] += more->counts[t][i];
}

/* Bits of a value, or the most that can be coded. */
static unsigned size_of(int value, unsigned most)
{
	unsigned v = (unsigned)(value < 0 ? -value : value);
	unsigned size = v ? 32 - (unsigned)__builtin_clz(v) : 0;

	return size < most ? size : most;
}

void symbols_count_block(struct symbols *s, bool chroma, int before,
			 const int16_t *block)
{
	uint64_t *dc = s->counts[chroma * SYMBOLS_KINDS + SYMBOLS_DC];
	uint64_t *ac = s->counts[chroma * SYMBOLS_KINDS + SYMBOLS_AC];
	unsigned run = 0;

	dc[size_of(block[0] - before, HUFFMAN_DC_SIZE_MAX)]++;
	for (int i = 1; i < SYMBOLS_BLOCK; i++) {
		int v = block[ZIGZAG[i]];

		if (!v) {
			run++;
			continue;
		}
		ac[HUFFMAN_ZEROS] += run / (RUN_MAX + 1);
		ac[run % (RUN_MAX + 1) << 4 |
		   size_of(v, HUFFMAN_AC_SIZE_MAX)]++;
		run = 0;
	}
	if (run)
		ac[END]++;
}

/* --- codes --------------------------------------------------------------- */

/* A parent has a higher number than its children. 0: no parent yet. */
struct tree {
	unsigned leaves; /* the first is the code of all ones */
	unsigned nodes;
	uint8_t symbol[LEAVES_MAX];
	uint64_t weight[NODES_MAX];
	unsigned parent[NODES_MAX];
	unsigned depth[NODES_MAX];
};

static bool is_symbol(int table, unsigned symbol)
{
	return table % SYMBOLS_KINDS == SYMBOLS_DC
		       ? symbol <= HUFFMAN_DC_SIZE_MAX
		       : huffman_is_ac((uint8_t)symbol);
}

/*
 * Gives every symbol at least the weight `least`; the unused code keeps its
 * own.
 */
static void plant(struct tree *t, const struct symbols *s, int table, bool all,
		  uint64_t least)
{
	t->leaves = 1;
	t->weight[0] = 0;
	for (unsigned i = 0; i < HUFFMAN_SYMBOLS; i++) {
		uint64_t count = s->counts[table][i];

		if (!count && !(all && is_symbol(table, i)))
			continue;
		t->symbol[t->leaves] = (uint8_t)i;
		t->weight[t->leaves++] = max_u64(count, least);
	}
}

static unsigned take_lightest(struct tree *t)
{
	unsigned found = NODES_MAX;

	for (unsigned i = 0; i < t->nodes; i++)
		if (!t->parent[i] &&
		    (found == NODES_MAX || t->weight[i] < t->weight[found]))
			found = i;
	t->parent[found] = t->nodes;
	return found;
}

/* Huffman's algorithm. The first leaf is as deep as any. */
static void grow_tree(struct tree *t)
{
	memset(t->parent, 0, sizeof(t->parent));
	for (t->nodes = t->leaves; t->nodes < 2 * t->leaves - 1; t->nodes++) {
		uint64_t a = t->weight[take_lightest(t)];
		uint64_t b = t->weight[take_lightest(t)];

		t->weight[t->nodes] = a + b;
	}
	t->depth[t->nodes - 1] = 0;
	for (unsigned i = t->nodes - 1; i-- > 0;)
		t->depth[i] = t->depth[t->parent[i]] + 1;
}

static void define(const struct tree *t, uint8_t *definition)
{
	uint8_t *symbol = definition + HUFFMAN_CODE_MAX;

	memset(definition, 0, SYMBOLS_DEFINITION);
	for (unsigned n = 1; n <= HUFFMAN_CODE_MAX; n++)
		for (unsigned i = 1; i < t->leaves; i++)
			if (t->depth[i] == n) {
				definition[n - 1]++;
				*symbol++ = t->symbol[i];
			}
}

/* While a code is too long, raises the weight of rare symbols. */
static void make_code(const struct symbols *s, int table, bool all,
		      uint8_t *definition)
{
	struct tree t;
	uint64_t least = 1;

	do {
		plant(&t, s, table, all, least);
		grow_tree(&t);
		least *= 2;
	} while (t.depth[0] > HUFFMAN_CODE_MAX);
	define(&t, definition);
}

void symbols_make_codes(const struct symbols *s, bool all,
			struct symbols_codes *out)
{
	for (int t = 0; t < SYMBOLS_TABLES; t++)
		make_code(s, t, all, out->definition[t]);
}

uint64_t symbols_bits(const struct symbols *s,
		      const struct symbols_codes *codes)
{
	uint64_t bits = 0;

	for (int t = 0; t < SYMBOLS_TABLES; t++) {
		const uint8_t *definition = codes->definition[t];
		const uint8_t *symbol = definition + HUFFMAN_CODE_MAX;

		for (unsigned n = 1; n <= HUFFMAN_CODE_MAX; n++)
			for (unsigned i = 0; i < definition[n - 1]; i++) {
				bits += s->counts[t][*symbol] *
					(n + (*symbol & 15));
				symbol++;
			}
	}
	return bits;
}
