/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/graph/operands.h"
#include "loader/pipeline/frame.h"
#include "loader/util/scratch.h"

struct pipeline_worker {
	struct frame *frame;
	struct draw *draws; /* one per geometry of the current row */
	float *operands;    /* operands of its value operations */
	enum value_store_found found;
	struct buffer images[2];   /* a pass reads one and fills the other */
	struct pipeline_value raw; /* value that a pass reads */
	char message[320];
};

int worker_open(size_t max_geometry, size_t max_floats,
		struct pipeline_worker **out)
{
	struct pipeline_worker *w = calloc(1, sizeof(*w));
	int r = w ? frame_open(&w->frame) : -ENOMEM;

	if (!r) {
		w->draws = calloc(max_geometry + 1, sizeof(*w->draws));
		w->operands = calloc(max_floats + 1, sizeof(*w->operands));
		r = w->draws && w->operands ? 0 : -ENOMEM;
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
	free(w->draws);
	free(w->operands);
	buffer_fini(&w->images[0]);
	buffer_fini(&w->images[1]);
	free(w);
}

const char *worker_message(const struct pipeline_worker *w)
{
	return w->message;
}

static void draw_one(const struct node *n, const struct pipeline_row *row,
		     struct size in, struct draw *out)
{
	struct rng rng = operands_rng(row, n->stream);

