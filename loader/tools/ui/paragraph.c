/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/paragraph.h"

#include <stdbool.h>
#include <string.h>

enum {
	INDENT = 26, /* the column where explanations begin */
	WIDTH = 79,
};

/* "(default: 2)" is one word. */
static int word_size(const char *text)
{
	static const char begin[] = "(default: ";
	size_t n = strncmp(text, begin, strlen(begin)) ? 0 : strlen(begin);

	return (int)(n + strcspn(text + n, " "));
}

void paragraph_print(FILE *out, const char *left, const char *text)
{
	int column = fprintf(out, "%s", left);

	if (column >= INDENT - 1) {
		fputc('\n', out);
		column = 0;
	}
	fprintf(out, "%*s", INDENT - column, "");
	column = INDENT;
	while (*text) {
		int n = word_size(text);
		bool is_first = column == INDENT;

		if (!is_first && column + 1 + n > WIDTH) {
			fprintf(out, "\n%*s", INDENT, "");
			column = INDENT;
			is_first = true;
		}
		fprintf(out, "%s%.*s", is_first ? "" : " ", n, text);
		column += n + !is_first;
		text += n + (text[n] == ' ');
	}
	fputc('\n', out);
}
