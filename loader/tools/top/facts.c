/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/top/facts.h"

void top_row_fill(const struct top_view *v, const struct top_job_view *job,
		  const struct top_rank_view *rank, struct top_row *out)
{
	struct top_row r = {
		.job = job,
		.rank = rank,
		.name = job->now->name,
		.verdict = top_verdict_name(job->verdict),
		.connections = job->now->connections,
		.batches_per_s = job->batches_per_s,
		.bytes_per_s = job->bytes_per_s,
		.stalled_share = job->stalled_share,
		.seen = rank ? *rank : job->worst,
		.has_ranks = job->now->num_ranks,
		.has_rates = v->has_rates,
	};

	r.is_placed = r.seen.now != NULL;
	if (r.seen.now)
		r.now = *r.seen.now;
	if (r.seen.is_active && r.seen.wait_share > 0)
		r.waits_for = top_stage_name(r.seen.stage);
	if (!rank) {
		top_describe_job(job, true, r.text);
		r.now.idle_s = job->now->idle_s;
		r.now.failed_samples = job->failed_samples;
		r.seen.samples_per_s = job->samples_per_s;
	}
	*out = r;
}

#define IN(type, member) FACT_AT(struct type, member)
#define OF(member) IN(top_row, member)
#define IF(member) .known = offsetof(struct top_row, member)
#define COLUMN(column, title_, width_, goes_)                                  \
	.place = COLUMN_##column, .title = (title_), .width = (width_),        \
	.goes = (goes_)

/* Columns that stay longest are the most useful in a narrow window. */
const struct fact top_row_facts[] = {
	{ "name", OF(name), .whose = TOP_JOB,
	  COLUMN(NAME, "JOB", NAME_MIN, 0) },
	{ "verdict", OF(verdict), .whose = TOP_JOB },
	{ "text", OF(text), .whose = TOP_JOB,
	  COLUMN(VERDICT, "VERDICT", VERDICT_MIN, 0) },
	{ "connections", OF(connections), .whose = TOP_JOB },
	{ "rank", OF(now.rank), .whose = TOP_RANK },
	{ "world_size", OF(now.world_size), .whose = TOP_RANK },
	{ "loaders", OF(now.loaders), .whose = TOP_RANK },
	{ "epoch", OF(now.epoch), .unit = FACT_BRIEF, IF(is_placed),
	  .whose = TOP_RANK, COLUMN(EPOCH, "EPOCH", 5, 3) },
	{ "number", OF(now.number), .unit = FACT_BRIEF, IF(is_placed),
	  .whose = TOP_RANK, COLUMN(BATCH, "BATCH", 6, 2) },
	{ "idle_s", OF(now.idle_s) },
	{ "failed_samples", OF(now.failed_samples) },
	{ NULL, OF(now.failed_samples), .unit = FACT_BRIEF, IF(has_ranks),
	  COLUMN(FAILED, "FAILED", 6, 1) },
	{ "batches_per_s", OF(batches_per_s), IF(has_rates), .whose = TOP_JOB },
	{ "bytes_per_s", OF(bytes_per_s), IF(has_rates), .whose = TOP_JOB },
	{ "stalled_share", OF(stalled_share), IF(has_rates), .whose = TOP_JOB },
	{ "samples_per_s", OF(seen.samples_per_s), .unit = FACT_BRIEF,
	  IF(seen.is_active), COLUMN(SPEED, "IMG/S", 7, 0) },
	{ "queue_fill", OF(seen.queue_fill), IF(seen.is_active),
	  COLUMN(QUEUE, "QUEUE", BAR_MIN + 2, 4) },
	{ "wait_share", OF(seen.wait_share), .unit = FACT_PERCENT,
	  IF(seen.is_active), .text = "%.0f%%", COLUMN(WAIT, "WAIT", 4, 5) },
	{ "waits_for", OF(waits_for) },
	FACT_LAST,
};
#undef OF
#undef IF

