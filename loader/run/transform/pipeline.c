/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/transform/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/memory/memory.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/log.h"
#include "loader/pipeline/graph/graph.h"
#include "loader/pipeline/op/operands.h"
#include "loader/pipeline/op/user_op.h"
#include "loader/pipeline/text/parse.h"
#include "loader/pipeline/text/schedule.h"
#include "loader/run/jit/emit_device.h"
#include "loader/run/jit/jit.h"
#include "loader/run/transform/lists.h"
#include "loader/run/transform/output_plan.h"
#include "loader/run/transform/worker.h"
#include "loader/util/value_store.h"

struct pipeline {
	char *text;
	struct graph graph;
	struct output_plan *plans;
	size_t num_plans;
	size_t max_geometry; /* largest of any plan */
	size_t max_floats;
	uint64_t end; /* first epoch with other numbers */
};

static size_t max_floats(const struct pipeline *p)
{
	size_t max = 0;

	for (size_t i = 0; i < p->num_plans; i++)
		max = max_u64(max, output_plan_max_floats(&p->plans[i]));
	return max;
}

static int plan_all(struct pipeline *p, const struct pipeline_field *fields,
		    const struct diagnostic *c)
{
	int r = 0;

	p->plans = calloc(p->graph.num_chains + 1, sizeof(*p->plans));
	if (!p->plans)
		return -ENOMEM;
	for (size_t i = 0; !r && i < p->graph.num_chains; i++) {
		const struct chain *chain = &p->graph.chains[i];
		struct output_plan *plan = &p->plans[p->num_plans];

		if (chain->dropped)
			continue;
		p->num_plans++;
		r = output_plan_init(plan, chain, &fields[chain->field], c);
		p->max_geometry = max_u64(p->max_geometry,
					  output_plan_num_geometry(plan));
	}
	p->max_floats = max_floats(p);
	return r;
}

int pipeline_parse(const char *text, const struct pipeline_field *fields,
		   size_t num_fields, uint64_t epoch, struct pipeline **out,
		   char *error, size_t error_size)
{
	struct diagnostic c = { text ? text : "", error, error_size };
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
		output_plan_fini(&p->plans[i]);
	free(p->plans);
	free(p->text);
	graph_fini(&p->graph);
	free(p);
}

void pipeline_put_on(struct pipeline *p, int gpu)
{
	for (size_t i = 0; i < p->num_plans; i++) {
		struct pipeline_output *out = &p->plans[i].out;

		if (out->device < 0 && !out->ragged && !out->is_list)
			out->device = gpu;
	}
}

int pipeline_split(struct pipeline *p, bool autos)
{
	int r = 0;

	for (size_t i = 0; !r && i < p->num_plans; i++) {
		if (autos || !output_plan_is_auto(&p->plans[i]))
			r = output_plan_split(&p->plans[i]);
	}
	p->max_floats = max_floats(p);
	return r;
}

int pipeline_cut(struct pipeline *p)
{
	int r = 0;

	for (size_t i = 0; !r && i < p->num_plans; i++)
		r = output_plan_cut(&p->plans[i]);
	p->max_floats = max_floats(p);
	return r;
}

int pipeline_plan_finish(struct pipeline *p)
{
	int r = 0;

	for (size_t i = 0; !r && i < p->num_plans; i++)
		r = output_plan_finish(&p->plans[i]);
	p->max_floats = max_floats(p);
	return r;
}

