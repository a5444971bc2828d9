/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/grid_worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/pipeline/graph/family.h"
#include "loader/pipeline/grid/points.h"
#include "loader/pipeline/grid/resize.h"
#include "loader/pipeline/grid/warp.h"
#include "loader/pipeline/op/operands.h"
#include "loader/run/transform/grid_source.h"
#include "loader/util/scratch.h"
#include "loader/util/stages.h"

struct grid_worker {
	struct grid_source *source;
	struct grid_resizer *resizer;
	struct buffer buffers[2]; /* operations read one and write the other */
	struct buffer scratch;
	unsigned turn;
	const struct worker_job *job;
	struct grid now;  /* the current result, before the view */
	struct rect view; /* view of `now`, or of the value before `now` has
			     values */
	bool mirror;	  /* the view's left and right are exchanged */
	bool is_made;	  /* `now` has values */
	struct type type; /* type of the current result */
	char message[320];
};

int grid_worker_open(struct grid_worker **out)
{
	struct grid_worker *w = calloc(1, sizeof(*w));
	int r = w ? grid_source_open(&w->source) : -ENOMEM;

	if (!r)
		r = grid_resizer_open(&w->resizer);
	if (r)
		grid_worker_close(w);
	else
		*out = w;
	return r;
}

void grid_worker_close(struct grid_worker *w)
{
	if (!w)
		return;
	grid_source_close(w->source);
	grid_resizer_close(w->resizer);
	buffer_fini(&w->buffers[0]);
	buffer_fini(&w->buffers[1]);
	buffer_fini(&w->scratch);
	free(w);
}

const char *grid_worker_message(const struct grid_worker *w)
{
	return w->message;
}

static int no_memory(struct grid_worker *w, const struct grid *g)
{
	snprintf(w->message, sizeof(w->message), "no memory for %ux%u pixels",
		 g->width, g->height);
	return -ENOMEM;
}

/* Returns memory for the next result. */
static int find_room(struct grid_worker *w, struct grid *out)
{
	struct buffer *b = &w->buffers[w->turn];
	uint64_t size = grid_pack(out);

	if (out->width > OP_SIZE_MAX || out->height > OP_SIZE_MAX ||
	    size == UINT64_MAX || buffer_reserve(b, size))
		return no_memory(w, out);
	w->turn = !w->turn;
	out->values = b->bytes;
	return 0;
}

/* If there are no values yet, makes the part in the view. Narrows the grid to
   the view. */
static int make(struct grid_worker *w)
{
	uint64_t *ns = w->job->decode_ns;
	uint64_t start = ns ? stage_now_ns() : 0;
	int r = 0;

	if (w->is_made)
		grid_crop(&w->now, &w->view);
	else
		r = grid_source_part(w->source, &w->view, &w->now);
	if (r)
		snprintf(w->message, sizeof(w->message), "%s",
			 grid_source_message(w->source));
	if (ns && !w->is_made)
		*ns += stage_now_ns() - start;
	w->now.mask = w->type.mask; /* unset, because the source has no such
				       property */
	w->is_made = true;
	w->view = (struct rect){ .width = w->view.width,
				 .height = w->view.height };
	return r;
}

/* Narrows the grid to the view, and mirrors it if the view is mirrored. */
static int settle(struct grid_worker *w)
{
	struct grid out;
	int r = make(w);

	if (r || !w->mirror)
		return r;
	out = w->now;
	r = find_room(w, &out);
	if (r)
		return r;
	grid_copy(&w->now, true, &out);
	w->now = out;
	w->mirror = false;
	return 0;
}

/* Makes `out` the current result. */
static void go_on(struct grid_worker *w, const struct grid *out)
{
	w->now = *out;
	w->view = (struct rect){ .width = out->width, .height = out->height };
}

static struct rng stream_of(const struct grid_worker *w, const struct node *n)
{
	return operands_rng(w->job->row, n);
}

static int run_resize(struct grid_worker *w, const struct draw *draw)
{
	struct grid out;
	int r = make(w);

	if (r)
		return r;
	out = w->now;
	out.width = draw->to.width;
	out.height = draw->to.height;
	r = find_room(w, &out);
	if (!r && grid_resize(w->resizer,
			      w->type.mask ? INTERPOLATION_NEAREST : draw->how,
			      w->mirror, &w->now, &out))
		r = no_memory(w, &out);
	if (r)
		return r;
	w->mirror = false;
	go_on(w, &out);
	return 0;
}

static int run_geometry(struct grid_worker *w, const struct node *n)
{
	const struct size in = { w->view.width, w->view.height };
	struct draw draw;
	int r = 0;

	operands_draw(w->job->row, n, in, &draw);
	rect_narrow(&w->view, w->mirror, &draw.from);
	if (draw.to.width != draw.from.width ||
	    draw.to.height != draw.from.height)
		r = run_resize(w, &draw);
	w->mirror ^= draw.mirror;
	return r;
}

