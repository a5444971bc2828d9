/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the text of a pipeline into statements. Implements the grammar of
 * beton-transforms(7), and has no list of fields or operations: graph.h
 * resolves words.
 */
#ifndef LOADER_GRAPH_PARSE_H
#define LOADER_GRAPH_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "loader/graph/diagnostic.h"

/* One argument: VALUE or NAME=VALUE. */
struct parse_arg {
	const char *name; /* NULL: positional */
	const char *value;
	size_t name_at; /* offsets into the text */
	size_t value_at;
};

/*
 * A word or a quoted string, with arguments in parentheses if it has any; or
 * "FILE".WORD, for which file is not NULL.
 */
struct parse_stage {
	const char *file;
	const char *word;
	size_t at;
	size_t end; /* after its last character */
	bool quoted;
	bool has_parens;
	size_t first_arg; /* in parse.args */
	size_t num_args;
};

/* [NAME =] stage | stage ... */
struct parse_statement {
	const char *name;   /* NULL: none given */
	size_t at;	    /* offset of the name, else of the first stage */
	size_t first_stage; /* in parse.stages */
	size_t num_stages;  /* at least 1 */
};

struct parse {
	struct parse_statement *statements;
	struct parse_stage *stages;
	struct parse_arg *args;
	char *strings; /* memory of all words */
	size_t num_statements;
	size_t num_stages;
	size_t num_args;
};

/* Parses c->text, which need not outlive the call. -EINVAL, with a message in
   `c`. */
int parse_text(const struct diagnostic *c, struct parse *out);
void parse_fini(struct parse *p);

#endif
