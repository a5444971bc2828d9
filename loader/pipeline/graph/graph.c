/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/graph/graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/pipeline/graph/args.h"
#include "loader/pipeline/graph/bind.h"
#include "loader/pipeline/graph/family.h"
#include "loader/pipeline/graph/links.h"
#include "loader/pipeline/op/user_op.h"
#include "loader/pipeline/text/diagnostic.h"
#include "loader/pipeline/text/parse.h"

/* Returns the reason why a cache cannot follow the nodes of the chain, or
   NULL. */
static const char *refuse_cache(const struct chain *chain)
{
	bool draft = false;

	for (size_t i = 0; i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];

		if (n->op->kind == OP_CACHE)
			return "is in this statement already";
		if (op_is_random(n->op))
			return "must stand before operations that draw "
			       "random numbers, because their results "
			       "change in every epoch";
		if (n->op->kind == OP_IMAGE)
			return "must stand before whole-image operations";
		if (n->op->kind == OP_DECODE)
			draft = n->args.arg[0].choice == QUALITY_DRAFT;
		else if (n->op->kind == OP_GEOMETRY)
			draft = false;
	}
	return draft ? "stores whole images, which decode(draft) "
		       "does not make; put a resize before it"
		     : NULL;
}

/* Whether two mixing operations have the same arguments. */
static bool is_alike(const struct node *a, const struct node *b)
{
	bool alike = args_equal(&a->args, &b->args) &&
		     a->num_branches == b->num_branches;

	for (size_t i = 0; alike && i < a->num_branches; i++) {
		const struct node *x = a->branches[i].nodes;
		const struct node *y = b->branches[i].nodes;

		alike = x->op == y->op && x->stream == y->stream &&
			args_equal(&x->args, &y->args);
	}
	return alike;
}

/* Returns the reason why a mixing operation cannot follow the nodes of the
   chain, or NULL. */
static const char *refuse_batch(const struct builder *b,
				const struct chain *chain, const struct node *n)
{
	if (n->type.views)
		return "mixes single images, not several views of a sample";
	for (size_t i = 0; i < chain->num_nodes; i++) {
		if (chain->nodes[i].op->kind == OP_BATCH)
			return "is in this statement already";
	}
	for (size_t i = 0; i < b->out->num_chains; i++) {
		const struct chain *other = &b->out->chains[i];

		for (size_t k = 0; k < other->num_nodes; k++) {
			const struct node *m = &other->nodes[k];

			if (m->op == n->op && m->stream == n->stream &&
			    !is_alike(m, n))
				return "has other arguments in another statement; "
				       "name another group";
		}
	}
	return NULL;
}

/* --- statements --- */

/* Appends `n` to the chain, if `n` can follow the last node. */
static int append_node(struct builder *b, struct chain *chain,
		       const struct parse_stage *stage, struct node *n)
{
	struct type in = n->type;
	const char *wrong;
	int r;

	if (chain->num_nodes &&
	    chain->nodes[chain->num_nodes - 1].op->kind == OP_SINK)
		return complain(b->diagnostic, stage->at,
				"nothing can follow `drop'");
	/* A result of pad_to does not become a grid. */
	if (chain->source.kind == TYPE_ARRAY)
		family_enter(n->op, &in);
	n->type = in;
	wrong = n->op->infer(&n->args, &in, &n->type);
	if (!wrong)
		wrong = family_refuse(n->op, &n->args, n->custom, &in);
	if (!wrong && n->op->kind == OP_CACHE)
		wrong = refuse_cache(chain);
	if (!wrong && n->type.views && !in.views && chain_mixture(chain))
		wrong = "cannot follow mixup or cutmix";
	if (!wrong && op_refers_to(n->op) && chain_of(chain))
		wrong = "cannot stand here, because one of follow, "
			"keep_rows and params precedes it";
	r = bind_refuse(b, stage, n, wrong);
	if (!r)
		r = bind_branches(b, stage, n, &in);
	if (!r && n->op->kind == OP_BATCH)
		r = bind_refuse(b, stage, n, refuse_batch(b, chain, n));
	if (r)
		return r;
	bind_forget_texts(&n->args);
	n->is_viewed = n->type.views;
	chain_place(chain, n);
	chain->dropped = n->op->kind == OP_SINK;
	chain->nodes[chain->num_nodes++] = *n;
	return 0;
}

