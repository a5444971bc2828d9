/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPUs that this process may use, their use by other processes, and their
 * clock. No state; any thread. `root` is the directory that has proc/ and sys/:
 * "" except in tests.
 */
#ifndef LOADER_TOOLS_MACHINE_CPU_H
#define LOADER_TOOLS_MACHINE_CPU_H

#include <stdbool.h>
#include <stdint.h>

struct machine_cpu {
	unsigned online;
	unsigned allowed;    /* those in the affinity of this process */
	double quota;	     /* cores by control groups; 0: no limit */
	char quota_of[128];  /* the group with the limit */
	unsigned nodes;	     /* NUMA nodes with CPUs, at least 1 */
	unsigned nodes_used; /* NUMA nodes with allowed CPUs */
	double mhz;	     /* of the first allowed CPU; 0: unknown */
	double mhz_max;	     /* 0: unknown */
	char governor[32];   /* "": unknown */
};

/* -ENOENT: no /proc/stat. */
int machine_cpu_read(const char *root, struct machine_cpu *out);

/* Returns the cores that may be used at once: allowed, and no more than the
   quota. */
double machine_cpu_cores(const struct machine_cpu *cpu);

/* Counters of the allowed CPUs. Read them twice and use the difference. */
struct machine_times {
	double busy_s;	/* all CPUs, without stolen time */
	double steal_s; /* by other guests of the host */
	double total_s;
	double throttled_s; /* time that a quota stopped the groups of this
			       process */
	uint64_t periods;   /* periods of that quota */
	uint64_t throttled; /* of these */
};

int machine_times_read(const char *root, struct machine_times *out);

#endif
