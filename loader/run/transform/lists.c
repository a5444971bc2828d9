/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/lists.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/pipeline/op/operands.h"
#include "loader/run/transform/moves.h"
#include "loader/util/array.h"

/* The arguments of a run. */
struct sample {
	const struct pipeline_value *value;
	const struct pipeline_row *row;
};

void lists_fini(struct lists *l)
{
	buffer_fini(&l->results[0]);
	buffer_fini(&l->results[1]);
	scratch_fini(&l->moves);
	buffer_fini(&l->kept);
	buffer_fini(&l->of_rows);
	if (l->of)
		lists_fini(l->of);
	free(l->of);
}

bool lists_are_of(const struct chain *chain)
{
	return chain->num_nodes && (chain->source.kind == TYPE_RAGGED ||
				    op_refers_to(chain->nodes[0].op));
}

/* Whether the first operation takes the bytes of a value. */
static bool takes_bytes(const struct chain *chain)
{
	const struct op_list *list = chain->nodes[0].op->list;

	return (list && list->takes_bytes) || chain->source.kind != TYPE_RAGGED;
}

static uint64_t most_of_node(const struct node *n, uint64_t rows)
{
	const struct op_list *list = n->op->list;

	return list && list->most ? list->most(&n->args, rows) : rows;
}

uint64_t lists_most(const struct chain *chain, uint64_t size)
{
	uint64_t rows = size;

	if (!takes_bytes(chain))
		rows /= op_row_bytes(&chain->source);
	for (size_t i = 0; i < chain->num_nodes; i++)
		rows = most_of_node(&chain->nodes[i], rows);
	return rows;
}

static int refuse_array(struct lists *l, const struct chain *chain,
			const struct array *found)
{
	const struct type *type = &chain->source;
	struct array want = { .ndim = type->ndim + 1 };
	char here[ARRAY_TEXT_SIZE], there[ARRAY_TEXT_SIZE];

	memcpy(want.dtype, dtype_name(type->dtype), sizeof(want.dtype));
	memcpy(want.shape + 1, type->shape, type->ndim * sizeof(*type->shape));
	if (found->ndim && array_is_alike(&want, found))
		return 0;
	snprintf(l->message, sizeof(l->message),
		 "%s, but sample 0 has an array of %s",
		 found->ndim ? array_text(found, here) : "no array",
		 array_text(&want, there));
	return -EINVAL;
}

/* Returns the rows of a stored value. */
static int start(struct lists *l, const struct chain *chain,
		 const struct pipeline_value *v, struct list *out)
{
	struct array array;
	int r;

	*out = (struct list){ &chain->source, v->size, v->bytes };
	if (takes_bytes(chain))
		return 0;
	array_parse(v->bytes, v->size, v->size, &array);
	r = refuse_array(l, chain, &array);
	if (r)
		return r;
	out->rows = array.shape[0];
	out->values = v->bytes + array.offset;
	return 0;
}

/* Whether an operation changes the values. */
static bool is_step(const struct node *n)
{
	return n->op->kind == OP_DTYPE || n->op->kind == OP_ARRAY ||
	       n->op->kind == OP_LIST;
}

static size_t count_steps(const struct chain *chain)
{
	size_t count = 0;

	for (size_t i = 0; i < chain->num_nodes; i++)
		count += is_step(&chain->nodes[i]);
	return count;
}

/* Returns memory for the result of a node. On failure, sets the message and
   returns NULL. */
static void *find_room(struct lists *l, size_t turn, const struct node *n,
		       uint64_t rows)
{
	struct buffer *b = &l->results[turn % 2];
	uint64_t size = op_row_bytes(&n->type);

	if (!op_is_list(&n->type))
		rows = 1;
	if (mul_ok(size, most_of_node(n, rows), &size) &&
	    !buffer_reserve(b, size + 1))
		return b->bytes;
	snprintf(l->message, sizeof(l->message), "no memory for %llu bytes",
		 (unsigned long long)size);
	return NULL;
}

static int no_memory(struct lists *l)
{
	snprintf(l->message, sizeof(l->message), "out of memory");
	return -ENOMEM;
}

