/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/namespace/stats.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

enum { KEY_SIZE = 32 };

/* --- the figures --- */

#define OF(member) offsetof(struct stats_facts, member)
static const struct metric uptime[] = {
	{ NULL, "uptime_seconds", "seconds", GAUGE, OF(uptime_s),
	  "Time since the mount began to answer." },
};
#undef OF

/* Figures that a mount counts for all its datasets together. */
#define OF(member) offsetof(struct stats_facts, member)
static const struct metric totals[] = {
	{ "cache.limit", "cache_limit_bytes", "bytes", GAUGE,
	  OF(engine.cache.limit), "Memory that the page cache may take." },
	{ "cache.used", "cache_used_bytes", "bytes", GAUGE,
	  OF(engine.cache.used_bytes), "Memory that the page cache takes." },
	{ "cache.hits", "cache_hits", NULL, COUNTER, OF(engine.cache.hits),
	  "Values in the page cache when a batch needed them." },
	{ "cache.stalled", "prefetch_stalled", NULL, COUNTER,
	  OF(engine.cache.stalled),
	  "Values still being read when a batch needed them." },
	{ "cache.misses", "cache_misses", NULL, COUNTER,
	  OF(engine.cache.misses),
	  "Values not requested before a batch needed them." },
	{ "cache.bypassed", "cache_bypassed", NULL, COUNTER,
	  OF(engine.cache.bypassed), "Values read without the page cache." },
	{ "cache.reads", "cache_reads", NULL, COUNTER, OF(engine.cache.reads),
	  "Requests to the device." },
	{ "cache.read_bytes", "cache_read_bytes", "bytes", COUNTER,
	  OF(engine.cache.read_bytes), "Bytes read from the device." },
	{ "cache.delivered_bytes", "cache_delivered_bytes", "bytes", COUNTER,
	  OF(engine.cache.delivered_bytes),
	  "Payload copied from the page cache into batches." },
	{ "cache.evicted_bytes", "cache_evicted_bytes", "bytes", COUNTER,
	  OF(engine.cache.evicted_bytes), "Bytes evicted." },
	{ "cache.wasted_bytes", "prefetch_wasted_bytes", "bytes", COUNTER,
	  OF(engine.cache.wasted_bytes),
	  "Bytes evicted before any batch used them." },
	{ "cache.amplification", "read_amplification_ratio", "ratio", RATIO,
	  OF(amplification), "Bytes read per byte delivered." },
	{ "cache.cold.used", "cold_used_bytes", "bytes", GAUGE,
	  OF(engine.cache.cold_used_bytes),
	  "Memory that the cold tier takes." },
	{ "cache.cold.hits", "cold_hits", NULL, COUNTER,
	  OF(engine.cache.cold_hits), "Pages that came from the cold tier." },
	{ "cache.cold.bytes", "cold_saved_bytes", "bytes", COUNTER,
	  OF(engine.cache.cold_bytes),
	  "Bytes that the cold tier saved reading." },
	{ "cache.cold.dropped", "cold_dropped", NULL, COUNTER,
	  OF(engine.cache.cold_dropped),
	  "Evicted pages that the cold tier did not take." },
	{ "slots.collated", "batches_collated", NULL, COUNTER,
	  OF(engine.slots.collated), "Batches collated." },
	{ "slots.prefetched", "batches_prefetched", NULL, COUNTER,
	  OF(engine.slots.prefetched),
	  "Batches collated before the first request." },
	{ "slots.shared", "batches_shared", NULL, COUNTER,
	  OF(engine.slots.shared),
	  "Requests for a collated batch, or for a part of it." },
	{ "slots.wasted", "batches_wasted", NULL, COUNTER,
	  OF(engine.slots.wasted),
	  "Batches collated and dropped without a request." },
	{ "slots.slots", "slots", NULL, GAUGE, OF(engine.slots.slots),
	  "Pieces of memory for batches." },
	{ "slots.bytes", "slots_bytes", "bytes", GAUGE, OF(engine.slots.bytes),
	  "Memory for batches." },
	{ "slots.huge", "slots_huge", NULL, GAUGE, OF(engine.slots.huge),
	  "Pieces of memory for batches that consist of huge pages." },
	{ "budget.limit", "budget_limit_bytes", "bytes", GAUGE,
	  OF(budget.limit), "Memory that the daemon may use for data." },
	{ "budget.used", "budget_used_bytes", "bytes", GAUGE, OF(budget_used),
	  "Memory that the daemon uses for data." },
	{ "budget.pinned", "budget_pinned_bytes", "bytes", GAUGE,
	  OF(budget.pinned),
	  "Used bytes that loaders hold or have not unmapped." },
	{ "budget.refused", "budget_refused", NULL, COUNTER, OF(budget.refused),
	  "Requests for memory that failed." },
	{ "budget.waits", "budget_waits", NULL, COUNTER, OF(budget.waits),
	  "Requests for memory that had to wait." },
	{ "verify.bytes", "verified_bytes", "bytes", COUNTER,
	  OF(engine.verify.bytes),
	  "Bytes of datasets that were compared with checksums." },
	{ "verify.bad_blocks", "verify_bad_blocks", NULL, COUNTER,
	  OF(engine.verify.bad_blocks),
	  "Blocks of datasets that did not match their checksums." },
	{ "io_uring.queues", "io_uring_queues", NULL, GAUGE, OF(rings),
	  "Queues of io_uring that FUSE requests use, one per CPU; 0: they "
	  "come through /dev/fuse." },
	{ "io_uring.answered", "io_uring_answered", NULL, COUNTER,
	  OF(ring_answered),
	  "FUSE requests of queues that were answered from memory." },
	{ "io_uring.passed_on", "io_uring_passed_on", NULL, COUNTER,
	  OF(ring_passed_on),
	  "FUSE requests of queues that other threads answered, because they "
	  "could wait." },
#define USE(use, name, help, bulk)                                             \
	{ "budget.by." name,	"budget_" name "_bytes", "bytes", GAUGE,       \
	  OF(budget.used[use]), "Used bytes: " help "." },
	BUDGET_ROWS(USE)
#undef USE
};
#undef OF

