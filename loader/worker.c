/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/frame.h"
#include "loader/operands.h"

struct pipeline_worker {
	struct frame *frame;
	struct draw *draws; /* one per geometry of the row being made */
	float *operands;    /* of its value operations */
	enum stash_found found;
	char message[256];
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
		pipeline_worker_close(w);
	else
		*out = w;
	return r;
}

void pipeline_worker_close(struct pipeline_worker *w)
{
	if (!w)
		return;
	frame_close(w->frame);
	free(w->draws);
	free(w->operands);
	free(w);
}

const char *pipeline_worker_message(const struct pipeline_worker *w)
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

/*
 * All random numbers of a row, before any pixel is looked at: what decoding has
 * to give, and whether the result will fit, is known from sizes alone.
 */
static int draw_all(struct pipeline_worker *w, const struct worker_job *job)
{
	const struct chain *chain = job->plan->chain;
	const struct type *want = chain_type(chain);
	struct size size = { job->value->width, job->value->height };
	struct draw *draw = w->draws;

	for (size_t i = 0; i < chain->num_nodes; i++) {
		if (chain->nodes[i].op->kind != OP_GEOMETRY)
			continue;
		draw_one(&chain->nodes[i], job->row, size, draw);
		size = draw++->to;
	}
	if (size.width == want->width && size.height == want->height)
		return 0;
	snprintf(w->message, sizeof(w->message),
		 "an image of %ux%u comes out as %ux%u, but `%s' is %ux%u as "
		 "sample 0; an operation that sets the size is missing",
		 job->value->width, job->value->height, size.width, size.height,
		 chain->name, want->width, want->height);
	return -EINVAL;
}

static bool changes_size(const struct draw *draw)
{
	return draw->to.width != draw->from.width ||
	       draw->to.height != draw->from.height;
}

/* The image as it is stored, or as it was kept. */
static int start_image(struct pipeline_worker *w, const struct worker_job *job)
{
	const struct plan *plan = job->plan;
	struct frame *f = w->frame;
	const void *kept;

	w->found = plan->stash ? stash_get(plan->stash, job->row->id, &kept)
			       : STASH_REFUSED;
	if (w->found == STASH_VALUE) {
		if (frame_resume(f, job->value, plan->quality, kept,
				 job->decode_ns))
			return 0;
		w->found = STASH_REFUSED;
	}
	return frame_start(f, job->value, plan->quality, job->decode_ns);
}

/*
 * Tells the frame what becomes of the image. With BETON_STAGE_DECODE only what
 * the first resize sees, so that there is something to decode; but what is kept
 * is made whole.
 */
static int run_geometry(struct pipeline_worker *w, const struct worker_job *job)
{
	const struct plan *plan = job->plan;
	size_t i = w->found == STASH_VALUE ? plan->cache_at : 0;
	const struct draw *draw = w->draws + i;
	struct frame *f = w->frame;
	bool resized = false;
	int r = 0;

	for (; !r && i <= plan->num_geometry; i++, draw++) {
		if (i == plan->cache_at && w->found == STASH_NOTHING)
			frame_keep(f, plan->stash, job->row->id);
		if (i == plan->num_geometry)
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

static int run_tail(struct pipeline_worker *w, const struct worker_job *job)
{
	const struct tail *tail = job->plan->tail;
	const struct type *type = chain_type(job->plan->chain);
	struct tail_image to = {
		.size = { type->width, type->height },
		.operands = tail_operands(tail, job->row, w->operands),
		.out = job->out,
	};
	struct band band;
	int r;

	while (!(r = frame_next(w->frame, &band, &to.mirror)) && band.rows)
		tail_band(tail, &to, &band);
	return r;
}

/* Operations of files have nothing but their code. */
static int check_code(struct pipeline_worker *w, const struct worker_job *job)
{
	const struct tail *tail = job->plan->tail;

	if (!tail->is_own || atomic_load(&tail->kernel))
		return 0;
	snprintf(w->message, sizeof(w->message), "`%s' has not been compiled",
		 tail->chain->name);
	return -ENOSYS;
}

static int run_image(struct pipeline_worker *w, const struct worker_job *job)
{
	int r = check_code(w, job);

	if (r)
		return r;
	r = start_image(w, job);
	if (!r) {
		r = draw_all(w, job);
		if (r)
			return r;
		r = run_geometry(w, job);
	}
	if (!r)
		r = job->until == BETON_STAGE_DECODE ? frame_decode(w->frame)
						     : run_tail(w, job);
	if (r)
		snprintf(w->message, sizeof(w->message), "%s",
			 frame_message(w->frame));
	return r;
}

enum { CHUNK = 64 };

/* One type after the other, a few values at a time. */
static void convert_chunk(const struct chain *chain, const uint8_t *in,
			  uint8_t *out, size_t count)
{
	uint64_t chunk[2][CHUNK];
	enum dtype type = chain->source.dtype;
	unsigned at = 0;

	memcpy(chunk[at], in, count * dtype_size(type));
	for (size_t i = 0; i < chain->num_nodes; i++, at = !at) {
		enum dtype next = chain->nodes[i].type.dtype;

		dtype_convert(type, chunk[at], next, chunk[!at], count);
		type = next;
	}
	memcpy(out, chunk[at], count * dtype_size(type));
}

static int run_array(struct pipeline_worker *w, const struct worker_job *job)
{
	const struct plan *plan = job->plan;
	const struct pipeline_value *v = job->value;
	size_t from, to, count;
	uint8_t *out = job->out;

	if (v->size != plan->value_size) {
		snprintf(w->message, sizeof(w->message),
			 "%llu bytes where the dataset announces %llu",
			 (unsigned long long)v->size,
			 (unsigned long long)plan->value_size);
		return -EINVAL;
	}
	if (job->until == BETON_STAGE_DECODE)
		return 0;
	if (!v->size)
		return 0;
	if (!plan->chain->num_nodes) {
		memcpy(out, v->bytes, v->size);
		return 0;
	}
	from = dtype_size(plan->chain->source.dtype);
	to = dtype_size(chain_type(plan->chain)->dtype);
	for (size_t i = 0, n = v->size / from; i < n; i += count) {
		count = n - i < CHUNK ? n - i : CHUNK;
		convert_chunk(plan->chain, v->bytes + i * from, out + i * to,
			      count);
	}
	return 0;
}

int worker_run(struct pipeline_worker *w, const struct worker_job *job)
{
	const struct plan *plan = job->plan;

	w->message[0] = '\0';
	if (plan->out.ragged) {
		snprintf(w->message, sizeof(w->message),
			 "rows of `%s' have no fixed size", plan->out.name);
		return -EINVAL;
	}
	if (job->until == BETON_STAGE_READ)
		return 0;
	return plan->tail ? run_image(w, job) : run_array(w, job);
}
