/* SPDX-License-Identifier: Apache-2.0 */
/* From what was measured to the model. Reads and writes the evidence alone. */
#ifndef LOADER_TOOLS_DOCTOR_ESTIMATE_H
#define LOADER_TOOLS_DOCTOR_ESTIMATE_H

#include "loader/tools/doctor/evidence.h"

/* Fills e->model and the rung of cold reads, once all else of the evidence is
   there. */
void ladder_model(struct evidence *e);

/* After ladder_run(): what the trainer takes, as far as it was seen. */
void watch_model(struct evidence *e);

#endif