static int run_points(struct grid_worker *w, const struct node *n)
{
	struct rng rng = stream_of(w, n);
	struct grid out;
	int r = make(w);

	if (r)
		return r;
	out = w->now;
	out.dtype = n->type.dtype;
	r = find_room(w, &out);
	if (r)
		return r;
	if (points_run(n->op, &n->args, &w->type, &rng, &w->now, &out))
		return no_memory(w, &out);
	go_on(w, &out);
	return 0;
}

static int run_dtype(struct grid_worker *w, const struct node *n)
{
	struct grid out;
	int r = make(w);

	if (r || w->now.dtype == n->type.dtype)
		return r;
	out = w->now;
	out.dtype = n->type.dtype;
	r = find_room(w, &out);
	if (r)
		return r;
	grid_convert(&w->now, &out);
	go_on(w, &out);
	return 0;
}

/* The pixels of a frame of 8-bit RGB. */
static struct image image_of(const struct grid *g, uint32_t frame)
{
	return (struct image){ grid_row(g, frame, 0), g->width, g->height,
			       g->stride };
}

/* Runs an operation on images frame by frame. All frames use the same random
   numbers. */
static void run_frames(const struct grid_worker *w, const struct node *n,
		       struct op_sample *sample, const struct grid *out)
{
	for (uint32_t f = 0; f < out->frames; f++) {
		const struct image from = image_of(&w->now, f);
		const struct image to = image_of(out, f);
		struct rng rng = stream_of(w, n);

		sample->uniform = operands_uniform(&rng);
		if (n->op->image->redraw)
			n->op->image->redraw(&n->args, sample, &from, &to);
		else
			n->op->image->in_place(&n->args, sample, &to);
	}
}

static int check_size(struct grid_worker *w, struct size size,
		      const struct type *type)
{
	if (size.width == type->width && size.height == type->height)
		return 0;
	snprintf(w->message, sizeof(w->message),
		 "an image of %ux%u comes out as %ux%u, but `%s' is %ux%u; set "
		 "the size, as in `| center_crop(224)'",
		 w->job->value->width, w->job->value->height, size.width,
		 size.height, w->job->plan->chain->name, type->width,
		 type->height);
	return -EINVAL;
}

static int reserve_scratch(struct grid_worker *w, const struct node *n,
			   struct size size)
{
	const struct op_image *op = n->op->image;

	if (op->scratch &&
	    buffer_reserve(&w->scratch, op->scratch(&n->args, size)))
		return no_memory(w, &w->now);
	return 0;
}

static int run_image(struct grid_worker *w, const struct node *n)
{
	const struct op_image *op = n->op->image;
	struct rng rng = stream_of(w, n);
	struct op_sample sample = { .id = w->job->row->id,
				    .uniform = operands_uniform(&rng) };
	struct size size;
	struct grid out;
	int r = settle(w);

	if (r)
		return r;
	out = w->now;
	size = (struct size){ out.width, out.height };
	if (op->is_sized)
		r = check_size(w, size, &n->type);
	if (!r)
		r = reserve_scratch(w, n, size);
	size = op_resized(n->op, &n->args, size);
	out.width = size.width;
	out.height = size.height;
	if (!r)
		r = find_room(w, &out);
	if (r)
		return r;
	sample.scratch = w->scratch.bytes;
	if (op->grid) {
		op->grid(&n->args, &sample, &w->now, &out);
	} else {
		if (!op->redraw)
			grid_copy(&w->now, false, &out);
		run_frames(w, n, &sample, &out);
	}
	go_on(w, &out);
	return 0;
}

static const struct arg *arg_of(const struct node *n, const char *name)
{
	return &n->args.arg[op_param(n->op, name)];
}

static struct grid_warp warp_of(const struct node *n)
{
	return (struct grid_warp){
		(enum warp_how)arg_of(n, "interpolation")->choice,
		arg_of(n, "fill"), arg_of(n, "label")
	};
}

static int run_warp(struct grid_worker *w, const struct node *n,
		    const struct warp_map *maps, size_t count)
{
	const struct grid_warp warp = warp_of(n);
	struct grid out = w->now;
	int r = find_room(w, &out);

	if (r)
		return r;
	grid_warp_maps(&warp, maps, count, &w->now, &out);
	go_on(w, &out);
	return 0;
}

/* Warps by several operations at once. */
static int run_joined(struct grid_worker *w, const struct node *n, size_t count)
{
	struct warp_map maps[OP_MAPS_MAX];
	int r = settle(w);

	if (r)
		return r;
	operands_join(n, count, w->job->row,
		      (struct size){ w->now.width, w->now.height }, maps);
	return run_warp(w, n, maps, count);
}

