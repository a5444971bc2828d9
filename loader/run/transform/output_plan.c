/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/output_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/pipeline/graph/args.h"
#include "loader/pipeline/text/diagnostic.h"
#include "loader/util/value_store.h"

/*
 * Each planner takes the properties that it handles out of a copy of the type,
 * `left`. If a property is left, the output does not have it, and
 * refuse_unused() refuses the chain.
 */
static void take_axis(struct pipeline_output *out, uint32_t *length)
{
	out->shape[out->ndim++] = *length;
	*length = 0;
}

/* Takes the axes of an image in their order. */
static void take_axes(struct output_plan *plan, struct type *left)
{
	struct pipeline_output *out = &plan->out;
	bool planar = left->layout == LAYOUT_CHW;

	if (left->views) {
		plan->num_views = left->views;
		take_axis(out, &left->views);
	}
	if (left->frames)
		take_axis(out, &left->frames);
	if (left->channels && planar)
		take_axis(out, &left->channels);
	take_axis(out, &left->height);
	take_axis(out, &left->width);
	if (left->channels)
		take_axis(out, &left->channels);
	left->layout = LAYOUT_HWC;
}

static void plan_image(struct output_plan *plan, struct type *left)
{
	size_t num_geometry = 0;

	left->channels = POINTWISE_CHANNELS;
	take_axes(plan, left);
	for (size_t i = 0; i < plan->chain->num_nodes; i++) {
		const struct node *n = &plan->chain->nodes[i];

		num_geometry += n->op->kind == OP_GEOMETRY;
		if (n->op->kind == OP_DECODE)
			plan->quality = (enum quality)n->args.arg[0].choice;
		if (n->op->kind == OP_CACHE) {
			plan->cache_size =
				(uint64_t)n->args.arg[OP_CACHE_SIZE].number[0];
			plan->cache_at = num_geometry;
		}
	}
}

/* Returns the index of the next operation that needs a whole image, or other
   samples. */
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
 * Makes a pass of the nodes from `from` on. *end receives the start of the next
 * pass. Returns -ENOMEM.
 */
static int init_pass(struct pass *pass, const struct chain *chain, size_t from,
		     size_t *end)
{
	size_t to = find_cut(chain, from), i;

	pass->chain = pass->head = chain_part(chain, from, to);
	pass->images = to ? chain->nodes + to : chain->nodes;
	for (i = 0; i < pass->chain.num_nodes; i++)
		pass->num_geometry += pass->chain.nodes[i].op->geometry != NULL;
	for (i = to; i < chain->num_nodes; i++) {
		if (chain->nodes[i].op->kind != OP_IMAGE)
			break;
		pass->num_images++;
		pass->num_redraws += op_redraws(chain->nodes[i].op);
	}
	pass->is_fixed = !pass->num_images || is_pair(chain, i);
	*end = i;
	return pointwise_init(&pass->pointwise, &pass->head, isa_best());
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

/* Returns the end of the value operations from `from` on. */
static size_t end_of_values(const struct chain *list, size_t from)
{
	while (from < list->num_nodes && node_is_value(&list->nodes[from]))
		from++;
	return from;
}

/* Makes a pass of value operations, or only counts it if there is no array yet.
   Returns -ENOMEM. */
static int add_values(struct output_plan *plan, const struct chain *list,
		      size_t from, size_t to)
{
	struct pass *pass;

	if (!plan->nested) {
		plan->num_nested++;
		return 0;
	}
	pass = &plan->nested[plan->num_nested++];
	pass->chain = pass->head = chain_part(list, from, to);
	return pointwise_init(&pass->pointwise, &pass->head, isa_best());
}

static int add_list(struct output_plan *plan, const struct chain *list);

static int add_lists(struct output_plan *plan, const struct node *n)
{
	int r = 0;

	for (size_t i = 0; !r && i < n->num_branches; i++)
		r = add_list(plan, &n->branches[i]);
	return r;
}

static int add_list(struct output_plan *plan, const struct chain *list)
{
	size_t end;
	int r = 0;

	for (size_t i = 0; !r && i < list->num_nodes; i = end) {
		end = end_of_values(list, i);
		if (end > i)
			r = add_values(plan, list, i, end);
		else
			r = add_lists(plan, &list->nodes[end++]);
	}
	return r;
}

static int add_all_lists(struct output_plan *plan)
{
	const struct chain *chain = plan->chain;
	int r = 0;

	plan->num_nested = 0;
	for (size_t i = 0; !r && i < chain->num_nodes; i++)
		r = add_lists(plan, &chain->nodes[i]);
	return r;
}

/* Counts the groups of value operations in parentheses, and then makes a pass
   of each. */
static int plan_nested(struct output_plan *plan)
{
	int r = add_all_lists(plan);

	if (r || !plan->num_nested)
		return r;
	plan->nested = calloc(plan->num_nested, sizeof(*plan->nested));
	return plan->nested ? add_all_lists(plan) : -ENOMEM;
}

const struct pass *output_plan_nested(const struct output_plan *plan,
				      const struct node *first)
{
	const struct pass *pass = plan->nested;

	while (pass->chain.nodes != first)
		pass++;
	return pass;
}

/* Sets *out to the bytes of an array of `count` dimensions, with elements of
   `item` bytes. Returns false if they are too many. */
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
	const uint64_t image[] = { type->height, type->width,
				   POINTWISE_CHANNELS };

	if (type->kind == TYPE_IMAGE)
		return bytes_of_shape(image, 3, 1, out);
	return bytes_of_shape(type->shape, type->ndim, dtype_size(type->dtype),
			      out);
}

