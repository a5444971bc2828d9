/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/bytes.h"
#include "fs/log.h"
#include "fs/memory.h"
#include "loader/emit_device.h"
#include "loader/frame.h"
#include "loader/graph.h"
#include "loader/jit.h"
#include "loader/operands.h"
#include "loader/own.h"
#include "loader/parse.h"
#include "loader/plan.h"
#include "loader/schedule.h"

struct pipeline {
	char *text;
	struct graph graph;
	struct plan *plans;
	size_t num_plans;
	size_t max_geometry; /* of any plan, as the next */
	size_t max_floats;
	uint64_t end; /* the next epoch that differs */
};

struct pipeline_worker {
	struct frame *frame;
	struct draw *draws; /* one per geometry of the row being made */
	float *operands;    /* of its value operations */
	char message[256];
};

/* The arguments of pipeline_run(). */
struct call {
	const struct plan *plan;
	struct pipeline_worker *worker;
	const struct pipeline_value *value;
	const struct pipeline_row *row;
	enum beton_stage until;
	void *out;
	uint64_t *decode_ns;
	enum stash_found found; /* by start_image() */
};

static size_t max_floats(const struct pipeline *p)
{
	size_t max = 0;

	for (size_t i = 0; i < p->num_plans; i++) {
		const struct tail *tail = p->plans[i].tail;

		if (tail && tail->num_floats > max)
			max = tail->num_floats;
	}
	return max;
}

static int plan_all(struct pipeline *p, const struct pipeline_field *fields,
		    const struct complaint *c)
{
	int r = 0;

	p->plans = calloc(p->graph.num_chains + 1, sizeof(*p->plans));
	if (!p->plans)
		return -ENOMEM;
	for (size_t i = 0; !r && i < p->graph.num_chains; i++) {
		const struct chain *chain = &p->graph.chains[i];
		struct plan *plan = &p->plans[p->num_plans];

		if (chain->dropped)
			continue;
		p->num_plans++;
		r = plan_init(plan, chain, &fields[chain->field], c);
		if (plan->num_geometry > p->max_geometry)
			p->max_geometry = plan->num_geometry;
	}
	p->max_floats = max_floats(p);
	return r;
}

int pipeline_parse(const char *text, const struct pipeline_field *fields,
		   size_t num_fields, uint64_t epoch, struct pipeline **out,
		   char *error, size_t error_size)
{
	struct complaint c = { text ? text : "", error, error_size };
	struct pipeline *p = calloc(1, sizeof(*p));
	struct epochs epochs = { epoch, UINT64_MAX };
	struct parse parse = { 0 };
	int r = p ? 0 : -ENOMEM;

	if (error && error_size)
		*error = '\0';
	if (!r) {
		p->text = strdup(c.text);
		r = p->text ? parse_text(&c, &parse) : -ENOMEM;
	}
	if (!r)
		r = graph_build(&parse, fields, num_fields, &epochs, &c,
				&p->graph);
	if (!r)
		r = plan_all(p, fields, &c);
	parse_fini(&parse);
	if (!r) {
		p->end = epochs.end;
		*out = p;
		return 0;
	}
	pipeline_close(p);
	if (r == -ENOMEM && error)
		snprintf(error, error_size, "out of memory");
	return r;
}

void pipeline_close(struct pipeline *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->num_plans; i++)
		plan_fini(&p->plans[i]);
	free(p->plans);
	free(p->text);
	graph_fini(&p->graph);
	free(p);
}

int pipeline_split(struct pipeline *p, bool autos)
{
	int r = 0;

	for (size_t i = 0; !r && i < p->num_plans; i++) {
		if (autos || !plan_is_auto(&p->plans[i]))
			r = plan_split(&p->plans[i]);
	}
	p->max_floats = max_floats(p);
	return r;
}

bool pipeline_has_choice(const struct pipeline *p)
{
	for (size_t i = 0; i < p->num_plans; i++) {
		if (pipeline_has_rest(p, i) && plan_is_auto(&p->plans[i]))
			return true;
	}
	return false;
}

bool pipeline_has_rest(const struct pipeline *p, size_t i)
{
	return p->plans[i].rest.num_nodes;
}

