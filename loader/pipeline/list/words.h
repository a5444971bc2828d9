/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits a UTF-8 text into words, like the first step of BERT's tokenizers.
 * White space separates words, and each punctuation mark and each ideograph is
 * a word. Skips control characters and invalid bytes.
 */
#ifndef LOADER_PIPELINE_LIST_WORDS_H
#define LOADER_PIPELINE_LIST_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct words {
	const char *at;
	const char *end;
	bool lower; /* convert ASCII letters to lower case */
};

/*
 * Writes at most `room` bytes of the next word. The size is 0 at the end of the
 * text. Returns the number of the word's characters, including those that did
 * not fit.
 */
size_t words_next(struct words *w, char *out, size_t room, size_t *size);

#endif
