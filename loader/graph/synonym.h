/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that other libraries have for operations. Those with the same arguments
 * are accepted, others are explained.
 */
#ifndef LOADER_GRAPH_SYNONYM_H
#define LOADER_GRAPH_SYNONYM_H

#include <stddef.h>

struct synonym {
	const char *theirs; /* in lower case, without `_' */
	const char *ours;   /* the name to write instead, or NULL */
	const char *clause; /* advice for a message, if there is no `ours' */
};

/*
 * Returns the row of a word of another library, or NULL if the word is unknown.
 * Case and `_' do not count, so that a class and a function have one row.
 */
const struct synonym *synonym_of(const char *word);

/* Returns the row of a word that is the value of an argument, or NULL. */
const struct synonym *synonym_of_value(const char *word);

/* The row at an index; NULL past the end. */
const struct synonym *synonym_at(size_t i);

/* "; did you mean `OURS'?" or "; CLAUSE" into `out`; "" for NULL. Returns out.
 */
const char *synonym_text(const struct synonym *s, char *out, size_t size);

/* A class name of torchvision that is accepted in place of an operation. */
struct alias {
	const char *theirs; /* also in lower case, with `_' between words */
	const char *ours;
	const char *param;   /* the one with another default, or NULL */
	const char *initial; /* that default */
};

/* Returns the row of a name, or NULL. British spelling is accepted. */
const struct alias *alias_of(const char *word);

/* The row at an index; NULL past the end. */
const struct alias *alias_at(size_t i);

enum { SYNONYM_AMERICAN_SIZE = 64 };

/*
 * Writes a word of an operation or a choice in American spelling, as
 * `center_crop' for `centre_crop', to `out`, which has SYNONYM_AMERICAN_SIZE
 * bytes. Returns `out`, or NULL if the word does not change or is longer.
 */
const char *synonym_american(const char *word, char *out);

#endif
