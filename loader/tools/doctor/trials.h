/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures: short runs of the loader that differ in one thing, in turns, so
 * that what disturbs the machine meanwhile disturbs all alike; medians are
 * kept.
 */
#ifndef LOADER_TOOLS_DOCTOR_TRIALS_H
#define LOADER_TOOLS_DOCTOR_TRIALS_H

#include "loader/tools/doctor/look.h"

/* All runs. What cannot be run is noted; only the whole pipeline must. */
int ladder_run(const struct ladder_options *o, struct evidence *e);

#endif
