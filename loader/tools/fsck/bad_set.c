/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/bad_set.h"

#include <errno.h>
#include <stdlib.h>

enum {
	WORD = 64,
	PIECE_WORDS = 512,
	PIECE = WORD * PIECE_WORDS, /* members */
	PIECE_BYTES = PIECE_WORDS * sizeof(uint64_t),
};

int bad_set_init(struct bad_set *s, uint64_t samples, size_t room)
{
	*s = (struct bad_set){ .samples = samples, .room = room };
	s->pieces = calloc(samples / PIECE + 1, sizeof(*s->pieces));
	return s->pieces ? 0 : -ENOMEM;
}

void bad_set_fini(struct bad_set *s)
{
	for (uint64_t i = 0; s->pieces && i <= s->samples / PIECE; i++)
		free(s->pieces[i]);
	free(s->pieces);
	s->pieces = NULL;
}

static uint64_t *new_piece(struct bad_set *s)
{
	uint64_t *piece = NULL;

	if (s->room >= PIECE_BYTES)
		piece = calloc(1, PIECE_BYTES);
	if (piece)
		s->room -= PIECE_BYTES;
	else
		s->incomplete = true;
	return piece;
}

bool bad_set_add(struct bad_set *s, uint64_t sample)
{
	uint64_t **piece, *word, bit = (uint64_t)1 << sample % WORD;

	if (sample >= s->samples)
		return false;
	piece = &s->pieces[sample / PIECE];
	if (!*piece)
		*piece = new_piece(s);
	if (!*piece)
		return false;
	word = &(*piece)[sample % PIECE / WORD];
	if (*word & bit)
		return false;
	*word |= bit;
	s->count++;
	return true;
}

bool bad_set_has(const struct bad_set *s, uint64_t sample)
{
	const uint64_t *piece =
		sample < s->samples ? s->pieces[sample / PIECE] : NULL;

	return piece && piece[sample % PIECE / WORD] >> sample % WORD & 1;
}

uint64_t bad_set_next(const struct bad_set *s, uint64_t from)
{
	while (from < s->samples) {
		if (!s->pieces[from / PIECE])
			from = (from / PIECE + 1) * PIECE;
		else if (bad_set_has(s, from))
			return from;
		else
			from++;
	}
	return s->samples;
}