#define OF(member) IN(top_view, member)
#define IF(member) .known = offsetof(struct top_view, member)
const struct fact top_delivery_facts[] = {
	{ "batches_per_s", OF(batches_per_s), .unit = FACT_BRIEF, IF(has_rates),
	  .text = "%s/s" },
	{ "bytes_per_s", OF(bytes_per_s), .unit = FACT_BYTES, IF(has_rates),
	  .text = ", %s/s" },
	{ "stalled_share", OF(batches_stalled_share), .unit = FACT_PERCENT,
	  IF(has_rates), .text = ", %.1f %% of them not ready when requested" },
	FACT_LAST,
};

const struct fact top_value_facts[] = {
	{ "values_per_s", OF(values_per_s), .unit = FACT_BRIEF, IF(has_rates),
	  .text = "%s/s" },
	{ "hit_share", OF(hit_share), .unit = FACT_PERCENT, IF(has_rates),
	  .text = ": %.1f %% cache hits" },
	{ "stalled_share", OF(stalled_share), .unit = FACT_PERCENT,
	  IF(has_rates), .text = ", %.1f %% stalled" },
	{ "miss_share", OF(miss_share), .unit = FACT_PERCENT, IF(has_rates),
	  .text = ", %.1f %% misses" },
	FACT_LAST,
};

const struct fact top_disk_facts[] = {
	{ NULL, OF(read_bytes_per_s), .unit = FACT_BYTES, .text = "%s/s" },
	{ "reads_per_s", OF(reads_per_s), .unit = FACT_BRIEF, IF(has_rates),
	  .text = ", %s reads/s" },
	{ "read_bytes_per_s", OF(read_bytes_per_s), IF(has_rates) },
	{ "amplification", OF(amplification), .unit = FACT_RATIO,
	  IF(has_amplification), .text = ", read amplification %s" },
	FACT_LAST,
};
#undef OF
#undef IF

#define OF(member) IN(top_network_view, member)
#define IF(member) .known = offsetof(struct top_network_view, member)
/* In a narrow window, the last ones are left out. */
const struct fact top_network_facts[] = {
	{ "dataset", OF(now.dataset) },
	{ NULL, OF(now.dataset), IF(has_name), .text = "%s: " },
	{ "is_out", OF(is_out), .text = "the server does not answer, " },
	{ "bytes_per_s", OF(bytes_per_s), .unit = FACT_BYTES, IF(has_rate),
	  .text = "%s/s, " },
	{ "rate", OF(now.rate), IF(is_measured) },
	{ "latency_s", OF(now.latency_s) },
	{ NULL, OF(latency_ms), .unit = FACT_BRIEF, .text = "%s ms" },
	{ "in_flight", OF(now.in_flight), .text = ", %.0f" },
	{ "depth", OF(now.depth), .text = " of %.0f in flight" },
	{ "waiting", OF(now.waiting) },
	{ "requests", OF(now.requests) },
	{ "retries", OF(now.retries), .unit = FACT_BRIEF,
	  .text = ", %s retries" },
	{ "throttled", OF(now.throttled), .unit = FACT_BRIEF,
	  .text = ", %s throttled" },
	{ "failures", OF(now.failures) },
	{ "tier_stored_bytes", OF(now.tier_stored), IF(has_tier) },
	{ "tier_size_bytes", OF(now.tier_size), IF(has_tier) },
	{ NULL, OF(tier), .text = "%s" },
	FACT_LAST,
};
#undef OF
#undef IF

#define OF(member) IN(top_reading, member)
const struct fact top_cache_facts[] = {
	{ "mode", OF(mode) },
	{ "limit", OF(limit) },
	{ "used", OF(used) },
	FACT_LAST,
};

const struct fact top_budget_facts[] = {
	{ "limit", OF(budget_limit) },
	{ "used", OF(budget_used) },
	FACT_LAST,
};

const struct fact top_use_facts[] = {
#define USE(use, name, help, bulk) { name, OF(budget_by[use]) },
	BUDGET_ROWS(USE)
#undef USE
		FACT_LAST,
};
#undef OF
