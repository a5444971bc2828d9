/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch for a GPU: the memory for its rows, and their way to the device. An
 * output is copied as it is, or a kernel makes it from the copied rows. For a
 * row that failed, the kernel makes zeros, as CPUs do.
 *
 * The protocol, and the threads, are those of upload.h.
 */
#ifndef LOADER_RUN_GPU_DEVICE_BATCH_H
#define LOADER_RUN_GPU_DEVICE_BATCH_H

#include <stdbool.h>

#include "loader/run/gpu/device.h"
#include "loader/util/value.h"

struct device_batch;

int device_batch_open(struct device *d, size_t num_outputs,
		      struct device_batch **out);
/* Takes NULL. */
void device_batch_close(struct device_batch *p);

/*
 * Starts a batch of `rows` rows of a pipeline that device_add() prepared.
 * Blocks until the last batch in this memory is copied. -ENOMEM, -EIO
 */
int device_batch_begin(struct device_batch *p, const struct pipeline *pipeline,
		       uint32_t rows);

/* Whether device_batch_begin() had to block. */
bool device_batch_has_waited(const struct device_batch *p);
/* Bytes that are copied to the device. */
uint64_t device_batch_size(const struct device_batch *p);

/* The memory for rows of made_size bytes; NULL: the output is not for a GPU. */
uint8_t *device_batch_rows(const struct device_batch *p, size_t output);
/* The address of the output on the device. */
uint64_t device_batch_address(const struct device_batch *p, size_t output);

/*
 * Fills the batch from another one, instead of device_batch_begin(), rows and
 * device_batch_start(). `of` was started, is never begun again, and is closed
 * after this one. `upload`: copies the rows of `of` to the device and runs the
 * kernels again; otherwise this batch refers to the memory of `of`.
 */
int device_batch_repeat(struct device_batch *p, const struct device_batch *of,
			bool upload);

/* Records for each output of a GPU and row whether the row was made. */
void device_batch_row(struct device_batch *p, size_t output, uint32_t row,
		      const struct pipeline_row *key, bool is_made);

/* Queues copies and kernels, after all rows. */
int device_batch_start(struct device_batch *p);

/* Copies a started output to memory of the host. Blocks. */
int device_batch_read(struct device_batch *p, size_t output, void *to,
		      uint64_t size);

/* As upload_acquire(), _wait() and _release(). */
int device_batch_acquire(struct device_batch *p, struct cuda_stream *stream);
int device_batch_wait(struct device_batch *p);
int device_batch_release(struct device_batch *p, struct cuda_stream *stream);
/* As upload_release_done(), if the batch was begun and not released. */
void device_batch_end(struct device_batch *p);
/* As upload_finish(), if the batch was begun and not released. */
int device_batch_finish(struct device_batch *p);

#endif
