/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>

#include "loader/tools/doctor/report.h"

/* JSON has no infinity: null. */
static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *object_of(const struct fact *facts, const void *thing)
{
	return fact_json(json_object(), facts, 0, thing);
}

static json_t *figure(const struct figure *f)
{
	return f->known ? object_of(facts_figure, f) : json_null();
}

static json_t *ladder(const struct evidence *e)
{
	json_t *o = json_object();

	for (enum rung r = 0; r < RUNGS; r++)
		json_object_set_new(o, report_rung_key(r),
				    figure(&e->ladder[r]));
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

static json_t *gpus(const struct evidence *e)
{
	json_t *list = json_array(), *o;

	for (size_t i = 0; i < e->num_gpus; i++) {
		o = object_of(facts_machine_gpu, &e->gpus[i]);
		json_object_set_new(
			o, "slowed",
			json_boolean(machine_gpu_is_slowed(&e->gpus[i])));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *ranks(const struct evidence *e)
{
	json_t *list = json_array();

	for (size_t i = 0; i < e->num_ranks; i++)
		json_array_append_new(list,
				      object_of(facts_rank_seen, &e->ranks[i]));
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
	struct facts f;
	json_t *o;

	facts_of(d, &f);
	verdict_ranks(e, scaling, sizeof(scaling));
	o = object_of(facts_head, &f);
	json_object_set_new(o, "limits", limits(e));
	json_object_set_new(o, "scores", scores(e));
	json_object_set_new(
		o, "cpu",
		fact_json(object_of(facts_cpu, &f), facts_others, 0, &f));
	json_object_set_new(o, "memory", object_of(facts_memory, &f));
	json_object_set_new(o, "disk", object_of(facts_disk, &f));
	json_object_set_new(o, "network",
			    e->network.known ? object_of(facts_network, &f)
					     : json_null());
	json_object_set_new(o, "gpus", gpus(e));
	json_object_set_new(o, "trainer",
			    e->watch.known ? object_of(facts_watch, &f)
					   : json_null());
	json_object_set_new(o, "ranks", ranks(e));
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
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list,
				      object_of(facts_stage_share, &s[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "cpu", list, "ladder",
			 ladder(e), "without", ops(e), "workers", sweep(e),
			 "variants", variants(e));
}

static json_t *fixes(const struct diagnosis *d)
{
	json_t *list = json_array(), *o;

	for (size_t i = 0; i < d->num_fixes; i++) {
		const struct fix *f = &d->fixes[i];

		o = object_of(facts_fix, f);
		json_object_set_new(o, "changes",
				    json_string(report_changes(f->changes)));
		json_array_append_new(list, o);
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
