/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and their threads as /proc shows them: who they are, and what they
 * have used so far. Nothing is kept; any thread. `root` is the directory that
 * has proc/: "" but in tests.
 */
#ifndef LOADER_TOOLS_MACHINE_PROCESS_H
#define LOADER_TOOLS_MACHINE_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* CPU time of a process so far, in seconds; 0: there is none. */
double process_cpu_s(const char *root, pid_t pid);

struct usage {
	uint64_t cpu_us;   /* user and system, all threads */
	uint64_t peak_rss; /* bytes */
};

/* -ESRCH if there is no such process. */
int process_usage(pid_t pid, struct usage *out);

/* Microseconds since this process began. */
uint64_t process_age_us(void);

#endif
