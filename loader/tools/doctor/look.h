/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the facts that need no run: the machine, its disk and memory, the
   options of a mount, the dataset. One thread. */
#ifndef LOADER_TOOLS_DOCTOR_LOOK_H
#define LOADER_TOOLS_DOCTOR_LOOK_H

#include "fs/base/util/log.h"
#include "loader/tools/doctor/evidence.h"

struct ladder_options {
	struct run_place place;
	const char *pipeline; /* "": none */
	uint32_t workers;     /* 0: as the loader chooses */
	double seconds;	      /* approximate limit for the whole diagnosis */
	struct log *log;
	/* Called from time to time with the share that is done, 0 to 1, and a
	   name of the next step. */
	void (*progress)(void *arg, double done, const char *what);
	void *arg;
};

/* Machine, dataset and options; measures nothing of the loader. */
int ladder_look(const struct ladder_options *o, struct evidence *e);

/* Facts of the dataset, by a loader that only reads. Errors are logged. */
int ladder_look_at_dataset(const struct ladder_options *o, struct evidence *e);

/* Measures the speed of the disk, in reads of a sample and in larger ones. */
void ladder_probe_disk(struct evidence *e, double sample_bytes);

#endif
