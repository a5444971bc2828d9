/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vocabulary of WordPiece, like those of BERT: a file with one token per
 * line. The number of a token is the number of its line, from 0. Tokens that
 * continue a word begin with "##". If several lines contain the same token, the
 * last one counts.
 */
#ifndef LOADER_PIPELINE_LIST_VOCABULARY_H
#define LOADER_PIPELINE_LIST_VOCABULARY_H

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

/* Reads a file. Returns -EINVAL, with the reason in `why`, or -ENOMEM. */
int vocabulary_open(const char *path, struct vocabulary **out, char *why,
		    size_t size);
void vocabulary_close(struct vocabulary *v);

/* Returns the number of a token that begins a word, or -1 if there is none. */
int32_t vocabulary_find(const struct vocabulary *v, const char *token,
			size_t size);

/*
 * Splits a word of `size` bytes into the longest tokens, from its start, and
 * writes their numbers, at most `size`. Returns the number of tokens, or 0 for
 * an unknown word.
 */
size_t vocabulary_cut(const struct vocabulary *v, const char *word, size_t size,
		      int32_t *out);

#endif
