/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "fs/util/rng.h"
#include "fs/util/suggest.h"
#include "loader/graph/args.h"
#include "loader/graph/diagnostic.h"
#include "loader/graph/parse.h"
#include "loader/graph/synonym.h"
#include "loader/graph/user_op.h"

struct builder {
	const struct parse *parse;
	const struct pipeline_field *fields;
	size_t num_fields;
	struct epochs *epochs;
	const struct diagnostic *diagnostic;
	struct graph *out;
};

enum { NOT_FOUND = -1, ADVICE_SIZE = 640 };

/* Stems are unique, names are not: prefer a stem. */
static int find_field(const struct builder *b, const char *word)
{
	for (size_t i = 0; i < b->num_fields; i++) {
		if (!strcmp(b->fields[i].stem, word))
			return (int)i;
	}
	for (size_t i = 0; i < b->num_fields; i++) {
		if (!strcmp(b->fields[i].name, word))
			return (int)i;
	}
	return NOT_FOUND;
}

static int unknown_field(const struct builder *b,
			 const struct parse_stage *stage)
{
	struct suggestion s = { .word = stage->word };
	char text[SUGGEST_TEXT_SIZE];

	for (size_t i = 0; i < b->num_fields; i++)
		suggest_try(&s, b->fields[i].stem);
	return complain(b->diagnostic, stage->at,
			"the dataset has no field \"%s\"%s", stage->word,
			suggest_text(&s, text, sizeof(text)));
}

/* Appends ", NAME", or "; BEFORE NAME" for the first one. */
static void list_name(char *out, size_t size, bool first, const char *before,
		      const char *name)
{
	size_t n = strlen(out);

	snprintf(out + n, size - n, "%s%s %s", first ? "; " : ",",
		 first ? before : "", name);
}

/* Writes what to do about a word that is no operation. `fields`: it could also
   be a field, which is near if `near` is. */
static const char *advise(const struct builder *b, const struct suggestion *s,
			  bool fields, bool near, char *out, size_t size)
{
	const struct synonym *synonym = near ? NULL : synonym_of(s->word);

	synonym_text(synonym, out, size);
	if (synonym)
		return out;
	if (s->best)
		suggest_text(s, out, size);
	else {
		for (size_t i = 0; fields && i < b->num_fields; i++)
			list_name(out, size, !i, "the fields are",
				  b->fields[i].stem);
		for (size_t i = 0; op_row(i); i++)
			list_name(out, size, !i, "the operations are",
				  op_row(i)->name);
	}
	return out;
}

/* `first`: the word could also be the name of a field. */
static int unknown_op(const struct builder *b, const struct parse_stage *stage,
		      bool first)
{
	struct suggestion s = { .word = stage->word };
	struct suggestion field = { .word = stage->word };
	char text[ADVICE_SIZE];

	if (!first && find_field(b, stage->word) != NOT_FOUND)
		return complain(
			b->diagnostic, stage->at,
			"no operation is called `%s', which is a field; "
			"a `;' begins another output",
			stage->word);
	if (strchr(stage->word, '.'))
		return complain(b->diagnostic, stage->at,
				"no operation is called `%s'; a function of a "
				"file of C is \"FILE.c\".FUNCTION",
				stage->word);
	for (size_t i = 0; op_row(i); i++)
		suggest_try(&s, op_row(i)->name);
	for (size_t i = 0; first && i < b->num_fields; i++) {
		suggest_try(&s, b->fields[i].stem);
		suggest_try(&field, b->fields[i].stem);
	}
	return complain(b->diagnostic, stage->at, "no %s is called `%s'%s",
			first ? "field or operation" : "operation", stage->word,
			advise(b, &s, first, field.best, text, sizeof(text)));
}

/* Finds the field of a statement that names none: the only image field. */
static int only_image(const struct builder *b, size_t at, uint32_t *out)
{
	size_t found = 0;

	for (size_t i = 0; i < b->num_fields; i++) {
		if (b->fields[i].column != COLUMN_IMAGE)
			continue;
		*out = (uint32_t)i;
		found++;
	}
	if (found == 1)
		return 0;
	return complain(b->diagnostic, at,
			found ? "the dataset has several image fields; name "
				"one: FIELD | ..."
			      : "the dataset has no image field; name another: "
				"FIELD | ...");
}

/* Sets chain->field. *skip: the number of stages that name it, 0 or 1. */
static int take_field(const struct builder *b, const struct parse_statement *s,
		      struct chain *chain, size_t *skip)
{
	const struct parse_stage *stage = &b->parse->stages[s->first_stage];
	int field = stage->has_parens || stage->file
			    ? NOT_FOUND
			    : find_field(b, stage->word);

