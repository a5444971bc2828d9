/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/top/json.h"

#include <errno.h>

#include "loader/tools/top/facts.h"

static json_t *json_of_job(const struct top_view *v,
			   const struct top_job_view *job)
{
	json_t *ranks = json_array(), *o;
	struct top_row row;

	for (size_t i = 0; i < job->now->num_ranks; i++) {
		top_row_fill(v, job, &job->ranks[i], &row);
		json_array_append_new(ranks,
				      fact_json(json_object(), top_row_facts,
						TOP_RANK, &row));
	}
	top_row_fill(v, job, NULL, &row);
	o = fact_json(json_object(), top_row_facts, TOP_JOB, &row);
	json_object_set_new(o, "ranks", ranks);
	return o;
}

static json_t *json_of_cache(const struct top_view *v)
{
	json_t *o = fact_json(json_object(), top_cache_facts, 0, v->now);

	fact_json(o, top_value_facts, 0, v);
	return fact_json(o, top_disk_facts, 0, v);
}

static json_t *json_of_budget(const struct top_view *v)
{
	json_t *o = fact_json(json_object(), top_budget_facts, 0, v->now);

	json_object_set_new(o, "by",
			    fact_json(json_object(), top_use_facts, 0, v->now));
	return o;
}

static json_t *json_of_networks(const struct top_view *v)
{
	json_t *all = json_array();

	for (size_t i = 0; i < v->num_networks; i++)
		json_array_append_new(all, fact_json(json_object(),
						     top_network_facts, 0,
						     &v->networks[i]));
	return all;
}

/* null if the path is not UTF-8. */
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
	o = json_pack("{s:i, s:o, s:f, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}",
		      "version", 1, "mount", json_of_path(mount), "seconds",
		      v->seconds, "uptime_s", (json_int_t)v->now->uptime_s,
		      "readers", (json_int_t)v->now->readers, "slot_bytes",
		      (json_int_t)v->now->slot_bytes, "cache", json_of_cache(v),
		      "network", json_of_networks(v), "budget",
		      json_of_budget(v), "delivery",
		      fact_json(json_object(), top_delivery_facts, 0, v),
		      "jobs", jobs);
	r = o ? json_dumpf(o, out, in_lines ? JSON_INDENT(2) : JSON_COMPACT)
	      : -1;
	json_decref(o);
	fputc('\n', out);
	return r ? -ENOMEM : 0;
}
