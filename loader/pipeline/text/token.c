/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/text/token.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 64 };

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || (c && strchr("_.+-", c));
}

int token_number(const char *text, const char *end, double *out)
{
	char copy[NUMBER_MAX];
	size_t size = (size_t)(end - text);
	locale_t c_locale;
	char *stop;
	double v;

	/* Refuse what strtod() takes besides: hexadecimal, infinities, blanks.
	 */
	if (!size || size >= sizeof(copy) ||
	    strspn(text, "0123456789.+-eE") < size)
		return -EINVAL;
	memcpy(copy, text, size);
	copy[size] = '\0';
	c_locale = newlocale(LC_ALL_MASK, "C", NULL);
	if (!c_locale)
		return -ENOMEM;
	v = strtod_l(copy, &stop, c_locale);
	freelocale(c_locale);
	if (*stop || !isfinite(v))
		return -EINVAL;
	*out = v;
	return 0;
}

size_t lexer_max_names(const char *text)
{
	size_t words = 0;

	for (size_t i = 0; text[i]; i++)
		words += text[i] == '"' || (is_word_char(text[i]) &&
					    !(i && is_word_char(text[i - 1])));
	return words;
}

/* An identifier needs one more byte for its NUL. A string has room for it: its
 * quotes. */
size_t lexer_max_bytes(const char *text)
{
	return strlen(text) + lexer_max_names(text);
}

static void skip_space(struct lexer *l)
{
	for (;;) {
		const char *c = l->text + l->at;

		if (*c == '#')
			l->at += strcspn(c, "\n");
		else if (*c && strchr(l->soft ? " \t\r\n" : " \t\r", *c))
			l->at++;
		else
			return;
	}
}

static void take_word(struct lexer *l)
{
	char *to = l->strings;

	l->token.kind = TOKEN_IDENTIFIER;
	l->token.value = to;
	while (is_word_char(l->text[l->at]))
		*to++ = l->text[l->at++];
	*to++ = '\0';
	l->strings = to;
}

/* Takes a string in quotes, in which \" and \\ are escapes. */
static int take_string(struct lexer *l)
{
	char *to = l->strings;

	l->token.kind = TOKEN_STRING;
	l->token.value = to;
	for (l->at++; l->text[l->at] != '"'; l->at++) {
		const char *c = l->text + l->at;

		if (!*c || *c == '\n')
			return complain(l->diagnostic, l->token.at,
					"this quote is not closed");
		if (c[0] == '\\' && (c[1] == '"' || c[1] == '\\'))
			l->at++;
		*to++ = l->text[l->at];
	}
	l->at++;
	*to++ = '\0';
	l->strings = to;
	return 0;
}

static int unknown_mark(const struct lexer *l, char c)
{
	if (c == '\'')
		return complain(l->diagnostic, l->at, "quotes are \", not '");
	if (c < ' ' || c > '~')
		return complain(l->diagnostic, l->at,
				"this byte is allowed inside quotes only");
	if (c == '[')
		return complain_bracket(l->diagnostic, l->at);
	return complain(l->diagnostic, l->at, "`%c' is not part of the grammar",
			c);
}

int lexer_advance(struct lexer *l)
{
	char c;

	l->end = l->at;
	skip_space(l);
	c = l->text[l->at];
	l->token = (struct token){ .kind = TOKEN_END, .at = l->at, .mark = c };
	if (!c)
		return 0;
	if (c == '"')
		return take_string(l);
	if (is_word_char(c)) {
		take_word(l);
		return 0;
	}
	if (!strchr(";\n(),=|", c))
		return unknown_mark(l, c);
	l->token.kind = c == ';' || c == '\n' ? TOKEN_BREAK : TOKEN_MARK;
	l->at++;
	return 0;
}
