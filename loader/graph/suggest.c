/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/suggest.h"

#include <stdio.h>
#include <string.h>

enum { LENGTH_MAX = 40 };

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

/* Levenshtein's distance of two words of at most LENGTH_MAX bytes. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[LENGTH_MAX + 1], n = (unsigned)strlen(b);

	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; *a; a++, i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned changed = diagonal + (*a != b[j - 1]);

			diagonal = row[j];
			row[j] = min3(changed, row[j] + 1, row[j - 1] + 1);
		}
	}
	return row[n];
}

void suggest_try(struct suggestion *s, const char *candidate)
{
	size_t length = strlen(s->word);
	unsigned d;

	if (length > LENGTH_MAX || strlen(candidate) > LENGTH_MAX)
		return;
	d = distance(s->word, candidate);
	/* More than a third wrong is another word. */
	if (d > (length + 2) / 3 || (s->best && d >= s->distance))
		return;
	s->best = candidate;
	s->distance = d;
}

const char *suggest_text(const struct suggestion *s, char *out, unsigned size)
{
	*out = '\0';
	if (s->best)
		snprintf(out, size, "; did you mean `%s'?", s->best);
	return out;
}