static void plan_grid(struct output_plan *plan, struct type *left)
{
	plan->is_grid = true;
	take_axes(plan, left);
	left->mask = false; /* the grid worker averages no classes */
}

/* Sets the size of an array's value in bytes. */
static int plan_value(struct output_plan *plan, const struct pipeline_field *f)
{
	uint64_t item = dtype_item_size(f->dtype);

	if (plan->chain->source.kind != TYPE_ARRAY)
		return 0;
	return item && bytes_of_shape(f->shape, f->ndim, item,
				      &plan->value_size)
		       ? 0
		       : -EINVAL;
}

static int plan_sizes(struct output_plan *plan, const struct pipeline_field *f)
{
	struct pipeline_output *out = &plan->out;
	const struct type *type = chain_type(plan->chain);
	uint64_t item;

	if (f->ndim > BETON_MAX_NDIM || plan_value(plan, f))
		return -EINVAL;
	if (type->kind == TYPE_ARRAY) {
		out->ndim = type->ndim;
		memcpy(out->shape, type->shape,
		       type->ndim * sizeof(*type->shape));
	}
	if (plan->pair &&
	    !bytes_of_type(output_plan_pair_type(plan), &out->part_size))
		return -EINVAL;
	item = dtype_item_size(out->dtype);
	return bytes_of_shape(out->shape, out->ndim, item, &out->row_size)
		       ? 0
		       : -EINVAL;
}

/* Describes a list. The first length of its shape is 0, because it differs
   between samples. */
static void plan_list(struct output_plan *plan)
{
	const struct type *type = chain_type(plan->chain);
	struct pipeline_output *out = &plan->out;

	out->is_list = true;
	out->is_padded = type->kind == TYPE_PADDED;
	out->ragged = !out->is_padded;
	out->ndim = type->ndim + 1;
	memcpy(out->shape + 1, type->shape, type->ndim * sizeof(*type->shape));
	out->item_size = op_row_bytes(type);
	out->most = type->kind == TYPE_PACKED ? type->most : UINT64_MAX;
	out->multiple = type->padding.multiple;
	out->pads_left = type->padding.left;
	dtype_convert(DTYPE_F8, &type->padding.value, type->dtype, out->filler,
		      1);
}

static void plan_of(struct output_plan *plan)
{
	const struct node *n = chain_of(plan->chain);

	for (size_t i = 0; i < 2; i++) {
		plan->out.of[i] = n ? n->of->field : VALUE_NO_FIELD;
		n = n ? chain_of(n->of) : NULL;
	}
}

