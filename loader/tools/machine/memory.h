/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of this machine for a loader: its limits, and its copy bandwidth.
   No state; any thread. */
#ifndef LOADER_TOOLS_MACHINE_MEMORY_H
#define LOADER_TOOLS_MACHINE_MEMORY_H

#include <stdint.h>

#include "fs/base/memory/memory.h"

struct machine_memory {
	struct memory size;
	uint64_t memlock; /* RLIMIT_MEMLOCK; UINT64_MAX: none */
	uint64_t address; /* RLIMIT_AS */
	uint64_t files;	  /* RLIMIT_NOFILE */
};

/* `root` has proc/ and sys/: "" except in tests. */
int machine_memory_read(const char *root, struct machine_memory *out);

/*
 * Bytes that `threads` threads read and write a second, copying for
 * `milliseconds` what no cache holds. 0: no memory for that.
 */
double machine_memory_rate(unsigned threads, unsigned milliseconds);

#endif
