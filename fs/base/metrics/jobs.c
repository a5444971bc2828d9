/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/metrics/jobs.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"

struct counter {
	atomic_uint_fast64_t batches;
	atomic_uint_fast64_t stalled;
	atomic_uint_fast64_t bytes;
};

/* The reports of the loaders of a rank; guarded by jobs.lock. */
struct job_rank {
	struct job_rank *prev, *next; /* in job.ranks, by rank */
	uint32_t rank;
	uint32_t world_size;
	unsigned loaders;
	int64_t reported_s; /* of the monotonic clock */
	struct rank_figures all;
	struct rank_figures last;
};

/* The counts of one dataset. */
struct of_dataset {
	struct counter ways[JOBS_WAYS];
	struct counters waits;	 /* of readers */
	struct timespec changed; /* guarded by jobs.lock */
};

/* A job and one dataset that it reads. */
struct job {
	struct jobs *jobs;
	uint32_t dataset;
	char name[JOBS_NAME_SIZE];
	uint64_t number;   /* the same for all datasets */
	unsigned refs;	   /* refs and is_forgotten: guarded by jobs.lock */
	bool is_forgotten; /* not in jobs.list: freed with its last reference */
	struct job_rank *ranks;
	struct counter count;
	atomic_uint_fast64_t connections;
	atomic_int_fast64_t last_s; /* of the monotonic clock */
};

struct jobs {
	pthread_mutex_t lock;	    /* guards the members below */
	struct job *list[JOBS_MAX]; /* by number */
	size_t n;
	size_t num_ranks; /* of all jobs, forgotten ones included */
	uint64_t last_number;
	uint32_t num_datasets; /* this and their counters are not guarded */
	struct of_dataset datasets[];
};

static struct of_dataset *dataset_of(const struct job *job)
{
	return &job->jobs->datasets[job->dataset];
}

/* Returns whether the counts of a dataset are part of a request. */
static bool is_part(uint32_t of, uint32_t asked)
{
	return !asked || of == asked;
}

static int64_t now_s(void)
{
	return clock_coarse_ms() / 1000;
}

static void count(struct counter *c, uint64_t batches, uint64_t bytes)
{
	if (batches)
		atomic_fetch_add_explicit(&c->batches, batches,
					  memory_order_relaxed);
	atomic_fetch_add_explicit(&c->bytes, bytes, memory_order_relaxed);
}

static struct jobs_count counted(struct counter *c)
{
	return (struct jobs_count){
		atomic_load_explicit(&c->batches, memory_order_relaxed),
		atomic_load_explicit(&c->stalled, memory_order_relaxed),
		atomic_load_explicit(&c->bytes, memory_order_relaxed),
	};
}

static int64_t last_of(struct job *job)
{
	return atomic_load_explicit(&job->last_s, memory_order_relaxed);
}

/* --- the list; with the lock held --- */

static void note_change(struct jobs *jobs, uint32_t dataset)
{
	clock_gettime(CLOCK_REALTIME, &jobs->datasets[dataset].changed);
	jobs->datasets[0].changed = jobs->datasets[dataset].changed;
}

/* Returns whether to remove `a` rather than `b`. */
static bool goes_before(struct job *a, struct job *b)
{
	if (!a->refs != !b->refs)
		return !a->refs;
	return last_of(a) < last_of(b);
}

static void rank_free(struct job *job, struct job_rank *r)
{
	DL_DELETE(job->ranks, r);
	job->jobs->num_ranks--;
	free(r);
}

/* Frees the ranks that have no loader any more, or all. */
static void free_ranks(struct job *job, bool all)
{
	struct job_rank *r, *next;

	DL_FOREACH_SAFE(job->ranks, r, next)
	{
		if (all || !r->loaders)
			rank_free(job, r);
	}
}

static void job_free(struct job *job)
{
	free_ranks(job, true);
	free(job);
}

static void forget_one(struct jobs *jobs)
{
	struct job *job;
	size_t at = 0;

	for (size_t i = 1; i < jobs->n; i++) {
		if (goes_before(jobs->list[i], jobs->list[at]))
			at = i;
	}
	job = jobs->list[at];
	jobs->n--;
	memmove(&jobs->list[at], &jobs->list[at + 1],
		(jobs->n - at) * sizeof(jobs->list[0]));
	job->is_forgotten = true;
	note_change(jobs, job->dataset);
	free_ranks(job, false);
	if (!job->refs)
		job_free(job);
}

/* Puts a job behind those of its name, whose number it takes, or at the end
   with a new number. */
static void insert_job(struct jobs *jobs, struct job *job)
{
	size_t at = jobs->n;

	while (at && strcmp(jobs->list[at - 1]->name, job->name) != 0)
		at--;
	if (at) {
		job->number = jobs->list[at - 1]->number;
	} else {
		job->number = ++jobs->last_number;
		at = jobs->n;
	}
	memmove(&jobs->list[at + 1], &jobs->list[at],
		(jobs->n - at) * sizeof(jobs->list[0]));
	jobs->list[at] = job;
	jobs->n++;
}

