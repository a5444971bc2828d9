/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/chain.h"

#include <stdlib.h>

#include "loader/pipeline/op/user_op.h"

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
	if (at) /* a chain without nodes has no array */
		rest.nodes += at;
	rest.num_nodes -= at;
	return rest;
}

/* Returns the number of operands of an operation, for all values of a pixel. */
size_t node_num_operands(const struct node *n)
{
	size_t count = n->custom ? user_op_num_operands(n->custom)
				 : n->op->value->num_operands;

	return n->op->kind == OP_POINT ? 3 * count : count;
}

struct chain chain_part(const struct chain *chain, size_t from, size_t to)
{
	struct chain head = chain_head(chain, to), part;

	part = chain_rest(&head, from);
	part.num_operands = 0;
	for (size_t i = 0; i < part.num_nodes; i++) {
		if (node_is_value(&part.nodes[i]))
			part.num_operands += node_num_operands(&part.nodes[i]);
	}
	return part;
}

bool node_is_value(const struct node *n)
{
	return n->op->kind == OP_POINT || n->op->kind == OP_PIXEL;
}

bool node_is_cut(const struct node *n)
{
	return n->op->kind == OP_IMAGE || n->op->kind == OP_BATCH;
}

static bool is_alike(const struct node *a, const struct node *b,
		     const char *name)
{
	const struct arg *x = &a->args.arg[op_param(a->op, name)];
	const struct arg *y = &b->args.arg[op_param(b->op, name)];
	bool alike = x->choice == y->choice && x->count == y->count;

	for (unsigned i = 0; alike && i < x->count; i++)
		alike = x->number[i] == y->number[i];
	return alike;
}

static bool is_joined(const struct node *a, const struct node *b)
{
	return a->op->image && a->op->image->joins && b->op->image &&
	       b->op->image->joins && is_alike(a, b, "interpolation") &&
	       is_alike(a, b, "fill") && is_alike(a, b, "label");
}

size_t node_joined(const struct node *nodes, size_t count)
{
	size_t n = 1;

	while (n < count && n < OP_MAPS_MAX &&
	       is_joined(&nodes[n - 1], &nodes[n]))
		n++;
	return n;
}

void chain_place(struct chain *chain, struct node *n)
{
	n->type.fresh = false;
	if (node_is_cut(n))
		chain->num_operands = 0;
	if (!node_is_value(n))
		return;
	n->type.valued = true;
	n->first_operand = chain->num_operands;
	chain->num_operands += node_num_operands(n);
}

/* Finds the operation at an offset of the pipeline string, in a chain or in
   parentheses. */
const struct node *chain_find(const struct chain *chain, size_t at)
{
	const struct node *found = NULL;

	for (size_t i = 0; !found && i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];

		if (n->at == at)
			return n;
		for (size_t k = 0; !found && k < n->num_branches; k++)
			found = chain_find(&n->branches[k], at);
	}
	return found;
}

struct node *chain_mixture(const struct chain *chain)
{
	for (size_t i = 0; i < chain->num_nodes; i++) {
		if (chain->nodes[i].op->kind == OP_BATCH)
			return &chain->nodes[i];
	}
	return NULL;
}

const struct node *chain_of(const struct chain *chain)
{
	for (size_t i = 0; i < chain->num_nodes; i++) {
		if (op_refers_to(chain->nodes[i].op))
			return &chain->nodes[i];
	}
	return NULL;
}

void node_close(struct node *n)
{
	user_op_close(n->custom);
	free(n->of_name);
	if (n->op && n->op->unload)
		n->op->unload(n->args.loaded);
	for (size_t i = 0; i < n->num_branches; i++)
		chain_close(&n->branches[i]);
	free(n->branches);
}

void chain_close(struct chain *chain)
{
	for (size_t i = 0; i < chain->num_nodes; i++)
		node_close(&chain->nodes[i]);
	free(chain->name);
	free(chain->nodes);
}
