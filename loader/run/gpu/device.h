/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GPU as one loader uses it: an upload of its own, and kernels for the
 * operations that its pipelines leave to the GPU. The loader compiles them when
 * it opens, each source once. The cache on disk for the CPU's code
 * (loader/run/jit/code_cache.h) stores them for later processes.
 *
 * Threads: device_add() before all else, then any.
 */
#ifndef LOADER_RUN_GPU_DEVICE_H
#define LOADER_RUN_GPU_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/run/gpu/upload.h"

struct device;
struct log;
struct pipeline;

/*
 * Opens a GPU. `pinned`: bytes of batches that may be pinned. -ENODEV, -ENOSYS:
 * there is no such GPU, or no driver, which is logged.
 */
int device_open(int ordinal, uint64_t pinned, struct log *log,
		struct device **out);
/* Closes the device; everything that uses it is closed. Takes NULL. */
void device_close(struct device *d);

/*
 * Compiles kernels for the operations that pipeline_split() left to the GPU.
 * The pipeline outlives the device. -ENOSYS: there is no compiler, or it
 * refuses a function from a file, which is logged.
 */
int device_add(struct device *d, const struct pipeline *p);

/*
 * Copies bytes of the device to the host, after the work that makes them.
 * Blocks, and copies a few at a time through pinned memory: for inspection, not
 * for speed.
 */
int device_download(struct device *d, uint64_t from, void *to, uint64_t size);

struct cuda *device_cuda(const struct device *d);
struct upload *device_upload(const struct device *d);
/* The kernel of an output; NULL: it needs none. */
struct cuda_kernel *device_kernel(const struct device *d,
				  const struct pipeline *p, size_t i);

#endif