static struct job *add_job(struct jobs *jobs, uint32_t dataset,
			   const char *name)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	if (jobs->n == JOBS_MAX)
		forget_one(jobs);
	job->jobs = jobs;
	job->dataset = dataset;
	strcpy(job->name, name);
	atomic_store(&job->last_s, now_s());
	insert_job(jobs, job);
	note_change(jobs, dataset);
	return job;
}

static struct job *find_job(struct jobs *jobs, uint32_t dataset,
			    const char *name)
{
	for (size_t i = 0; i < jobs->n; i++) {
		if (jobs->list[i]->dataset == dataset &&
		    !strcmp(jobs->list[i]->name, name))
			return jobs->list[i];
	}
	return NULL;
}

/* --- one job --- */

struct job *jobs_get(struct jobs *jobs, uint32_t dataset, const char *name)
{
	char own[JOBS_NAME_SIZE];
	struct job *job;

	if (!jobs)
		return NULL;
	snprintf(own, sizeof(own), "%s", name);
	scoped_lock(&jobs->lock);
	job = find_job(jobs, dataset, own);
	if (!job)
		job = add_job(jobs, dataset, own);
	if (job)
		job->refs++;
	return job;
}

struct job *jobs_get_session(struct jobs *jobs, uint32_t dataset, pid_t pid)
{
	/* getsid(2) interprets 0 as the calling process. */
	pid_t session = pid > 0 ? getsid(pid) : 0;
	char name[JOBS_NAME_SIZE];

	snprintf(name, sizeof(name), "session-%d",
		 session > 0 ? (int)session : 0);
	return jobs_get(jobs, dataset, name);
}

struct job *job_share(struct job *job)
{
	if (!job)
		return NULL;
	scoped_lock(&job->jobs->lock);
	job->refs++;
	return job;
}

void jobs_put(struct job **pointer)
{
	struct job *job = steal(*pointer);

	if (!job)
		return;
	scoped_lock(&job->jobs->lock);
	if (!--job->refs && job->is_forgotten)
		job_free(job);
}

void job_add(struct job *job, enum jobs_way way, uint64_t batches,
	     uint64_t bytes)
{
	if (!job)
		return;
	count(&dataset_of(job)->ways[way], batches, bytes);
	count(&job->count, batches, bytes);
	if (batches)
		atomic_store_explicit(&job->last_s, now_s(),
				      memory_order_relaxed);
}

void job_stalled(struct job *job, enum jobs_way way)
{
	if (!job)
		return;
	atomic_fetch_add_explicit(&dataset_of(job)->ways[way].stalled, 1,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&job->count.stalled, 1, memory_order_relaxed);
}

void job_waited(struct job *job, uint64_t ns)
{
	struct counters *t = job ? &dataset_of(job)->waits : NULL;

	if (!t)
		return;
	counters_add(&t->input_wait_ns, ns);
	counters_add(&t->times[histogram_bucket(ns)], 1);
}

void job_connect(struct job *job)
{
	if (job)
		atomic_fetch_add(&job->connections, 1);
}

void job_disconnect(struct job *job)
{
	if (job)
		atomic_fetch_sub(&job->connections, 1);
}

/* --- ranks --- */

/* Makes room for one more rank: removes the rank without loaders that has the
   oldest report. The caller holds the lock. */
static bool forget_rank(struct jobs *jobs)
{
	struct job_rank *r, *found = NULL;
	struct job *job = NULL;

	for (size_t i = 0; i < jobs->n; i++) {
		DL_FOREACH(jobs->list[i]->ranks, r)
		{
			if (r->loaders ||
			    (found && r->reported_s >= found->reported_s))
				continue;
			found = r;
			job = jobs->list[i];
		}
	}
	if (found)
		rank_free(job, found);
	return found != NULL;
}

