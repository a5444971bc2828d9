/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/output_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "loader/graph/args.h"
#include "loader/graph/diagnostic.h"
#include "loader/pipeline/value_store.h"

static void plan_image(struct output_plan *plan)
{
	const struct type *type = chain_type(plan->chain);
	struct pipeline_output *out = &plan->out;
	bool planar = type->layout == LAYOUT_CHW;
	size_t num_geometry = 0;

	out->ndim = 3;
	out->shape[planar ? 0 : 2] = TAIL_CHANNELS;
	out->shape[planar ? 1 : 0] = type->height;
	out->shape[planar ? 2 : 1] = type->width;
	for (size_t i = 0; i < plan->chain->num_nodes; i++) {
		const struct node *n = &plan->chain->nodes[i];

		num_geometry += n->op->kind == OP_GEOMETRY;
		if (n->op->kind == OP_DECODE)
			plan->quality = (enum quality)n->args.arg[0].word;
		if (n->op->kind == OP_CACHE) {
			plan->cache_size =
				(uint64_t)n->args.arg[OP_CACHE_SIZE].number[0];
			plan->cache_at = num_geometry;
		}
	}
}

/* The next operation that needs a whole image, or rows of other samples. */
static size_t find_cut(const struct chain *chain, size_t from)
{
	while (from < chain->num_nodes && !node_is_cut(&chain->nodes[from]))
		from++;
	return from;
}

static bool is_pair(const struct chain *chain, size_t i)
{
	return i < chain->num_nodes && chain->nodes[i].op->kind == OP_BATCH;
}

/*
 * Makes a pass of the nodes from `from` on; *end is where the next one begins.
 * -ENOMEM
 */
static int init_pass(struct pass *pass, const struct chain *chain, size_t from,
		     size_t *end)
{
	size_t to = find_cut(chain, from), i;

	pass->chain = pass->head = chain_part(chain, from, to);
	pass->images = to ? chain->nodes + to : chain->nodes;
	for (i = 0; i < pass->chain.num_nodes; i++)
		pass->num_geometry +=
			pass->chain.nodes[i].op->kind == OP_GEOMETRY;
	for (i = to; i < chain->num_nodes; i++) {
		if (chain->nodes[i].op->kind != OP_IMAGE)
			break;
		pass->num_images++;
		pass->is_fixed |= chain->nodes[i].op->is_sized;
	}
	pass->is_fixed |= !pass->num_images || is_pair(chain, i);
	*end = i;
	return tail_init(&pass->tail, &pass->head, isa_best());
}

/* The last pass has no operations on images, and may be empty. */
static int add_passes(struct output_plan *plan)
{
	struct pass *pass;
	size_t at = 0;
	bool more;
	int r = 0;

	plan->passes = calloc(plan->chain->num_nodes + 1, sizeof(*pass));
	if (!plan->passes)
		return -ENOMEM;
	do {
		pass = &plan->passes[plan->num_passes++];
		r = init_pass(pass, plan->chain, at, &at);
		more = pass->num_images;
		if (is_pair(plan->chain, at)) {
			plan->first_half = plan->num_passes;
			more = true;
			at++;
		}
	} while (!r && more);
	if (!plan->pair)
		plan->first_half = plan->num_passes;
	return r;
}

/* Bytes of an array of `count` dimensions, with elements of `item` bytes. */
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

static bool bytes_of_type(const struct type *type, uint64_t *out)
{
	const uint64_t image[] = { type->height, type->width, TAIL_CHANNELS };

	if (type->kind == TYPE_IMAGE)
		return bytes_of_shape(image, 3, 1, out);
	return bytes_of_shape(type->shape, type->ndim, dtype_size(type->dtype),
			      out);
}