/* Finds the moves of the sample's pixels in the output of an image. */
static int find_image(struct lists *l, const struct node *n,
		      const struct sample *s, uint64_t rows, struct op_of *out)
{
	const struct pipeline_value *v = s->value->of;
	const struct chain *of = n->of;

	out->size = (struct size){ v->width, v->height };
	if (!v->width || !v->height) {
		snprintf(l->message, sizeof(l->message),
			 "%s: the image of `%s' is empty", n->op->name,
			 of->name);
		return -EINVAL;
	}
	if (scratch_grow(&l->moves, moves_most(of) + 1, sizeof(struct move)) ||
	    buffer_reserve(&l->kept, rows + 1))
		return no_memory(l);
	out->moves = l->moves.p;
	out->num_moves = moves_find(of, s->row, out->size, l->moves.p);
	out->kept = l->kept.bytes;
	out->num_kept = rows;
	return 0;
}

/* Returns the part of a chain that ends with the operation that follows an
   image. */
static struct chain part_of(const struct chain *of)
{
	return chain_head(of, (size_t)(chain_of(of) - of->nodes) + 1);
}

/* Finds the rows of the sample that remain in another output. */
static int find_list(struct lists *l, const struct node *n,
		     const struct sample *s, struct op_of *out)
{
	const struct pipeline_value *v = s->value->of;
	struct chain of = part_of(n->of);
	uint64_t size = lists_most(&of, v->size);
	int r;

	if (!l->of)
		l->of = calloc(1, sizeof(*l->of));
	if (!l->of || !mul_ok(size, op_row_bytes(chain_type(&of)), &size) ||
	    buffer_reserve(&l->of_rows, size + 1))
		return no_memory(l);
	r = lists_run(l->of, &of, v, s->row, l->of_rows.bytes, &size);
	if (r)
		snprintf(l->message, sizeof(l->message), "%s: %.250s",
			 n->op->name, l->of->message);
	out->kept = l->of->kept.bytes;
	out->num_kept = l->of->num_kept;
	return r;
}

/* Runs one operation. Returns the reason why it refuses its input, or NULL. */
static const char *run_node(const struct node *n, const struct sample *s,
			    const struct op_of *of, struct list *in, void *to)
{
	struct rng rng = operands_rng(s->row, n);
	const struct op_sample sample = { .id = s->row->id,
					  .uniform = operands_uniform(&rng),
					  .of = of };
	uint64_t count = op_elements(in->type), rows = in->rows;
	const char *wrong;

	if (n->op->kind == OP_DTYPE) {
		if (op_is_list(in->type) || in->type->kind == TYPE_RAGGED)
			count *= in->rows;
		dtype_convert(in->type->dtype, in->values, n->type.dtype, to,
			      count);
		return NULL;
	}
	if (n->op->kind == OP_ARRAY)
		return n->op->array->map(&n->args, &sample, in->type,
					 in->values, to);
	wrong = n->op->list->map(&n->args, &sample, in, &n->type, to, &rows);
	in->rows = rows;
	return wrong;
}

static int run_step(struct lists *l, const struct node *n,
		    const struct sample *s, struct list *at, void *to)
{
	struct op_of of = { .num_moves = 0 };
	const char *wrong;
	int r = to ? 0 : -ENOMEM;

	if (!r && op_refers_to(n->op) == OP_OF_IMAGE)
		r = find_image(l, n, s, at->rows, &of);
	if (!r && op_refers_to(n->op) == OP_OF_LIST)
		r = find_list(l, n, s, &of);
	if (r)
		return r;
	l->num_kept = of.num_kept;
	wrong = run_node(n, s, &of, at, to);
	at->type = &n->type;
	at->values = to;
	if (!wrong)
		return 0;
	snprintf(l->message, sizeof(l->message), "%s: %s", n->op->name, wrong);
	return -EINVAL;
}

int lists_run(struct lists *l, const struct chain *chain,
	      const struct pipeline_value *value,
	      const struct pipeline_row *row, void *out, uint64_t *rows)
{
	const struct sample sample = { value, row };
	size_t left = count_steps(chain);
	struct list at;
	int r = start(l, chain, value, &at);

	for (size_t i = 0; !r && i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];

		if (!is_step(n))
			continue;
		r = run_step(l, n, &sample, &at,
			     --left ? find_room(l, left, n, at.rows) : out);
	}
	if (!r)
		*rows = at.rows;
	return r;
}
