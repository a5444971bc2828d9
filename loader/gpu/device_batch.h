/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch for a GPU: the memory that rows are made in, and what becomes of it.
 * An output is copied as it was made, or a kernel makes it of that; where a row
 * could not be made, it makes zeros, as processors do.
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
 * Room for so many rows of a pipeline, which the device knows by device_add().
 * Waits until the last batch in this memory was copied. -ENOMEM, -EIO
 */
int parcel_begin(struct parcel *p, const struct pipeline *pipeline,
		 uint32_t rows);

/* Whether that wait was one. */
bool parcel_has_waited(const struct parcel *p);
/* Bytes that are copied to the device. */
uint64_t parcel_size(const struct parcel *p);

/* Where rows of made_size bytes are to be; NULL: the output is no GPU's. */
uint8_t *parcel_rows(const struct parcel *p, size_t output);
/* Where it will be, in the memory of the device. */
uint64_t parcel_address(const struct parcel *p, size_t output);

/*
 * Instead of parcel_begin(), rows and parcel_start(): gives once more what
 * another parcel was started with, which is never begun again and is closed
 * later. `ship`: it is copied from there, and made, anew; else it is where that
 * one has it.
 */
int parcel_repeat(struct parcel *p, const struct parcel *of, bool ship);

/* Once per output of a GPU and row: it is there, or it is not. */
void parcel_row(struct parcel *p, size_t output, uint32_t row,
		const struct pipeline_row *key, bool is_made);

/* After all rows: copies and kernels are queued. */
int parcel_start(struct parcel *p);

/* An output that was started, to memory of the host. Waits. */
int parcel_read(struct parcel *p, size_t output, void *to, uint64_t size);

/* As upload_acquire(), _wait() and _release(). */
int parcel_acquire(struct parcel *p, struct cuda_stream *stream);
int parcel_wait(struct parcel *p);
int parcel_release(struct parcel *p, struct cuda_stream *stream);
/* As upload_release_done(), if it was begun and not released. */
void parcel_end(struct parcel *p);

#endif
