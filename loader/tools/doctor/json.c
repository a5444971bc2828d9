/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>

#include "loader/tools/doctor/report.h"

/* JSON has no infinity. */
static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *figure(const struct figure *f)
{
	if (!f->known)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:I}", "samples_per_s",
			 number(f->rate), "spread", number(f->spread),
			 "cpu_us_per_sample", number(f->cpu_us),
			 "bytes_per_sample", number(f->bytes), "runs",
			 (json_int_t)f->runs);
}

static json_t *ladder(const struct evidence *e)
{
	static const char *const names[RUNGS] = {
		[RUNG_CONSTANT] = "constant",	[RUNG_ALL] = "all",
		[RUNG_TRANSFORM] = "no_upload", [RUNG_DECODE] = "no_transform",
		[RUNG_READ] = "no_decode",	[RUNG_COLD] = "cold",
	};
	json_t *o = json_object();

	for (enum rung r = 0; r < RUNGS; r++)
		json_object_set_new(o, names[r], figure(&e->ladder[r]));
	json_object_set_new(o, "upload", figure(&e->upload));
	return o;
}

static json_t *variants(const struct evidence *e)
{
	static const char *const names[VARIANTS] = {
		"same",	   "optimized", "raw",	  "resized",
		"quality", "draft",	"cached", "gpu",
	};
	json_t *o = json_object();

	for (enum variant v = 0; v < VARIANTS; v++)
		json_object_set_new(o, names[v], figure(&e->variants[v]));
	return o;
}

static json_t *ops(const struct evidence *e)
{
	json_t *list = json_array();

	for (size_t i = 0; i < e->num_ops; i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:o}", "operation",
						e->ops[i].written, "without",
						figure(&e->ops[i].without)));
	return list;
}

static json_t *sweep(const struct evidence *e)
{
	json_t *list = json_array();

	for (size_t i = 0; i < e->num_sweep; i++)
		json_array_append_new(
			list, json_pack("{s:I, s:o}", "workers",
					(json_int_t)e->sweep[i].workers,
					"figure", figure(&e->sweep[i].figure)));
	return list;
}

static json_t *limits(const struct evidence *e)
{
	json_t *o = json_object();

	for (enum term t = 0; t < TERMS; t++)
		json_object_set_new(o, report_term(t),
				    number(model_term(&e->model, t)));
	return o;
}

static json_t *cpu(const struct evidence *e)
{
	return json_pack(
		"{s:I, s:I, s:o, s:s, s:I, s:I, s:o, s:o, s:s, s:o, s:o, s:o, s:o}",
		"online", (json_int_t)e->cpu.online, "allowed",
		(json_int_t)e->cpu.allowed, "quota", number(e->cpu.quota),
		"quota_of", e->cpu.quota_of, "nodes", (json_int_t)e->cpu.nodes,
		"nodes_used", (json_int_t)e->cpu.nodes_used, "mhz",
		number(e->cpu.mhz), "mhz_max", number(e->cpu.mhz_max),
		"governor", e->cpu.governor, "others_idle",
		number(e->others_idle), "others", number(e->others), "stolen",
		number(e->stolen), "throttled", number(e->throttled));
}

static json_t *memory(const struct evidence *e)
{
	return json_pack("{s:I, s:I, s:s, s:o, s:I, s:I}", "total",
			 (json_int_t)e->memory.size.total, "available",
			 (json_int_t)e->memory.size.available, "why",
			 e->memory.size.why, "bytes_per_s",
			 number(e->memory_rate), "memlock",
			 (json_int_t)(e->memory.memlock >> 1), "nofile",
			 (json_int_t)(e->memory.files >> 1));
}

static json_t *disk(const struct evidence *e)
{
	return json_pack(
		"{s:s, s:s, s:b, s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"type", e->disk.type, "source", e->disk.source, "network",
		e->disk.network, "rotates", e->disk.rotates, "size",
		(json_int_t)e->file_size, "resident", number(e->disk.resident),
		"small_bytes_per_s", number(e->small.bytes),
		"small_reads_per_s", number(e->small.reads), "small_latency_s",
		number(e->small.latency_s), "large_bytes_per_s",
		number(e->large.bytes), "misses",
		number(model_misses(&e->model)), "room", number(e->model.room));
}

static json_t *gpus(const struct evidence *e)
{
	json_t *list = json_array();

	for (size_t i = 0; i < e->num_gpus; i++) {
		const struct machine_gpu *g = &e->gpus[i];

		json_array_append_new(
			list,
			json_pack(
				"{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b}",
				"name", g->name, "busy", g->busy, "memory_used",
				g->memory_used, "clock", g->clock, "clock_max",
				g->clock_max, "p_state", g->state, "link",
				g->link, "link_max", g->link_max, "width",
				g->width, "width_max", g->width_max, "slowed",
				machine_gpu_is_slowed(g)));
	}
	return list;
}

