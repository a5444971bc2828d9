/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processors that this process may use, who else uses them, and how fast
 * they are told to run. Nothing is kept; any thread. `root` is the directory
 * that has proc/ and sys/: "" but in tests.
 */
#ifndef LOADER_TOOLS_MACHINE_CPU_H
#define LOADER_TOOLS_MACHINE_CPU_H

#include <stdbool.h>
#include <stdint.h>

struct machine_cpu {
	unsigned online;
	unsigned allowed;    /* of these, by the affinity of this process */
	double quota;	     /* cores by control groups; 0: no limit */
	char quota_of[128];  /* the group that has it */
	unsigned nodes;	     /* NUMA nodes with processors, at least 1 */
	unsigned nodes_used; /* of these, with allowed processors */
	double mhz;	     /* of the first allowed processor; 0: not told */
	double mhz_max;	     /* 0: not told */
	char governor[32];   /* "": not told */
};

/* -ENOENT: no /proc/stat. */
int machine_cpu_read(const char *root, struct machine_cpu *out);

/* Cores that may be used at once: allowed, and no more than the quota. */
double machine_cpu_cores(const struct machine_cpu *cpu);

/* Counters of the allowed processors, to be taken twice. */
struct machine_times {
	double busy_s;	/* all processors, without what was stolen */
	double steal_s; /* by other guests of the host */
	double total_s;
	double throttled_s; /* this process's groups, by a quota */
	uint64_t periods;   /* of that quota */
	uint64_t throttled; /* of these */
};

int machine_times_read(const char *root, struct machine_times *out);

#endif
