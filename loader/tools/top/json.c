/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/top/json.h"

#include <errno.h>
#include <jansson.h>

/* What one reading cannot say. */
static json_t *rate(const struct top_view *v, double number)
{
	return v->seconds > 0 ? json_real(number) : json_null();
}

/* The same for a rank that says nothing. */
static json_t *figure(const struct top_rank_view *r, double number)
{
	return r->is_active ? json_real(number) : json_null();
}

static json_t *stage(const struct top_rank_view *r)
{
	return r->is_active && r->wait_share > 0
		       ? json_string(top_stage_name(r->stage))
		       : json_null();
}

static json_t *json_of_rank(const struct top_rank_view *r)
{
	const struct top_rank *n = r->now;

	return json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}",
		"rank", (json_int_t)n->rank, "world", (json_int_t)n->world,
		"loaders", (json_int_t)n->loaders, "epoch",
		(json_int_t)n->epoch, "number", (json_int_t)n->number, "idle_s",
		(json_int_t)n->idle_s, "failed_rows",
		(json_int_t)n->failed_rows, "samples_per_s",
		figure(r, r->samples_per_s), "queue_fill",
		figure(r, r->queue_fill), "wait_share",
		figure(r, r->wait_share), "waits_for", stage(r));
}

static json_t *json_of_job(const struct top_view *v,
			   const struct top_job_view *job)
{
	const struct top_rank_view *w = &job->worst;
	char text[TOP_SENTENCE_SIZE];
	json_t *ranks = json_array();

	for (size_t i = 0; i < job->now->num_ranks; i++)
		json_array_append_new(ranks, json_of_rank(&job->ranks[i]));
	top_say_job(job, true, text);
	return json_pack(
		"{s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"name", job->now->name, "verdict",
		top_verdict_name(job->verdict), "text", text, "connections",
		(json_int_t)job->now->connections, "idle_s",
		(json_int_t)job->now->idle_s, "failed_rows",
		(json_int_t)job->failed_rows, "batches_per_s",
		rate(v, job->batches_per_s), "bytes_per_s",
		rate(v, job->bytes_per_s), "late_share",
		rate(v, job->late_share), "samples_per_s",
		figure(w, job->samples_per_s), "queue_fill",
		figure(w, w->queue_fill), "wait_share",
		figure(w, w->wait_share), "waits_for", stage(w), "ranks",
		ranks);
}

static json_t *json_of_cache(const struct top_view *v)
{
	const struct top_reading *n = v->now;

	return json_pack(
		"{s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "mode",
		n->mode, "limit", (json_int_t)n->limit, "used",
		(json_int_t)n->used, "values_per_s", rate(v, v->values_per_s),
		"hit_share", rate(v, v->hit_share), "late_share",
		rate(v, v->late_share), "miss_share", rate(v, v->miss_share),
		"reads_per_s", rate(v, v->reads_per_s), "read_bytes_per_s",
		rate(v, v->read_bytes_per_s), "amplification",
		v->amplification > 0 ? json_real(v->amplification)
				     : json_null());
}

static json_t *json_of_delivery(const struct top_view *v)
{
	return json_pack("{s:o, s:o, s:o}", "batches_per_s",
			 rate(v, v->batches_per_s), "bytes_per_s",
			 rate(v, v->bytes_per_s), "late_share",
			 rate(v, v->batches_late_share));
}

/* A path that is no UTF-8 is not told. */
static json_t *json_of_path(const char *path)
{
	json_t *o = json_string(path);

	return o ? o : json_null();
}

int top_json(const struct top_view *v, const char *mount, bool in_lines,
	     FILE *out)
{
	json_t *jobs = json_array(), *o;
	int r;

	for (size_t i = 0; i < v->num_jobs; i++)
		json_array_append_new(jobs, json_of_job(v, &v->jobs[i]));
	o = json_pack("{s:i, s:o, s:f, s:I, s:I, s:I, s:o, s:o, s:o}",
		      "version", 1, "mount", json_of_path(mount), "seconds",
		      v->seconds, "uptime_s", (json_int_t)v->now->uptime_s,
		      "readers", (json_int_t)v->now->readers, "slot_bytes",
		      (json_int_t)v->now->slot_bytes, "cache", json_of_cache(v),
		      "delivery", json_of_delivery(v), "jobs", jobs);
	r = o ? json_dumpf(o, out, in_lines ? JSON_INDENT(2) : JSON_COMPACT)
	      : -1;
	json_decref(o);
	fputc('\n', out);
	return r ? -ENOMEM : 0;
}