char *pipeline_rest(const struct pipeline *p, size_t i)
{
	return pipeline_has_rest(p, i) ? emit_device(&p->plans[i].rest) : NULL;
}

void pipeline_image_size(const struct pipeline *p, size_t i, uint32_t *width,
			 uint32_t *height)
{
	const struct type *type = chain_type(p->plans[i].chain);

	*width = type->width;
	*height = type->height;
}

size_t pipeline_num_operands(const struct pipeline *p, size_t i)
{
	return p->plans[i].chain->num_operands;
}

void pipeline_operands(const struct pipeline *p, size_t i,
		       const struct pipeline_row *row, float *out)
{
	operands_fill(p->plans[i].chain, row, out);
}

uint64_t pipeline_end(const struct pipeline *p)
{
	return p->end;
}

static bool is_alike(const struct pipeline_output *a,
		     const struct pipeline_output *b)
{
	return a->field == b->field && a->ragged == b->ragged &&
	       a->device == b->device && a->plain == b->plain &&
	       a->ndim == b->ndim && !strcmp(a->name, b->name) &&
	       !strcmp(a->dtype, b->dtype);
}

bool pipeline_is_alike(const struct pipeline *a, const struct pipeline *b)
{
	bool alike = a->num_plans == b->num_plans &&
		     a->max_geometry == b->max_geometry &&
		     a->max_floats == b->max_floats;

	for (size_t i = 0; alike && i < a->num_plans; i++)
		alike = is_alike(&a->plans[i].out, &b->plans[i].out);
	return alike;
}

bool pipeline_keeps_alike(const struct pipeline *a, const struct pipeline *b)
{
	bool alike = true;

	for (size_t i = 0; alike && i < a->num_plans; i++)
		alike = plan_keeps_alike(&a->plans[i], &b->plans[i]);
	return alike;
}

/* The lines in which a compiler says what is wrong; the first of them. */
static void pick_errors(const char *messages, char *out, size_t size)
{
	size_t used = 0;

	*out = '\0';
	for (const char *line = messages; line && *line;) {
		size_t length = strcspn(line, "\n");
		char *found = memmem(line, length, "error:", 6);

		if (found && used + length + 3 < size)
			used += (size_t)snprintf(out + used, size - used,
						 "%s%.*s", used ? "; " : "",
						 (int)length, line);
		line += length + (line[length] == '\n');
	}
	if (!used)
		snprintf(out, size, "%.*s", (int)strcspn(messages, "\n"),
			 messages);
}

static const struct own *first_own(const struct chain *chain)
{
	size_t i = 0;

	while (!chain->nodes[i].own)
		i++;
	return chain->nodes[i].own;
}

static int refuse_own(const struct chain *chain, int r, const char *messages,
		      const struct complaint *c)
{
	const struct own *own = first_own(chain);
	char errors[400];

	pick_errors(messages ? messages : strerror(-r), errors, sizeof(errors));
	complain(c, own->at, "%s of %s: %s", own->function, own->file, errors);
	return r == -ENOSYS ? r : -EINVAL;
}

static int compile_tail(struct plan *plan, struct jit *jit,
			const struct complaint *c)
{
	struct tail *tail = plan->tail;
	char *messages = NULL;
	int r = 0;

	for (size_t i = 0; !r && i < plan->chain->num_nodes; i++) {
		if (plan->chain->nodes[i].own)
			r = own_load(plan->chain->nodes[i].own, c);
	}
	if (r)
		return r;
	if (tail->is_own)
		r = tail_emit(tail);
	if (!r) {
		r = jit_add(jit, tail, &messages);
		if (r && tail->is_own)
			r = refuse_own(plan->chain, r, messages, c);
	}
	free(messages);
	return r;
}

int pipeline_compile(struct pipeline *p, struct jit *jit, char *error,
		     size_t error_size)
{
	struct complaint c = { p->text, error, error_size };
	int r = 0;

	if (error_size)
		*error = '\0';
	for (size_t i = 0; !r && i < p->num_plans; i++) {
		if (p->plans[i].tail)
			r = compile_tail(&p->plans[i], jit, &c);
	}
	return r;
}

