/* SPDX-License-Identifier: Apache-2.0 */
/* The words and marks that the text of a pipeline is made of. */
#ifndef LOADER_GRAPH_TOKEN_H
#define LOADER_GRAPH_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "loader/graph/diagnostic.h"

enum token_kind {
	TOKEN_END,   /* of the text */
	TOKEN_BREAK, /* `;' or newline */
	TOKEN_WORD,
	TOKEN_STRING,
	TOKEN_MARK, /* one of ( ) , = | */
};

struct token {
	enum token_kind kind;
	char mark;
	size_t at;	  /* offset into the text */
	const char *word; /* words and strings; in the lexer's memory */
};

struct lexer {
	const struct complaint *complaint;
	const char *text;
	size_t at;	    /* where the next token is looked for */
	char *strings;	    /* where its word goes */
	bool soft;	    /* a newline is but a space here */
	struct token token; /* the one being looked at */
};

/*
 * How many words and strings a text can have at most, and the bytes that
 * lexer->strings must have room for.
 */
size_t lexer_max_words(const char *text);
size_t lexer_max_bytes(const char *text);

/* Moves to the next token. -EINVAL: told. */
int lexer_advance(struct lexer *lexer);

/*
 * A decimal number that fills `text` up to `end` (exclusive), rounded to
 * nearest, whatever the locale. -EINVAL: none, or not finite.
 */
int token_number(const char *text, const char *end, double *out);

#endif