/* Whether an operation leaves the bytes of an uncompressed image unchanged. */
static bool keeps_bytes(const struct node *n)
{
	const enum op_kind kind = n->op->kind;

	return (kind == OP_DECODE || kind == OP_DTYPE || kind == OP_LAYOUT) &&
	       n->type.kind == TYPE_IMAGE && n->type.dtype == DTYPE_U1;
}

/* Whether the output has the bytes that a fixed-size column of the batch file
   has. */
static bool is_plain(const struct chain *chain)
{
	for (size_t i = 0; i < chain->num_nodes; i++) {
		if (!keeps_bytes(&chain->nodes[i]))
			return false;
	}
	return !chain->num_nodes || chain_type(chain)->layout == LAYOUT_HWC;
}

static int refuse_unused(const struct type *left, const struct chain *chain,
			 const struct diagnostic *c)
{
	const char *what = left->views	    ? "several views"
			   : left->frames   ? "frames"
			   : left->channels ? "channels"
			   : left->mask	    ? "classes"
			   : left->layout   ? "an order of axes"
					    : NULL;

	return what ? complain(c, chain->at, "the rows of `%s' cannot have %s",
			       chain->name, what)
		    : 0;
}

int output_plan_init(struct output_plan *plan, const struct chain *chain,
		     const struct pipeline_field *f, const struct diagnostic *c)
{
	const struct type *type = chain_type(chain);
	struct type left = *type;
	int r;

	*plan = (struct output_plan){ .chain = chain, .num_views = 1 };
	plan->rest = chain_rest(chain, chain->num_nodes);
	plan->pair = chain_mixture(chain);
	plan->out.device = (int)type->device - 1;
	plan->out.name = chain->name;
	plan->out.field = chain->field;
	plan_of(plan);
	plan->out.plain = is_plain(chain);
	snprintf(plan->out.dtype, sizeof(plan->out.dtype), "%s",
		 type->dtype == chain->source.dtype &&
				 type->kind == chain->source.kind &&
				 type->kind != TYPE_IMAGE &&
				 type->kind != TYPE_GRID
			 ? f->dtype
			 : dtype_name(type->dtype));
	plan->out.ragged = type->kind == TYPE_RAGGED;
	plan->out.ndim = plan->out.ragged; /* the axis of its bytes */
	if (op_is_list(type))
		plan_list(plan);
	if (type->kind == TYPE_IMAGE)
		plan_image(plan, &left);
	if (type->kind == TYPE_GRID && !type->width)
		return complain(c, chain->at,
				"the rows of `%s' have no size; set one, as in "
				"`| center_crop(224)' or `| resize(\"H,W\")'",
				chain->name);
	if (type->kind == TYPE_GRID)
		plan_grid(plan, &left);
	r = refuse_unused(&left, chain, c);
	if (r || type->kind == TYPE_RAGGED || op_is_list(type))
		return r;
	if (type->kind == TYPE_IMAGE)
		r = add_passes(plan);
	if (!r && type->kind == TYPE_IMAGE)
		r = plan_nested(plan);
	if (r)
		return r;
	if (plan_sizes(plan, f))
		return complain(c, 0, "the rows of `%s' have no size",
				chain->name);
	plan->out.made_size = plan->out.sent_size = plan->out.row_size;
	return 0;
}

int output_plan_split(struct output_plan *plan)
{
	const struct type *made, *type = chain_type(plan->chain);
	struct pass *last;
	size_t cut;

	if (!plan->num_passes || plan->num_views > 1)
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
	pointwise_fini(&last->pointwise);
	return pointwise_init(&last->pointwise, &last->head, isa_best());
}

/* Whether a maker can send the value as pixels of 8 bits. */
static bool is_pixels(const struct type *type)
{
	return type->kind == TYPE_IMAGE && type->dtype == DTYPE_U1 &&
	       type->layout == LAYOUT_HWC;
}

/*
 * Returns the number of nodes of the last pass that a maker runs. The result
 * depends on the pipeline string alone, so that both sides agree, whether the
 * trainer has a GPU or not.
 */