	*skip = field != NOT_FOUND;
	if (stage->quoted && field == NOT_FOUND)
		return unknown_field(b, stage);
	if (field == NOT_FOUND && !stage->file && !op_by_name(stage->word))
		return unknown_op(b, stage, !stage->has_parens);
	if (field == NOT_FOUND)
		return only_image(b, stage->at, &chain->field);
	if (!b->fields[field].usable)
		return complain(b->diagnostic, stage->at,
				"field \"%s\" is of a type of its own and "
				"cannot be read",
				stage->word);
	chain->field = (uint32_t)field;
	return 0;
}

static struct type source_type(const struct pipeline_field *f)
{
	struct type t = { .kind = TYPE_ARRAY, .fresh = true };

	t.dtype = dtype_by_name(f->dtype);
	t.ndim = (uint32_t)min_u64(f->ndim, BETON_MAX_NDIM);
	memcpy(t.shape, f->shape, t.ndim * sizeof(*t.shape));
	switch (f->column) {
	case COLUMN_IMAGE:
		t.kind = TYPE_IMAGE;
		t.dtype = DTYPE_U1;
		t.width = f->width;
		t.height = f->height;
		break;
	case COLUMN_RAGGED:
		t.kind = TYPE_RAGGED;
		break;
	case COLUMN_SCALAR:
	case COLUMN_ARRAY:
	case COLUMN_RECORD:
		break;
	}
	return t;
}

const struct type *chain_type(const struct chain *chain)
{
	return chain->num_nodes ? &chain->nodes[chain->num_nodes - 1].type
				: &chain->source;
}

size_t chain_cut(const struct chain *chain)
{
	size_t i = 0;

	while (i < chain->num_nodes && chain->nodes[i].op->kind != OP_DEVICE)
		i++;
	return i;
}

struct chain chain_head(const struct chain *chain, size_t at)
{
	struct chain head = *chain;

	head.num_nodes = at;
	return head;
}

struct chain chain_rest(const struct chain *chain, size_t at)
{
	struct chain head = chain_head(chain, at), rest = *chain;

	rest.source = *chain_type(&head);
	if (at) /* a chain without nodes has no array of them */
		rest.nodes += at;
	rest.num_nodes -= at;
	return rest;
}

/* The number of operands of an operation, for all values of a pixel. */
static size_t count_operands(const struct node *n)
{
	size_t count =
		n->own ? user_op_num_operands(n->own) : n->op->num_operands;

	return n->op->kind == OP_POINT ? 3 * count : count;
}

struct chain chain_part(const struct chain *chain, size_t from, size_t to)
{
	struct chain head = chain_head(chain, to), part;

	part = chain_rest(&head, from);
	part.num_operands = 0;
	for (size_t i = 0; i < part.num_nodes; i++) {
		if (node_is_value(&part.nodes[i]))
			part.num_operands += count_operands(&part.nodes[i]);
	}
	return part;
}

static bool is_same(const struct node *a, const struct node *b)
{
	return a->op == b->op &&
	       (!a->own || !strcmp(a->own->function, b->own->function));
}

/* Counts the uses of an operation in the text so far. */
static unsigned ordinal(const struct builder *b, const struct node *n)
{
	unsigned count = 0;

	for (size_t i = 0; i < b->out->num_chains; i++) {
		const struct chain *chain = &b->out->chains[i];

		for (size_t k = 0; k < chain->num_nodes; k++)
			count += is_same(&chain->nodes[k], n);
	}
	return count;
}

static int stream_key(const struct builder *b, struct node *n)
{
	const char *name = n->own ? n->own->function : n->op->name;
	const char *group = NULL;
	char *text;
	int r;

	if (!n->own)
		group = n->args.arg[op_param(n->op, "group")].text;
	r = group ? asprintf(&text, "%s:%s", name, group)
		  : asprintf(&text, "%s:%u", name, ordinal(b, n));
	if (r < 0)
		return -ENOMEM;
	n->stream = rng_key_of_text(text);
	free(text);
	return 0;
}

static void forget_texts(struct args *args)
{
	for (size_t i = 0; i < OP_PARAMS_MAX; i++)
		args->arg[i].text = NULL;
}

static int load_node(const struct builder *b, const struct parse_stage *stage,
		     struct node *n)
{
	char why[256];
	int r = n->op->load(&n->args, why, sizeof(why));

