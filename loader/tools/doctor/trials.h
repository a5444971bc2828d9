/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures: short runs of the loader that differ in one thing, in turns, so
 * that what disturbs the machine meanwhile disturbs all alike; medians are
 * kept.
 */
#ifndef LOADER_TOOLS_DOCTOR_TRIALS_H
#define LOADER_TOOLS_DOCTOR_TRIALS_H

#include "fs/util/log.h"
#include "loader/tools/doctor/evidence.h"

struct ladder_options {
	struct run_place place;
	const char *pipeline; /* "": none */
	uint32_t workers;     /* 0: as the loader chooses */
	double seconds;	      /* for all of it, about */
	struct log *log;
	/* Told now and then: how much is done, 0 to 1, and what is next. */
	void (*progress)(void *arg, double done, const char *what);
	void *arg;
};

/* Machine, dataset and options; measures nothing of the loader. */
int ladder_look(const struct ladder_options *o, struct evidence *e);

/* All runs. What cannot be run is noted; only the whole pipeline must. */
int ladder_run(const struct ladder_options *o, struct evidence *e);

/* The model of what was measured, once all of it is there. */
void ladder_model(struct evidence *e);

#endif
