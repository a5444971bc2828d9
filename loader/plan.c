/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/bytes.h"
#include "loader/complaint.h"

static void plan_image(struct plan *plan)
{
	const struct type *type = chain_type(plan->chain);
	struct pipeline_output *out = &plan->out;
	bool planar = type->layout == LAYOUT_CHW;

	out->ndim = 3;
	out->shape[planar ? 0 : 2] = TAIL_CHANNELS;
	out->shape[planar ? 1 : 0] = type->height;
	out->shape[planar ? 2 : 1] = type->width;
	for (size_t i = 0; i < plan->chain->num_nodes; i++) {
		const struct node *n = &plan->chain->nodes[i];

		plan->num_geometry += n->op->kind == OP_GEOMETRY;
		if (n->op->kind == OP_DECODE)
			plan->quality = (enum quality)n->args.arg[0].word;
		if (n->op->kind == OP_CACHE) {
			plan->cache_size =
				(uint64_t)n->args.arg[OP_CACHE_SIZE].number[0];
			plan->cache_at = plan->num_geometry;
		}
	}
}

/* Bytes of `count` dimensions of elements of `item` bytes. */
static bool bytes_of_shape(const uint64_t *shape, uint32_t count, uint64_t item,
			   uint64_t *out)
{
	*out = item;
	for (uint32_t i = 0; i < count; i++) {
		if (!mul_ok(*out, shape[i], out))
			return false;
	}
	return *out <= SIZE_MAX;
}

static int plan_sizes(struct plan *plan, const struct pipeline_field *f)
{
	struct pipeline_output *out = &plan->out;
	uint64_t item = dtype_item_size(f->dtype);

	if (f->ndim > BETON_MAX_NDIM)
		return -EINVAL;
	if (plan->chain->source.kind == TYPE_ARRAY) {
		out->ndim = f->ndim;
		memcpy(out->shape, f->shape, f->ndim * sizeof(*f->shape));
		if (!item ||
		    !bytes_of_shape(f->shape, f->ndim, item, &plan->value_size))
			return -EINVAL;
	}
	item = dtype_item_size(out->dtype);
	return bytes_of_shape(out->shape, out->ndim, item, &out->row_size)
		       ? 0
		       : -EINVAL;
}

int plan_init(struct plan *plan, const struct chain *chain,
	      const struct pipeline_field *f, const struct complaint *c)
{
	const struct type *type = chain_type(chain);
	int r = 0;

	*plan = (struct plan){ .chain = chain, .head = *chain };
	plan->rest = chain_rest(chain, chain->num_nodes);
	plan->out.device = (int)type->device - 1;
	plan->out.name = chain->name;
	plan->out.field = chain->field;
	plan->out.ragged = type->kind == TYPE_RAGGED;
	plan->out.plain = !chain->num_nodes;
	snprintf(plan->out.dtype, sizeof(plan->out.dtype), "%s",
		 type->dtype == chain->source.dtype && type->kind != TYPE_IMAGE
			 ? f->dtype
			 : dtype_name(type->dtype));
	if (plan->out.ragged) {
		plan->out.ndim = 1;
		return 0;
	}
	if (type->kind == TYPE_IMAGE) {
		plan_image(plan);
		plan->tail = malloc(sizeof(*plan->tail));
		if (!plan->tail)
			return -ENOMEM;
		r = tail_init(plan->tail, &plan->head, isa_best());
	}
	if (r)
		return r;
	if (plan_sizes(plan, f))
		return complain(c, 0, "the rows of `%s' have no size",
				chain->name);
	plan->out.made_size = plan->out.row_size;
	return 0;
}

int plan_split(struct plan *plan)
{
	const struct chain *chain = plan->chain;
	size_t cut = chain_cut(chain);
	const struct type *made, *type = chain_type(chain);

	if (!plan->tail || cut + 1 >= chain->num_nodes)
		return 0;
	plan->head = chain_head(chain, cut + 1);
	plan->rest = chain_rest(chain, cut + 1);
	made = chain_type(&plan->head);
	plan->out.made_size = plan->out.row_size / dtype_size(type->dtype) *
			      dtype_size(made->dtype);
	tail_fini(plan->tail);
	return tail_init(plan->tail, &plan->head, isa_best());
}

bool plan_is_auto(const struct plan *plan)
{
	size_t cut = chain_cut(plan->chain);

	return cut < plan->chain->num_nodes &&
	       plan->chain->nodes[cut].args.arg[OP_DEVICE_POINT].word ==
		       OP_DEVICE_AUTO;
}

static bool is_same(const struct node *a, const struct node *b)
{
	for (size_t i = 0; i < OP_PARAMS_MAX; i++) {
		const struct arg *x = &a->args.arg[i], *y = &b->args.arg[i];

		if (x->count != y->count || x->word != y->word)
			return false;
		for (unsigned k = 0; k < x->count; k++) {
			if (x->number[k] != y->number[k])
				return false;
		}
	}
	return a->op == b->op;
}

bool plan_keeps_alike(const struct plan *a, const struct plan *b)
{
	size_t i = 0;

	if (!a->cache_size && !b->cache_size)
		return true;
	while (is_same(&a->chain->nodes[i], &b->chain->nodes[i])) {
		if (a->chain->nodes[i++].op->kind == OP_CACHE)
			return true;
	}
	return false;
}

void plan_fini(struct plan *plan)
{
	if (!plan->is_lent)
		stash_close(plan->stash);
	plan->stash = NULL;
	if (plan->tail)
		tail_fini(plan->tail);
	free(plan->tail);
	plan->tail = NULL;
}
