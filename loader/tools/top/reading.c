/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/top/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/metrics/rank_figures.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "loader/util/read_file.h"

/* The largest possible statistics take a fifth of TEXT_MAX. */
enum { TEXT_MAX = 8 << 20, KEY_SIZE = 32 };

/* Larger than any sum over a million ranks that run for years. */
#define REAL_MAX 1e15

enum kind { COUNT, REAL };

/* A number of the statistics, and the member that receives it. */
struct reading_row {
	const char *path; /* in an object, with dots */
	enum kind kind;
	size_t at;
};

#define OF(member) offsetof(struct top_reading, member)
static const struct reading_row totals[] = {
	{ "uptime_s", COUNT, OF(uptime_s) },
	{ "cache.limit", COUNT, OF(limit) },
	{ "cache.used", COUNT, OF(used) },
	{ "cache.hits", COUNT, OF(hits) },
	{ "cache.stalled", COUNT, OF(stalled) },
	{ "cache.misses", COUNT, OF(misses) },
	{ "cache.reads", COUNT, OF(reads) },
	{ "cache.read_bytes", COUNT, OF(read_bytes) },
	{ "cache.delivered_bytes", COUNT, OF(delivered_bytes) },
	{ "slots.bytes", COUNT, OF(slot_bytes) },
	{ "budget.limit", COUNT, OF(budget_limit) },
	{ "budget.used", COUNT, OF(budget_used) },
#define USE(use, name, help, bulk)                                             \
	{ "budget.by." name, COUNT, OF(budget_by[use]) },
	BUDGET_ROWS(USE)
#undef USE
#define WAY(name, way)                                                         \
	{ "delivery." name ".batches", COUNT, OF(way_batches[way]) },          \
		{ "delivery." name ".stalled", COUNT, OF(way_stalled[way]) },  \
	{                                                                      \
		"delivery." name ".bytes", COUNT, OF(way_bytes[way])           \
	}
		WAY("page_cache", JOBS_PAGE_CACHE),
	WAY("direct", JOBS_DIRECT),
	WAY("zero_copy", JOBS_ZEROCOPY),
#undef WAY
};
#undef OF

#define OF(member) offsetof(struct top_job, member)
static const struct reading_row of_job[] = {
	{ "batches", COUNT, OF(batches) },
	{ "stalled", COUNT, OF(stalled) },
	{ "bytes", COUNT, OF(bytes) },
	{ "connections", COUNT, OF(connections) },
	{ "idle_s", COUNT, OF(idle_s) },
};
#undef OF

#define OF(member) offsetof(struct top_rank, member)
static const struct reading_row of_rank[] = {
	{ "rank", COUNT, OF(rank) },
	{ "world_size", COUNT, OF(world_size) },
	{ "loaders", COUNT, OF(loaders) },
	{ "epoch", COUNT, OF(epoch) },
	{ "number", COUNT, OF(number) },
	{ "idle_s", COUNT, OF(idle_s) },
	{ "samples_per_s", REAL, OF(reported_rate) },
	{ "wait_share", REAL, OF(reported_wait) },
	{ "queue_fill", REAL, OF(reported_fill) },
	{ "batches", COUNT, OF(batches) },
	{ "samples", COUNT, OF(samples) },
	{ "failed_samples", COUNT, OF(failed_samples) },
	{ "queue_ready", COUNT, OF(queue_ready) },
	{ "queue_capacity", COUNT, OF(queue_capacity) },
	{ "open_s", REAL, OF(open_s) },
	{ "wait_s", REAL, OF(wait_s) },
	{ "trainer_s", REAL, OF(trainer_s) },
	{ "stages.read.delay_s", REAL, OF(delay_s[TOP_READ]) },
	{ "stages.decode.delay_s", REAL, OF(delay_s[TOP_DECODE]) },
	{ "stages.transform.delay_s", REAL, OF(delay_s[TOP_TRANSFORM]) },
	{ "stages.upload.delay_s", REAL, OF(delay_s[TOP_UPLOAD]) },
	{ "stages.makers.delay_s", REAL, OF(delay_s[TOP_MAKERS]) },
	{ "stages.network.delay_s", REAL, OF(delay_s[TOP_NETWORK]) },
};
#undef OF