	*out = (struct draw){ 0 };
	n->op->draw(&n->args, operands_uniform(&rng), in, out);
}

static int refuse_size(struct pipeline_worker *w, const struct worker_job *job,
		       struct size size, const struct type *want)
{
	snprintf(w->message, sizeof(w->message),
		 "an image of %ux%u comes out as %ux%u, but `%s' is %ux%u as "
		 "sample 0; set the size, as in `image | center_crop(224)', or "
		 "leave the field out, as in `image | drop'",
		 job->value->width, job->value->height, size.width, size.height,
		 job->plan->chain->name, want->width, want->height);
	return -EINVAL;
}

/*
 * Draws all random numbers of the geometry of some passes before any pixel is
 * read. Sizes alone decide what has to be decoded, and whether the result will
 * fit.
 */
static int draw_passes(struct pipeline_worker *w, const struct worker_job *job,
		       size_t first, size_t end)
{
	struct size size = { job->value->width, job->value->height };
	struct draw *draw = w->draws;

	for (size_t i = first; i < end; i++) {
		const struct pass *pass = &job->plan->passes[i];
		const struct type *want = chain_type(&pass->chain);

		for (size_t k = 0; k < pass->chain.num_nodes; k++) {
			const struct node *n = &pass->chain.nodes[k];

			if (n->op->kind != OP_GEOMETRY)
				continue;
			draw_one(n, job->row, size, draw);
			size = draw++->to;
		}
		if (pass->is_fixed &&
		    (size.width != want->width || size.height != want->height))
			return refuse_size(w, job, size, want);
	}
	return 0;
}

static bool changes_size(const struct draw *draw)
{
	return draw->to.width != draw->from.width ||
	       draw->to.height != draw->from.height;
}

/* Starts on the stored image, or on the kept one. */
static int start_image(struct pipeline_worker *w, const struct worker_job *job)
{
	const struct output_plan *plan = job->plan;
	struct frame *f = w->frame;
	const void *kept;

	w->found = plan->stash
			   ? value_store_get(plan->stash, job->row->id, &kept)
			   : VALUE_STORE_REFUSED;
	if (w->found == VALUE_STORE_VALUE) {
		if (frame_resume(f, job->value, plan->quality, kept,
				 job->decode_ns))
			return 0;
		w->found = VALUE_STORE_REFUSED;
	}
	return frame_start(f, job->value, plan->quality, job->decode_ns);
}

/*
 * Tells the frame what becomes of the image. With BETON_STAGE_DECODE only what
 * the first resize sees, so that there is something to decode; but what is kept
 * is made whole.
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
			frame_keep(f, plan->stash, job->row->id);
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

static int run_tail(struct pipeline_worker *w, const struct worker_job *job,
		    const struct pass *pass, struct size size, void *out)
{
	const struct tail *tail = &pass->tail;
	struct tail_image to = {
		.size = size,
		.operands = tail_operands(tail, job->row, w->operands),
		.out = out,
	};
	struct band band;
	int r;

	while (!(r = frame_next(w->frame, &band, &to.mirror)) && band.rows)
		tail_band(tail, &to, &band);
	return r;
}

static void run_image_ops(const struct worker_job *job, const struct pass *pass,
			  struct size size, void *pixels)
{
	const struct image image = { pixels, size.width, size.height,
				     3 * (size_t)size.width };

	for (size_t i = 0; i < pass->num_images; i++) {
		const struct node *n = &pass->images[i];
		struct rng rng = operands_rng(job->row, n->stream);
		const struct op_sample sample = { job->row->id,
						  operands_uniform(&rng) };

		n->op->image(&n->args, &sample, &image);
	}
}

static bool is_idle(const struct pass *pass)
{
	return !pass->num_geometry && !pass->num_images &&
	       tail_is_copy(&pass->tail);
}

/* Whether pass i makes the final result of the passes before `end`. */
static bool is_last(const struct output_plan *plan, size_t i, size_t end)
{
	return i + 1 == end || (i + 2 == end && is_idle(&plan->passes[i + 1]));
}

/* The memory for the image that pass i makes; NULL: the message is set. */
static void *find_room(struct pipeline_worker *w, const struct worker_job *job,
		       size_t i, size_t end, struct size size)
{
	struct buffer *b = &w->images[i % 2];

	if (is_last(job->plan, i, end))
		return job->out;
	if (size.width <= OP_SIZE_MAX && size.height <= OP_SIZE_MAX &&
	    !buffer_reserve(b, 3 * (uint64_t)size.width * size.height))
		return b->bytes;
	snprintf(w->message, sizeof(w->message), "no memory for %ux%u pixels",
		 size.width, size.height);
	return NULL;
}

/* Turns the result of a pass into the value of the next one. */
static int restart(struct pipeline_worker *w, const struct worker_job *job,
		   const uint8_t *pixels, struct size size)
{
	w->raw = (struct pipeline_value){
		.bytes = pixels,
		.size = 3 * (uint64_t)size.width * size.height,
		.mode = BETON_MODE_RAW,
		.width = size.width,
		.height = size.height,
	};
	w->found = VALUE_STORE_REFUSED;
	return frame_start(w->frame, &w->raw, job->plan->quality, NULL);
}

/* Runs some passes over an image that the frame has started. */
static int run_passes(struct pipeline_worker *w, const struct worker_job *job,
		      size_t first, size_t end)
{
	struct size size = { job->value->width, job->value->height };
	const struct draw *draws = w->draws;
	void *out;
	int r;

	for (size_t i = first;; i++) {
		const struct pass *pass = &job->plan->passes[i];

		r = run_geometry(w, job, pass, draws);
		if (r || job->until == BETON_STAGE_DECODE)
			return r ? r : frame_decode(w->frame);
		draws += pass->num_geometry;
		if (pass->num_geometry)
			size = draws[-1].to;
		out = find_room(w, job, i, end, size);
		if (!out)
			return -ENOMEM;
		r = run_tail(w, job, pass, size, out);
		if (!r)
			run_image_ops(job, pass, size, out);
		if (!r && out != job->out)
			r = restart(w, job, out, size);
		if (r || out == job->out)
			return r;
	}
}

/* Operations from files have compiled code only. */
static int check_code(struct pipeline_worker *w, const struct worker_job *job)
{
	for (size_t i = 0; i < job->plan->num_passes; i++) {
		const struct tail *tail = &job->plan->passes[i].tail;

		if (!tail->is_own || atomic_load(&tail->kernel))
			continue;
		snprintf(w->message, sizeof(w->message),
			 "`%s' has not been compiled", tail->chain->name);
		return -ENOSYS;
	}
	return 0;
}

static int run_image(struct pipeline_worker *w, const struct worker_job *job)
{
	size_t end = job->plan->first_half;
	int r = check_code(w, job);

	if (r)
		return r;
	r = start_image(w, job);
	if (!r) {
		r = draw_passes(w, job, 0, end);
		if (r)
			return r;
		r = run_passes(w, job, 0, end);
	}
	if (r && !w->message[0])
		snprintf(w->message, sizeof(w->message), "%s",
			 frame_message(w->frame));
	return r;
}

/* Whether an operation changes the bytes of an array. */
static bool is_step(const struct node *n)
{
	return n->op->kind == OP_DTYPE || n->op->kind == OP_ARRAY;
}

static size_t count_elements(const struct type *type)
{
	size_t count = 1;

	for (uint32_t i = 0; i < type->ndim; i++)
		count *= type->shape[i];
	return count;
}

static int run_step(struct pipeline_worker *w, const struct worker_job *job,
		    const struct node *n, const struct type *in,
		    const void *from, void *to)
{
	struct rng rng = operands_rng(job->row, n->stream);
	const struct op_sample sample = { job->row->id,
					  operands_uniform(&rng) };
	const char *wrong;

	if (n->op->kind == OP_DTYPE) {
		dtype_convert(in->dtype, from, n->type.dtype, to,
			      count_elements(in));
		return 0;
	}
	wrong = n->op->array(&n->args, &sample, in, from, to);
	if (!wrong)
		return 0;
	snprintf(w->message, sizeof(w->message), "%s: %s", n->op->name, wrong);
	return -EINVAL;
}

/*
 * The memory for the result of step i from the end; NULL: the message is set.
 */
static void *find_array(struct pipeline_worker *w, size_t i,
			const struct type *type)
{
	struct buffer *b = &w->images[i % 2];
	uint64_t size = count_elements(type) * dtype_size(type->dtype);

	if (!buffer_reserve(b, size))
		return b->bytes;
	snprintf(w->message, sizeof(w->message), "no memory for %llu bytes",
		 (unsigned long long)size);
	return NULL;
}

static size_t count_steps(const struct chain *chain)
{
	size_t count = 0;

	for (size_t i = 0; i < chain->num_nodes; i++)
		count += is_step(&chain->nodes[i]);
	return count;
}

/*
 * Runs the last `left` operations of the chain, at least one, on bytes of its
 * source's type.
 */
static int run_steps(struct pipeline_worker *w, const struct worker_job *job,
		     const struct chain *chain, size_t left, const void *from)
{
	const struct type *in = &chain->source;
	void *to;
	int r = 0;

	for (size_t i = 0; !r && i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];

		if (!is_step(n))
			continue;
		to = --left ? find_array(w, left, &n->type) : job->out;
		r = to ? run_step(w, job, n, in, from, to) : -ENOMEM;
		in = &n->type;
		from = to;
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
	steps = count_steps(&chain);
	if (steps)
		return run_steps(w, job, &chain, steps, v->bytes);
	memcpy(job->out, v->bytes, v->size);
	return 0;
}

int worker_run(struct pipeline_worker *w, const struct worker_job *job)
{
	const struct output_plan *plan = job->plan;

	w->message[0] = '\0';
	if (plan->out.ragged) {
		snprintf(w->message, sizeof(w->message),
			 "rows of `%s' have no fixed size", plan->out.name);
		return -EINVAL;
	}
	if (job->until == BETON_STAGE_READ)
		return 0;
	return plan->num_passes ? run_image(w, job) : run_array(w, job);
}

/* --- two rows --- */

/* Mixes two rows, and runs all passes over the result. */
static int pair_images(struct pipeline_worker *w, struct worker_job *job,
		       struct op_pair *pair)
{
	size_t first = job->plan->first_half, end = job->plan->num_passes;
	const struct node *n = job->plan->pair;
	struct size size = { pair->type->width, pair->type->height };
	int r;

