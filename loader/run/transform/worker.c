/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/stream_copy.h"
#include "loader/pipeline/op/operands.h"
#include "loader/run/jit/pointwise_rows.h"
#include "loader/run/transform/arrays.h"
#include "loader/run/transform/frame.h"
#include "loader/run/transform/grid_worker.h"
#include "loader/run/transform/lists.h"
#include "loader/run/transform/nested.h"
#include "loader/util/scratch.h"

struct pipeline_worker {
	struct frame *frame;
	struct grid_worker *grid; /* opened when a plan first needs it */
	struct draw *draws;	  /* one for each geometry of the current row */
	enum value_store_found found;
	struct buffer images[2];   /* operations read one and write the other */
	unsigned turn;		   /* the next one to write */
	struct pipeline_value raw; /* value that a pass reads */
	struct nested nested;
	struct arrays arrays;
	struct lists lists;
	char message[320];
};

int worker_open(size_t max_geometry, size_t max_floats,
		struct pipeline_worker **out)
{
	struct pipeline_worker *w = calloc(1, sizeof(*w));
	int r = w ? frame_open(&w->frame) : -ENOMEM;

	if (!r) {
		w->draws = calloc(max_geometry + 1, sizeof(*w->draws));
		r = w->draws ? nested_init(&w->nested, max_floats) : -ENOMEM;
	}
	if (r)
		worker_close(w);
	else
		*out = w;
	return r;
}

void worker_close(struct pipeline_worker *w)
{
	if (!w)
		return;
	frame_close(w->frame);
	grid_worker_close(w->grid);
	free(w->draws);
	buffer_fini(&w->images[0]);
	buffer_fini(&w->images[1]);
	nested_fini(&w->nested);
	arrays_fini(&w->arrays);
	lists_fini(&w->lists);
	free(w);
}

const char *worker_message(const struct pipeline_worker *w)
{
	return w->message;
}

static int refuse_small(struct pipeline_worker *w, const struct node *n,
			struct size size)
{
	snprintf(w->message, sizeof(w->message),
		 "%s: an image of %ux%u is too small; put pad or resize before "
		 "it, or give pad_if_needed=true",
		 n->op->name, size.width, size.height);
	return -EINVAL;
}

/* Returns the size after the operations on images of a pass. */
static int resize_images(struct pipeline_worker *w,
			 const struct worker_job *job, const struct pass *pass,
			 struct size *size)
{
	for (size_t i = 0; i < pass->num_images; i++) {
		const struct node *n = &pass->images[i];
		const struct size in = *size;

		if (n->op->image && n->op->image->is_sized &&
		    !nested_fits(in, &n->type))
			return nested_refuse(&w->nested, job, in, &n->type);
		*size = op_resized(n->op, &n->args, in);
		if (!size->width)
			return refuse_small(w, n, in);
	}
	return 0;
}

/* Returns the type of a pass's result. */
static const struct type *pass_type(const struct pass *pass)
{
	return pass->num_images ? &pass->images[pass->num_images - 1].type
				: chain_type(&pass->chain);
}

/* Draws the random numbers of the geometry of a pass. */
static int draw_geometry(struct pipeline_worker *w,
			 const struct worker_job *job, const struct pass *pass,
			 struct draw **draw, struct size *size)
{
	for (size_t k = 0; k < pass->chain.num_nodes; k++) {
		const struct node *n = &pass->chain.nodes[k];

		if (n->op->kind != OP_GEOMETRY)
			continue;
		operands_draw(job->row, n, *size, *draw);
		if (!(*draw)->to.width)
			return refuse_small(w, n, *size);
		*size = (*draw)++->to;
	}
	return 0;
}

/*
 * Draws all random numbers of the geometry of some passes, before reading any
 * pixel. The sizes determine the part to decode, and whether the result fits.
 */
static int draw_passes(struct pipeline_worker *w, const struct worker_job *job,
		       size_t first, size_t end)
{
	struct size size = { job->value->width, job->value->height };
	struct draw *draw = w->draws;
	int r = 0;

	for (size_t i = first; !r && i < end; i++) {
		const struct pass *pass = &job->plan->passes[i];

		r = draw_geometry(w, job, pass, &draw, &size);
		if (!r)
			r = resize_images(w, job, pass, &size);
		if (!r && pass->is_fixed && !nested_fits(size, pass_type(pass)))
			r = nested_refuse(&w->nested, job, size,
					  pass_type(pass));
	}
	return r;
}