#define OF(member) offsetof(struct top_network, member)
static const struct reading_row of_network[] = {
	{ "rate", COUNT, OF(rate) },
	{ "payload_bytes", COUNT, OF(payload_bytes) },
	{ "latency_s", REAL, OF(latency_s) },
	{ "in_flight", COUNT, OF(in_flight) },
	{ "waiting", COUNT, OF(waiting) },
	{ "depth", COUNT, OF(depth) },
	{ "requests", COUNT, OF(requests) },
	{ "retries", COUNT, OF(retries) },
	{ "throttled", COUNT, OF(throttled) },
	{ "failures", COUNT, OF(failures) },
	{ "is_out", COUNT, OF(is_out) },
	{ "tier.size_bytes", COUNT, OF(tier_size) },
	{ "tier.stored_bytes", COUNT, OF(tier_stored) },
	{ "tier.limit_bytes", COUNT, OF(tier_limit) },
};
#undef OF

const char *top_stage_name(enum top_stage stage)
{
	static const char *const names[TOP_STAGES] = {
		[TOP_READ] = "read",	       [TOP_DECODE] = "decode",
		[TOP_TRANSFORM] = "transform", [TOP_UPLOAD] = "upload",
		[TOP_MAKERS] = "makers",       [TOP_NETWORK] = "network",
	};

	return names[stage];
}

