/* SPDX-License-Identifier: Apache-2.0 */
/* What processes have used so far, from /proc. */
#ifndef LOADER_TOOLS_MACHINE_USAGE_H
#define LOADER_TOOLS_MACHINE_USAGE_H

#include <stdint.h>
#include <sys/types.h>

struct usage {
	uint64_t cpu_us;   /* user and system, all threads */
	uint64_t peak_rss; /* bytes */
};

/* -ESRCH if there is no such process. */
int usage_of(pid_t pid, struct usage *out);

/* Microseconds since a process began. */
uint64_t usage_age_us(void);

#endif