#define OF(member) offsetof(struct stats_facts, member)
/* A gauge: the Prometheus text format, which scrapers still read, has no info
   type. */
static const struct metric build[] = {
	{ NULL, "build_info", NULL, GAUGE, OF(one),
	  "Always 1; version and kind of cache." },
};
#undef OF

#define OF(member) offsetof(struct stage_facts, member)
static const struct metric of_stage[] = {
	{ "items", "stage_items", NULL, COUNTER, OF(sum.items),
	  "Requests, values or batches that a stage finished." },
	{ "bytes", "stage_bytes", "bytes", COUNTER, OF(sum.bytes),
	  "Bytes that a stage finished." },
	{ "busy_s", "stage_busy_seconds", "seconds", SECONDS, OF(sum.busy_ns),
	  "Time at work, added up over threads." },
	{ "input_wait_s", "stage_input_wait_seconds", "seconds", SECONDS,
	  OF(sum.input_wait_ns), "Time that a stage waited for its input." },
	{ "room_wait_s", "stage_room_wait_seconds", "seconds", SECONDS,
	  OF(sum.room_wait_ns), "Time that a stage waited for room." },
	{ "p50_s", NULL, NULL, RATIO, OF(p50), NULL },
	{ "p90_s", NULL, NULL, RATIO, OF(p90), NULL },
	{ "p99_s", NULL, NULL, RATIO, OF(p99), NULL },
	{ NULL, "stage_duration_seconds", "seconds", TIMES, OF(times),
	  "Duration of a request, value or batch, or wait for it." },
};
#undef OF

#define OF(member) offsetof(struct way_facts, member)
static const struct metric of_way[] = {
	{ "batches", "delivered_batches", NULL, COUNTER, OF(count.batches),
	  "Batches delivered, by way: through files or shared memory." },
	{ "stalled", "delivered_stalled", NULL, COUNTER, OF(count.stalled),
	  "Batches not ready when a reader requested them, by way." },
	{ "bytes", "delivered_bytes", "bytes", COUNTER, OF(count.bytes),
	  "Bytes of batches delivered, by way." },
};
#undef OF

