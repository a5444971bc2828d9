/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/graph/token.h"

/* A longer text is a mistake, like a file of another kind. */
enum { TEXT_MAX = 1 << 16 };

struct parser {
	struct lexer lexer;
	struct parse *out;
};

static bool is_mark(const struct parser *p, char mark)
{
	return p->lexer.token.kind == TOKEN_MARK && p->lexer.token.mark == mark;
}

static bool is_text(const struct parser *p)
{
	return p->lexer.token.kind == TOKEN_WORD ||
	       p->lexer.token.kind == TOKEN_STRING;
}

static bool is_over(const struct parser *p)
{
	return p->lexer.token.kind == TOKEN_END ||
	       p->lexer.token.kind == TOKEN_BREAK;
}

static int expected(const struct parser *p, const char *what)
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
			what, t->word);
}

/* Takes VALUE or NAME=VALUE; the token after it becomes the current one. */
static int take_arg(struct parser *p)
{
	struct parse_arg *arg = &p->out->args[p->out->num_args];
	int r;

	if (is_mark(p, '('))
		return complain(p->lexer.diagnostic, p->lexer.token.at,
				"lists are quoted: \"0.08,1\"");
	if (!is_text(p))
		return expected(p, "an argument");
	*arg = (struct parse_arg){ .value = p->lexer.token.word,
				   .value_at = p->lexer.token.at };
	p->out->num_args++;
	r = lexer_advance(&p->lexer);
	if (r || !is_mark(p, '='))
		return r;
	arg->name = arg->value;
	arg->name_at = arg->value_at;
	r = lexer_advance(&p->lexer);
	if (r)
		return r;
	if (is_mark(p, '('))
		return complain(p->lexer.diagnostic, p->lexer.token.at,
				"lists are quoted: \"0.08,1\"");
	if (!is_text(p))
		return expected(p, "a value");
	arg->value = p->lexer.token.word;
	arg->value_at = p->lexer.token.at;
	return lexer_advance(&p->lexer);
}

/* Takes the arguments after an opening parenthesis, and the closing one. */
static int take_args(struct parser *p, struct parse_stage *stage)
{
	int r;

	stage->has_parens = true;
	p->lexer.soft = true;
	r = lexer_advance(&p->lexer);
	if (!r && is_mark(p, ')'))
		goto out;
	while (!r) {
		r = take_arg(p);
		if (r || !is_mark(p, ','))
			break;
		r = lexer_advance(&p->lexer);
	}
	if (!r && !is_mark(p, ')'))
		r = expected(p, "`,' or `)'");
out:
	p->lexer.soft = false;
	stage->num_args = p->out->num_args - stage->first_arg;
	return r ? r : lexer_advance(&p->lexer);
}

/* Whether .WORD follows a string, which is then the name of a file. */
static bool is_member(const struct parser *p, const struct parse_stage *stage)
{
	return stage->quoted && p->lexer.token.kind == TOKEN_WORD &&
	       p->lexer.token.word[0] == '.' && p->lexer.token.word[1];
}

static int take_stage(struct parser *p, struct parse_statement *s)
{
	struct parse_stage *stage = &p->out->stages[p->out->num_stages];
	int r;

	if (!is_text(p))
		return expected(p, "an operation");
	*stage = (struct parse_stage){
		.word = p->lexer.token.word,
		.at = p->lexer.token.at,
		.quoted = p->lexer.token.kind == TOKEN_STRING,
		.first_arg = p->out->num_args,
	};
	p->out->num_stages++;
	s->num_stages++;
	r = lexer_advance(&p->lexer);
	if (!r && is_member(p, stage)) {
		stage->file = stage->word;
		stage->word = p->lexer.token.word + 1;
		stage->quoted = false;
		r = lexer_advance(&p->lexer);
	}
	if (!r && is_mark(p, '('))
		r = take_args(p, stage);
	stage->end = p->lexer.end;
	return r;
}

/* The name of an output was parsed as the first stage: makes it the name. */
static int turn_into_name(struct parser *p, struct parse_statement *s)
{
	const struct parse_stage *stage = &p->out->stages[s->first_stage];
	int r;

	if (stage->quoted || stage->file || stage->has_parens)
		return complain(p->lexer.diagnostic, stage->at,
				"the name of an output is a plain word");
	s->name = stage->word;
	p->out->num_stages--;
	s->num_stages--;
	r = lexer_advance(&p->lexer);
	return r ? r : take_stage(p, s);
}

static int take_statement(struct parser *p)
{
	struct parse_statement *s = &p->out->statements[p->out->num_statements];
	int r;

	*s = (struct parse_statement){ .at = p->lexer.token.at,
				       .first_stage = p->out->num_stages };
	p->out->num_statements++;
	r = take_stage(p, s);
	if (!r && is_mark(p, '='))
		r = turn_into_name(p, s);
	while (!r && is_mark(p, '|')) {
		/* A statement may continue after a `|' at the end of a line. */
		p->lexer.soft = true;
		r = lexer_advance(&p->lexer);
		p->lexer.soft = false;
		if (!r)
			r = take_stage(p, s);
	}
	if (!r && !is_over(p))
		r = expected(p, "`|' or `;'");
	return r;
}

/* Allocates as many of each as the text has words: each has at least one. */
static int allocate(const char *text, struct parse *out)
{
	size_t words = lexer_max_words(text) + 1;

	out->statements = calloc(words, sizeof(*out->statements));
	out->stages = calloc(words, sizeof(*out->stages));
	out->args = calloc(words, sizeof(*out->args));
	out->strings = malloc(lexer_max_bytes(text) + 1);
	return out->statements && out->stages && out->args && out->strings
		       ? 0
		       : -ENOMEM;
}

int parse_text(const struct diagnostic *c, struct parse *out)
{
	struct parser p = { .lexer = { .diagnostic = c, .text = c->text },
			    .out = out };
	int r;

	*out = (struct parse){ 0 };
	if (strlen(c->text) > TEXT_MAX)
		return complain(c, 0, "longer than %d bytes", TEXT_MAX);
	r = allocate(c->text, out);
	p.lexer.strings = out->strings;
	if (!r)
		r = lexer_advance(&p.lexer);
	while (!r && p.lexer.token.kind != TOKEN_END)
		r = p.lexer.token.kind == TOKEN_BREAK ? lexer_advance(&p.lexer)
						      : take_statement(&p);
	if (r)
		parse_fini(out);
	return r;
}

void parse_fini(struct parse *p)
{
	free(p->statements);
	free(p->stages);
	free(p->args);
	free(p->strings);
	*p = (struct parse){ 0 };
}
