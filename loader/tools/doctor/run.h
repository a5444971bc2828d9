/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One short measured run of a loader: samples per second, the CPU time that
 * they cost, and the CPU time that other processes used meanwhile. One thread,
 * besides those of the loader.
 */
#ifndef LOADER_TOOLS_DOCTOR_RUN_H
#define LOADER_TOOLS_DOCTOR_RUN_H

#include <signal.h>
#include <stdbool.h>

#include "beton/loader.h"
#include "fs/base/util/log.h"

enum { RUN_WHY_SIZE = 512, RUN_STAGES_MAX = 8 };

/* The settings that all runs of one diagnosis share. */
struct run_place {
	const char *root; /* directory of proc/ and sys/ */
	const char *path;
	const char *spec;
	const char *subset;
	const char *delivery;
	const char *cache;
	uint64_t cache_size;
	uint64_t cold_size;
	uint32_t prefetch;
	pid_t daemon;  /* of the mount, or 0 */
	pid_t trainer; /* runs beside the loader, and is not counted as a noisy
			  neighbor; or 0 */
	/* If not 0, a run repeats this many samples from the start of an epoch,
	   so that they are in memory. */
	uint64_t samples;
	volatile sig_atomic_t *stop; /* set by a signal */
};

struct run_plan {
	const char *path;     /* NULL: that of the place */
	const char *pipeline; /* NULL: none */
	const char *source;
	const char *cache; /* NULL: that of the place */
	enum beton_stage until;
	uint32_t workers;
	double seconds;
	/* If not 0, used instead of the place's `samples`, and each is
	   processed once before the measurement. */
	uint64_t samples;
};

struct run_figures {
	double rate;	  /* samples per second */
	double cpu_us;	  /* per sample, of all threads and of the daemon */
	double bytes;	  /* read per sample, from the batch file */
	double cores;	  /* that the loader used */
	double others;	  /* cores that other processes used */
	double stolen;	  /* cores that the host used for other guests */
	double throttled; /* share of the periods in which a quota stopped the
			     process */
	double uploaded;  /* bytes per sample, to a GPU */
	double output;	  /* bytes per sample, of all outputs */
	double failed;	  /* share of the samples */
	double side;	  /* the longest side of output images */
	uint64_t rows;
	uint32_t workers;
	uint32_t batch;	  /* samples of a full batch */
	uint64_t samples; /* in the dataset */
	bool on_gpu;
	char spec[256];
	char source[16];
	char delivery[16];
	char jit[16];
	struct beton_stage_stats stages[RUN_STAGES_MAX];
	size_t num_stages;
};

/*
 * Opens a loader, measures it and closes it. 0 or -errno. -ECANCELED: `stop`
 * was set. On any other error, `why`, of RUN_WHY_SIZE bytes, contains the
 * loader's message.
 */
int run_measure(const struct run_place *place, const struct run_plan *plan,
		struct run_figures *out, char *why);

#endif
