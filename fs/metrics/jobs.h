/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs that get batches, and how many: by the names that their loaders
 * send, or by the session of a process that opens files. The most recent jobs
 * are remembered, under numbers that are never used again. The ways of delivery
 * are counted for all jobs together. For each rank of a job there are the
 * figures that its loaders report.
 *
 * All is counted for each dataset by itself, so that a user who may not read
 * one of them sees nothing of it. Datasets have numbers; 0 stands for all of
 * them, and counts what belongs to none.
 *
 * Thread-safe. jobs.lock guards the list of jobs, and no other lock is taken
 * under it; counting takes no lock.
 */
#ifndef FS_METRICS_JOBS_H
#define FS_METRICS_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "fs/metrics/counters.h"
#include "fs/metrics/rank_figures.h"
#include "fs/metrics/rank_list.h"

struct jobs;
struct job;
struct job_rank;

/* How a batch leaves the daemon. */
enum jobs_way {
	JOBS_PAGE_CACHE, /* through a file and the kernel's page cache */
	JOBS_DIRECT,	 /* through a file that was opened with O_DIRECT */
	JOBS_ZEROCOPY,	 /* in shared memory, without a copy */
	JOBS_WAYS,
};

enum {
	JOBS_MAX = 256,	       /* jobs that are remembered */
	JOBS_RANKS_MAX = 1024, /* ranks of all these jobs */
};

/* Datasets have the numbers from 0 to num_datasets - 1; an only one is 0. */
int jobs_open(uint32_t num_datasets, struct jobs **out);
/* The caller has put all jobs. Takes NULL. */
void jobs_close(struct jobs *jobs);

/*
 * The job of a name, as far as it reads one dataset, with a reference for the
 * caller. Names are ASCII and cut to what fits. A new job takes the place of
 * the least recent one, which may still be counted but is not listed any more.
 * NULL without memory or without `jobs`: all functions accept it and do
 * nothing.
 */
struct job *jobs_get(struct jobs *jobs, uint32_t dataset, const char *name);
/* The job "session-N" of a process; N is 0 if the session cannot be seen from
   this process. */
struct job *jobs_get_session(struct jobs *jobs, uint32_t dataset, pid_t pid);
/* Takes one more reference, and returns the job. */
struct job *job_share(struct job *job);
/* Drops the reference and the caller's pointer. */
void jobs_put(struct job **job);

void job_add(struct job *job, enum jobs_way way, uint64_t batches,
	     uint64_t bytes);
/* One of the batches of job_add() was not ready when it was requested. */
void job_stalled(struct job *job, enum jobs_way way);
/* A reader has waited `ns` for a batch. */
void job_waited(struct job *job, uint64_t ns);
/* The job has a connection from one call to the other. */
void job_connect(struct job *job);
void job_disconnect(struct job *job);

/*
 * A rank has a loader from one call to the other. job_tell() adds what this
 * loader has done since its last report. NULL: too many ranks are remembered
 * already.
 */
struct job_rank *job_rank_open(struct job *job, uint32_t rank,
			       uint32_t world_size);
/* Clears the caller's pointer; takes NULL. */
void job_rank_close(struct job *job, struct job_rank **rank);
void job_tell(struct job *job, struct job_rank *rank,
	      const struct rank_figures *since);

struct jobs_count {
	uint64_t batches;
	uint64_t stalled; /* batches that were not ready */
	uint64_t bytes;
};

void jobs_delivered(struct jobs *jobs, uint32_t dataset,
		    struct jobs_count out[JOBS_WAYS]);
/* The sum of all ways as a stage, whose times are those of waiting. */
void jobs_delivery(struct jobs *jobs, uint32_t dataset,
		   struct counters_sum *out);

struct jobs_entry {
	char name[JOBS_NAME_SIZE];
	uint64_t number;
	struct jobs_count count;
	uint64_t connections;
	uint64_t last_s; /* since its last batch, or its start */
};

/* Lists the jobs that read a dataset, with number `first` and greater ones, by
   number, at most `max`. A job that reads several has one number. Returns how
   many. */
size_t jobs_list(struct jobs *jobs, uint32_t dataset, uint64_t first,
		 struct jobs_entry *out, size_t max);

/* Lists the ranks of the job with this number, or of all jobs if it is 0, by
   job and rank, at most `max`. Returns how many. */
size_t jobs_ranks(struct jobs *jobs, uint32_t dataset, uint64_t number,
		  struct jobs_rank *out, size_t max);
/* When a job of a dataset was last added or removed. */
struct timespec jobs_changed(struct jobs *jobs, uint32_t dataset);

#endif
