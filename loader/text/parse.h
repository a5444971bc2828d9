/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a pipeline string into statements. Implements the grammar of
 * beton-transforms(7), and has no list of fields or operations: graph.h
 * resolves words.
 */
#ifndef LOADER_TEXT_PARSE_H
#define LOADER_TEXT_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "loader/text/diagnostic.h"

/*
 * One argument: VALUE or NAME=VALUE. A value is a plain word or string, or
 * operations, as in a statement; a plain word may also be an operation.
 */
struct parse_arg {
	const char *name;  /* NULL: positional */
	const char *value; /* of operations the first identifier */
	size_t name_at;	   /* offsets into the pipeline string */
	size_t value_at;
	size_t first_stage; /* in parse.nested */
	size_t num_stages;  /* at least 1 */
	bool is_plain;	    /* one identifier or string, without parentheses */
};

/*
 * A word or a quoted string, with arguments in parentheses if it has any; or
 * "FILE".WORD, for which file is not NULL.
 */
struct parse_stage {
	const char *file;
	const char *name;
	size_t at;
	size_t end; /* after its last character */
	bool quoted;
	bool has_parens;
	size_t first_arg; /* in parse.args */
	size_t num_args;
};

/* A field of a statement with several fields, with its own stages. */
struct parse_member {
	const char *name;   /* of its output; NULL: none given */
	size_t at;	    /* offset of the name, else of the first stage */
	size_t first_stage; /* in parse.stages */
	size_t num_stages;  /* at least 1 */
};

/* [NAME =] stage | stage ..., or [(NAME, ...) =] (member, ...) | stage ... */
struct parse_statement {
	const char *name;    /* NULL: none given, or of several */
	size_t at;	     /* offset of the name, else of the first stage */
	size_t first_stage;  /* in parse.stages */
	size_t num_stages;   /* at least 1, unless there are members */
	size_t first_member; /* in parse.members */
	size_t num_members;  /* 0: a statement of one field */
};

struct parse {
	struct parse_statement *statements;
	struct parse_stage *stages; /* of statements */
	struct parse_stage *nested; /* of arguments */
	struct parse_member *members;
	struct parse_arg *args;
	char *strings; /* memory of all identifiers and strings */
	size_t num_statements;
	size_t num_stages;
	size_t num_nested;
	size_t num_members;
	size_t num_args;
};

/* The greatest depth of nested parentheses. */
enum { PARSE_DEPTH_MAX = 5 };

/* Parses c->text, which need not outlive the call. -EINVAL, with a message in
   `c`. */
int parse_text(const struct diagnostic *c, struct parse *out);
void parse_fini(struct parse *p);

#endif