/*
 * More than there can ever be would end the process when it is full, some epoch
 * later. What others hold now they may give back.
 */
static int check_memory(uint64_t size, struct log *log)
{
	struct memory m;
	double mib = (double)size / (1 << 20);

	if (memory_read("", &m) || size <= m.available)
		return 0;
	if (size > m.total) {
		log_error(log,
			  "cache() of %.0f MiB: there are %.0f MiB of memory",
			  mib, (double)m.total / (1 << 20));
		return -ENOMEM;
	}
	log_warning(log,
		    "cache() of %.0f MiB: only %.0f MiB of memory are free "
		    "now (%s)",
		    mib, (double)m.available / (1 << 20), m.why);
	return 0;
}

int pipeline_keep(struct pipeline *p, struct log *log)
{
	uint64_t size = 0;
	int r;

	for (size_t i = 0; i < p->num_plans; i++)
		if (!add_ok(size, p->plans[i].cache_size, &size))
			size = UINT64_MAX;
	if (!size)
		return 0;
	r = check_memory(size, log);
	if (r)
		return r;
	for (size_t i = 0; !r && i < p->num_plans; i++)
		if (p->plans[i].cache_size)
			r = stash_open(p->plans[i].cache_size,
				       &p->plans[i].stash);
	if (r)
		log_error(log, "cache() of %.0f MiB: %s",
			  (double)size / (1 << 20), strerror(-r));
	return r;
}

void pipeline_keep_with(struct pipeline *p, const struct pipeline *owner)
{
	for (size_t i = 0; i < p->num_plans; i++) {
		p->plans[i].stash = owner->plans[i].stash;
		p->plans[i].is_lent = true;
	}
}

void pipeline_kept(const struct pipeline *p, struct stash_stats *out)
{
	struct stash_stats one;

	*out = (struct stash_stats){ 0 };
	for (size_t i = 0; i < p->num_plans; i++) {
		if (!p->plans[i].stash)
			continue;
		stash_stats(p->plans[i].stash, &one);
		out->size += one.size;
		out->used += one.used;
		out->values += one.values;
		out->hits += one.hits;
	}
}

const char *pipeline_engine(const struct pipeline *p, size_t i)
{
	const struct tail *tail = p->plans[i].tail;

	return tail ? tail_engine_name(tail) : "none";
}

size_t pipeline_num_outputs(const struct pipeline *p)
{
	return p->num_plans;
}

const struct pipeline_output *pipeline_output_at(const struct pipeline *p,
						 size_t i)
{
	return i < p->num_plans ? &p->plans[i].out : NULL;
}