	pair->count = 3 * (size_t)size.width * size.height;
	pair->out = find_room(w, job, first - 1, end, size);
	if (!pair->out)
		return -ENOMEM;
	n->op->pair(&n->args, pair);
	if (pair->out == job->out)
		return 0;
	job->value = &w->raw;
	r = restart(w, job, pair->out, size);
	if (!r)
		r = draw_passes(w, job, first, end);
	if (!r)
		r = run_passes(w, job, first, end);
	if (r && !w->message[0])
		snprintf(w->message, sizeof(w->message), "%s",
			 frame_message(w->frame));
	return r;
}

static int pair_arrays(struct pipeline_worker *w, const struct worker_job *job,
		       struct op_pair *pair)
{
	const struct output_plan *plan = job->plan;
	struct chain rest =
		chain_rest(plan->chain, output_plan_pair_at(plan) + 1);
	size_t steps = count_steps(&rest);

	pair->count = count_elements(pair->type);
	pair->out = steps ? find_array(w, steps, &rest.source) : job->out;
	if (!pair->out)
		return -ENOMEM;
	plan->pair->op->pair(&plan->pair->args, pair);
	return steps ? run_steps(w, job, &rest, steps, pair->out) : 0;
}

int worker_pair(struct pipeline_worker *w, const struct output_plan *plan,
		const struct pipeline_pair *rows, void *out)
{
	uint64_t stream = plan->pair->stream;
	struct rng row = operands_rng(rows->row, stream);
	struct rng last = operands_rng(rows->last, stream);
	struct worker_job job = { .plan = plan, .row = rows->row, .out = out };
	struct op_pair pair = {
		.type = output_plan_pair_type(plan),
		.own = rows->own,
		.other = rows->other,
		.row = operands_uniform(&row),
		.batch = operands_uniform(&last),
	};

	w->message[0] = '\0';
	return plan->num_passes ? pair_images(w, &job, &pair)
				: pair_arrays(w, &job, &pair);
}
