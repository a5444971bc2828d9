/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch for a GPU: the memory for its rows, and their way to the device. An
 * output is copied as it is, or a kernel makes it from the copied rows. For a
 * row that failed, the kernel makes zeros, as CPUs do.
 *
 * The protocol, and the threads, are those of upload.h.
 */
#ifndef LOADER_GPU_DEVICE_BATCH_H
#define LOADER_GPU_DEVICE_BATCH_H

#include <stdbool.h>

#include "loader/gpu/device.h"
#include "loader/util/value.h"

struct parcel;

int parcel_open(struct device *d, size_t num_outputs, struct parcel **out);
/* Takes NULL. */
void parcel_close(struct parcel *p);

/*
 * Starts a batch of `rows` rows of a pipeline that device_add() prepared.
 * Blocks until the last batch in this memory is copied. -ENOMEM, -EIO
 */
int parcel_begin(struct parcel *p, const struct pipeline *pipeline,
		 uint32_t rows);

/* Whether parcel_begin() had to block. */
bool parcel_has_waited(const struct parcel *p);
/* Bytes that are copied to the device. */
uint64_t parcel_size(const struct parcel *p);

/* The memory for rows of made_size bytes; NULL: the output is not for a GPU. */
uint8_t *parcel_rows(const struct parcel *p, size_t output);
/* The address of the output on the device. */
uint64_t parcel_address(const struct parcel *p, size_t output);

/*
 * Instead of parcel_begin(), rows and parcel_start(): gives once more what
 * another parcel was started with, which is never begun again and is closed
 * later. `ship`: it is copied from there, and made, anew; else it is where that
 * one has it.
 */
int parcel_repeat(struct parcel *p, const struct parcel *of, bool ship);

/* Records for each output of a GPU and row whether the row was made. */
void parcel_row(struct parcel *p, size_t output, uint32_t row,
		const struct pipeline_row *key, bool is_made);

/* Queues copies and kernels, after all rows. */
int parcel_start(struct parcel *p);

/* Copies a started output to memory of the host. Blocks. */
int parcel_read(struct parcel *p, size_t output, void *to, uint64_t size);

/* As upload_acquire(), _wait() and _release(). */
int parcel_acquire(struct parcel *p, struct cuda_stream *stream);
int parcel_wait(struct parcel *p);
int parcel_release(struct parcel *p, struct cuda_stream *stream);
/* As upload_release_done(), if the batch was begun and not released. */
void parcel_end(struct parcel *p);

#endif
