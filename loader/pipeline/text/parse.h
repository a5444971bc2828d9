/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a pipeline string into statements, by the grammar of
 * beton-transforms(7). It has no list of fields or operations: graph.h resolves
 * identifiers.
 */
#ifndef LOADER_PIPELINE_TEXT_PARSE_H
#define LOADER_PIPELINE_TEXT_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "loader/pipeline/text/diagnostic.h"

/*
 * One argument: VALUE or NAME=VALUE. A value is an identifier, a string, or a
 * list of operations as in a statement. A single identifier can also be an
 * operation.
 */
struct parse_arg {
	const char *name;  /* NULL: positional */
	const char *value; /* for operations: the first identifier */
	size_t name_at;	   /* offsets into the pipeline string */
	size_t value_at;
	size_t first_stage; /* in parse.nested */
	size_t num_stages;  /* at least 1 */
	bool is_plain;	    /* one identifier or string, without parentheses */
};

/*
 * An identifier or a quoted string, optionally with arguments in parentheses.
 * For "FILE".NAME, `file` is not NULL.
 */
struct parse_stage {
	const char *file;
	const char *name;
	size_t at;
	size_t end; /* offset after its last character */
	bool quoted;
	bool has_parens;
	size_t first_arg; /* in parse.args */
	size_t num_args;
};

/* A field of a statement with several fields, with separate stages. */
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

/* Parses c->text, which you may free after the call. Returns -EINVAL, with a
   message in `c`. */
int parse_text(const struct diagnostic *c, struct parse *out);
void parse_fini(struct parse *p);

#endif
