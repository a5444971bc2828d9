/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/top/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/ui/fact.h"

/* A trainer that waits for a smaller share of its time is not limited by data.
   The line that a loader logs per epoch uses the same threshold. */
static const double enough = 0.05;

/* Loaders report about once a second, but only when the trainer takes a batch.
   For this time their last report still holds. */
enum { RECENT_S = 10 };

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* Sums never decrease. If one did, it started again from 0. */
static double count_since(uint64_t before, uint64_t now)
{
	return (double)(now < before ? now : now - before);
}

static double time_since(double before, double now)
{
	return now < before ? now : now - before;
}

/* --- ranks --- */

static enum top_stage slowest_stage(const struct top_rank *before,
				    const struct top_rank *now)
{
	enum top_stage most = TOP_READ;
	double delay[TOP_STAGES];

	for (enum top_stage s = 0; s < TOP_STAGES; s++) {
		delay[s] = time_since(before->delay_s[s], now->delay_s[s]);
		if (delay[s] > delay[most])
			most = s;
	}
	return most;
}

/* Compares two reports of a rank by its own clock, because reports and readings
   do not happen at the same times. */
static void see_difference(const struct top_rank *before,
			   const struct top_rank *now,
			   struct top_rank_view *out)
{
	double wait = time_since(before->wait_s, now->wait_s);
	double own = time_since(before->trainer_s, now->trainer_s);

	out->samples_per_s = ratio(count_since(before->samples, now->samples),
				   time_since(before->open_s, now->open_s));
	out->wait_share = ratio(wait, wait + own);
	out->queue_fill =
		ratio(count_since(before->queue_ready, now->queue_ready),
		      count_since(before->queue_capacity, now->queue_capacity));
	out->stage = slowest_stage(before, now);
	out->is_active = true;
}

/* The rank did not report between the readings: its last report counts. */
static void see_last_word(const struct top_rank *now, struct top_rank_view *out)
{
	static const struct top_rank nothing = { .rank = 0 };

	out->samples_per_s = now->reported_rate;
	out->wait_share = now->reported_wait;
	out->queue_fill = now->reported_fill;
	out->stage = slowest_stage(&nothing, now);
	out->is_active = true;
}

static struct top_rank_view see_rank(const struct top_rank *before,
				     const struct top_rank *now)
{
	struct top_rank_view v = { .now = now };

	if (!now->loaders)
		return v;
	if (before && now->open_s != before->open_s &&
	    now->batches != before->batches)
		see_difference(before, now, &v);
	else if (now->idle_s <= RECENT_S && now->reported_rate > 0)
		see_last_word(now, &v);
	/* An untrusted report may claim shares above 1. */
	if (v.wait_share > 1)
		v.wait_share = 1;
	if (v.queue_fill > 1)
		v.queue_fill = 1;
	return v;
}

static const struct top_rank *find_rank(const struct top_job *job,
					uint64_t rank)
{
	for (size_t i = 0; job && i < job->num_ranks; i++) {
		if (job->ranks[i].rank == rank)
			return &job->ranks[i];
	}
	return NULL;
}

/* --- jobs --- */

static const struct top_job *find_job(const struct top_reading *r,
				      const char *name)
{
	for (size_t i = 0; r && i < r->num_jobs; i++) {
		if (!strcmp(r->jobs[i].name, name))
			return &r->jobs[i];
	}
	return NULL;
}

static void add_ranks(struct top_job_view *v)
{
	unsigned waiting = 0, active = 0;

	for (size_t i = 0; i < v->now->num_ranks; i++) {
		const struct top_rank_view *r = &v->ranks[i];

		v->failed_samples += r->now->failed_samples;
		v->samples_per_s += r->samples_per_s;
		if (!r->is_active)
			continue;
		active++;
		waiting += r->wait_share >= enough;
		if (!v->worst.now || r->wait_share > v->worst.wait_share)
			v->worst = *r;
	}
	v->is_alone = waiting == 1 && active > 1;
}

static enum top_verdict judge_job(const struct top_job_view *v)
{
	if (v->worst.now)
		return v->worst.wait_share < enough ? TOP_NOT_DATA : TOP_WAITS;
	if (v->now->connections)
		return v->now->num_ranks ? TOP_IDLE : TOP_SILENT;
	if (v->now->num_ranks || v->now->idle_s > RECENT_S)
		return TOP_ENDED;
	return v->stalled_share < enough ? TOP_FILES : TOP_STALLED;
}