int pipeline_worker_open(const struct pipeline *p, struct pipeline_worker **out)
{
	struct pipeline_worker *w = calloc(1, sizeof(*w));
	int r = w ? frame_open(&w->frame) : -ENOMEM;

	if (!r) {
		w->draws = calloc(p->max_geometry + 1, sizeof(*w->draws));
		w->operands = calloc(p->max_floats + 1, sizeof(*w->operands));
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
static int draw_all(const struct call *call)
{
	const struct chain *chain = call->plan->chain;
	const struct type *want = chain_type(chain);
	struct size size = { call->value->width, call->value->height };
	struct draw *draw = call->worker->draws;

	for (size_t i = 0; i < chain->num_nodes; i++) {
		if (chain->nodes[i].op->kind != OP_GEOMETRY)
			continue;
		draw_one(&chain->nodes[i], call->row, size, draw);
		size = draw++->to;
	}
	if (size.width == want->width && size.height == want->height)
		return 0;
	snprintf(call->worker->message, sizeof(call->worker->message),
		 "an image of %ux%u comes out as %ux%u, but `%s' is %ux%u as "
		 "sample 0; an operation that sets the size is missing",
		 call->value->width, call->value->height, size.width,
		 size.height, chain->name, want->width, want->height);
	return -EINVAL;
}

static bool changes_size(const struct draw *draw)
{
	return draw->to.width != draw->from.width ||
	       draw->to.height != draw->from.height;
}

/* The image as it is stored, or as it was kept. */
static int start_image(struct call *call)
{
	const struct plan *plan = call->plan;
	struct frame *f = call->worker->frame;
	const void *kept;

	call->found = plan->stash ? stash_get(plan->stash, call->row->id, &kept)
				  : STASH_REFUSED;
	if (call->found == STASH_VALUE) {
		if (frame_resume(f, call->value, plan->quality, kept,
				 call->decode_ns))
			return 0;
		call->found = STASH_REFUSED;
	}
	return frame_start(f, call->value, plan->quality, call->decode_ns);
}

/*
 * Tells the frame what becomes of the image. With BETON_STAGE_DECODE only what
 * the first resize sees, so that there is something to decode; but what is kept
 * is made whole.
 */
static int run_geometry(const struct call *call)
{
	const struct plan *plan = call->plan;
	size_t i = call->found == STASH_VALUE ? plan->cache_at : 0;
	const struct draw *draw = call->worker->draws + i;
	struct frame *f = call->worker->frame;
	bool resized = false;
	int r = 0;

	for (; !r && i <= plan->num_geometry; i++, draw++) {
		if (i == plan->cache_at && call->found == STASH_NOTHING)
			frame_keep(f, plan->stash, call->row->id);
		if (i == plan->num_geometry)
			break;
		frame_crop(f, &draw->from);
		if (changes_size(draw)) {
			if (resized && i >= plan->cache_at &&
			    call->until == BETON_STAGE_DECODE)
				break;
			r = frame_resample(f, draw->how, draw->to);
			resized = true;
		}
		if (draw->mirror)
			frame_mirror(f);
	}
	return r;
}

static int run_tail(const struct call *call)
{
	struct pipeline_worker *w = call->worker;
	const struct tail *tail = call->plan->tail;
	const struct type *type = chain_type(call->plan->chain);
	struct tail_image to = {
		.size = { type->width, type->height },
		.operands = tail_operands(tail, call->row, w->operands),
		.out = call->out,
	};
	struct band band;
	int r;

	while (!(r = frame_next(w->frame, &band, &to.mirror)) && band.rows)
		tail_band(tail, &to, &band);
	return r;
}

/* Operations of files have nothing but their code. */
static int check_code(const struct call *call)
{
	const struct tail *tail = call->plan->tail;

	if (!tail->is_own || atomic_load(&tail->kernel))
		return 0;
	snprintf(call->worker->message, sizeof(call->worker->message),
		 "`%s' has not been compiled", tail->chain->name);
	return -ENOSYS;
}

static int run_image(struct call *call)
{
	struct pipeline_worker *w = call->worker;
	int r = check_code(call);

	if (r)
		return r;
	r = start_image(call);
	if (!r) {
		r = draw_all(call);
		if (r)
			return r;
		r = run_geometry(call);
	}
	if (!r)
		r = call->until == BETON_STAGE_DECODE ? frame_decode(w->frame)
						      : run_tail(call);
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

static int run_array(const struct call *call)
{
	const struct plan *plan = call->plan;
	const struct pipeline_value *v = call->value;
	size_t from, to, count;
	uint8_t *out = call->out;

	if (v->size != plan->value_size) {
		snprintf(call->worker->message, sizeof(call->worker->message),
			 "%llu bytes where the dataset announces %llu",
			 (unsigned long long)v->size,
			 (unsigned long long)plan->value_size);
		return -EINVAL;
	}
	if (call->until == BETON_STAGE_DECODE)
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

int pipeline_run(const struct pipeline *p, struct pipeline_worker *w, size_t i,
		 const struct pipeline_value *value,
		 const struct pipeline_row *row, enum beton_stage until,
		 void *row_out, uint64_t *decode_ns)
{
	struct call call = {
		.plan = &p->plans[i],
		.worker = w,
		.value = value,
		.row = row,
		.until = until,
		.out = row_out,
		.decode_ns = decode_ns,
	};

	w->message[0] = '\0';
	if (call.plan->out.ragged) {
		snprintf(w->message, sizeof(w->message),
			 "rows of `%s' have no fixed size",
			 call.plan->out.name);
		return -EINVAL;
	}
	if (until == BETON_STAGE_READ)
		return 0;
	return call.plan->tail ? run_image(&call) : run_array(&call);
}