static bool changes_size(const struct draw *draw)
{
	return draw->to.width != draw->from.width ||
	       draw->to.height != draw->from.height;
}

/* Starts the frame from the stored or the cached image. */
static int start_image(struct pipeline_worker *w, const struct worker_job *job)
{
	const struct output_plan *plan = job->plan;
	struct frame *f = w->frame;
	const void *kept;
	int r;

	w->found = plan->cache
			   ? value_store_get(plan->cache, job->row->id, &kept)
			   : VALUE_STORE_REFUSED;
	if (w->found == VALUE_STORE_VALUE) {
		if (frame_resume(f, job->value, plan->quality, kept,
				 job->decode_ns))
			return 0;
		w->found = VALUE_STORE_REFUSED;
	}
	r = frame_start(f, job->value, plan->quality, job->decode_ns);
	if (!r)
		frame_keep_entries(f, plan->entries, plan->out.field,
				   job->row->id);
	return r;
}

/*
 * Passes the geometry of the pass to the frame. If the loader stops after
 * BETON_STAGE_DECODE, passes only the steps up to the first resize, so that the
 * frame has something to decode; a cached image is always decoded whole.
 */
static int run_geometry(struct pipeline_worker *w, const struct worker_job *job,
			const struct pass *pass, const struct draw *draws)
{
	const struct output_plan *plan = job->plan;
	size_t i = w->found == VALUE_STORE_VALUE ? plan->cache_at : 0;
	struct frame *f = w->frame;
	bool resized = false;
	int r = 0;

	for (; !r && i <= pass->num_geometry; i++) {
		const struct draw *draw = &draws[i];

		if (i == plan->cache_at && w->found == VALUE_STORE_NOTHING)
			frame_cache(f, plan->cache, job->row->id);
		if (i == pass->num_geometry)
			break;
		frame_crop(f, &draw->from);
		if (changes_size(draw)) {
			if (resized && i >= plan->cache_at &&
			    job->until == BETON_STAGE_DECODE)
				break;
			r = frame_resample(f, draw->how, draw->to);
			resized = true;
		}
		if (draw->mirror)
			frame_mirror(f);
	}
	return r;
}

static int run_pointwise(struct pipeline_worker *w,
			 const struct worker_job *job, const struct pass *pass,
			 struct size size, void *out)
{
	const struct pointwise *stage = &pass->pointwise;
	struct pointwise_image to = {
		.size = size,
		.operands =
			pointwise_operands(stage, job->row, w->nested.operands),
		.out = out,
		.is_streamed = job->row->is_streamed && out == job->out &&
			       pointwise_gains_by_stream(stage, size.width),
	};
	struct band band;
	int r;

	to.map = pointwise_map(stage, to.operands, &w->nested.map);
	while (!(r = frame_next(w->frame, &band, &to.mirror)) && band.rows)
		pointwise_band(stage, &to, &band);
	if (to.is_streamed)
		stream_fence();
	return r;
}

static bool is_idle(const struct pass *pass)
{
	return !pass->num_geometry && !pass->num_images &&
	       pointwise_is_copy(&pass->pointwise);
}

/* Whether pass i is the last one before `end` that makes pixels. */
static bool is_last(const struct output_plan *plan, size_t i, size_t end)
{
	return i + 1 == end || (i + 2 == end && is_idle(&plan->passes[i + 1]));
}

/*
 * Sets the memory for the next image: the output, or the buffer without the
 * current image. On failure, sets the message and returns -ENOMEM.
 */
static int find_room(struct pipeline_worker *w, const struct worker_job *job,
		     bool last, struct size size, struct image *out)
{
	struct buffer *b = &w->images[w->turn];

	*out = (struct image){ job->out, size.width, size.height,
			       3 * (size_t)size.width };
	if (last)
		return 0;
	if (size.width > OP_SIZE_MAX || size.height > OP_SIZE_MAX ||
	    buffer_reserve(b, out->stride * size.height))
		return nested_no_memory(&w->nested, size);
	w->turn = !w->turn;
	out->pixels = b->bytes;
	return 0;
}

/* --- passes --- */

/* Returns the part of an image that the geometry of a pass reads, or NULL for
   all of it. */
static const struct rect *find_seen(const struct pass *pass,
				    const struct draw *draws, struct rect *out)
{
	bool mirror = false;

	if (!pass->num_geometry)
		return NULL;
	*out = draws[0].from;
	for (size_t i = 1; i < pass->num_geometry; i++) {
		if (changes_size(&draws[i - 1]))
			break;
		mirror ^= draws[i - 1].mirror;
		rect_narrow(out, mirror, &draws[i].from);
	}
	return out;
}