static int add_node(struct builder *b, struct chain *chain,
		    const struct parse_stage *stage)
{
	struct node n = { .at = stage->at, .type = *chain_type(chain) };
	int r = bind_stage(b, stage, &n);

	if (!r)
		r = append_node(b, chain, stage, &n);
	if (r)
		node_close(&n);
	return r;
}

/* A name of an output in the pipeline string, and its chain. */
struct naming {
	const char *name; /* NULL: none */
	size_t at;
};

/* Checks the name of an output, which is also a key of a Python dictionary. */
static int check_name(const struct builder *b, const struct naming *naming)
{
	const char *name = naming->name;

	if (!strchr(".+-", *name) && !strchr(name, '+') &&
	    strlen(name) < BETON_STEM_SIZE)
		return 0;
	return complain(b->diagnostic, naming->at,
			"the name of an output has letters, digits, "
			"`_', `-' and inner dots, %d at most",
			BETON_STEM_SIZE - 1);
}

static int name_chain(const struct builder *b, const struct naming *naming,
		      struct chain *chain)
{
	const char *name = naming->name;
	int r = name ? check_name(b, naming) : 0;

	chain->at = naming->at;
	if (r)
		return r;
	if (name && chain->dropped)
		return complain(b->diagnostic, naming->at,
				"`drop' makes no output, so it takes no name");
	if (chain->dropped)
		return 0;
	chain->name = strdup(name ? name : b->fields[chain->field].stem);
	if (!chain->name)
		return -ENOMEM;
	for (const struct chain *other = b->out->chains; other < chain;
	     other++) {
		if (other->name && !strcmp(other->name, chain->name))
			return complain(
				b->diagnostic, naming->at,
				"there is an output `%s' already; choose "
				"another name by NAME = ...",
				chain->name);
	}
	return 0;
}

/* Begins a chain of at most `num_nodes` operations. Its first stage may name
   the field. *skip as in bind_take_field(). */
static int begin_chain(struct builder *b, const struct parse_stage *stage,
		       size_t num_nodes, struct chain **out, size_t *skip)
{
	struct chain *chain = &b->out->chains[b->out->num_chains++];
	int r = bind_take_field(b, stage, chain, skip);

	if (r)
		return r;
	chain->source = bind_source(&b->fields[chain->field]);
	chain->nodes = calloc(num_nodes + 1, sizeof(*chain->nodes));
	*out = chain;
	return chain->nodes ? 0 : -ENOMEM;
}

/* --- statements of one field --- */

static int add_statement(struct builder *b, const struct parse_statement *s)
{
	const struct parse_stage *stages = &b->parse->stages[s->first_stage];
	struct chain *chain;
	size_t skip = 0;
	int r;

	b->first = b->out->num_chains;
	b->is_several = false;
	r = begin_chain(b, stages, s->num_stages, &chain, &skip);
	for (size_t i = skip; !r && i < s->num_stages; i++)
		r = add_node(b, chain, &stages[i]);
	return r ? r : name_chain(b, &(struct naming){ s->name, s->at }, chain);
}

/* --- statements of several fields --- */

/* Adds the operations that apply to the field. A mask may skip some. */
static int add_own_nodes(struct builder *b, const struct parse_member *m,
			 struct chain *chain)
{
	const struct parse_stage *stages = &b->parse->stages[m->first_stage];
	const struct parse_stage mask = { .name = "mask", .at = stages->at };
	int r = 0;

	if (m->num_stages == 1 && family_is_mask(&chain->source))
		r = add_node(b, chain, &mask);
	for (size_t i = 1; !r && i < m->num_stages; i++)
		r = add_node(b, chain, &stages[i]);
	return r;
}

static int add_member(struct builder *b, const struct parse_statement *s,
		      const struct parse_member *m)
{
	struct naming naming = { m->name, m->at };
	const struct parse_stage *field = &b->parse->stages[m->first_stage];
	struct chain *chain;
	size_t skip = 0;
	int r = 0;

	if (field->has_parens || bind_field(b, field->name) == BIND_NOT_FOUND)
		return bind_unknown_field(b, field);
	r = begin_chain(b, field, m->num_stages + s->num_stages + 1, &chain,
			&skip);
	if (!r)
		r = add_own_nodes(b, m, chain);
	for (size_t i = 0; !r && i < s->num_stages; i++) {
		const struct parse_stage *stage =
			&b->parse->stages[s->first_stage + i];

		if (!bind_is_skipped(stage, chain_type(chain)))
			r = add_node(b, chain, stage);
	}
	return r ? r : name_chain(b, &naming, chain);
}

