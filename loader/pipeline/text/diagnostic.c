/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/text/diagnostic.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/name.h"

enum { QUOTE_MAX = 60 };

int complain(const struct diagnostic *c, size_t at, const char *format, ...)
{
	char message[1280], line[32] = "";
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
	/* Quote only the part of a long line around the error. */
	if (at - from > QUOTE_MAX / 2 && to - from > QUOTE_MAX)
		from = at - QUOTE_MAX / 2;
	if (to - from > QUOTE_MAX)
		to = from + QUOTE_MAX;
	snprintf(c->out, c->size, "%scolumn %zu: %s, in `%.*s'", line, number,
		 message, (int)(to - from), c->text + from);
	name_tame(c->out);
	return -EINVAL;
}

int complain_bracket(const struct diagnostic *c, size_t at)
{
	const char *list = c->text + at + 1, *blank = " \t";
	char close = c->text[at] == '[' ? ']' : ')', first;
	size_t size = strspn(list, "0123456789.+-eE, \t");
	bool whole = list[size] == close && size && size < QUOTE_MAX;

	first = list[strspn(list, blank)];
	if (isalpha((unsigned char)first))
		return complain(c, at,
				"operations have no brackets: "
				"random_apply(flip | invert)");
	return complain(c, at, "lists are quoted: \"%.*s\"",
			whole ? (int)size : QUOTE_MAX, whole ? list : "0.08,1");
}