/* Warps by each of the operation's maps. */
static int run_maps(struct grid_worker *w, const struct node *n)
{
	struct warp_map maps[OP_MAPS_MAX];
	struct rng rng = stream_of(w, n);
	struct size size;
	unsigned count;
	int r = settle(w);

	size = (struct size){ w->now.width, w->now.height };
	count = r ? 0
		  : n->op->image->maps(&n->args, operands_uniform(&rng), size,
				       maps);
	for (unsigned i = 0; !r && i < count; i++)
		r = run_warp(w, n, &maps[i], 1);
	return r;
}

static int run_node(struct grid_worker *w, const struct node *n);

/* Runs the lists that the operation picks. */
static int run_lists(struct grid_worker *w, const struct node *n)
{
	struct rng rng = stream_of(w, n);
	unsigned order[OP_BRANCHES_MAX];
	size_t count = n->op->branches->pick(&n->args, n->num_branches,
					     operands_uniform(&rng), order);
	int r = 0;

	for (size_t i = 0; !r && i < count; i++) {
		const struct chain *list = &n->branches[order[i]];

		for (size_t k = 0; !r && k < list->num_nodes; k++)
			r = run_node(w, &list->nodes[k]);
	}
	return r;
}

/* Whether the operation only warps the grid. */
static bool is_warp(const struct grid_worker *w, const struct op_image *op)
{
	return op->maps && (w->type.mask || !op->in_place);
}

static int run_window(struct grid_worker *w, const struct node *n)
{
	struct rng rng = stream_of(w, n);
	uint32_t stride = (uint32_t)n->args.arg[OP_FRAMES_STRIDE].number[0];
	uint32_t first = n->op->frames->first(&n->args, operands_uniform(&rng),
					      w->now.frames);

	if (!w->is_made) {
		grid_source_window(w->source, first, stride, n->type.frames,
				   &w->now);
		return 0;
	}
	w->now.values = grid_row(&w->now, first, 0);
	w->now.frame *= stride;
	w->now.frames = n->type.frames;
	return 0;
}

static int run_node(struct grid_worker *w, const struct node *n)
{
	switch (n->op->kind) {
	case OP_GEOMETRY:
		return run_geometry(w, n);
	case OP_POINT:
	case OP_PIXEL:
		return run_points(w, n);
	case OP_DTYPE:
		return run_dtype(w, n);
	case OP_IMAGE:
		if (n->op->branches)
			return run_lists(w, n);
		return is_warp(w, n->op->image) ? run_maps(w, n)
						: run_image(w, n);
	case OP_FRAMES:
		return run_window(w, n);
	default:
		return 0;
	}
}

static int start(struct grid_worker *w, const struct type *from)
{
	const struct worker_job *job = w->job;
	uint64_t size = job->plan->value_size;
	int r;

	if (from->kind == TYPE_ARRAY && job->value->size != size) {
		snprintf(w->message, sizeof(w->message),
			 "%llu bytes where the dataset announces %llu",
			 (unsigned long long)job->value->size,
			 (unsigned long long)size);
		return -EINVAL;
	}
	r = grid_source_start(w->source, from, &w->type, job->value, &w->now);
	if (r)
		snprintf(w->message, sizeof(w->message), "%s",
			 grid_source_message(w->source));
	w->view =
		(struct rect){ .width = w->now.width, .height = w->now.height };
	return r;
}

/* Returns the type of the first grid: that of the array, or that of the first
   operation on an image. */
static struct type first_grid(const struct chain *chain)
{
	return chain->source.kind == TYPE_ARRAY ? family_grid_of(&chain->source)
						: chain->nodes[0].type;
}

/* Until an operation converts arrays to grids, their types differ only in
   dtypes. */
static void take_type(struct grid_worker *w, const struct type *type)
{
	if (type->kind == TYPE_GRID)
		w->type = *type;
	w->type.dtype = type->dtype;
	w->now.mask = w->type.mask;
}

static int store(struct grid_worker *w)
{
	const struct type *type = chain_type(w->job->plan->chain);
	const struct size size = { w->view.width, w->view.height };
	int r = check_size(w, size, type);

	if (!r)
		r = make(w);
	if (!r)
		grid_store(&w->now, w->mirror,
			   type->layout == LAYOUT_CHW && type->channels,
			   w->job->out);
	return r;
}

int grid_worker_run(struct grid_worker *w, const struct worker_job *job)
{
	const struct chain *chain = job->plan->chain;
	int r;

	w->message[0] = '\0';
	w->job = job;
	w->is_made = false;
	w->mirror = false;
	w->type = first_grid(chain);
	r = start(w, &chain->source);
	if (!r && job->until == BETON_STAGE_DECODE)
		return make(w);
	for (size_t i = 0, n; !r && i < chain->num_nodes; i += n) {
		const struct node *first = &chain->nodes[i];

		n = node_joined(first, chain->num_nodes - i);
		r = n > 1 ? run_joined(w, first, n) : run_node(w, first);
		take_type(w, &first[n - 1].type);
	}
	return r ? r : store(w);
}
