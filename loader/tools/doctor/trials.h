/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures short runs of the loader. Runs that differ in one respect are
 * interleaved, so that background load affects them equally. The results are
 * medians.
 */
#ifndef LOADER_TOOLS_DOCTOR_TRIALS_H
#define LOADER_TOOLS_DOCTOR_TRIALS_H

#include "loader/tools/doctor/look.h"

/* Does all runs. If a run fails, adds a note; only the whole pipeline must
   succeed. */
int ladder_run(const struct ladder_options *o, struct evidence *e);

#endif
