/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the doctor's report. Text, JSON and HTML all use them, so a
   value that is added appears in all three. */
#ifndef LOADER_TOOLS_DOCTOR_FACTS_H
#define LOADER_TOOLS_DOCTOR_FACTS_H

#include "loader/tools/doctor/apply.h"
#include "loader/tools/doctor/evidence.h"
#include "loader/tools/doctor/fix.h"
#include "loader/tools/doctor/verdict.h"
#include "loader/tools/ui/fact.h"

struct diagnosis {
	const struct evidence *evidence;
	struct verdict verdict;
	struct fix fixes[FIXES_MAX];
	size_t num_fixes;
	const struct applied *applied; /* NULL: not requested */
};

/* A line of the picture of where time goes. */
struct stage_share {
	const char *name;
	double us; /* CPU time of a sample */
	double share;
};

/* A diagnosis with the values that a report computes from it. */
struct facts {
	const struct diagnosis *d;
	struct evidence e;
	struct verdict verdict;
	double cores;
	double misses;
	double latency_ms; /* of the network */
	uint64_t memlock, files;
	bool is_limited;	      /* by a quota of CPU time */
	bool is_measured, is_guessed; /* the rate of the trainer */
	bool has_constant_rate;
	bool has_gpu_busy;
};

void facts_of(const struct diagnosis *d, struct facts *out);

/* About struct facts: */
extern const struct fact facts_head[];
extern const struct fact facts_cpu[];
extern const struct fact facts_others[];
extern const struct fact facts_memory[];
extern const struct fact facts_disk[];
extern const struct fact facts_network[];
extern const struct fact facts_watch[];
/* About the struct of the same name: */
extern const struct fact facts_machine_gpu[];
extern const struct fact facts_rank_seen[];
extern const struct fact facts_figure[];
extern const struct fact facts_stage_share[];
extern const struct fact facts_fix[];

#endif
