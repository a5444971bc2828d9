/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trainer seen from outside: which of its threads work, and how many samples
 * its loaders get. Runs it, or watches one that runs; one thread. Whatever was
 * started is gone afterwards.
 */
#ifndef LOADER_TOOLS_DOCTOR_WATCH_H
#define LOADER_TOOLS_DOCTOR_WATCH_H

#include "fs/util/log.h"
#include "loader/tools/doctor/evidence.h"

struct watch_options {
	const char *root;    /* that has proc/ and sys/ */
	const char *trainer; /* a command of the shell; NULL: watch pid */
	pid_t pid;
	const char *mount; /* whose daemon may tell of pid's loaders, or NULL */
	double seconds;	   /* of one watch, beside the start */
	struct log *log;
	volatile sig_atomic_t *stop;
};

/*
 * Fills e->watch and e->ranks; a trainer of ours runs twice, the second time
 * with batches that cost nothing. -ESRCH: no such process. -ECHILD: the command
 * failed at once; logged, as all.
 */
int watch_run(const struct watch_options *o, struct evidence *e);

#endif
