/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this machine by NVML, which is found when it is asked: where
 * there is no libnvidia-ml.so.1 there are none. $BETON_NVML_LIBRARY is its path
 * instead. One thread.
 */
#ifndef LOADER_TOOLS_MACHINE_GPU_H
#define LOADER_TOOLS_MACHINE_GPU_H

#include <stddef.h>

enum { MACHINE_GPUS_MAX = 16 };

/* What a driver does not tell is -1. */
struct machine_gpu {
	char name[96];
	int busy;	      /* percent of the last moments in which it ran */
	int memory_used;      /* percent */
	int clock, clock_max; /* MHz, of its processors */
	int state;	      /* P-state: 0 is the fastest, 15 the slowest */
	int link, link_max;   /* PCIe generation */
	int width, width_max; /* lanes */
	unsigned long long slowed; /* why its clocks are low, NVML's bits */
};

/* Lanes of PCIe to and from the GPU, in bytes a second; 0: not told. */
double machine_gpu_link_rate(int generation, int width);

/* Whether heat or power lower the clocks: not idleness, not a wish. */
int machine_gpu_is_slowed(const struct machine_gpu *gpu);

/* How many there are; fills at most `max`. */
size_t machine_gpu_read(struct machine_gpu *out, size_t max);

#endif
