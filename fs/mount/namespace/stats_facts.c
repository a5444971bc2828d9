/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/namespace/stats_facts.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/name.h"
#include "fs/source/local/net_stats.h"

#define NS_PER_S UINT64_C(1000000000)

static const char *const way_names[JOBS_WAYS] = {
	[JOBS_PAGE_CACHE] = "page_cache",
	[JOBS_DIRECT] = "direct",
	[JOBS_ZEROCOPY] = "zero_copy",
};

/* Bytes pass through the stages in this order. */
static const char *const stage_names[STATS_STAGES] = {
	[ENGINE_SOURCE] = "source",
	[ENGINE_CACHE] = "cache",
	[ENGINE_COLLATION] = "collation",
	[ENGINE_STAGES] = "delivery",
};

time_t stats_now(void)
{
	return clock_coarse_ms() / 1000;
}

char *stats_utf8(const char *name)
{
	json_t *utf8 = json_string(name);
	char *out = malloc(NAME_ESCAPED * strlen(name) + 2);

	if (out && utf8)
		strcpy(out, name);
	else if (out)
		name_escape(name, out);
	json_decref(utf8);
	return out;
}

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

void stream_facts_update(struct stream_facts *f)
{
	f->amplification = ratio(f->reader.counts.read_bytes,
				 f->reader.counts.delivered_bytes);
}

void stats_facts_free(struct stats_facts *f)
{
	for (size_t i = 0; i < STATS_STREAMS_MAX; i++)
		free(f->streams[i].dataset);
	for (size_t i = 0; i < f->num_networks; i++)
		free(f->networks[i].dataset);
	free(f->networks);
	free(f->ranks.list);
	free(f);
}

static int look_at_streams(const struct stats *stats,
			   const struct stats_subject *subject,
			   struct stats_facts *f)
{
	cleanup_free struct plan_reader *readers =
		calloc(STATS_STREAMS_MAX, sizeof(*readers));
	size_t n;

	if (!readers)
		return -ENOMEM;
	n = min_u64(STATS_STREAMS_MAX,
		    engine_readers(stats->engine, readers, STATS_STREAMS_MAX));
	for (size_t i = 0; i < n; i++) {
		struct stream_facts *s = &f->streams[f->num_streams];

		if (subject->number && readers[i].ds != subject->ds)
			continue;
		f->num_streams++;
		s->reader = readers[i];
		s->idle_s = readers[i].idle_ns / NS_PER_S;
		stream_facts_update(s);
		s->dataset = stats_utf8(
			stats->directory_of(stats->arg, readers[i].ds));
		if (!s->dataset)
			return -ENOMEM;
		spec_canonical(&readers[i].spec, s->spec);
	}
	return 0;
}

static void describe_network(struct network_facts *to, const struct dataset *ds,
			     const struct source_net_stats *s)
{
	*to = (struct network_facts){
		.rate = s->rate,
		.latency = 1e-9 * (double)s->latency_ns,
		.p50 = 1e-9 * (double)s->latency_p50_ns,
		.p99 = 1e-9 * (double)s->latency_p99_ns,
		.in_flight = s->in_flight,
		.waiting = s->waiting,
		.depth = s->depth,
		.requests = s->requests,
		.connections = s->connections,
		.retries = s->retries,
		.stalls = s->stalls,
		.hedges = s->hedges,
		.hedge_bytes = s->hedge_bytes,
		.throttled = s->throttled,
		.wire_bytes = s->wire_bytes,
		.payload_bytes = s->payload_bytes,
		.failures = s->failures,
		.is_out = s->is_out,
	};
	dataset_tier_stats(ds, &to->tier);
}

static int look_at_networks(const struct stats *stats,
			    const struct stats_subject *subject,
			    struct stats_facts *f)
{
	struct source_net_stats s;
	struct network_facts *to;
	size_t n;
	struct dataset *const *datasets = engine_datasets(stats->engine, &n);

	f->networks = calloc(n + 1, sizeof(*f->networks));
	if (!f->networks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if ((subject->number && datasets[i] != subject->ds) ||
		    !source_net_stats(datasets[i]->source, &s))
			continue;
		to = &f->networks[f->num_networks++];
		describe_network(to, datasets[i], &s);
		to->dataset = stats_utf8(
			stats->directory_of(stats->arg, datasets[i]));
		if (!to->dataset)
			return -ENOMEM;
	}
	return 0;
}

/* Reads one job by its number; 0: all jobs. */
int stats_ranks_read(const struct stats *stats,
		     const struct stats_subject *subject, uint64_t number,
		     struct stats_ranks *out)
{
	cleanup_free struct jobs_rank *report =
		calloc(JOBS_RANKS_MAX, sizeof(*report));