bool pipeline_has_choice(const struct pipeline *p)
{
	for (size_t i = 0; i < p->num_plans; i++) {
		if (pipeline_has_rest(p, i) &&
		    output_plan_is_auto(&p->plans[i]))
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
	return p->plans[i].rest.num_operands;
}

void pipeline_operands(const struct pipeline *p, size_t i,
		       const struct pipeline_row *row, float *out)
{
	operands_fill(&p->plans[i].rest, row, out);
}

uint64_t pipeline_end(const struct pipeline *p)
{
	return p->end;
}

static bool is_alike(const struct pipeline_output *a,
		     const struct pipeline_output *b)
{
	return a->field == b->field && a->ragged == b->ragged &&
	       a->is_list == b->is_list && a->device == b->device &&
	       a->plain == b->plain && a->ndim == b->ndim &&
	       !strcmp(a->name, b->name) && !strcmp(a->dtype, b->dtype);
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

bool pipeline_caches_alike(const struct pipeline *a, const struct pipeline *b)
{
	bool alike = true;

	for (size_t i = 0; alike && i < a->num_plans; i++)
		alike = output_plan_keeps_alike(&a->plans[i], &b->plans[i]);
	return alike;
}

/* Copies the compiler's error lines, as far as they fit. */
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

static const struct user_op *first_own(const struct chain *chain)
{
	size_t i = 0;

	while (!chain->nodes[i].custom)
		i++;
	return chain->nodes[i].custom;
}

static int refuse_own(const struct chain *chain, int r, const char *messages,
		      const struct diagnostic *c)
{
	const struct user_op *own = first_own(chain);
	char errors[400];

	pick_errors(messages ? messages : strerror(-r), errors, sizeof(errors));
	complain(c, own->at, "%s of %s: %s", own->function, own->file, errors);
	return r == -ENOSYS ? r : -EINVAL;
}

static int compile_pass(struct pass *pass, struct jit *jit,
			const struct diagnostic *c)
{
	struct pointwise *stage = &pass->pointwise;
	char *messages = NULL;
	int r = 0;

	for (size_t i = 0; !r && i < pass->chain.num_nodes; i++) {
		if (pass->chain.nodes[i].custom)
			r = user_op_load(pass->chain.nodes[i].custom, c);
	}
	if (r)
		return r;
	if (stage->is_custom)
		r = pointwise_emit(stage);
	if (!r) {
		r = jit_add(jit, stage, &messages);
		if (r && r != -ECANCELED && stage->is_custom)
			r = refuse_own(&pass->chain, r, messages, c);
	}
	free(messages);
	return r;
}

int pipeline_compile(struct pipeline *p, struct jit *jit, char *error,
		     size_t error_size)
{
	struct diagnostic c = { p->text, error, error_size };
	int r = 0;

	if (error_size)
		*error = '\0';
	for (size_t i = 0; !r && i < p->num_plans; i++) {
		struct output_plan *plan = &p->plans[i];

		for (size_t k = 0; !r && k < plan->num_passes; k++)
			r = compile_pass(&plan->passes[k], jit, &c);
		for (size_t k = 0; !r && k < plan->num_nested; k++)
			r = compile_pass(&plan->nested[k], jit, &c);
		if (!r && pipeline_has_finish(p, i))
			r = compile_pass(&plan->finish, jit, &c);
	}
	return r;
}

/*
 * A full cache that is larger than all memory would end the process. Memory in
 * use by other processes can become free, so its use only causes a warning.
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

int pipeline_cache(struct pipeline *p, struct log *log)
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
			r = value_store_open(p->plans[i].cache_size,
					     &p->plans[i].cache);
	if (r)
		log_error(log, "cache() of %.0f MiB: %s",
			  (double)size / (1 << 20), strerror(-r));
	return r;
}

void pipeline_cache_with(struct pipeline *p, const struct pipeline *owner)
{
	for (size_t i = 0; i < p->num_plans; i++) {
		p->plans[i].cache = owner->plans[i].cache;
		p->plans[i].is_shared = true;
	}
}

void pipeline_keep_entries(struct pipeline *p, struct entry_store *store)
{
	for (size_t i = 0; i < p->num_plans; i++)
		p->plans[i].entries = store;
}

void pipeline_cached(const struct pipeline *p, struct value_store_stats *out)
{
	struct value_store_stats one;

	*out = (struct value_store_stats){ 0 };
	for (size_t i = 0; i < p->num_plans; i++) {
		if (!p->plans[i].cache)
			continue;
		value_store_stats(p->plans[i].cache, &one);
		out->size += one.size;
		out->used += one.used;
		out->values += one.values;
		out->hits += one.hits;
	}
}

const char *pipeline_engine(const struct pipeline *p, size_t i)
{
	const struct output_plan *plan = &p->plans[i];

	return plan->num_passes
		       ? pointwise_engine_name(output_plan_slowest(plan))
		       : "none";
}

uint64_t pipeline_row_size(const struct pipeline *p)
{
	uint64_t all = 0;

	for (size_t i = 0; i < p->num_plans; i++) {
		const struct pipeline_output *o = &p->plans[i].out;

		if (!add_ok(all, o->made_size, &all) ||
		    !add_ok(all, o->part_size, &all))
			return UINT64_MAX;
	}
	return all;
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
	return worker_open(p->max_geometry, p->max_floats, out);
}

void pipeline_worker_close(struct pipeline_worker *w)
{
	worker_close(w);
}

const char *pipeline_worker_message(const struct pipeline_worker *w)
{
	return worker_message(w);
}

int pipeline_run(const struct pipeline *p, struct pipeline_worker *w, size_t i,
		 const struct pipeline_value *value,
		 const struct pipeline_row *row, enum beton_stage until,
		 void *row_out, uint64_t *decode_ns)
{
	const struct worker_job job = {
		.plan = &p->plans[i],
		.value = value,
		.row = row,
		.until = until,
		.out = row_out,
		.decode_ns = decode_ns,
	};

	return worker_run(w, &job);
}

uint64_t pipeline_list_size(const struct pipeline *p, size_t i, uint64_t size)
{
	const struct output_plan *plan = &p->plans[i];
	uint64_t rows = lists_most(plan->chain, size);

	return mul_ok(rows, plan->out.item_size, &size) ? size : UINT64_MAX;
}

int pipeline_run_list(const struct pipeline *p, struct pipeline_worker *w,
		      size_t i, const struct pipeline_value *value,
		      const struct pipeline_row *row, enum beton_stage until,
		      void *out, uint64_t *rows)
{
	const struct worker_job job = {
		.plan = &p->plans[i],
		.value = value,
		.row = row,
		.until = until,
		.out = out,
		.rows = rows,
	};

	return worker_run(w, &job);
}

int pipeline_pair(const struct pipeline *p, struct pipeline_worker *w, size_t i,
		  const struct pipeline_pair *pair, void *row_out)
{
	return worker_pair(w, &p->plans[i], pair, row_out);
}

bool pipeline_has_finish(const struct pipeline *p, size_t i)
{
	return p->plans[i].finish.head.num_nodes;
}

int pipeline_finish(const struct pipeline *p, struct pipeline_worker *w,
		    size_t i, const void *sent, const struct pipeline_row *row,
		    void *row_out)
{
	const struct output_plan *plan = &p->plans[i];

	if (pipeline_has_finish(p, i))
		return worker_finish(w, plan, sent, row, row_out);
	memcpy(row_out, sent, plan->out.made_size);
	return 0;
}