/* Runs an operation on `image`, which becomes its result. */
static int run_image_op(struct pipeline_worker *w, const struct worker_job *job,
			const struct node *n, bool last,
			const struct rect *seen, struct image *image)
{
	const struct size size = { image->width, image->height };
	struct rng rng = operands_rng(job->row, n);
	struct op_sample sample = { .id = job->row->id,
				    .uniform = operands_uniform(&rng),
				    .seen = seen };
	struct image out;
	int r;

	if (!op_redraws(n->op))
		return nested_run(&w->nested, job, n, image);
	r = nested_reserve(&w->nested, n, size);
	if (r)
		return r;
	sample.scratch = w->nested.scratch.bytes;
	r = find_room(w, job, last, op_resized(n->op, &n->args, size), &out);
	if (r)
		return r;
	n->op->image->redraw(&n->args, &sample, image, &out);
	*image = out;
	return 0;
}

/* Runs several operations as one resampling. */
static int run_joined(struct pipeline_worker *w, const struct worker_job *job,
		      const struct node *n, size_t count, bool last,
		      const struct rect *seen, struct image *image)
{
	const struct size size = { image->width, image->height };
	const struct arg *how = &n->args.arg[op_param(n->op, "interpolation")];
	struct warp_map maps[OP_MAPS_MAX];
	struct image out;
	uint8_t fill[3];
	int r = find_room(w, job, last, size, &out);

	if (r)
		return r;
	op_color(&n->args.arg[op_param(n->op, "fill")], fill);
	operands_join(n, count, job->row, size, maps);
	warp_joined(maps, count, (enum warp_how)how->choice, fill, image, &out,
		    seen);
	*image = out;
	return 0;
}

/* Runs the operations of a pass on the pointwise stage's result, `image`. The
   caller reads only `seen` of the result of the last pass. */
static int run_image_ops(struct pipeline_worker *w,
			 const struct worker_job *job, const struct pass *pass,
			 bool last, const struct rect *seen,
			 struct image *image)
{
	size_t redraws = pass->num_redraws;
	int r = 0;

	for (size_t i = 0, count; !r && i < pass->num_images; i += count) {
		const struct node *n = &pass->images[i];
		const struct rect *part;
		bool ends;

		count = node_joined(n, pass->num_images - i);
		redraws -= op_redraws(n->op) ? count : 0;
		ends = last && !redraws;
		part = i + count == pass->num_images ? seen : NULL;
		r = count > 1 ? run_joined(w, job, n, count, ends, part, image)
			      : run_image_op(w, job, n, ends, part, image);
	}
	return r;
}

/* Makes the result of a pass the value of the next one. */
static int restart(struct pipeline_worker *w, const struct worker_job *job,
		   const struct image *image)
{
	w->raw = (struct pipeline_value){
		.bytes = image->pixels,
		.size = (uint64_t)image->stride * image->height,
		.mode = BETON_MODE_RAW,
		.width = image->width,
		.height = image->height,
	};
	w->found = VALUE_STORE_REFUSED;
	return frame_start(w->frame, &w->raw, job->plan->quality, NULL);
}

/* Makes the image of a pass: the frame's pixels, then operations on them. The
   caller reads only `seen` of the result. */
static int run_pass(struct pipeline_worker *w, const struct worker_job *job,
		    const struct pass *pass, bool last, const struct rect *seen,
		    struct image *image)
{
	const struct size size = { image->width, image->height };
	int r = find_room(w, job, last && !pass->num_redraws, size, image);

	if (!r)
		r = run_pointwise(w, job, pass, size, image->pixels);
	return r ? r : run_image_ops(w, job, pass, last, seen, image);
}

/* Runs some passes over the frame's image. */
static int run_passes(struct pipeline_worker *w, const struct worker_job *job,
		      size_t first, size_t end)
{
	struct image image = { .width = job->value->width,
			       .height = job->value->height };
	const struct draw *draws = w->draws;
	const struct rect *seen;
	struct rect part;
	int r;

	for (size_t i = first;; i++) {
		const struct pass *pass = &job->plan->passes[i];
		bool last = is_last(job->plan, i, end);

		r = run_geometry(w, job, pass, draws);
		if (r || job->until == BETON_STAGE_DECODE)
			return r ? r : frame_decode(w->frame);
		draws += pass->num_geometry;
		if (pass->num_geometry) {
			image.width = draws[-1].to.width;
			image.height = draws[-1].to.height;
		}
		seen = i + 1 < end ? find_seen(pass + 1, draws, &part) : NULL;
		r = run_pass(w, job, pass, last, seen, &image);
		if (!r && !last)
			r = restart(w, job, &image);
		if (r || last)
			return r;
	}
}

