/* SPDX-License-Identifier: Apache-2.0 */
/* The input and the output of one row. */
#ifndef LOADER_RUN_TRANSFORM_WORKER_JOB_H
#define LOADER_RUN_TRANSFORM_WORKER_JOB_H

#include "beton/loader.h"
#include "loader/run/transform/output_plan.h"

/* The arguments of pipeline_run(). */
struct worker_job {
	const struct output_plan *plan;
	const struct pipeline_value *value;
	const struct pipeline_row *row;
	enum beton_stage until;
	void *out;
	uint64_t *decode_ns;
	uint64_t *rows; /* of a list output */
};

#endif
