/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets batches, and how much: jobs by the names that their loaders give, or
 * by the session of a process that opens files. The most recent ones are
 * remembered, under numbers that are never used again; how batches left is
 * counted for all together. Of ranks of a job there are the figures that their
 * loaders tell.
 *
 * Thread-safe. jobs.lock guards the list of jobs, nothing follows it; counting
 * takes no lock.
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

struct jobs;
struct job;
struct job_rank;

/* How a batch leaves the daemon. */
enum jobs_way {
	JOBS_PAGE_CACHE, /* by a file, through the kernel's page cache */
	JOBS_DIRECT,	 /* by a file that was opened with O_DIRECT */
	JOBS_HANDOVER,	 /* in its own memory */
	JOBS_WAYS,
};

enum {
	JOBS_MAX = 256,	       /* that are remembered */
	JOBS_RANKS_MAX = 1024, /* of all of them */
	JOBS_NAME_SIZE = 65,
};

int jobs_open(struct jobs **out);
/* All are put. Takes NULL. */
void jobs_close(struct jobs *jobs);

/*
 * The job of a name, which is ASCII and of which as much counts as fits, with a
 * reference for the caller. A new one takes the place of the least recent; who
 * counts that goes on unseen. NULL, for want of memory or of `jobs`: all
 * functions take it, and count nothing.
 */
struct job *jobs_get(struct jobs *jobs, const char *name);
/* "session-N" of a process; N is 0 if it cannot be seen from here. */
struct job *jobs_get_session(struct jobs *jobs, pid_t pid);
/* Drops the reference and the caller's pointer. */
void jobs_put(struct job **job);

void job_add(struct job *job, enum jobs_way way, uint64_t batches,
	     uint64_t bytes);
/* One of these batches was not ready when it was asked for. */
void job_late(struct job *job, enum jobs_way way);
/* A reader has waited so long for a batch. */
void job_waited(struct job *job, uint64_t ns);
/* A connection of the job's, in the time between these two. */
void job_connect(struct job *job);
void job_disconnect(struct job *job);

/*
 * A loader of a rank, in the time between these two, of which job_tell() adds
 * up what it has done since it told last. NULL: too many tell already.
 */
struct job_rank *job_rank_open(struct job *job, uint32_t rank, uint32_t world);
/* Clears the caller's pointer; takes NULL. */
void job_rank_close(struct job *job, struct job_rank **rank);
void job_tell(struct job *job, struct job_rank *rank,
	      const struct figures *since);

struct jobs_count {
	uint64_t batches;
	uint64_t late; /* of these */
	uint64_t bytes;
};

void jobs_delivered(struct jobs *jobs, struct jobs_count out[JOBS_WAYS]);
/* The same of all ways, as a stage: its times are those of waiting. */
void jobs_delivery(struct jobs *jobs, struct tally_sum *out);

struct jobs_entry {
	char name[JOBS_NAME_SIZE];
	uint64_t number;
	struct jobs_count count;
	uint64_t connections;
	uint64_t last_s; /* since its last batch, or since it came */
};

/* Those with this number and greater ones, by number, at most `max`; returns
   how many. */
size_t jobs_list(struct jobs *jobs, uint64_t first, struct jobs_entry *out,
		 size_t max);
struct jobs_rank {
	char job[JOBS_NAME_SIZE];
	uint64_t rank;
	uint64_t world;
	uint64_t loaders; /* that are connected */
	uint64_t idle_s;  /* since one told last */
	struct figures all;
	struct figures last; /* between its last two words */
};

/* Those of the job with this number, 0: of all, by job and rank, at most `max`;
   returns how many. */
size_t jobs_ranks(struct jobs *jobs, uint64_t number, struct jobs_rank *out,
		  size_t max);
/* When a job came or went last. */
struct timespec jobs_changed(struct jobs *jobs);

#endif
