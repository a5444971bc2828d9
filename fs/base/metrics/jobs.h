/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs that get batches, and the number of their batches. A job has the
 * name that its loaders send; for a process that opens files, its session is
 * the job. The table holds the most recent jobs, under numbers that are never
 * used again. The ways of delivery are counted for all jobs together. For each
 * rank of a job, the table holds the figures that its loaders report.
 *
 * Each dataset has its own counts, so that a user who may not read a dataset
 * sees none of its counts. Datasets have numbers; 0 stands for all of them, and
 * counts what belongs to none.
 *
 * Thread-safe. jobs.lock guards the list of jobs, and no other lock is taken
 * under it; counting takes no lock.
 */
#ifndef FS_BASE_METRICS_JOBS_H
#define FS_BASE_METRICS_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "fs/base/metrics/counters.h"
#include "fs/base/metrics/rank_figures.h"
#include "fs/base/metrics/rank_list.h"

struct jobs;
struct job;
struct job_rank;

/* The way by which a batch leaves the daemon. */
enum jobs_way {
	JOBS_PAGE_CACHE, /* through a file and the kernel's page cache */
	JOBS_DIRECT,	 /* through a file that was opened with O_DIRECT */
	JOBS_ZEROCOPY,	 /* in shared memory, without a copy */
	JOBS_WAYS,
};

enum {
	JOBS_MAX = 256,	       /* jobs in the table */
	JOBS_RANKS_MAX = 1024, /* ranks of all these jobs */
};

/* Datasets have the numbers from 0 to num_datasets - 1; an only one is 0. */
int jobs_open(uint32_t num_datasets, struct jobs **out);
/* The caller has put all jobs. Takes NULL. */
void jobs_close(struct jobs *jobs);

/*
 * Returns the job of a name for one dataset, with a reference for the caller.
 * Names are ASCII; a longer one is truncated. If the table is full, a new job
 * replaces the least recent one, which still counts but is not listed any more.
 * Returns NULL if memory is short or `jobs` is NULL; all functions accept NULL
 * and do nothing.
 */
struct job *jobs_get(struct jobs *jobs, uint32_t dataset, const char *name);
/* Returns the job "session-N" of a process. N is 0 if this process cannot see
   the session. */
struct job *jobs_get_session(struct jobs *jobs, uint32_t dataset, pid_t pid);
/* Takes one more reference, and returns the job. */
struct job *job_share(struct job *job);
/* Drops the reference and the caller's pointer. */
void jobs_put(struct job **job);

void job_add(struct job *job, enum jobs_way way, uint64_t batches,
	     uint64_t bytes);
/* Counts a batch of job_add() that was not ready when it was requested. */
void job_stalled(struct job *job, enum jobs_way way);
/* Counts `ns` that a reader has waited for a batch. */
void job_waited(struct job *job, uint64_t ns);
/* Between these two calls the job has one more connection. */
void job_connect(struct job *job);
void job_disconnect(struct job *job);

/*
 * Adds a loader to a rank, until job_rank_close(). job_report() adds the
 * figures of this loader since its last report. Returns NULL if the table of
 * ranks is full.
 */
struct job_rank *job_rank_open(struct job *job, uint32_t rank,
			       uint32_t world_size);
/* Removes the loader and clears the caller's pointer; takes NULL. */
void job_rank_close(struct job *job, struct job_rank **rank);
void job_report(struct job *job, struct job_rank *rank,
		const struct rank_figures *since);

struct jobs_count {
	uint64_t batches;
	uint64_t stalled; /* batches that were not ready */
	uint64_t bytes;
};

void jobs_delivered(struct jobs *jobs, uint32_t dataset,
		    struct jobs_count out[JOBS_WAYS]);
/* Adds up all ways as one stage, whose times are those that readers waited. */
void jobs_delivery(struct jobs *jobs, uint32_t dataset,
		   struct counters_sum *out);

struct jobs_entry {
	char name[JOBS_NAME_SIZE];
	uint64_t number;
	struct jobs_count count;
	uint64_t connections;
	uint64_t last_s; /* since its last batch, or its start */
};

/* Lists at most `max` jobs that read a dataset, from number `first` on, in the
   order of their numbers. A job that reads several datasets has one number.
   Returns the number of jobs listed. */
size_t jobs_list(struct jobs *jobs, uint32_t dataset, uint64_t first,
		 struct jobs_entry *out, size_t max);

/* Lists at most `max` ranks of the job with this number, or of all jobs if it
   is 0, ordered by job and rank. Returns the number of ranks listed. */
size_t jobs_ranks(struct jobs *jobs, uint32_t dataset, uint64_t number,
		  struct jobs_rank *out, size_t max);
/* Returns when a job of a dataset was last added or removed. */
struct timespec jobs_changed(struct jobs *jobs, uint32_t dataset);

#endif