/* Custom operations have only compiled code. */
static int check_code(struct pipeline_worker *w, const struct worker_job *job)
{
	for (size_t i = 0; i < job->plan->num_passes; i++) {
		const struct pointwise *stage = &job->plan->passes[i].pointwise;

		if (!stage->is_custom || atomic_load(&stage->kernel))
			continue;
		snprintf(w->message, sizeof(w->message),
			 "`%s' has not been compiled", stage->chain->name);
		return -ENOSYS;
	}
	return 0;
}

static int run_image(struct pipeline_worker *w, const struct worker_job *job)
{
	size_t end = job->plan->first_half;
	int r = check_code(w, job);

	r = r ? r : start_image(w, job);
	r = r ? r : draw_passes(w, job, 0, end);
	return r ? r : run_passes(w, job, 0, end);
}

typedef int run_fn(struct pipeline_worker *w, const struct worker_job *job);

/* Runs all views of a sample, one after the other. */
static int run_views(struct pipeline_worker *w, const struct worker_job *job,
		     run_fn *run)
{
	size_t views = job->plan->num_views;
	struct pipeline_row row = *job->row;
	struct worker_job one = *job;
	int r = 0;

	one.row = &row;
	for (size_t i = 0; !r && i < views; i++) {
		row.view = i;
		one.out = (uint8_t *)job->out +
			  i * (job->plan->out.made_size / views);
		r = run(w, &one);
	}
	return r;
}

static int run_array(struct pipeline_worker *w, const struct worker_job *job)
{
	const struct output_plan *plan = job->plan;
	const struct pipeline_value *v = job->value;
	struct chain chain = *plan->chain;
	size_t steps;

	if (v->size != plan->value_size) {
		snprintf(w->message, sizeof(w->message),
			 "%llu bytes where the dataset announces %llu",
			 (unsigned long long)v->size,
			 (unsigned long long)plan->value_size);
		return -EINVAL;
	}
	if (job->until == BETON_STAGE_DECODE || !v->size)
		return 0;
	if (plan->pair)
		chain = chain_head(&chain, output_plan_pair_at(plan));
	steps = arrays_steps(&chain);
	if (steps)
		return arrays_run(&w->arrays, job, &chain, steps, v->bytes);
	memcpy(job->out, v->bytes, v->size);
	return 0;
}

static int run_grid(struct pipeline_worker *w, const struct worker_job *job)
{
	int r = w->grid ? 0 : grid_worker_open(&w->grid);

	if (r) {
		snprintf(w->message, sizeof(w->message), "%s", strerror(-r));
		return r;
	}
	r = grid_worker_run(w->grid, job);
	if (r)
		snprintf(w->message, sizeof(w->message), "%s",
			 grid_worker_message(w->grid));
	return r;
}

static int run_list_rows(struct pipeline_worker *w,
			 const struct worker_job *job)
{
	const struct output_plan *plan = job->plan;
	struct chain chain = *plan->chain;
	uint64_t rows = 0;
	int r;

	if (job->until == BETON_STAGE_DECODE)
		return 0;
	if (plan->pair)
		chain = chain_head(&chain, output_plan_pair_at(plan));
	r = lists_run(&w->lists, &chain, job->value, job->row, job->out, &rows);
	if (r)
		snprintf(w->message, sizeof(w->message), "%s",
			 w->lists.message);
	else if (job->rows)
		*job->rows = rows;
	return r;
}

static void begin_messages(struct pipeline_worker *w)
{
	w->message[0] = w->nested.message[0] = w->arrays.message[0] = '\0';
}

/* Stores the message of the part that failed. */
static int end_messages(struct pipeline_worker *w, int r)
{
	const char *said = *w->nested.message	? w->nested.message
			   : *w->arrays.message ? w->arrays.message
						: frame_message(w->frame);

	if (r && !w->message[0])
		snprintf(w->message, sizeof(w->message), "%s", said);
	return r;
}

