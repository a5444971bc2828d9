/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/operands.h"

#include "fs/base/util/bytes.h"
#include "loader/pipeline/op/user_op.h"

enum { CHANNELS = 3 };

struct rng operands_rng(const struct pipeline_row *row, const struct node *n)
{
	const uint64_t key[] = { row->seed,	  row->epoch, row->id,
				 row->occurrence, n->stream,  row->view };
	bool is_later = n->is_viewed && row->view;

	return (struct rng){ .key = rng_key(key, ARRAY_LEN(key) - !is_later) };
}

static double next_uniform(void *rng)
{
	return rng_uniform(rng);
}

struct uniform operands_uniform(struct rng *rng)
{
	return (struct uniform){ next_uniform, rng };
}

void operands_draw(const struct pipeline_row *row, const struct node *n,
		   struct size in, struct draw *out)
{
	struct rng rng = operands_rng(row, n);

	*out = (struct draw){ .view = n->is_viewed ? (unsigned)row->view : 0 };
	n->op->geometry->draw(&n->args, operands_uniform(&rng), in, out);
}

void operands_join(const struct node *nodes, size_t count,
		   const struct pipeline_row *row, struct size in,
		   struct warp_map *out)
{
	struct warp_map maps[OP_MAPS_MAX];

	for (size_t i = 0; i < count; i++) {
		struct rng rng = operands_rng(row, &nodes[i]);

		nodes[i].op->image->maps(&nodes[i].args, operands_uniform(&rng),
					 in, &maps[i]);
	}
	warp_join(maps, count, out);
}

static bool is_random(const struct node *n)
{
	return n->custom || op_is_random(n->op);
}

bool operands_vary(const struct chain *chain)
{
	for (size_t i = 0; i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];

		if (node_is_value(n) && is_random(n))
			return true;
	}
	return false;
}

/* `in`: the type of the operation's input. */
static void fill_node(const struct node *n, enum dtype in,
		      const struct pipeline_row *row, float *out)
{
	unsigned channels = n->op->kind == OP_POINT ? CHANNELS : 1;

	for (unsigned c = 0; c < channels; c++) {
		struct rng rng = { 0 };
		struct uniform uniform = operands_uniform(&rng);

		if (row)
			rng = operands_rng(row, n);
		if (n->custom)
			user_op_operands(n->custom, uniform, out);
		else
			n->op->value->operands(
				&n->args, in, c, uniform,
				out + c * n->op->value->num_operands);
	}
}

void operands_fill(const struct chain *chain, const struct pipeline_row *row,
		   float *out)
{
	enum dtype in = chain->source.dtype;

	for (size_t i = 0; i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];

		if (node_is_value(n) && (row || !is_random(n)))
			fill_node(n, in, row, out + n->first_operand);
		in = n->type.dtype;
	}
}