/* Stores the views of its ranks in `room`, which has a place for each. */
static void see_job(const struct top_job *before, const struct top_job *now,
		    double seconds, struct top_rank_view *room,
		    struct top_job_view *v)
{
	static const struct top_job nothing = { .name = "" };
	const struct top_job *b = before ? before : &nothing;

	*v = (struct top_job_view){ .now = now, .ranks = room };
	for (size_t i = 0; i < now->num_ranks; i++)
		room[i] = see_rank(find_rank(before, now->ranks[i].rank),
				   &now->ranks[i]);
	add_ranks(v);
	v->batches_per_s =
		ratio(count_since(b->batches, now->batches), seconds);
	v->bytes_per_s = ratio(count_since(b->bytes, now->bytes), seconds);
	v->stalled_share = ratio(count_since(b->stalled, now->stalled),
				 count_since(b->batches, now->batches));
	v->verdict = judge_job(v);
}

/* --- the daemon --- */

static uint64_t all_ways(const uint64_t n[JOBS_WAYS])
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < JOBS_WAYS; i++)
		sum += n[i];
	return sum;
}

static void see_daemon(const struct top_reading *b, const struct top_reading *n,
		       struct top_view *v)
{
	double hits = count_since(b->hits, n->hits),
	       stalled = count_since(b->stalled, n->stalled);
	double misses = count_since(b->misses, n->misses);
	double read = count_since(b->read_bytes, n->read_bytes);
	double batches =
		count_since(all_ways(b->way_batches), all_ways(n->way_batches));

	v->values_per_s = (hits + stalled + misses) / v->seconds;
	v->hit_share = ratio(hits, hits + stalled + misses);
	v->stalled_share = ratio(stalled, hits + stalled + misses);
	v->miss_share = ratio(misses, hits + stalled + misses);
	v->reads_per_s = count_since(b->reads, n->reads) / v->seconds;
	v->read_bytes_per_s = read / v->seconds;
	v->amplification = ratio(
		read, count_since(b->delivered_bytes, n->delivered_bytes));
	v->batches_per_s = batches / v->seconds;
	v->bytes_per_s =
		count_since(all_ways(b->way_bytes), all_ways(n->way_bytes)) /
		v->seconds;
	v->batches_stalled_share = ratio(
		count_since(all_ways(b->way_stalled), all_ways(n->way_stalled)),
		batches);
}

/* --- the order of jobs, and of ranks --- */

static int compare_numbers(double a, double b)
{
	return (a > b) - (a < b);
}

/* The key to sort by, the largest first. 0 for names, which are no numbers. */
static double sort_weight(enum top_sort sort, double speed, double wait,
			  uint64_t failed)
{
	switch (sort) {
	case TOP_BY_SPEED:
		return speed;
	case TOP_BY_WAIT:
		return wait;
	case TOP_BY_FAILED:
		return (double)failed;
	case TOP_BY_NAME:
		break;
	}
	return 0;
}

static int by_rank(const void *a, const void *b, void *sort)
{
	const struct top_rank_view *x = a, *y = b;
	const enum top_sort *s = sort;
	int order =
		compare_numbers(sort_weight(*s, y->samples_per_s, y->wait_share,
					    y->now->failed_samples),
				sort_weight(*s, x->samples_per_s, x->wait_share,
					    x->now->failed_samples));

	if (order)
		return order;
	return (x->now->rank > y->now->rank) - (x->now->rank < y->now->rank);
}

static double weight_of_job(enum top_sort sort, const struct top_job_view *job)
{
	return sort_weight(sort, job->samples_per_s, job->worst.wait_share,
			   job->failed_samples);
}

/* Puts jobs that ended last. */
static int by_job(const void *a, const void *b, void *sort)
{
	const struct top_job_view *x = a, *y = b;
	const enum top_sort *s = sort;
	int order = (x->verdict == TOP_ENDED) - (y->verdict == TOP_ENDED);

	if (!order)
		order = compare_numbers(weight_of_job(*s, y),
					weight_of_job(*s, x));
	return order ? order : strcmp(x->now->name, y->now->name);
}

static void sort_all(struct top_view *v, enum top_sort sort)
{
	for (size_t i = 0; i < v->num_jobs; i++)
		qsort_r(v->jobs[i].ranks, v->jobs[i].now->num_ranks,
			sizeof(v->ranks[0]), by_rank, &sort);
	qsort_r(v->jobs, v->num_jobs, sizeof(v->jobs[0]), by_job, &sort);
}

static const struct top_network *find_network(const struct top_reading *before,
					      const char *dataset)
{
	for (size_t i = 0; before && i < before->num_networks; i++) {
		if (!strcmp(before->networks[i].dataset, dataset))
			return &before->networks[i];
	}
	return NULL;
}

