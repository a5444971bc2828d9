/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/moves.h"

#include "loader/graph/operands.h"

static struct move move_of_draw(const struct draw *d)
{
	return move_crop(&d->from, d->to.width, d->to.height, d->mirror);
}

/* Whether a node moves pixels; sets *out if so. */
static bool find_move(const struct node *n, const struct pipeline_row *row,
		      struct size size, struct move *out)
{
	struct rng rng = operands_rng(row, n);
	struct uniform uniform = operands_uniform(&rng);
	struct draw draw = { .mirror = false };

	if (n->op->kind == OP_GEOMETRY) {
		n->op->draw(&n->args, uniform, size, &draw);
		*out = move_of_draw(&draw);
		return true;
	}
	if (n->op->kind != OP_IMAGE || !n->op->move)
		return false;
	n->op->move(&n->args, uniform, size, out);
	return true;
}

size_t moves_find(const struct chain *chain, const struct pipeline_row *row,
		  struct size size, struct move *out)
{
	size_t count = 0;

	for (size_t i = 0; i < chain->num_nodes; i++) {
		if (!find_move(&chain->nodes[i], row, size, &out[count]))
			continue;
		size = (struct size){ out[count].width, out[count].height };
		count++;
	}
	return count;
}
