/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the candidate nearest to a word that nobody knows. */
#ifndef LOADER_GRAPH_SUGGEST_H
#define LOADER_GRAPH_SUGGEST_H

struct suggestion {
	const char *word;
	const char *best; /* NULL while nothing is near */
	unsigned distance;
};

/* Offer every candidate in turn; the first of the nearest stays. */
void suggest_try(struct suggestion *s, const char *candidate);

/* "; did you mean `BEST'?" into `out`, or "" if nothing is near. */
const char *suggest_text(const struct suggestion *s, char *out, unsigned size);

#endif
