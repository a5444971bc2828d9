/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this machine, read by NVML, which is loaded on first use. If
 * there is no libnvidia-ml.so.1, there are no GPUs. $BETON_NVML_LIBRARY
 * replaces its path. One thread.
 */
#ifndef LOADER_TOOLS_MACHINE_GPU_H
#define LOADER_TOOLS_MACHINE_GPU_H

#include <stddef.h>

enum { MACHINE_GPUS_MAX = 16 };

/* Values that a driver does not report are -1. */
struct machine_gpu {
	char name[96];
	int busy;	      /* percent of the last moments in which it ran */
	int memory_used;      /* percent */
	int clock, clock_max; /* MHz, of its multiprocessors */
	int state;	      /* P-state: 0 is the fastest, 15 the slowest */
	int link, link_max;   /* PCIe generation */
	int width, width_max; /* lanes */
	unsigned long long slowed; /* reasons of low clocks, NVML's bits */
};

/* Returns whether heat or power lower the clocks, and not idleness or a
   setting. */
int machine_gpu_is_slowed(const struct machine_gpu *gpu);

/* Returns the number of GPUs; fills at most `max`. */
size_t machine_gpu_read(struct machine_gpu *out, size_t max);

#endif