void top_printable(const char *text, char *out, size_t size)
{
	size_t i;

	for (i = 0; text[i] && i + 1 < size; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	out[i] = '\0';
}

/* --- numbers --- */

static json_t *find_value(json_t *object, const char *path)
{
	char key[KEY_SIZE];
	size_t n;

	for (;;) {
		n = strcspn(path, ".");
		snprintf(key, sizeof(key), "%.*s", (int)n, path);
		object = json_object_get(object, key);
		if (!path[n])
			return object;
		path += n + 1;
	}
}

/* A number that is missing, as from a daemon of another version, stays 0. */
static int take_number(json_t *value, const struct reading_row *row,
		       void *thing)
{
	void *to = (char *)thing + row->at;
	double real = json_number_value(value);

	if (!value)
		return 0;
	if (row->kind == COUNT) {
		if (!json_is_integer(value) || json_integer_value(value) < 0 ||
		    (uint64_t)json_integer_value(value) > RANK_FIGURES_MAX)
			return -EPROTO;
		*(uint64_t *)to = (uint64_t)json_integer_value(value);
		return 0;
	}
	if (!json_is_number(value) || !(real >= 0 && real <= REAL_MAX))
		return -EPROTO;
	*(double *)to = real;
	return 0;
}

static int take_numbers(json_t *object, const struct reading_row *rows,
			size_t n, void *thing, char why[TOP_WHY_SIZE])
{
	for (size_t i = 0; i < n; i++) {
		if (!take_number(find_value(object, rows[i].path), &rows[i],
				 thing))
			continue;
		snprintf(why, TOP_WHY_SIZE, "%s is no number that can be",
			 rows[i].path);
		return -EPROTO;
	}
	return 0;
}

/* --- jobs --- */

static int take_ranks(json_t *list, struct top_reading *r, struct top_job *job,
		      char why[TOP_WHY_SIZE])
{
	json_t *o;
	size_t i;

	job->ranks = r->ranks + r->num_ranks;
	job->num_ranks = json_array_size(list);
	if (job->num_ranks > JOBS_RANKS_MAX - r->num_ranks) {
		snprintf(why, TOP_WHY_SIZE, "more than %d ranks",
			 JOBS_RANKS_MAX);
		return -EPROTO;
	}
	json_array_foreach(list, i, o)
	{
		int bad = take_numbers(o, of_rank, ARRAY_LEN(of_rank),
				       &r->ranks[r->num_ranks + i], why);

		if (bad)
			return bad;
	}
	r->num_ranks += job->num_ranks;
	return 0;
}

static int take_job(json_t *o, struct top_reading *r, struct top_job *job,
		    char why[TOP_WHY_SIZE])
{
	const char *name = json_string_value(json_object_get(o, "name"));
	int bad = take_numbers(o, of_job, ARRAY_LEN(of_job), job, why);

	if (!bad && (!name || strlen(name) >= sizeof(job->name))) {
		snprintf(why, TOP_WHY_SIZE, "a job without a name");
		bad = -EPROTO;
	}
	if (bad)
		return bad;
	top_printable(name, job->name, sizeof(job->name));
	return take_ranks(json_object_get(o, "ranks"), r, job, why);
}

static int take_jobs(json_t *list, struct top_reading *r,
		     char why[TOP_WHY_SIZE])
{
	json_t *o;
	size_t i;
	int bad;

	if (json_array_size(list) > JOBS_MAX) {
		snprintf(why, TOP_WHY_SIZE, "more than %d jobs", JOBS_MAX);
		return -EPROTO;
	}
	json_array_foreach(list, i, o)
	{
		bad = take_job(o, r, &r->jobs[i], why);
		if (bad)
			return bad;
		r->num_jobs++;
	}
	return 0;
}

static int take_networks(json_t *list, struct top_reading *r,
			 char why[TOP_WHY_SIZE])
{
	const char *name;
	json_t *o;
	size_t i;

	json_array_foreach(list, i, o)
	{
		struct top_network *n = &r->networks[i];

		if (i == TOP_NETWORKS_MAX)
			break;
		if (take_numbers(o, of_network, ARRAY_LEN(of_network), n, why))
			return -EPROTO;
		name = json_string_value(json_object_get(o, "dataset"));
		top_printable(name ? name : "", n->dataset, sizeof(n->dataset));
		r->num_networks = i + 1;
	}
	return 0;
}

/*
 * --- the whole text ---
 */

static int take_all(json_t *o, struct top_reading *r, char why[TOP_WHY_SIZE])
{
	json_t *version = json_object_get(o, "version");
	const char *mode = json_string_value(find_value(o, "cache.mode"));
	int bad;

	if (!json_is_integer(version) || json_integer_value(version) != 1) {
		snprintf(why, TOP_WHY_SIZE,
			 "not statistics of a version that is known");
		return -EPROTO;
	}
	bad = take_numbers(o, totals, ARRAY_LEN(totals), r, why);
	if (bad)
		return bad;
	top_printable(mode ? mode : "", r->mode, sizeof(r->mode));
	r->is_whole = json_object_get(o, "slots");
	r->readers = json_array_size(json_object_get(o, "streams"));
	bad = take_networks(json_object_get(o, "network"), r, why);
	return bad ? bad : take_jobs(json_object_get(o, "jobs"), r, why);
}

int top_reading_parse(const char *text, size_t size, int64_t at_ns,
		      struct top_reading **out, char why[TOP_WHY_SIZE])
{
	cleanup_free struct top_reading *r = calloc(1, sizeof(*r));
	json_error_t error = { .text = "" };
	json_t *o;
	int bad;

	if (!r) {
		snprintf(why, TOP_WHY_SIZE, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	o = json_loadb(text, size, 0, &error);
	r->at_ns = at_ns;
	if (o) {
		bad = take_all(o, r, why);
	} else {
		bad = -EPROTO;
		snprintf(why, TOP_WHY_SIZE, "not JSON, in line %d", error.line);
	}
	json_decref(o);
	if (!bad)
		*out = steal(r);
	return bad;
}

int top_reading_take(const char *mount, struct top_reading **out,
		     char why[TOP_WHY_SIZE])
{
	cleanup_free char *text = NULL;
	cleanup_fd int fd = -1;
	char path[PATH_MAX];
	size_t size = 0;
	int r = 0;

	if (snprintf(path, sizeof(path), "%s/.betonfs/stats.json", mount) >=
	    (int)sizeof(path))
		r = -ENAMETOOLONG;
	if (!r) {
		/* O_NONBLOCK keeps a FIFO or a terminal from blocking. */
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		r = fd < 0 ? -errno
			   : read_file_fd(fd, TEXT_MAX - 1, &text, &size);
	}
	if (r) {
		snprintf(why, TOP_WHY_SIZE, "%s", strerror(-r));
		return r;
	}
	return top_reading_parse(text, size, clock_ns(), out, why);
}