	if (r == -EINVAL)
		return complain(b->diagnostic, stage->at, "%s: %s", n->op->name,
				why);
	return r;
}

static void close_node(struct node *n)
{
	user_op_close(n->own);
	if (n->op && n->op->unload)
		n->op->unload(n->args.loaded);
}

/* Resolves the operation of a stage and binds its arguments. */
static int bind_node(const struct builder *b, const struct parse_stage *stage,
		     struct node *n)
{
	int r;

	if (stage->file) {
		n->op = &user_op_op;
		r = user_op_bind(b->parse, stage, b->epochs, b->diagnostic,
				 &n->own);
	} else {
		n->op = stage->quoted ? NULL : op_by_name(stage->word);
		if (!n->op)
			return unknown_op(b, stage, false);
		r = args_bind(n->op, b->parse, stage, b->epochs, b->diagnostic,
			      &n->args);
		if (!r && n->op->load)
			r = load_node(b, stage, n);
	}
	if (!r && (n->own || op_is_random(n->op)))
		r = stream_key(b, n);
	return r;
}

bool node_is_value(const struct node *n)
{
	return n->op->kind == OP_POINT || n->op->kind == OP_PIXEL;
}

bool node_is_cut(const struct node *n)
{
	return n->op->kind == OP_IMAGE || n->op->kind == OP_BATCH;
}

static void place_operands(struct chain *chain, struct node *n)
{
	n->type.fresh = false;
	if (node_is_cut(n))
		chain->num_operands = 0;
	if (!node_is_value(n))
		return;
	n->type.valued = true;
	n->first_operand = chain->num_operands;
	chain->num_operands += count_operands(n);
}

/* Returns why a cache cannot follow the nodes of the chain, or NULL. */
static const char *refuse_cache(const struct chain *chain)
{
	bool draft = false;

	for (size_t i = 0; i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];

		if (n->op->kind == OP_CACHE)
			return "stands there already";
		if (op_is_random(n->op))
			return "must stand before what draws random numbers, "
			       "whose results are new every time";
		if (n->op->kind == OP_IMAGE)
			return "must stand before operations on whole images";
		if (n->op->kind == OP_DECODE)
			draft = n->args.arg[0].word == QUALITY_DRAFT;
		else if (n->op->kind == OP_GEOMETRY)
			draft = false;
	}
	return draft ? "keeps whole images, which decode(draft) does not "
		       "make; put a resize before it"
		     : NULL;
}

/* Returns why a mixture of rows cannot follow the nodes of the chain, or NULL.
 */
static const char *refuse_batch(const struct builder *b,
				const struct chain *chain, const struct node *n)
{
	for (size_t i = 0; i < chain->num_nodes; i++) {
		if (chain->nodes[i].op->kind == OP_BATCH)
			return "stands there already";
	}
	for (size_t i = 0; i < b->out->num_chains; i++) {
		const struct chain *other = &b->out->chains[i];

		for (size_t k = 0; k < other->num_nodes; k++) {
			const struct node *m = &other->nodes[k];

			if (m->op == n->op && m->stream == n->stream &&
			    !args_equal(&m->args, &n->args))
				return "says something else in another "
				       "statement; name a group of its own";
		}
	}
	return NULL;
}

/* Appends `n` to the chain, if it can follow its last node. */
static int append_node(const struct builder *b, struct chain *chain,
		       const struct parse_stage *stage, struct node *n)
{
	struct type in = n->type;
	const char *wrong;

	if (chain->num_nodes &&
	    chain->nodes[chain->num_nodes - 1].op->kind == OP_SINK)
		return complain(b->diagnostic, stage->at,
				"nothing can follow `drop'");
	wrong = n->op->infer(&n->args, &in, &n->type);
	if (!wrong && n->op->kind == OP_CACHE)
		wrong = refuse_cache(chain);
	if (!wrong && n->op->kind == OP_BATCH)
		wrong = refuse_batch(b, chain, n);
	if (wrong)
		return complain(b->diagnostic, stage->at, "%s %s",
				n->own ? stage->word : n->op->name, wrong);
	forget_texts(&n->args);
	place_operands(chain, n);
	chain->dropped = n->op->kind == OP_SINK;
	chain->nodes[chain->num_nodes++] = *n;
	return 0;
}

static int add_node(const struct builder *b, struct chain *chain,
		    const struct parse_stage *stage)
{
	struct node n = { .type = *chain_type(chain) };
	int r = bind_node(b, stage, &n);

	if (!r)
		r = append_node(b, chain, stage, &n);
	if (r)
		close_node(&n);
	return r;
}

