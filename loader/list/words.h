/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of a text in UTF-8, as BERT's tokenizers begin: parted by white
 * space; each mark of punctuation and each ideograph is a word. Control
 * characters and bytes that are no UTF-8 are left out.
 */
#ifndef LOADER_LIST_WORDS_H
#define LOADER_LIST_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct words {
	const char *at;
	const char *end;
	bool lower; /* letters of ASCII become small */
};

/*
 * Writes the next word, of at most `room` bytes; its size is 0 at the end.
 * Returns its characters, which may be more than were written.
 */
size_t words_next(struct words *w, char *out, size_t room, size_t *size);

#endif
