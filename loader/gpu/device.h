/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GPU as one loader uses it: an upload of its own, and kernels for what its
 * pipelines leave to the GPU. Kernels are compiled when the loader opens, once
 * for equal texts, and kept from one process to the next as processors' code is
 * (loader/jit/code_cache.h).
 *
 * Threads: device_add() before all else, then any.
 */
#ifndef LOADER_GPU_DEVICE_H
#define LOADER_GPU_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/gpu/upload.h"

struct device;
struct log;
struct pipeline;

/*
 * `pinned`: bytes of batches that may be pinned. -ENODEV, -ENOSYS: there is no
 * such GPU, or no driver; told to the log.
 */
int device_open(int ordinal, uint64_t pinned, struct log *log,
		struct device **out);
/* All that uses it has ended. Takes NULL. */
void device_close(struct device *d);

/*
 * Kernels for what pipeline_split() left of a pipeline, which outlives the
 * device. -ENOSYS: there is no compiler, or it refuses a function of a file;
 * told to the log.
 */
int device_add(struct device *d, const struct pipeline *p);

/*
 * Bytes of the device to the host, after what makes them was waited for. Waits;
 * a few at a time through pinned memory: for looking, not for speed.
 */
int device_download(struct device *d, uint64_t from, void *to, uint64_t size);

struct cuda *device_cuda(const struct device *d);
struct upload *device_upload(const struct device *d);
/* Of an output; NULL: there is nothing left to a kernel. */
struct cuda_kernel *device_kernel(const struct device *d,
				  const struct pipeline *p, size_t i);

#endif