int worker_run(struct pipeline_worker *w, const struct worker_job *job)
{
	const struct output_plan *plan = job->plan;

	begin_messages(w);
	if ((plan->out.ragged && !plan->out.is_list) ||
	    (plan->out.is_list && !job->rows)) {
		snprintf(w->message, sizeof(w->message),
			 "rows of `%s' have no fixed size", plan->out.name);
		return -EINVAL;
	}
	if (job->until == BETON_STAGE_READ)
		return 0;
	if (plan->is_grid)
		return run_views(w, job, run_grid);
	if (lists_are_of(plan->chain))
		return run_list_rows(w, job);
	return end_messages(w, plan->num_passes ? run_views(w, job, run_image)
						: run_array(w, job));
}

/* --- two rows --- */

/* Returns the operation that mixes rows, chosen at random if there are
   several. */
static const struct node *pick_pair(const struct node *n,
				    const struct pipeline_row *last)
{
	struct rng rng = operands_rng(last, n);
	unsigned order[OP_BRANCHES_MAX];

	if (!n->num_branches)
		return n;
	n->op->branches->pick(&n->args, n->num_branches, operands_uniform(&rng),
			      order);
	return n->branches[order[0]].nodes;
}

/* Mixes two rows, and runs all passes over the result. */
static int pair_images(struct pipeline_worker *w, struct worker_job *job,
		       const struct node *n, struct op_pair *pair)
{
	size_t first = job->plan->first_half, end = job->plan->num_passes;
	struct size size = { pair->type->width, pair->type->height };
	bool last = is_last(job->plan, first - 1, end);
	struct image image;
	int r = find_room(w, job, last, size, &image);

	if (r)
		return r;
	pair->count = image.stride * size.height;
	pair->out = image.pixels;
	n->op->batch->mix(&n->args, pair);
	if (last)
		return 0;
	job->value = &w->raw;
	r = restart(w, job, &image);
	r = r ? r : draw_passes(w, job, first, end);
	return r ? r : run_passes(w, job, first, end);
}

static int pair_arrays(struct pipeline_worker *w, const struct worker_job *job,
		       const struct node *n, struct op_pair *pair)
{
	const struct output_plan *plan = job->plan;
	struct chain rest =
		chain_rest(plan->chain, output_plan_pair_at(plan) + 1);
	size_t steps = arrays_steps(&rest);

	pair->count = op_elements(pair->type);
	pair->out = steps ? arrays_result(&w->arrays, steps, &rest.source)
			  : job->out;
	if (!pair->out)
		return -ENOMEM;
	n->op->batch->mix(&n->args, pair);
	return steps ? arrays_run(&w->arrays, job, &rest, steps, pair->out) : 0;
}

int worker_pair(struct pipeline_worker *w, const struct output_plan *plan,
		const struct pipeline_pair *rows, void *out)
{
	const struct node *n = pick_pair(plan->pair, rows->last);
	struct rng row = operands_rng(rows->row, n);
	struct rng last = operands_rng(rows->last, n);
	struct worker_job job = { .plan = plan, .row = rows->row, .out = out };
	struct op_pair pair = {
		.type = output_plan_pair_type(plan),
		.own = rows->own,
		.other = rows->other,
		.image = plan->pair->image,
		.row = operands_uniform(&row),
		.batch = operands_uniform(&last),
	};

	begin_messages(w);
	return end_messages(w, plan->num_passes
				       ? pair_images(w, &job, n, &pair)
				       : pair_arrays(w, &job, n, &pair));
}

/* --- rows from a maker --- */

/* Finishes one image. */
static int finish_image(struct pipeline_worker *w, const struct worker_job *job,
			const uint8_t *sent)
{
	const struct pass *pass = &job->plan->finish;
	const struct type *type = &pass->head.source;
	const struct size size = { type->width, type->height };
	const struct image image = { (uint8_t *)sent, type->width, type->height,
				     3 * (size_t)type->width };
	int r = restart(w, job, &image);

	return r ? r : run_pointwise(w, job, pass, size, job->out);
}

int worker_finish(struct pipeline_worker *w, const struct output_plan *plan,
		  const void *sent, const struct pipeline_row *row, void *out)
{
	size_t views = plan->num_views;
	struct pipeline_row one = *row;
	struct worker_job job = { .plan = plan, .row = &one };
	int r = 0;

	begin_messages(w);
	for (size_t i = 0; !r && i < views; i++) {
		one.view = i;
		job.out = (uint8_t *)out + i * (plan->out.made_size / views);
		r = finish_image(w, &job,
				 (const uint8_t *)sent +
					 i * (plan->out.sent_size / views));
	}
	return end_messages(w, r);
}
