/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": finds the word of a list that is nearest to a word that is
   not in it. Case does not count, and `-' is `_'. Pure functions. */
#ifndef FS_BASE_UTIL_SUGGEST_H
#define FS_BASE_UTIL_SUGGEST_H

#include <stddef.h>

struct suggestion {
	const char *word;
	size_t size;	  /* of the word; 0: it ends with a NUL */
	const char *best; /* NULL while nothing is near */
	unsigned distance;
};

/* Bytes of suggest_text() for a best word of up to 40 bytes. */
enum { SUGGEST_TEXT_SIZE = 80 };

/* Offer every candidate in turn; the first of the nearest stays. */
void suggest_try(struct suggestion *s, const char *candidate);

/* A word that other programs have, and what to write instead. */
struct other_word {
	const char *theirs;
	const char *ours;
};

/* If the word is in the table, its replacement becomes the best. A row of NULLs
   ends the table. */
void suggest_other(struct suggestion *s, const struct other_word *words);

/* "; did you mean `BEST'?" into `out`, or "" if nothing is near. Returns out.
 */
const char *suggest_text(const struct suggestion *s, char *out, size_t size);

#endif
