/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vocabulary of WordPiece, as BERT has them: a file of one token in a line,
 * whose number is the line's, from 0. "##" begins the tokens that continue a
 * word. If a token stands on several lines, the last one counts.
 */
#ifndef LOADER_LIST_VOCABULARY_H
#define LOADER_LIST_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VOCABULARY_FILE_MAX = 64 << 20,
	VOCABULARY_LINES_MAX = 1 << 22,
	/* A word of more characters is unknown. */
	VOCABULARY_WORD_MAX = 100,
};

struct vocabulary;

/* Reads a file. -EINVAL, with the reason in `why`; -ENOMEM. */
int vocabulary_open(const char *path, struct vocabulary **out, char *why,
		    size_t size);
void vocabulary_close(struct vocabulary *v);

/* The number of a token that begins a word; -1: it has none. */
int32_t vocabulary_find(const struct vocabulary *v, const char *token,
			size_t size);

/*
 * Cuts a word of `size` bytes into the longest tokens, from its beginning, and
 * writes their numbers, at most `size`. Returns how many; 0: it is unknown.
 */
size_t vocabulary_cut(const struct vocabulary *v, const char *word, size_t size,
		      int32_t *out);

#endif