static int by_rank(const struct job_rank *a, const struct job_rank *b)
{
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The caller holds the lock. */
static struct job_rank *add_rank(struct job *job, uint32_t rank)
{
	struct jobs *jobs = job->jobs;
	struct job_rank *r;

	if (jobs->num_ranks == JOBS_RANKS_MAX && !forget_rank(jobs))
		return NULL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->rank = rank;
	DL_INSERT_INORDER(job->ranks, r, by_rank);
	jobs->num_ranks++;
	return r;
}

struct job_rank *job_rank_open(struct job *job, uint32_t rank,
			       uint32_t world_size)
{
	struct job_rank *r;

	if (!job)
		return NULL;
	scoped_lock(&job->jobs->lock);
	DL_SEARCH_SCALAR(job->ranks, r, rank, rank);
	if (!r)
		r = add_rank(job, rank);
	if (!r)
		return NULL;
	r->world_size = world_size;
	r->loaders++;
	r->reported_s = now_s();
	return r;
}

void job_rank_close(struct job *job, struct job_rank **pointer)
{
	struct job_rank *r = steal(*pointer);

	if (!r)
		return;
	scoped_lock(&job->jobs->lock);
	if (!--r->loaders && job->is_forgotten)
		rank_free(job, r);
}

void job_report(struct job *job, struct job_rank *r,
		const struct rank_figures *since)
{
	if (!r)
		return;
	scoped_lock(&job->jobs->lock);
	rank_figures_add(&r->all, since);
	r->all.epoch = since->epoch;
	r->all.number = since->number;
	r->last = *since;
	r->reported_s = now_s();
}

/*
 * --- reading the counts ---
 */

static void add_counts(struct jobs_count *to, struct jobs_count more)
{
	to->batches += more.batches;
	to->stalled += more.stalled;
	to->bytes += more.bytes;
}

void jobs_delivered(struct jobs *jobs, uint32_t dataset,
		    struct jobs_count out[JOBS_WAYS])
{
	memset(out, 0, JOBS_WAYS * sizeof(*out));
	for (uint32_t i = 0; jobs && i < jobs->num_datasets; i++) {
		for (int k = 0; k < JOBS_WAYS && is_part(i, dataset); k++)
			add_counts(&out[k],
				   counted(&jobs->datasets[i].ways[k]));
	}
}

void jobs_delivery(struct jobs *jobs, uint32_t dataset,
		   struct counters_sum *out)
{
	struct jobs_count ways[JOBS_WAYS];

	*out = (struct counters_sum){ .items = 0 };
	for (uint32_t i = 0; jobs && i < jobs->num_datasets; i++) {
		if (is_part(i, dataset))
			counters_sum(out, &jobs->datasets[i].waits);
	}
	jobs_delivered(jobs, dataset, ways);
	for (int i = 0; i < JOBS_WAYS; i++) {
		out->items += ways[i].batches;
		out->bytes += ways[i].bytes;
	}
}

static struct jobs_entry entry_of(struct job *job)
{
	int64_t last_s = last_of(job);
	struct jobs_entry entry = {
		.number = job->number,
		.count = counted(&job->count),
		.connections = atomic_load(&job->connections),
		.last_s = (uint64_t)(now_s() - last_s),
	};

	strcpy(entry.name, job->name);
	return entry;
}

/* Adds what a job has read of another dataset. */
static void merge_entry(struct jobs_entry *to, const struct jobs_entry *from)
{
	add_counts(&to->count, from->count);
	to->connections += from->connections;
	to->last_s = min_u64(to->last_s, from->last_s);
}

size_t jobs_list(struct jobs *jobs, uint32_t dataset, uint64_t first,
		 struct jobs_entry *out, size_t max)
{
	struct jobs_entry entry;
	size_t n = 0;

	if (!jobs)
		return 0;
	scoped_lock(&jobs->lock);
	for (size_t i = 0; i < jobs->n; i++) {
		if (jobs->list[i]->number < first ||
		    !is_part(jobs->list[i]->dataset, dataset))
			continue;
		entry = entry_of(jobs->list[i]);
		if (n && out[n - 1].number == entry.number)
			merge_entry(&out[n - 1], &entry);
		else if (n < max)
			out[n++] = entry;
		else
			break;
	}
	return n;
}

static struct jobs_rank rank_of(const struct job *job, const struct job_rank *r)
{
	struct jobs_rank out = {
		.rank = r->rank,
		.world_size = r->world_size,
		.loaders = r->loaders,
		.idle_s = (uint64_t)(now_s() - r->reported_s),
		.all = r->all,
		.last = r->last,
	};

	strcpy(out.job, job->name);
	return out;
}

size_t jobs_ranks(struct jobs *jobs, uint32_t dataset, uint64_t number,
		  struct jobs_rank *out, size_t max)
{
	struct rank_list list = { out, 0, max };
	const struct job_rank *r;
	const struct job *job;
	uint64_t last = 0;

	if (!jobs)
		return 0;
	scoped_lock(&jobs->lock);
	for (size_t i = 0; i < jobs->n; i++) {
		job = jobs->list[i];
		if ((number && job->number != number) ||
		    !is_part(job->dataset, dataset))
			continue;
		if (job->number != last)
			list = (struct rank_list){ list.of + list.n, 0,
						   list.max - list.n };
		last = job->number;
		DL_FOREACH(job->ranks, r)
		{
			const struct jobs_rank rank = rank_of(job, r);

			rank_list_add(&list, &rank);
		}
	}
	return (size_t)(list.of - out) + list.n;
}

struct timespec jobs_changed(struct jobs *jobs, uint32_t dataset)
{
	scoped_lock(&jobs->lock);
	return jobs->datasets[dataset].changed;
}

/* --- opening and closing --- */

int jobs_open(uint32_t num_datasets, struct jobs **out)
{
	struct jobs *jobs = calloc(
		1, sizeof(*jobs) + num_datasets * sizeof(jobs->datasets[0]));

	if (!jobs)
		return -ENOMEM;
	pthread_mutex_init(&jobs->lock, NULL);
	jobs->num_datasets = num_datasets;
	for (uint32_t i = 0; i < num_datasets; i++)
		note_change(jobs, i);
	*out = jobs;
	return 0;
}

void jobs_close(struct jobs *jobs)
{
	if (!jobs)
		return;
	for (size_t i = 0; i < jobs->n; i++)
		job_free(jobs->list[i]);
	pthread_mutex_destroy(&jobs->lock);
	free(jobs);
}
