/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One short measured run of a loader: how many samples a second, what of the
 * processors they took, and how much of these others had meanwhile. One thread,
 * beside those of the loader.
 */
#ifndef LOADER_TOOLS_DOCTOR_RUN_H
#define LOADER_TOOLS_DOCTOR_RUN_H

#include <signal.h>
#include <stdbool.h>

#include "beton/loader.h"
#include "fs/util/log.h"

enum { RUN_WHY_SIZE = 512, RUN_STAGES_MAX = 8 };

/* What all runs of a doctor have in common. */
struct run_place {
	const char *root; /* that has proc/ and sys/ */
	const char *path;
	const char *spec;
	const char *subset;
	const char *delivery;
	const char *cache;
	uint64_t cache_size;
	uint64_t cold_size;
	uint32_t prefetch;
	pid_t daemon;  /* of a mount, or 0 */
	pid_t trainer; /* that runs beside and is no neighbour, or 0 */
	/* A run looks at no more samples than these, from the start of an
	   epoch, again and again: so that they are in memory. */
	uint64_t samples;
	volatile sig_atomic_t *stop; /* set by a signal */
};

struct run_plan {
	const char *path;     /* NULL: the place's */
	const char *pipeline; /* NULL: none */
	const char *source;
	const char *cache; /* NULL: the place's */
	enum beton_stage until;
	uint32_t workers;
	double seconds;
	/* What a run looks at, instead of the place's samples; all of them are
	   run once before. 0: nothing of the kind. */
	uint64_t samples;
};

struct run_figures {
	double rate;	  /* samples a second */
	double cpu_us;	  /* of a sample, all threads, and the daemon's */
	double bytes;	  /* of a sample, of its batch file */
	double cores;	  /* that the loader had */
	double others;	  /* cores that others had */
	double stolen;	  /* cores that the host took */
	double throttled; /* share of periods in which a quota stopped it */
	double uploaded;  /* bytes of a sample, to a GPU */
	double output;	  /* bytes of a sample, as outputs */
	double failed;	  /* share of rows */
	double side;	  /* the longest of images that come out */
	uint64_t rows;
	uint32_t workers;
	uint32_t batch;	  /* rows of a full batch */
	uint64_t samples; /* of the dataset */
	bool on_gpu;
	char spec[256];
	char source[16];
	char delivery[16];
	char jit[16];
	struct beton_stage_stats stages[RUN_STAGES_MAX];
	size_t num_stages;
};

/*
 * -ECANCELED: stopped. Any other error is the loader's, and `why`, of
 * RUN_WHY_SIZE, says what it said.
 */
int run_measure(const struct run_place *place, const struct run_plan *plan,
		struct run_figures *out, char *why);

#endif