	out->list = calloc(JOBS_RANKS_MAX, sizeof(*out->list));
	if (!report || !out->list)
		return -ENOMEM;
	out->n = jobs_ranks(stats->jobs, subject->number, number, report,
			    JOBS_RANKS_MAX);
	for (size_t i = 0; i < out->n; i++) {
		const uint64_t *last = report[i].last.n;

		out->list[i] = (struct rank_facts){
			.report = report[i],
			.samples_per_s = 1e9 * ratio(last[FIGURE_SAMPLES],
						     last[FIGURE_OPEN_NS]),
			.wait_share = ratio(last[FIGURE_WAIT_NS],
					    last[FIGURE_WAIT_NS] +
						    last[FIGURE_TRAINER_NS]),
			.queue_fill = ratio(last[FIGURE_QUEUE_READY],
					    last[FIGURE_QUEUE_CAPACITY]),
		};
	}
	return 0;
}

static double seconds(const struct counters_sum *sum, double share)
{
	return 1e-9 * (double)histogram_quantile(sum->times, share);
}

static void describe_stage(struct stage_facts *s, size_t stage)
{
	s->name = stage_names[stage];
	s->p50 = seconds(&s->sum, 0.5);
	s->p90 = seconds(&s->sum, 0.9);
	s->p99 = seconds(&s->sum, 0.99);
	/* The duration of an item is time at work or a wait. */
	s->times.sum_ns = s->sum.busy_ns + s->sum.input_wait_ns;
	memcpy(s->times.counts, s->sum.times, sizeof(s->sum.times));
}

static void look_at_stages(const struct stats *stats,
			   const struct stats_subject *subject,
			   struct stats_facts *f)
{
	struct stage_facts *s = f->stages;

	for (size_t i = 0; i < STATS_STAGES; i++) {
		if (i == ENGINE_STAGES)
			jobs_delivery(stats->jobs, subject->number, &s->sum);
		else if (f->is_whole)
			s->sum = f->engine.stages[i];
		else if (i == ENGINE_SOURCE)
			counters_sum(&s->sum,
				     source_reads(subject->ds->source));
		else
			continue;
		describe_stage(s++, i);
	}
	f->num_stages = (size_t)(s - f->stages);
}

/* Figures that are counted for all datasets together. */
static void look_at_engine(const struct stats *stats, struct stats_facts *f)
{
	engine_stats(stats->engine, &f->engine);
	f->amplification = ratio(f->engine.cache.read_bytes,
				 f->engine.cache.delivered_bytes);
	engine_budget_stats(stats->engine, &f->budget);
	for (size_t i = 0; i < BUDGET_USES; i++)
		f->budget_used += f->budget.used[i];
}

static void look_at_rings(const struct stats *stats, struct stats_facts *f)
{
	const char *why;

	f->rings_why = "";
	if (!stats->rings)
		return;
	f->rings = atomic_load(&stats->rings->queues);
	f->ring_answered = atomic_load(&stats->rings->answered);
	f->ring_passed_on = atomic_load(&stats->rings->passed_on);
	why = atomic_load(&stats->rings->why_not);
	f->rings_why = why ? why : "";
}

int stats_facts_read(const struct stats *stats,
		     const struct stats_subject *subject,
		     struct stats_facts **out)
{
	struct stats_facts *f = calloc(1, sizeof(*f));
	struct jobs_count ways[JOBS_WAYS];
	int r;

	if (!f)
		return -ENOMEM;
	f->is_whole = !subject->number;
	f->one = 1;
	f->mode = cache_mode_name(engine_choice(stats->engine)->mode);
	f->uptime_s = (uint64_t)(stats_now() - stats->started);
	/* Read parts before their totals, so that no part is larger than its
	   total. */
	r = look_at_streams(stats, subject, f);
	if (!r)
		r = look_at_networks(stats, subject, f);
	if (!r)
		r = stats_ranks_read(stats, subject, 0, &f->ranks);
	f->num_jobs =
		jobs_list(stats->jobs, subject->number, 0, f->jobs, JOBS_MAX);
	if (f->is_whole) {
		look_at_engine(stats, f);
		look_at_rings(stats, f);
	}
	look_at_stages(stats, subject, f);
	jobs_delivered(stats->jobs, subject->number, ways);
	for (int i = 0; i < JOBS_WAYS; i++)
		f->ways[i] = (struct way_facts){ way_names[i], ways[i] };
	if (r)
		stats_facts_free(f);
	else
		*out = f;
	return r;
}
