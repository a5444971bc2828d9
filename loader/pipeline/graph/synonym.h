/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of operations in other libraries. If the arguments are the same, a
 * pipeline accepts the name. Otherwise a message suggests an operation.
 */
#ifndef LOADER_PIPELINE_GRAPH_SYNONYM_H
#define LOADER_PIPELINE_GRAPH_SYNONYM_H

#include <stddef.h>

struct synonym {
	const char *theirs; /* in lower case, without `_' */
	const char *ours;   /* the name to write instead, or NULL */
	const char *clause; /* advice for a message, if there is no `ours' */
};

/*
 * Returns the row of an operation's name in another library, or NULL for an
 * unknown name. Ignores case and `_', so that a class and a function share a
 * row.
 */
const struct synonym *synonym_of(const char *word);

/* Returns the row of an argument's value in another library, or NULL. */
const struct synonym *synonym_of_value(const char *word);

/* The row at an index; NULL past the end. */
const struct synonym *synonym_at(size_t i);

/* Writes "; did you mean `OURS'?" or "; CLAUSE" to `out`, or "" for NULL.
   Returns `out`. */
const char *synonym_text(const struct synonym *s, char *out, size_t size);

/* A class name of torchvision that a pipeline accepts in place of an
   operation. */
struct alias {
	const char *theirs; /* also valid in lower case, with `_' between its
			       parts */
	const char *ours;
	const char *param;   /* parameter with another default, or NULL */
	const char *initial; /* that default */
};

/* Returns the row of a name, or NULL. British spelling is accepted. */
const struct alias *alias_of(const char *word);

/* The row at an index; NULL past the end. */
const struct alias *alias_at(size_t i);

enum { SYNONYM_AMERICAN_SIZE = 64 };

/*
 * Converts the name of an operation or a choice to American spelling, such as
 * `center_crop' for `centre_crop'. `out` has SYNONYM_AMERICAN_SIZE bytes.
 * Returns `out`, or NULL if the name does not change or is longer.
 */
const char *synonym_american(const char *word, char *out);

#endif
