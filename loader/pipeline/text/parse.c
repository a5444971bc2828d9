/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/text/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/pipeline/text/token.h"

/* A longer text is a mistake, like a file of another kind. */
enum { TEXT_MAX = 1 << 16 };

/*
 * Arguments, and the operations of one, follow one another in `out`, so those
 * of a pair of parentheses wait on a stack until it is closed.
 */
struct pipeline_parser {
	struct lexer lexer;
	struct parse *out;
	struct parse_stage *stages; /* stacks */
	struct parse_arg *args;
	size_t num_stages;
	size_t num_args;
	unsigned depth; /* of parentheses */
};

static bool is_mark(const struct pipeline_parser *p, char mark)
{
	return p->lexer.token.kind == TOKEN_MARK && p->lexer.token.mark == mark;
}

static bool is_text(const struct pipeline_parser *p)
{
	return p->lexer.token.kind == TOKEN_IDENTIFIER ||
	       p->lexer.token.kind == TOKEN_STRING;
}

static bool is_over(const struct pipeline_parser *p)
{
	return p->lexer.token.kind == TOKEN_END ||
	       p->lexer.token.kind == TOKEN_BREAK;
}

static int expected(const struct pipeline_parser *p, const char *what)
{
	const struct token *t = &p->lexer.token;

	if (t->kind == TOKEN_END)
		return complain(p->lexer.diagnostic, t->at,
				"%s expected, the text ends", what);
	if (t->kind == TOKEN_BREAK)
		return complain(p->lexer.diagnostic, t->at,
				"%s expected, the statement ends", what);
	if (t->kind == TOKEN_MARK)
		return complain(p->lexer.diagnostic, t->at,
				"%s expected, not `%c'", what, t->mark);
	return complain(p->lexer.diagnostic, t->at, "%s expected, not `%s'",
			what, t->value);
}

static int take_stage(struct pipeline_parser *p, struct parse_stage *stage);

/* Moves the stages from `first` on from the stack to the argument. */
static void end_list(struct pipeline_parser *p, struct parse_arg *arg,
		     size_t first)
{
	const struct parse_stage *stage = &p->stages[first];

	arg->first_stage = p->out->num_nested;
	arg->num_stages = p->num_stages - first;
	arg->is_plain =
		arg->num_stages == 1 && !stage->file && !stage->has_parens;
	memcpy(&p->out->nested[arg->first_stage], stage,
	       arg->num_stages * sizeof(*stage));
	p->out->num_nested += arg->num_stages;
	p->num_stages = first;
}

/* Takes a value: an identifier or a string, or operations joined by `|'. */
static int take_value(struct pipeline_parser *p, struct parse_arg *arg,
		      const char *what)
{
	size_t first = p->num_stages;
	int r;

	if (is_mark(p, '('))
		return complain_bracket(p->lexer.diagnostic, p->lexer.token.at);
	if (!is_text(p))
		return expected(p, what);
	arg->value = p->lexer.token.value;
	arg->value_at = p->lexer.token.at;
	r = take_stage(p, &p->stages[p->num_stages++]);
	while (!r && is_mark(p, '|')) {
		r = lexer_advance(&p->lexer);
		if (!r)
			r = take_stage(p, &p->stages[p->num_stages++]);
	}
	end_list(p, arg, first);
	return r;
}

/* Takes VALUE or NAME=VALUE; the token after it becomes the current one. */
static int take_arg(struct pipeline_parser *p)
{
	struct parse_arg *arg = &p->args[p->num_args++];
	int r;

	*arg = (struct parse_arg){ 0 };
	r = take_value(p, arg, "an argument");
	if (r || !is_mark(p, '=') || !arg->is_plain)
		return r;
	arg->name = arg->value;
	arg->name_at = arg->value_at;
	p->out->num_nested--;
	r = lexer_advance(&p->lexer);
	return r ? r : take_value(p, arg, "a value");
}

/* Moves the arguments from `first` on from the stack to the stage. */
static void end_args(struct pipeline_parser *p, struct parse_stage *stage,
		     size_t first)
{
	stage->first_arg = p->out->num_args;
	stage->num_args = p->num_args - first;
	memcpy(&p->out->args[stage->first_arg], &p->args[first],
	       stage->num_args * sizeof(*p->args));
	p->out->num_args += stage->num_args;
	p->num_args = first;
}