static size_t find_sent(const struct chain *chain)
{
	size_t cut = chain_cut(chain), end = chain->num_nodes, i;

	if (cut + 1 < end)
		end = cut + 1;
	else if (dtype_size(chain_type(chain)->dtype) == 1)
		return end;
	for (i = end; i; i--) {
		const struct node *n = &chain->nodes[i - 1];

		if (is_pixels(&n->type))
			return i;
		if (n->op->kind == OP_GEOMETRY)
			return end;
	}
	return is_pixels(&chain->source) ? 0 : end;
}

/* Returns the bytes of a sample's images of a type. */
static uint64_t size_of_pixels(const struct output_plan *plan,
			       const struct type *type)
{
	return (uint64_t)type->width * type->height * POINTWISE_CHANNELS *
	       dtype_size(type->dtype) * plan->num_views;
}

int output_plan_cut(struct output_plan *plan)
{
	struct pipeline_output *out = &plan->out;
	struct pass *last;
	size_t sent;

	out->device = -1;
	if (!plan->num_passes)
		return 0;
	last = &plan->passes[plan->num_passes - 1];
	sent = find_sent(&last->chain);
	if (sent == last->chain.num_nodes)
		return 0;
	last->head = chain_head(&last->chain, sent);
	out->row_size = size_of_pixels(plan, chain_type(&last->head));
	out->made_size = out->sent_size = out->row_size;
	out->ndim = 1;
	out->shape[0] = out->row_size;
	snprintf(out->dtype, sizeof(out->dtype), "%s", dtype_name(DTYPE_U1));
	pointwise_fini(&last->pointwise);
	return pointwise_init(&last->pointwise, &last->head, isa_best());
}

int output_plan_finish(struct output_plan *plan)
{
	struct pass *last, *finish = &plan->finish;
	size_t sent;

	plan->out.sent_size = plan->out.made_size;
	if (!plan->num_passes)
		return 0;
	last = &plan->passes[plan->num_passes - 1];
	sent = find_sent(&last->chain);
	if (sent >= last->head.num_nodes)
		return 0;
	finish->chain = finish->head = chain_rest(&last->head, sent);
	plan->out.sent_size = size_of_pixels(plan, &finish->head.source);
	return pointwise_init(&finish->pointwise, &finish->head, isa_best());
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

static size_t max_floats(const struct pass *passes, size_t count, size_t max)
{
	for (size_t i = 0; i < count; i++)
		max = max_u64(max, passes[i].pointwise.num_floats);
	return max;
}

size_t output_plan_max_floats(const struct output_plan *plan)
{
	size_t max = max_floats(plan->passes, plan->num_passes,
				plan->finish.pointwise.num_floats);

	return max_floats(plan->nested, plan->num_nested, max);
}

static const struct pointwise *slowest(const struct pass *passes, size_t count,
				       const struct pointwise *than)
{
	for (size_t i = 0; i < count; i++) {
		if (pointwise_engine(&passes[i].pointwise) <
		    pointwise_engine(than))
			than = &passes[i].pointwise;
	}
	return than;
}

const struct pointwise *output_plan_slowest(const struct output_plan *plan)
{
	const struct pointwise *first = &plan->passes[0].pointwise;

	return slowest(plan->nested, plan->num_nested,
		       slowest(plan->passes, plan->num_passes, first));
}

bool output_plan_is_auto(const struct output_plan *plan)
{
	size_t cut = chain_cut(plan->chain);

	return cut < plan->chain->num_nodes &&
	       plan->chain->nodes[cut].args.arg[OP_DEVICE_PLACEMENT].choice ==
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
	if (!plan->is_shared)
		value_store_close(plan->cache);
	plan->cache = NULL;
	for (size_t i = 0; i < plan->num_passes; i++)
		pointwise_fini(&plan->passes[i].pointwise);
	for (size_t i = 0; i < plan->num_nested; i++)
		pointwise_fini(&plan->nested[i].pointwise);
	pointwise_fini(&plan->finish.pointwise);
	free(plan->nested);
	plan->nested = NULL;
	plan->num_nested = 0;
	free(plan->passes);
	plan->passes = NULL;
	plan->num_passes = 0;
}