#define OF(member) offsetof(struct stream_facts, member)
static const struct metric of_stream[] = {
	{ "epoch", NULL, NULL, GAUGE, OF(reader.epoch), NULL },
	{ "number", NULL, NULL, GAUGE, OF(reader.number), NULL },
	{ "stride", NULL, NULL, GAUGE, OF(reader.stride), NULL },
	{ "opened", "stream_batches", NULL, COUNTER, OF(reader.opened),
	  "Batches opened by the readers of this sampling spec." },
	{ "hits", "stream_hits", NULL, COUNTER, OF(reader.counts.hits),
	  "Values for this sampling spec that were in the page cache." },
	{ "stalled", "stream_stalled", NULL, COUNTER, OF(reader.counts.stalled),
	  "Values for this sampling spec that were still being read." },
	{ "misses", "stream_misses", NULL, COUNTER, OF(reader.counts.misses),
	  "Values for this sampling spec that were not requested before." },
	{ "bypassed", "stream_bypassed", NULL, COUNTER,
	  OF(reader.counts.bypassed),
	  "Values for this sampling spec read without the cache." },
	{ "reads", "stream_reads", NULL, COUNTER, OF(reader.counts.reads),
	  "Requests to the device for this sampling spec." },
	{ "read_bytes", "stream_read_bytes", "bytes", COUNTER,
	  OF(reader.counts.read_bytes), "Bytes read for this sampling spec." },
	{ "delivered_bytes", "stream_delivered_bytes", "bytes", COUNTER,
	  OF(reader.counts.delivered_bytes),
	  "Payload copied from the cache into its batches." },
	{ "wasted_bytes", "stream_wasted_bytes", "bytes", COUNTER,
	  OF(reader.counts.wasted_bytes),
	  "Bytes read for it and evicted before any batch used them." },
	{ "amplification", "stream_amplification_ratio", "ratio", RATIO,
	  OF(amplification), "Bytes read for it per byte delivered." },
	{ "idle_s", NULL, NULL, GAUGE, OF(idle_s), NULL },
};
#undef OF

#define OF(member) offsetof(struct network_facts, member)
static const struct metric of_network[] = {
	{ "rate", "network_rate_bytes", "bytes", GAUGE, OF(rate),
	  "Bytes per second from the server, the highest of the last seconds." },
	{ "latency_s", "network_latency_seconds", "seconds", RATIO, OF(latency),
	  "Lowest recent time from a request to the first byte." },
	{ "first_byte_p50_s", NULL, NULL, RATIO, OF(p50), NULL },
	{ "first_byte_p99_s", NULL, NULL, RATIO, OF(p99), NULL },
	{ "in_flight", "network_in_flight", NULL, GAUGE, OF(in_flight),
	  "Requests that were sent and not answered yet." },
	{ "waiting", "network_waiting", NULL, GAUGE, OF(waiting),
	  "Requests that were not sent yet." },
	{ "depth", "network_depth", NULL, GAUGE, OF(depth),
	  "Requests that the daemon wants in flight." },
	{ "requests", "network_requests", NULL, COUNTER, OF(requests),
	  "Requests that were sent." },
	{ "connections", "network_connections", NULL, COUNTER, OF(connections),
	  "Connections that were opened." },
	{ "retries", "network_retries", NULL, COUNTER, OF(retries),
	  "Requests that were repeated after a failure." },
	{ "stalls", "network_stalls", NULL, COUNTER, OF(stalls),
	  "Answers that stopped and were continued by another request." },
	{ "hedges", "network_hedges", NULL, COUNTER, OF(hedges),
	  "Late requests that were sent a second time." },
	{ "hedge_bytes", "network_hedge_bytes", "bytes", COUNTER,
	  OF(hedge_bytes), "Bytes received twice because of these." },
	{ "throttled", "network_throttled", NULL, COUNTER, OF(throttled),
	  "Answers by which the server asked for fewer requests." },
	{ "wire_bytes", "network_wire_bytes", "bytes", COUNTER, OF(wire_bytes),
	  "Bytes received, with the heads of answers." },
	{ "payload_bytes", "network_payload_bytes", "bytes", COUNTER,
	  OF(payload_bytes), "Bytes of the dataset that arrived." },
	{ "failures", "network_failures", NULL, COUNTER, OF(failures),
	  "Reads that failed after all retries." },
	{ "is_out", "network_is_out", NULL, GAUGE, OF(is_out),
	  "1 while the server does not answer, otherwise 0." },
	{ "tier.size_bytes", "tier_size_bytes", "bytes", GAUGE, OF(tier.size),
	  "Bytes of the dataset, if it has a disk tier." },
	{ "tier.stored_bytes", "tier_stored_bytes", "bytes", GAUGE,
	  OF(tier.present), "Bytes of the dataset in the disk tier." },
	{ "tier.limit_bytes", "tier_limit_bytes", "bytes", GAUGE,
	  OF(tier.allowed), "Bytes that may be in the disk tier." },
	{ "tier.hit_bytes", "tier_hit_bytes", "bytes", COUNTER, OF(tier.hits),
	  "Bytes read from the disk tier." },
	{ "tier.missed_bytes", "tier_missed_bytes", "bytes", COUNTER,
	  OF(tier.misses), "Bytes that the disk tier did not have." },
	{ "tier.damaged_pages", "tier_damaged_pages", NULL, COUNTER,
	  OF(tier.dropped), "Damaged pages that the disk tier dropped." },
};
#undef OF