static int take_arg_list(struct pipeline_parser *p)
{
	int r = lexer_advance(&p->lexer);

	if (!r && is_mark(p, ')'))
		return 0;
	while (!r) {
		r = take_arg(p);
		if (r || !is_mark(p, ','))
			break;
		r = lexer_advance(&p->lexer);
	}
	if (!r && !is_mark(p, ')'))
		r = expected(p, "`,' or `)'");
	return r;
}

/* Takes the arguments after an opening parenthesis, and the closing one. */
static int take_args(struct pipeline_parser *p, struct parse_stage *stage)
{
	size_t first = p->num_args;
	bool soft = p->lexer.soft;
	int r;

	if (p->depth == PARSE_DEPTH_MAX)
		return complain(p->lexer.diagnostic, p->lexer.token.at,
				"parentheses nest at most %d deep",
				PARSE_DEPTH_MAX);
	stage->has_parens = true;
	p->lexer.soft = true;
	p->depth++;
	r = take_arg_list(p);
	p->depth--;
	p->lexer.soft = soft;
	end_args(p, stage, first);
	return r ? r : lexer_advance(&p->lexer);
}

/* Whether .WORD follows a string, which is then the name of a file. */
static bool is_member(const struct pipeline_parser *p,
		      const struct parse_stage *stage)
{
	return stage->quoted && p->lexer.token.kind == TOKEN_IDENTIFIER &&
	       p->lexer.token.value[0] == '.' && p->lexer.token.value[1];
}

static int take_stage(struct pipeline_parser *p, struct parse_stage *stage)
{
	int r;

	*stage = (struct parse_stage){ 0 };
	if (!is_text(p))
		return expected(p, "an operation");
	*stage = (struct parse_stage){
		.name = p->lexer.token.value,
		.at = p->lexer.token.at,
		.quoted = p->lexer.token.kind == TOKEN_STRING,
	};
	r = lexer_advance(&p->lexer);
	if (!r && is_member(p, stage)) {
		stage->file = stage->name;
		stage->name = p->lexer.token.value + 1;
		stage->quoted = false;
		r = lexer_advance(&p->lexer);
	}
	if (!r && is_mark(p, '('))
		r = take_args(p, stage);
	stage->end = p->lexer.end;
	return r;
}

/* Takes a stage of a statement. */
static int take_own_stage(struct pipeline_parser *p, struct parse_statement *s)
{
	s->num_stages++;
	return take_stage(p, &p->out->stages[p->out->num_stages++]);
}

/* The name of an output was parsed as the first stage: makes it the name. */
static int turn_into_name(struct pipeline_parser *p, struct parse_statement *s)
{
	const struct parse_stage *stage = &p->out->stages[s->first_stage];
	int r;

	if (stage->quoted || stage->file || stage->has_parens)
		return complain(
			p->lexer.diagnostic, stage->at,
			"the name of an output is an unquoted identifier");
	s->name = stage->name;
	p->out->num_stages--;
	s->num_stages--;
	r = lexer_advance(&p->lexer);
	return r ? r : take_own_stage(p, s);
}

/* Takes `| stage' until there is none. */
static int take_more_stages(struct pipeline_parser *p,
			    struct parse_statement *s)
{
	bool soft = p->lexer.soft;
	int r = 0;

	while (!r && is_mark(p, '|')) {
		/* A statement may continue after a `|' at the end of a line. */
		p->lexer.soft = true;
		r = lexer_advance(&p->lexer);
		p->lexer.soft = soft;
		if (!r)
			r = take_own_stage(p, s);
	}
	return r;
}

static int take_member(struct pipeline_parser *p, struct parse_statement *s)
{
	struct parse_member *m = &p->out->members[p->out->num_members];
	struct parse_statement own = { .first_stage = p->out->num_stages };
	int r;

	*m = (struct parse_member){ .at = p->lexer.token.at,
				    .first_stage = own.first_stage };
	p->out->num_members++;
	s->num_members++;
	r = take_own_stage(p, &own);
	if (!r)
		r = take_more_stages(p, &own);
	m->num_stages = own.num_stages;
	return r;
}

/* Takes `(member, ...)'; its opening parenthesis is the current token. */
static int take_members(struct pipeline_parser *p, struct parse_statement *s)
{
	int r;

	s->first_member = p->out->num_members;
	s->num_members = 0;
	p->lexer.soft = true;
	do {
		r = lexer_advance(&p->lexer);
		if (!r)
			r = take_member(p, s);
	} while (!r && is_mark(p, ','));
	if (!r && !is_mark(p, ')'))
		r = expected(p, "`,' or `)'");
	p->lexer.soft = false;
	return r ? r : lexer_advance(&p->lexer);
}