/* Refuses an operation that none of the fields takes. */
static int check_use(const struct builder *b, const struct parse_stage *stage)
{
	struct node n = { .at = stage->at };

	return bind_twin(b, &n)
		       ? 0
		       : complain(b->diagnostic, stage->at,
				  "%s applies to none of these fields, which "
				  "are masks or arrays",
				  stage->name);
}

static int add_statement_of_several(struct builder *b,
				    const struct parse_statement *s)
{
	int r = 0;

	b->first = b->out->num_chains;
	b->is_several = true;
	for (size_t i = 0; !r && i < s->num_members; i++)
		r = add_member(b, s, &b->parse->members[s->first_member + i]);
	for (size_t i = 0; !r && i < s->num_stages; i++)
		r = check_use(b, &b->parse->stages[s->first_stage + i]);
	return r;
}

/* --- fields without a statement --- */

static bool is_named(const struct graph *g, size_t num_chains, uint32_t field)
{
	for (size_t i = 0; i < num_chains; i++) {
		const struct chain *chain = &g->chains[i];

		/* An operation that only refers to another output does not
		 * change its device. */
		if (chain->field == field &&
		    !(chain_of(chain) && chain->source.kind == TYPE_IMAGE))
			return true;
	}
	return false;
}

/* Refuses an output name that is also the name of a field with an output. */
static int refuse_stem(const struct builder *b, size_t num_chains,
		       const char *stem)
{
	for (size_t i = 0; i < num_chains; i++) {
		const char *name = b->out->chains[i].name;

		if (name && !strcmp(name, stem))
			return complain(
				b->diagnostic, b->out->chains[i].at,
				"the field `%s' is an output too; leave it "
				"out by `%s | drop'",
				stem, stem);
	}
	return 0;
}

static int add_plain_fields(const struct builder *b)
{
	size_t num_chains = b->out->num_chains;
	int r = 0;

	for (uint32_t i = 0; !r && i < b->num_fields; i++) {
		const struct pipeline_field *f = &b->fields[i];
		struct chain *chain = &b->out->chains[b->out->num_chains];

		if (!f->usable || is_named(b->out, num_chains, i))
			continue;
		r = refuse_stem(b, num_chains, f->stem);
		if (r)
			break;
		*chain = (struct chain){ .name = strdup(f->stem),
					 .field = i,
					 .source = bind_source(f) };
		b->out->num_chains++;
		r = chain->name ? 0 : -ENOMEM;
	}
	return r;
}

int graph_build(const struct parse *parse, const struct pipeline_field *fields,
		size_t num_fields, struct epochs *epochs,
		const struct diagnostic *c, struct graph *out)
{
	struct builder b = { .parse = parse,
			     .fields = fields,
			     .num_fields = num_fields,
			     .epochs = epochs,
			     .diagnostic = c,
			     .out = out };
	int r = 0;

	*out = (struct graph){ 0 };
	out->chains = calloc(parse->num_statements + parse->num_members +
				     num_fields + 1,
			     sizeof(*out->chains));
	b.mentions = calloc(parse->num_stages + parse->num_nested +
				    parse->num_members + 1,
			    sizeof(*b.mentions));
	if (!out->chains || !b.mentions)
		r = -ENOMEM;
	for (size_t i = 0; !r && i < parse->num_statements; i++) {
		const struct parse_statement *s = &parse->statements[i];

		r = s->num_members ? add_statement_of_several(&b, s)
				   : add_statement(&b, s);
	}
	if (!r)
		r = link_mixtures(&b);
	if (!r)
		r = add_plain_fields(&b);
	if (!r)
		r = link_outputs(&b);
	free(b.mentions);
	if (r)
		graph_fini(out);
	return r;
}

void graph_fini(struct graph *g)
{
	for (size_t i = 0; i < g->num_chains; i++)
		chain_close(&g->chains[i]);
	free(g->chains);
	*g = (struct graph){ 0 };
}
