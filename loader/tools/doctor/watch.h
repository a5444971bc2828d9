/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observes a trainer from outside: the CPU time of its threads, and the samples
 * of its loaders. Starts a trainer, or watches a running one. Ends all
 * processes that it starts. One thread.
 */
#ifndef LOADER_TOOLS_DOCTOR_WATCH_H
#define LOADER_TOOLS_DOCTOR_WATCH_H

#include "fs/base/util/log.h"
#include "loader/tools/doctor/evidence.h"

struct watch_options {
	const char *root;    /* that has proc/ and sys/ */
	const char *trainer; /* a command of the shell; NULL: watch pid */
	pid_t pid;
	const char *mount; /* the mount whose statistics may contain the loaders
			      of pid, or NULL */
	double seconds;	   /* duration of one watch, without the start */
	struct log *log;
	volatile sig_atomic_t *stop;
};

/*
 * Fills e->watch and e->ranks; a trainer that this module starts runs twice,
 * the second time with synthetic batches. -ESRCH: no such process. -ECHILD: the
 * command failed at once; logged, as all.
 */
int watch_run(const struct watch_options *o, struct evidence *e);

#endif