static void describe_tier(const struct top_network *now,
			  struct top_network_view *v)
{
	char stored[FACT_NUMBER_SIZE], size[FACT_NUMBER_SIZE];

	if (v->has_tier)
		snprintf(v->tier, sizeof(v->tier), ", tier %s of %s",
			 fact_bytes((double)now->tier_stored, stored),
			 fact_bytes((double)now->tier_size, size));
}

static void see_network(const struct top_network *was,
			const struct top_network *now, double seconds,
			struct top_network_view *v)
{
	*v = (struct top_network_view){
		.now = *now,
		.has_name = *now->dataset,
		.is_out = now->is_out,
		.is_measured = now->rate > 0,
		.latency_ms = 1e3 * now->latency_s,
		.has_rate = was && now->payload_bytes >= was->payload_bytes,
		.has_tier = now->tier_size > 0,
	};
	if (v->has_rate)
		v->bytes_per_s =
			(double)(now->payload_bytes - was->payload_bytes) /
			seconds;
	describe_tier(now, v);
}

int top_view_make(const struct top_reading *before,
		  const struct top_reading *now, enum top_sort sort,
		  struct top_view **out)
{
	struct top_view *v = calloc(1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	/* An uptime that decreased belongs to another daemon. */
	if (before &&
	    (now->uptime_s < before->uptime_s || now->at_ns <= before->at_ns))
		before = NULL;
	v->now = now;
	if (before) {
		v->seconds = 1e-9 * (double)(now->at_ns - before->at_ns);
		see_daemon(before, now, v);
		v->has_rates = true;
		v->has_amplification = v->amplification > 0;
	}
	for (size_t i = 0; i < now->num_jobs; i++) {
		const struct top_job *job = &now->jobs[i];

		see_job(find_job(before, job->name), job, v->seconds,
			&v->ranks[n], &v->jobs[v->num_jobs++]);
		n += job->num_ranks;
	}
	for (size_t i = 0; i < now->num_networks; i++) {
		const struct top_network *network = &now->networks[i];

		see_network(find_network(before, network->dataset), network,
			    v->seconds, &v->networks[v->num_networks++]);
	}
	sort_all(v, sort);
	*out = v;
	return 0;
}

/* --- words --- */

struct view_words {
	const char *name;
	const char *in_full;
	const char *in_short;
};

static const struct view_words words[TOP_VERDICTS] = {
	[TOP_NOT_DATA] = { "not_data", "data is not the bottleneck",
			   "not data" },
	[TOP_WAITS] = { "waits", "waits for", "" },
	[TOP_IDLE] = { "idle", "takes no batch", "no batch" },
	[TOP_SILENT] = { "silent", "has not reported yet", "silent" },
	[TOP_FILES] = { "files", "reads files", "files" },
	[TOP_STALLED] = { "stalled_files", "reads of its files stall",
			  "stalled files" },
	[TOP_ENDED] = { "ended", "ended", "ended" },
};

const char *top_verdict_name(enum top_verdict verdict)
{
	return words[verdict].name;
}

void top_describe_job(const struct top_job_view *job, bool in_full,
		      char out[TOP_SENTENCE_SIZE])
{
	const struct view_words *w = &words[job->verdict];
	const char *stage = top_stage_name(job->worst.stage);

	if (job->verdict != TOP_WAITS)
		snprintf(out, TOP_SENTENCE_SIZE, "%s",
			 in_full ? w->in_full : w->in_short);
	else if (!in_full)
		snprintf(out, TOP_SENTENCE_SIZE, "%s", stage);
	else if (job->is_alone)
		snprintf(out, TOP_SENTENCE_SIZE, "rank %llu waits for %s",
			 (unsigned long long)job->worst.now->rank, stage);
	else
		snprintf(out, TOP_SENTENCE_SIZE, "%s %s", w->in_full, stage);
}

void top_describe_rank(const struct top_rank_view *rank, bool in_full,
		       char out[TOP_SENTENCE_SIZE])
{
	const struct view_words *w = &words[TOP_IDLE];

	*out = '\0';
	if (!rank->now->loaders)
		w = &words[TOP_ENDED];
	if (!rank->is_active)
		snprintf(out, TOP_SENTENCE_SIZE, "%s",
			 in_full ? w->in_full : w->in_short);
	else if (rank->wait_share >= enough)
		snprintf(out, TOP_SENTENCE_SIZE, "%s%s",
			 in_full ? "waits for " : "",
			 top_stage_name(rank->stage));
}