/* Takes the members that the ones taken so far are the names of. */
static int take_named_members(struct pipeline_parser *p,
			      struct parse_statement *s)
{
	struct parse_member *names = &p->out->members[s->first_member];
	size_t count = s->num_members;
	int r = lexer_advance(&p->lexer);

	for (size_t i = 0; !r && i < count; i++) {
		const struct parse_stage *stage =
			&p->out->stages[names[i].first_stage];

		if (names[i].num_stages > 1 || stage->quoted || stage->file ||
		    stage->has_parens)
			return complain(
				p->lexer.diagnostic, stage->at,
				"the name of an output is an unquoted identifier");
		names[i].name = stage->name;
	}
	if (!r && !is_mark(p, '('))
		r = expected(p, "`(', and as many fields as names,");
	if (!r)
		r = take_members(p, s);
	if (!r && s->num_members != count)
		return complain(p->lexer.diagnostic, s->at,
				"%zu names for %zu fields", count,
				s->num_members);
	for (size_t i = 0; !r && i < count; i++) {
		struct parse_member *m = &p->out->members[s->first_member + i];

		m->name = names[i].name;
		m->at = names[i].at;
	}
	return r;
}

/* Takes the fields of a statement of several; its stages follow. */
static int take_fields(struct pipeline_parser *p, struct parse_statement *s)
{
	int r = take_members(p, s);

	if (!r && is_mark(p, '='))
		r = take_named_members(p, s);
	s->first_stage = p->out->num_stages;
	s->num_stages = 0;
	return r;
}

static int take_statement(struct pipeline_parser *p)
{
	struct parse_statement *s = &p->out->statements[p->out->num_statements];
	int r;

	*s = (struct parse_statement){ .at = p->lexer.token.at,
				       .first_stage = p->out->num_stages };
	p->out->num_statements++;
	r = is_mark(p, '(') ? take_fields(p, s) : take_own_stage(p, s);
	if (!r && !s->num_members && is_mark(p, '='))
		r = turn_into_name(p, s);
	if (!r)
		r = take_more_stages(p, s);
	if (!r && !is_over(p))
		r = expected(p, "`|' or `;'");
	return r;
}

/* Allocates as many of each as the pipeline string has identifiers: each has at
 * least one, and one more may fail. */
static int allocate(struct pipeline_parser *p, const char *text)
{
	size_t words = lexer_max_names(text) + 1;
	struct parse *out = p->out;

	out->statements = calloc(words, sizeof(*out->statements));
	out->stages = calloc(words, sizeof(*out->stages));
	out->nested = calloc(words, sizeof(*out->nested));
	out->members = calloc(words, sizeof(*out->members));
	out->args = calloc(words, sizeof(*out->args));
	out->strings = malloc(lexer_max_bytes(text) + 1);
	p->stages = calloc(words, sizeof(*p->stages));
	p->args = calloc(words, sizeof(*p->args));
	p->lexer.strings = out->strings;
	return out->statements && out->stages && out->nested && out->members &&
			       out->args && out->strings && p->stages && p->args
		       ? 0
		       : -ENOMEM;
}

int parse_text(const struct diagnostic *c, struct parse *out)
{
	struct pipeline_parser p = {
		.lexer = { .diagnostic = c, .text = c->text }, .out = out
	};
	int r;

	*out = (struct parse){ 0 };
	if (strlen(c->text) > TEXT_MAX)
		return complain(c, 0, "longer than %d bytes", TEXT_MAX);
	r = allocate(&p, c->text);
	if (!r)
		r = lexer_advance(&p.lexer);
	while (!r && p.lexer.token.kind != TOKEN_END)
		r = p.lexer.token.kind == TOKEN_BREAK ? lexer_advance(&p.lexer)
						      : take_statement(&p);
	free(p.stages);
	free(p.args);
	if (r)
		parse_fini(out);
	return r;
}

void parse_fini(struct parse *p)
{
	free(p->statements);
	free(p->stages);
	free(p->nested);
	free(p->members);
	free(p->args);
	free(p->strings);
	*p = (struct parse){ 0 };
}