/* An output's name becomes a file name and a key of a Python dictionary. */
static int check_name(const struct builder *b, const struct parse_statement *s)
{
	const char *name = s->name;

	if (!strchr(".+-", *name) && !strchr(name, '+') &&
	    strlen(name) < BETON_STEM_SIZE)
		return 0;
	return complain(b->diagnostic, s->at,
			"an output is named by letters, digits, `_', `-' and "
			"inner dots, %d at most",
			BETON_STEM_SIZE - 1);
}

static int name_chain(const struct builder *b, const struct parse_statement *s,
		      struct chain *chain)
{
	int r = s->name ? check_name(b, s) : 0;

	if (r)
		return r;
	if (s->name && chain->dropped)
		return complain(b->diagnostic, s->at,
				"`drop' leaves no output to be named");
	if (chain->dropped)
		return 0;
	chain->name = strdup(s->name ? s->name : b->fields[chain->field].stem);
	if (!chain->name)
		return -ENOMEM;
	for (const struct chain *other = b->out->chains; other < chain;
	     other++) {
		if (other->name && !strcmp(other->name, chain->name))
			return complain(b->diagnostic, s->at,
					"there is an output `%s' already; "
					"NAME = ... gives another name",
					chain->name);
	}
	return 0;
}

static int add_statement(const struct builder *b,
			 const struct parse_statement *s)
{
	struct chain *chain = &b->out->chains[b->out->num_chains++];
	size_t skip = 0;
	int r = take_field(b, s, chain, &skip);

	if (r)
		return r;
	chain->source = source_type(&b->fields[chain->field]);
	chain->nodes = calloc(s->num_stages, sizeof(*chain->nodes));
	if (!chain->nodes)
		return -ENOMEM;
	for (size_t i = skip; !r && i < s->num_stages; i++)
		r = add_node(b, chain, &b->parse->stages[s->first_stage + i]);
	return r ? r : name_chain(b, s, chain);
}

static bool is_named(const struct graph *g, size_t num_statements,
		     uint32_t field)
{
	for (size_t i = 0; i < num_statements; i++) {
		if (g->chains[i].field == field)
			return true;
	}
	return false;
}

/* Refuses a statement's name for its output if a field of that name is an
   output too. */
static int refuse_stem(const struct builder *b, const char *stem)
{
	for (size_t i = 0; i < b->parse->num_statements; i++) {
		const char *name = b->out->chains[i].name;

		if (name && !strcmp(name, stem))
			return complain(b->diagnostic,
					b->parse->statements[i].at,
					"the field `%s' comes as an output "
					"too; `%s | drop' leaves it out",
					stem, stem);
	}
	return 0;
}

static int add_plain_fields(const struct builder *b)
{
	size_t num_statements = b->parse->num_statements;
	int r = 0;

	for (uint32_t i = 0; !r && i < b->num_fields; i++) {
		const struct pipeline_field *f = &b->fields[i];
		struct chain *chain = &b->out->chains[b->out->num_chains];

		if (!f->usable || is_named(b->out, num_statements, i))
			continue;
		r = refuse_stem(b, f->stem);
		if (r)
			break;
		*chain = (struct chain){ .name = strdup(f->stem),
					 .field = i,
					 .source = source_type(f) };
		b->out->num_chains++;
		r = chain->name ? 0 : -ENOMEM;
	}
	return r;
}

int graph_build(const struct parse *parse, const struct pipeline_field *fields,
		size_t num_fields, struct epochs *epochs,
		const struct diagnostic *c, struct graph *out)
{
	struct builder b = { parse, fields, num_fields, epochs, c, out };
	int r = 0;

	*out = (struct graph){ 0 };
	out->chains = calloc(parse->num_statements + num_fields + 1,
			     sizeof(*out->chains));
	if (!out->chains)
		return -ENOMEM;
	for (size_t i = 0; !r && i < parse->num_statements; i++)
		r = add_statement(&b, &parse->statements[i]);
	if (!r)
		r = add_plain_fields(&b);
	if (r)
		graph_fini(out);
	return r;
}

void graph_fini(struct graph *g)
{
	for (size_t i = 0; i < g->num_chains; i++) {
		for (size_t k = 0; k < g->chains[i].num_nodes; k++)
			close_node(&g->chains[i].nodes[k]);
		free(g->chains[i].name);
		free(g->chains[i].nodes);
	}
	free(g->chains);
	*g = (struct graph){ 0 };
}
