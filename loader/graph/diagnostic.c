/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/diagnostic.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { QUOTE_MAX = 60, LENGTH_MAX = 40 };

static void tame(char *line)
{
	for (char *c = line; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
}

int complain(const struct diagnostic *c, size_t at, const char *format, ...)
{
	char message[896], line[32] = "";
	size_t from = at, to = at, number = 1;
	va_list args;

	if (!c->out || !c->size)
		return -EINVAL;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	while (from > 0 && c->text[from - 1] != '\n')
		from--;
	for (size_t i = 0; i < from; i++)
		number += c->text[i] == '\n';
	to += strcspn(c->text + at, "\n");
	if (strchr(c->text, '\n'))
		snprintf(line, sizeof(line), "line %zu, ", number);
	number = at - from + 1;
	/* Quote only a part of a long line, around the place. */
	if (at - from > QUOTE_MAX / 2 && to - from > QUOTE_MAX)
		from = at - QUOTE_MAX / 2;
	if (to - from > QUOTE_MAX)
		to = from + QUOTE_MAX;
	snprintf(c->out, c->size, "%scolumn %zu: %s, in `%.*s'", line, number,
		 message, (int)(to - from), c->text + from);
	tame(c->out);
	return -EINVAL;
}

/* --- suggestions --- */

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
