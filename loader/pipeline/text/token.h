/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a pipeline string into identifiers, strings and marks. */
#ifndef LOADER_PIPELINE_TEXT_TOKEN_H
#define LOADER_PIPELINE_TEXT_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "loader/pipeline/text/diagnostic.h"

enum token_kind {
	TOKEN_END,   /* of the text */
	TOKEN_BREAK, /* `;' or newline */
	TOKEN_IDENTIFIER,
	TOKEN_STRING,
	TOKEN_MARK, /* one of ( ) , = | */
};

struct token {
	enum token_kind kind;
	char mark;
	size_t at;	   /* offset into the pipeline string */
	const char *value; /* identifiers and strings; in the lexer's memory */
};

struct lexer {
	const struct diagnostic *diagnostic;
	const char *text;
	size_t at;	    /* offset of the next token */
	size_t end;	    /* end of the previous token */
	char *strings;	    /* free memory for identifiers and strings */
	bool soft;	    /* newlines are spaces */
	struct token token; /* the current one */
};

/*
 * Return upper bounds for a text: the number of identifiers and strings, and
 * the bytes that lexer->strings needs.
 */
size_t lexer_max_names(const char *text);
size_t lexer_max_bytes(const char *text);

/* Moves to the next token. Returns -EINVAL, with a message in the
   diagnostic. */
int lexer_advance(struct lexer *lexer);

/*
 * Parses [text, end) as a decimal number, rounded to nearest, in any locale.
 * Returns -EINVAL if it is not a number, or not finite.
 */
int token_number(const char *text, const char *end, double *out);

#endif