static int plan_sizes(struct output_plan *plan, const struct pipeline_field *f)
{
	struct pipeline_output *out = &plan->out;
	uint64_t item = dtype_item_size(f->dtype);

	if (f->ndim > BETON_MAX_NDIM)
		return -EINVAL;
	if (plan->chain->source.kind == TYPE_ARRAY) {
		const struct type *type = chain_type(plan->chain);

		out->ndim = type->ndim;
		memcpy(out->shape, type->shape,
		       type->ndim * sizeof(*type->shape));
		if (!item ||
		    !bytes_of_shape(f->shape, f->ndim, item, &plan->value_size))
			return -EINVAL;
	}
	if (plan->pair &&
	    !bytes_of_type(output_plan_pair_type(plan), &out->part_size))
		return -EINVAL;
	item = dtype_item_size(out->dtype);
	return bytes_of_shape(out->shape, out->ndim, item, &out->row_size)
		       ? 0
		       : -EINVAL;
}

int output_plan_init(struct output_plan *plan, const struct chain *chain,
		     const struct pipeline_field *f, const struct diagnostic *c)
{
	const struct type *type = chain_type(chain);
	int r = 0;

	*plan = (struct output_plan){ .chain = chain };
	plan->rest = chain_rest(chain, chain->num_nodes);
	for (size_t i = 0; i < chain->num_nodes; i++) {
		if (is_pair(chain, i))
			plan->pair = &chain->nodes[i];
	}
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
		r = add_passes(plan);
	}
	if (r)
		return r;
	if (plan_sizes(plan, f))
		return complain(c, 0, "the rows of `%s' have no size",
				chain->name);
	plan->out.made_size = plan->out.row_size;
	return 0;
}

int output_plan_split(struct output_plan *plan)
{
	const struct type *made, *type = chain_type(plan->chain);
	struct pass *last;
	size_t cut;

	if (!plan->num_passes)
		return 0;
	last = &plan->passes[plan->num_passes - 1];
	cut = chain_cut(&last->chain);
	if (cut + 1 >= last->chain.num_nodes)
		return 0;
	last->head = chain_head(&last->chain, cut + 1);
	plan->rest = chain_rest(&last->chain, cut + 1);
	made = chain_type(&last->head);
	plan->out.made_size = plan->out.row_size / dtype_size(type->dtype) *
			      dtype_size(made->dtype);
	tail_fini(&last->tail);
	return tail_init(&last->tail, &last->head, isa_best());
}

size_t output_plan_pair_at(const struct output_plan *plan)
{
	return (size_t)(plan->pair - plan->chain->nodes);
}

const struct type *output_plan_pair_type(const struct output_plan *plan)
{
	size_t at = output_plan_pair_at(plan);

	return at ? &plan->chain->nodes[at - 1].type : &plan->chain->source;
}

size_t output_plan_num_geometry(const struct output_plan *plan)
{
	size_t count = 0;

	for (size_t i = 0; i < plan->num_passes; i++)
		count += plan->passes[i].num_geometry;
	return count;
}

size_t output_plan_max_floats(const struct output_plan *plan)
{
	size_t max = 0;

	for (size_t i = 0; i < plan->num_passes; i++) {
		if (plan->passes[i].tail.num_floats > max)
			max = plan->passes[i].tail.num_floats;
	}
	return max;
}

const struct tail *output_plan_slowest(const struct output_plan *plan)
{
	const struct tail *slowest = &plan->passes[0].tail;

	for (size_t i = 1; i < plan->num_passes; i++) {
		const struct tail *tail = &plan->passes[i].tail;

		if (tail_engine(tail) < tail_engine(slowest))
			slowest = tail;
	}
	return slowest;
}

bool output_plan_is_auto(const struct output_plan *plan)
{
	size_t cut = chain_cut(plan->chain);

	return cut < plan->chain->num_nodes &&
	       plan->chain->nodes[cut].args.arg[OP_DEVICE_POINT].word ==
		       OP_DEVICE_AUTO;
}

static bool is_same(const struct node *a, const struct node *b)
{
	return a->op == b->op && args_equal(&a->args, &b->args);
}

bool output_plan_keeps_alike(const struct output_plan *a,
			     const struct output_plan *b)
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

void output_plan_fini(struct output_plan *plan)
{
	if (!plan->is_lent)
		value_store_close(plan->stash);
	plan->stash = NULL;
	for (size_t i = 0; i < plan->num_passes; i++)
		tail_fini(&plan->passes[i].tail);
	free(plan->passes);
	plan->passes = NULL;
	plan->num_passes = 0;
}