#define OF(member) offsetof(struct jobs_entry, member)
static const struct metric of_job[] = {
	{ "batches", "job_batches", NULL, COUNTER, OF(count.batches),
	  "Batches that a job got." },
	{ "stalled", "job_stalled", NULL, COUNTER, OF(count.stalled),
	  "Batches not ready when a job requested them." },
	{ "bytes", "job_bytes", "bytes", COUNTER, OF(count.bytes),
	  "Bytes of batches that a job got." },
	{ "connections", "job_connections", NULL, GAUGE, OF(connections),
	  "Loaders of a job that are connected." },
	{ "idle_s", "job_idle_seconds", "seconds", GAUGE, OF(last_s),
	  "Time since the last batch of a job." },
};
#undef OF

#define OF(member) offsetof(struct rank_facts, member)
static const struct metric of_rank[] = {
	{ "rank", NULL, NULL, GAUGE, OF(report.rank), NULL },
	{ "world_size", NULL, NULL, GAUGE, OF(report.world_size), NULL },
	{ "loaders", "rank_loaders", NULL, GAUGE, OF(report.loaders),
	  "Loaders of a rank that report statistics." },
	{ "epoch", "rank_epoch", NULL, GAUGE, OF(report.all.epoch),
	  "Epoch of the last batch that a trainer got." },
	{ "number", NULL, NULL, GAUGE, OF(report.all.number), NULL },
	{ "idle_s", "rank_idle_seconds", "seconds", GAUGE, OF(report.idle_s),
	  "Time since the last report of a loader of a rank." },
	{ "samples_per_s", NULL, NULL, RATIO, OF(samples_per_s), NULL },
	{ "wait_share", NULL, NULL, RATIO, OF(wait_share), NULL },
	{ "queue_fill", NULL, NULL, RATIO, OF(queue_fill), NULL },
#define ROW(place, figure, path, name, unit, type, help)                       \
	{ path, name, unit, type, OF(report.all.n[figure]), help },
	RANK_FIGURES(ROW)
#undef ROW
};
#undef OF

/* --- JSON --- */

/* Returns the object at a path, or NULL; the last part of the path is the
   key. */
static json_t *object_at(json_t *root, const char **path)
{
	char key[KEY_SIZE];
	const char *dot;
	json_t *next;

	while ((dot = strchr(*path, '.'))) {
		snprintf(key, sizeof(key), "%.*s", (int)(dot - *path), *path);
		next = json_object_get(root, key);
		if (!next) {
			next = json_object();
			if (json_object_set_new(root, key, next))
				return NULL;
		}
		root = next;
		*path = dot + 1;
	}
	return root;
}

/* Adds the members that the rows describe to the object, which it owns and
   returns. NULL means no memory, and stays NULL. */
