/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the model from the measurements. Uses nothing but the evidence. */
#ifndef LOADER_TOOLS_DOCTOR_ESTIMATE_H
#define LOADER_TOOLS_DOCTOR_ESTIMATE_H

#include "loader/tools/doctor/evidence.h"

/* Fills e->model and the rung of cold reads. Call it when the evidence is
   otherwise complete. */
void ladder_model(struct evidence *e);

/* Call after ladder_run(). Fills in the rate of the trainer, if it was
   observed. */
void watch_model(struct evidence *e);

#endif
