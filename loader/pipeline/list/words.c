/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/list/words.h"

#include <stdint.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/utf8.h"

enum kind { LETTER, SPACE, ALONE, NOTHING };

struct words_range {
	uint32_t first;
	uint32_t last;
	enum kind kind;
};

/* The Unicode characters above ASCII that separate words: its spaces, its
   blocks of general and of CJK punctuation, and the ideographs of BERT's
   tokenizer. */
static const struct words_range ranges[] = {
	{ 0x80, 0x9f, NOTHING },     { 0xa0, 0xa0, SPACE },
	{ 0xa1, 0xa1, ALONE },	     { 0xa7, 0xa7, ALONE },
	{ 0xab, 0xab, ALONE },	     { 0xad, 0xad, NOTHING },
	{ 0xb6, 0xb7, ALONE },	     { 0xbb, 0xbb, ALONE },
	{ 0xbf, 0xbf, ALONE },	     { 0x1680, 0x1680, SPACE },
	{ 0x2000, 0x200a, SPACE },   { 0x200b, 0x200f, NOTHING },
	{ 0x2010, 0x2027, ALONE },   { 0x202a, 0x202e, NOTHING },
	{ 0x202f, 0x202f, SPACE },   { 0x2030, 0x2043, ALONE },
	{ 0x2045, 0x2051, ALONE },   { 0x2053, 0x205e, ALONE },
	{ 0x205f, 0x205f, SPACE },   { 0x2060, 0x206f, NOTHING },
	{ 0x3000, 0x3000, SPACE },   { 0x3001, 0x3003, ALONE },
	{ 0x3008, 0x3011, ALONE },   { 0x3014, 0x301f, ALONE },
	{ 0x3030, 0x3030, ALONE },   { 0x3400, 0x4dbf, ALONE },
	{ 0x4e00, 0x9fff, ALONE },   { 0xf900, 0xfaff, ALONE },
	{ 0xfeff, 0xfeff, NOTHING }, { 0xff01, 0xff03, ALONE },
	{ 0xff05, 0xff0a, ALONE },   { 0xff0c, 0xff0f, ALONE },
	{ 0xff1a, 0xff1b, ALONE },   { 0xff1f, 0xff20, ALONE },
	{ 0xff3b, 0xff3d, ALONE },   { 0xff3f, 0xff3f, ALONE },
	{ 0xff5b, 0xff5b, ALONE },   { 0xff5d, 0xff5d, ALONE },
	{ 0xff5f, 0xff65, ALONE },   { 0xfffd, 0xfffd, NOTHING },
	{ 0x20000, 0x2a6df, ALONE }, { 0x2a700, 0x2ceaf, ALONE },
	{ 0x2f800, 0x2fa1f, ALONE },
};

static enum kind kind_of(uint32_t c)
{
	if (c < 0x80) {
		if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
			return SPACE;
		if (c < ' ' || c == 0x7f)
			return NOTHING;
		return strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", (int)c)
			       ? ALONE
			       : LETTER;
	}
	for (size_t i = 0; i < ARRAY_LEN(ranges) && ranges[i].first <= c; i++) {
		if (c <= ranges[i].last)
			return ranges[i].kind;
	}
	return LETTER;
}

/* The character at w->at and its size. A byte that begins none is one that is
   left out. */
static uint32_t character(const struct words *w, unsigned *size)
{
	const uint8_t *s = (const uint8_t *)w->at;
	size_t n = utf8_length(s, (size_t)(w->end - w->at));

	*size = n ? (unsigned)n : 1;
	return n ? utf8_code(s, n) : 0;
}

static void put(const struct words *w, unsigned n, char *out, size_t room,
		size_t *size)
{
	char c = *w->at;

	if (*size + n > room)
		return;
	memcpy(out + *size, w->at, n);
	if (w->lower && c >= 'A' && c <= 'Z')
		out[*size] = (char)(c - 'A' + 'a');
	*size += n;
}

size_t words_next(struct words *w, char *out, size_t room, size_t *size)
{
	size_t characters = 0;
	unsigned n;

	*size = 0;
	for (; w->at < w->end; w->at += n) {
		enum kind kind = kind_of(character(w, &n));

		if (kind == NOTHING || (kind == SPACE && !characters))
			continue;
		if (kind == SPACE || (kind == ALONE && characters))
			break;
		put(w, n, out, room, size);
		characters++;
		if (kind == ALONE) {
			w->at += n;
			break;
		}
	}
	return characters;
}