static json_t *watch(const struct evidence *e)
{
	const struct watch *w = &e->watch;

	if (!w->known)
		return json_null();
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:i}", "seconds",
		number(w->seconds), "main_busy", number(w->main_busy),
		"loader_cores", number(w->loader_cores), "other_cores",
		number(w->other_cores), "samples_per_s", number(w->rate),
		"is_guess", w->rate_is_guess, "constant_samples_per_s",
		number(w->own_rate), "constant_main_busy",
		number(w->main_busy_alone), "gpu_busy", w->gpu_busy);
}

static json_t *ranks(const struct evidence *e)
{
	json_t *list = json_array();

	for (size_t i = 0; i < e->num_ranks; i++)
		json_array_append_new(
			list,
			json_pack("{s:I, s:o, s:o}", "rank",
				  (json_int_t)e->ranks[i].rank, "batches_per_s",
				  number(e->ranks[i].rate), "ready",
				  number(e->ranks[i].ready)));
	return list;
}

static json_t *notes(const struct evidence *e)
{
	json_t *list = json_array();

	for (size_t i = 0; i < e->num_notes; i++)
		json_array_append_new(list, json_string(e->notes[i]));
	return list;
}

static json_t *scores(const struct evidence *e)
{
	json_t *o = json_object();
	const char *name;
	double score;

	for (size_t i = 0; (name = verdict_row(e, i, &score)); i++)
		json_object_set_new(o, name, number(score));
	return o;
}

static json_t *evidence(const struct diagnosis *d)
{
	char scaling[VERDICT_TEXT_SIZE];
	const struct evidence *e = d->evidence;
	json_t *o = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "sentence",
		d->verdict.text, "cause", d->verdict.cause, "path", e->path,
		"spec", e->spec, "source", e->source, "delivery", e->delivery,
		"jit", e->jit, "samples", number(e->model.samples), "seconds",
		number(e->seconds));

	json_object_set_new(o, "measured_samples_per_s",
			    number(e->ladder[RUNG_ALL].rate));
	json_object_set_new(o, "limits", limits(e));
	json_object_set_new(o, "scores", scores(e));
	json_object_set_new(o, "cpu", cpu(e));
	json_object_set_new(o, "memory", memory(e));
	json_object_set_new(o, "disk", disk(e));
	json_object_set_new(o, "gpus", gpus(e));
	json_object_set_new(o, "trainer", watch(e));
	json_object_set_new(o, "ranks", ranks(e));
	verdict_ranks(e, scaling, sizeof(scaling));
	json_object_set_new(o, "scaling", json_string(scaling));
	json_object_set_new(o, "workers",
			    json_integer((json_int_t)e->model.workers));
	json_object_set_new(o, "notes", notes(e));
	return o;
}

static json_t *stages(const struct evidence *e)
{
	struct stage_share s[SHARES_MAX];
	size_t n = report_shares(e, s);
	json_t *list = json_array(), *o;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:o, s:o}", "name", s[i].name,
					"cpu_us_per_sample", number(s[i].us),
					"share", number(s[i].share)));
	o = json_pack("{s:o, s:o, s:o, s:o, s:o}", "cpu", list, "ladder",
		      ladder(e), "without", ops(e), "workers", sweep(e),
		      "variants", variants(e));
	return o;
}

static json_t *fixes(const struct diagnosis *d)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->num_fixes; i++) {
		const struct fix *f = &d->fixes[i];

		json_array_append_new(
			list, json_pack("{s:s, s:o, s:s, s:s, s:s, s:s}",
					"option", f->option, "predicted_gain",
					number(f->gain), "why", f->why, "cost",
					f->cost, "setting", f->setting,
					"changes", report_changes(f->changes)));
	}
	return list;
}

static json_t *applied(const struct diagnosis *d)
{
	json_t *list = json_array();

	if (!d->applied) {
		json_decref(list);
		return json_null();
	}
	for (size_t i = 0; i < d->num_fixes; i++) {
		enum apply_fate fate = d->applied->fates[i];

		if (fate != APPLY_NONE)
			json_array_append_new(
				list, json_pack("{s:s, s:s}", "setting",
						d->fixes[i].setting, "fate",
						apply_fate_name(fate)));
	}
	return json_pack("{s:s, s:o}", "file", d->applied->path, "settings",
			 list);
}

void report_json(const struct diagnosis *d, FILE *out)
{
	json_t *o = json_pack("{s:s, s:o, s:o, s:o, s:o}", "verdict",
			      d->verdict.name, "evidence", evidence(d),
			      "stages", stages(d->evidence), "fixes", fixes(d),
			      "applied", applied(d));

	json_dumpf(o, out, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	fputc('\n', out);
	json_decref(o);
}
