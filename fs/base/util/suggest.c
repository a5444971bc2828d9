/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/util/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH_MAX = 40 };

static char fold(char c)
{
	return c == '-' ? '_' : (char)tolower((unsigned char)c);
}

static size_t word_size(const struct suggestion *s)
{
	return s->size ? s->size : strlen(s->word);
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

/* Levenshtein's distance of two words of at most LENGTH_MAX bytes. */
static unsigned distance(const char *a, size_t m, const char *b)
{
	unsigned row[LENGTH_MAX + 1], n = (unsigned)strlen(b);

	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; i <= m; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned changed =
				diagonal + (fold(a[i - 1]) != fold(b[j - 1]));

			diagonal = row[j];
			row[j] = min3(changed, row[j] + 1, row[j - 1] + 1);
		}
	}
	return row[n];
}

void suggest_try(struct suggestion *s, const char *candidate)
{
	const size_t size = word_size(s);
	unsigned d;

	if (size > LENGTH_MAX || strlen(candidate) > LENGTH_MAX)
		return;
	d = distance(s->word, size, candidate);
	/* If more than a third of the letters differ, it is another word. */
	if (d > (size + 2) / 3 || (s->best && d >= s->distance))
		return;
	s->best = candidate;
	s->distance = d;
}

void suggest_other(struct suggestion *s, const struct other_word *words)
{
	const size_t size = word_size(s);

	for (; words->theirs; words++) {
		if (size != strlen(words->theirs) || size > LENGTH_MAX ||
		    distance(s->word, size, words->theirs))
			continue;
		s->best = words->ours;
		s->distance = 0;
	}
}

const char *suggest_text(const struct suggestion *s, char *out, size_t size)
{
	*out = '\0';
	if (s->best)
		snprintf(out, size, "; did you mean `%s'?", s->best);
	return out;
}
