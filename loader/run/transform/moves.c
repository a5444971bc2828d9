/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/moves.h"

#include "loader/pipeline/op/operands.h"

/* The state of a search for the moves of an image. */
struct moves_search {
	const struct pipeline_row *row;
	struct size size; /* current size of the image */
	struct move *out;
	size_t count;
};

static size_t most_of_node(const struct node *n)
{
	size_t most = n->op->image && n->op->image->maps ? OP_MAPS_MAX : 1;

	for (size_t i = 0; i < n->num_branches; i++)
		most += moves_most(&n->branches[i]);
	return most;
}

size_t moves_most(const struct chain *chain)
{
	size_t most = 0;

	for (size_t i = 0; i < chain->num_nodes; i++)
		most += most_of_node(&chain->nodes[i]);
	return most;
}

static void add(struct moves_search *s, const struct move *move)
{
	s->out[s->count++] = *move;
	s->size = (struct size){ move->width, move->height };
}

static void find_draw(struct moves_search *s, const struct node *n,
		      struct uniform uniform)
{
	struct draw draw = { .mirror = false };
	struct move move;

	n->op->geometry->draw(&n->args, uniform, s->size, &draw);
	if (!draw.to.width) /* too small: the row of the image fails */
		return;
	move = move_crop(&draw.from, draw.to.width, draw.to.height,
			 draw.mirror);
	add(s, &move);
}

static void find_maps(struct moves_search *s, const struct node *n,
		      struct uniform uniform)
{
	struct warp_map maps[OP_MAPS_MAX];
	unsigned count = n->op->image->maps(&n->args, uniform, s->size, maps);

	for (unsigned i = 0; i < count; i++) {
		struct move move =
			move_of_map(&maps[i], s->size.width, s->size.height);

		add(s, &move);
	}
}

static void find_moves(struct moves_search *s, const struct chain *chain);

static void find_branches(struct moves_search *s, const struct node *n,
			  struct uniform uniform)
{
	unsigned order[OP_BRANCHES_MAX];
	size_t count = n->op->branches->pick(&n->args, n->num_branches, uniform,
					     order);

	for (size_t i = 0; i < count; i++)
		find_moves(s, &n->branches[order[i]]);
}

static void find_node(struct moves_search *s, const struct node *n)
{
	const struct op_image *op = n->op->image;
	struct rng rng = operands_rng(s->row, n);
	struct uniform uniform = operands_uniform(&rng);
	struct move move;

	if (n->op->kind == OP_GEOMETRY)
		find_draw(s, n, uniform);
	if (n->num_branches)
		find_branches(s, n, uniform);
	if (!op)
		return;
	if (op->maps)
		find_maps(s, n, uniform);
	if (!op->move)
		return;
	op->move(&n->args, uniform, s->size, &move);
	add(s, &move);
}

static void find_moves(struct moves_search *s, const struct chain *chain)
{
	for (size_t i = 0; i < chain->num_nodes; i++)
		find_node(s, &chain->nodes[i]);
}

size_t moves_find(const struct chain *chain, const struct pipeline_row *row,
		  struct size size, struct move *out)
{
	struct moves_search s = { .row = row, .size = size, .out = out };

	find_moves(&s, chain);
	return s.count;
}