static json_t *with(json_t *object, const struct metric *rows, size_t n,
		    const void *thing)
{
	json_t *into, *value;
	const char *key;
	int bad = 0;

	for (size_t i = 0; i < n && !bad; i++) {
		key = rows[i].path;
		if (!key)
			continue;
		into = object_at(object, &key);
		value = rows[i].type == RATIO || rows[i].type == SECONDS
				? json_real(metric_real(&rows[i], thing))
				: json_integer((json_int_t)metric_count(
					  &rows[i], thing));
		bad = json_object_set_new(into, key, value);
	}
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *json_of_ways(const struct stats_facts *f)
{
	json_t *all = json_object();

	for (size_t i = 0; i < JOBS_WAYS; i++)
		json_object_set_new(all, f->ways[i].name,
				    with(json_object(), of_way,
					 ARRAY_LEN(of_way), &f->ways[i]));
	return all;
}

static json_t *json_of_stages(const struct stats_facts *f)
{
	json_t *all = json_object();

	for (size_t i = 0; i < f->num_stages; i++)
		json_object_set_new(all, f->stages[i].name,
				    with(json_object(), of_stage,
					 ARRAY_LEN(of_stage), &f->stages[i]));
	return all;
}

static json_t *json_of_streams(const struct stats_facts *f)
{
	json_t *all = json_array();

	for (size_t i = 0; i < f->num_streams; i++) {
		const struct stream_facts *s = &f->streams[i];
		json_t *o = json_pack("{s:s, s:s}", "dataset", s->dataset,
				      "spec", s->spec);

		json_array_append_new(
			all, with(o, of_stream, ARRAY_LEN(of_stream), s));
	}
	return all;
}

static json_t *json_of_networks(const struct stats_facts *f)
{
	json_t *all = json_array();

	for (size_t i = 0; i < f->num_networks; i++) {
		const struct network_facts *n = &f->networks[i];
		json_t *o = json_pack("{s:s}", "dataset", n->dataset);

		json_array_append_new(
			all, with(o, of_network, ARRAY_LEN(of_network), n));
	}
	return all;
}

static json_t *json_of_ranks(const struct stats_ranks *ranks, const char *job)
{
	json_t *all = json_array();

	for (size_t i = 0; i < ranks->n; i++) {
		if (!strcmp(ranks->list[i].report.job, job))
			json_array_append_new(all, with(json_object(), of_rank,
							ARRAY_LEN(of_rank),
							&ranks->list[i]));
	}
	return all;
}

static json_t *json_of_job(const struct stats_ranks *ranks,
			   const struct jobs_entry *job)
{
	json_t *o = with(json_pack("{s:s}", "name", job->name), of_job,
			 ARRAY_LEN(of_job), job);

	json_object_set_new(o, "ranks", json_of_ranks(ranks, job->name));
	return o;
}

static json_t *json_of_jobs(const struct stats_facts *f)
{
	json_t *all = json_array();

	for (size_t i = 0; i < f->num_jobs; i++)
		json_array_append_new(all, json_of_job(&f->ranks, &f->jobs[i]));
	return all;
}

/* Takes ownership of the object. */
static int text_of(json_t *json, char **out)
{
	cleanup_free char *text =
		json ? json_dumps(json, JSON_INDENT(2)) : NULL;

	json_decref(json);
	return text && asprintf(out, "%s\n", text) >= 0 ? 0 : -ENOMEM;
}

int stats_json(const struct stats *stats, const struct stats_subject *subject,
	       char **out)
{
	struct stats_facts *f;
	json_t *o;
	int r = stats_facts_read(stats, subject, &f);

	if (r)
		return r;
	o = json_pack("{s:i, s:I, s:{s:s}}", "version", 1, "uptime_s",
		      (json_int_t)f->uptime_s, "cache", "mode", f->mode);
	if (f->is_whole)
		o = with(o, totals, ARRAY_LEN(totals), f);
	r = (f->is_whole &&
	     json_object_set_new(json_object_get(o, "io_uring"), "why",
				 json_string(f->rings_why))) ||
	    json_object_set_new(o, "stages", json_of_stages(f)) ||
	    json_object_set_new(o, "delivery", json_of_ways(f)) ||
	    json_object_set_new(o, "streams", json_of_streams(f)) ||
	    json_object_set_new(o, "network", json_of_networks(f)) ||
	    json_object_set_new(o, "jobs", json_of_jobs(f));
	stats_facts_free(f);
	if (r) {
		json_decref(o);
		return -ENOMEM;
	}
	return text_of(o, out);
}

int stats_job(const struct stats *stats, const struct stats_subject *subject,
	      uint64_t number, char **out)
{
	struct stats_ranks ranks = { .n = 0 };
	struct jobs_entry job;
	int r;

	if (!jobs_list(stats->jobs, subject->number, number, &job, 1) ||
	    job.number != number)
		return -ESTALE;
	r = stats_ranks_read(stats, subject, number, &ranks);
	if (!r)
		r = text_of(json_of_job(&ranks, &job), out);
	free(ranks.list);
	return r;
}

/* --- OpenMetrics --- */

static void total_labels(FILE *out, const void *thing)
{
	(void)out;
	(void)thing;
}

static void build_labels(FILE *out, const void *thing)
{
	openmetrics_label(out, "version", beton_version());
	openmetrics_label(out, "cache",
			  ((const struct stats_facts *)thing)->mode);
}

static void stage_labels(FILE *out, const void *thing)
{
	openmetrics_label(out, "stage",
			  ((const struct stage_facts *)thing)->name);
}

static void rank_labels(FILE *out, const void *thing)
{
	const struct jobs_rank *report =
		&((const struct rank_facts *)thing)->report;
	char rank[24];

	snprintf(rank, sizeof(rank), "%llu", (unsigned long long)report->rank);
	openmetrics_label(out, "job", report->job);
	openmetrics_label(out, "rank", rank);
}

static void way_labels(FILE *out, const void *thing)
{
	openmetrics_label(out, "way", ((const struct way_facts *)thing)->name);
}

static void stream_labels(FILE *out, const void *thing)
{
	const struct stream_facts *s = thing;

	openmetrics_label(out, "dataset", s->dataset);
	openmetrics_label(out, "spec", s->spec);
}

static void network_labels(FILE *out, const void *thing)
{
	openmetrics_label(out, "dataset",
			  ((const struct network_facts *)thing)->dataset);
}

static void job_labels(FILE *out, const void *thing)
{
	openmetrics_label(out, "job", ((const struct jobs_entry *)thing)->name);
}

static void swap_streams(struct stream_facts *a, struct stream_facts *b)
{
	struct stream_facts c = *a;

	*a = *b;
	*b = c;
}

static void add_stream(struct stream_facts *to, const struct stream_facts *from)
{
	for (size_t i = 0; i < ARRAY_LEN(of_stream); i++) {
		if (of_stream[i].type == COUNTER)
			*(uint64_t *)((char *)to + of_stream[i].at) +=
				metric_count(&of_stream[i], from);
	}
	stream_facts_update(to);
}

/* Readers of one sampling spec have the same labels, for example after a
   restart of a job. */
static void merge_streams(struct stats_facts *f)
{
	struct stream_facts *s = f->streams;
	size_t n = 0, k;

	for (size_t i = 0; i < f->num_streams; i++) {
		for (k = 0; k < n; k++) {
			if (s[k].reader.ds == s[i].reader.ds &&
			    !strcmp(s[k].spec, s[i].spec))
				break;
		}
		if (k < n)
			add_stream(&s[k], &s[i]);
		else if (n++ < i)
			swap_streams(&s[n - 1], &s[i]);
	}
	f->num_streams = n;
}

#define ROWS(rows) rows, ARRAY_LEN(rows)

static void put_all(FILE *out, const struct stats_facts *f,
		    const char *mountpoint)
{
	const struct openmetrics_family families[] = {
		{ ROWS(build), f, sizeof(*f), 1, build_labels },
		{ ROWS(uptime), f, sizeof(*f), 1, total_labels },
		{ ROWS(totals), f, sizeof(*f), f->is_whole, total_labels },
		{ ROWS(of_stage), f->stages, sizeof(f->stages[0]),
		  f->num_stages, stage_labels },
		{ ROWS(of_way), f->ways, sizeof(f->ways[0]), JOBS_WAYS,
		  way_labels },
		{ ROWS(of_stream), f->streams, sizeof(f->streams[0]),
		  f->num_streams, stream_labels },
		{ ROWS(of_network), f->networks, sizeof(*f->networks),
		  f->num_networks, network_labels },
		{ ROWS(of_job), f->jobs, sizeof(f->jobs[0]), f->num_jobs,
		  job_labels },
		{ ROWS(of_rank), f->ranks.list, sizeof(f->ranks.list[0]),
		  f->ranks.n, rank_labels },
	};

	for (size_t i = 0; i < ARRAY_LEN(families); i++)
		openmetrics_put(out, &families[i], mountpoint);
	openmetrics_end(out);
}

int stats_metrics(const struct stats *stats,
		  const struct stats_subject *subject, char **out)
{
	cleanup_free char *mountpoint = stats_utf8(stats->mountpoint);
	char *text = NULL;
	struct stats_facts *f;
	size_t size;
	FILE *file;
	int r = mountpoint ? stats_facts_read(stats, subject, &f) : -ENOMEM;

	if (r)
		return r;
	merge_streams(f);
	file = open_memstream(&text, &size);
	if (file)
		put_all(file, f, mountpoint);
	stats_facts_free(f);
	if (!file || fclose(file)) {
		free(text);
		return -ENOMEM;
	}
	*out = text;
	return 0;
}
