/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/arrays.h"

#include <errno.h>
#include <stdio.h>

#include "loader/pipeline/op/operands.h"

void arrays_fini(struct arrays *a)
{
	buffer_fini(&a->results[0]);
	buffer_fini(&a->results[1]);
}

/* Whether an operation changes the bytes of an array. */
static bool is_step(const struct node *n)
{
	return n->op->kind == OP_DTYPE || n->op->kind == OP_ARRAY;
}

static int run_step(struct arrays *a, const struct worker_job *job,
		    const struct node *n, const struct type *in,
		    const void *from, void *to)
{
	struct rng rng = operands_rng(job->row, n);
	const struct op_sample sample = { .id = job->row->id,
					  .uniform = operands_uniform(&rng) };
	const char *wrong;

	if (n->op->kind == OP_DTYPE) {
		dtype_convert(in->dtype, from, n->type.dtype, to,
			      op_elements(in));
		return 0;
	}
	wrong = n->op->array->map(&n->args, &sample, in, from, to);
	if (!wrong)
		return 0;
	snprintf(a->message, sizeof(a->message), "%s: %s", n->op->name, wrong);
	return -EINVAL;
}

/*
 * Returns the memory for the result of operation i, counted from the end. On
 * failure, sets the message and returns NULL.
 */
void *arrays_result(struct arrays *a, size_t i, const struct type *type)
{
	struct buffer *b = &a->results[i % 2];
	uint64_t size = op_elements(type) * dtype_size(type->dtype);

	if (!buffer_reserve(b, size))
		return b->bytes;
	snprintf(a->message, sizeof(a->message), "no memory for %llu bytes",
		 (unsigned long long)size);
	return NULL;
}

size_t arrays_steps(const struct chain *chain)
{
	size_t count = 0;

	for (size_t i = 0; i < chain->num_nodes; i++)
		count += is_step(&chain->nodes[i]);
	return count;
}

/*
 * Runs the last `left` operations of the chain, at least one, on bytes of the
 * source's type.
 */
int arrays_run(struct arrays *a, const struct worker_job *job,
	       const struct chain *chain, size_t left, const void *from)
{
	const struct type *in = &chain->source;
	void *to;
	int r = 0;

	for (size_t i = 0; !r && i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];

		if (!is_step(n))
			continue;
		to = --left ? arrays_result(a, left, &n->type) : job->out;
		r = to ? run_step(a, job, n, in, from, to) : -ENOMEM;
		in = &n->type;
		from = to;
	}
	return r;
}
