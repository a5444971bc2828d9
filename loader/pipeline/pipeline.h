/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline: a string (beton-transforms(7)) -> typed outputs -> rows of
 * tensors. Immutable once parsed, except for the caches. Any number of threads
 * may run it, each with its own pipeline_worker.
 */
#ifndef LOADER_PIPELINE_PIPELINE_H
#define LOADER_PIPELINE_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/loader.h"
#include "loader/util/value.h"

struct jit;
struct log;
struct value_store_stats;
struct pipeline;
struct pipeline_worker;

/*
 * Parses the string for an epoch. `error` may be NULL; it receives one line
 * that quotes the string and names the column. -EINVAL. The fields need to
 * outlive this call only.
 */
int pipeline_parse(const char *text, const struct pipeline_field *fields,
		   size_t num_fields, uint64_t epoch, struct pipeline **out,
		   char *error, size_t error_size);
/* Closes a pipeline; close the jit that compiled it before. */
void pipeline_close(struct pipeline *p);

/*
 * Puts each output on a GPU that has no cuda() and is not ragged, as a cuda()
 * at its end would. Call it once, before pipeline_split().
 */
void pipeline_put_on(struct pipeline *p, int gpu);

/*
 * Leaves the operations after cuda() to kernels for the GPU, if they are more
 * than a copy. Unless `autos` is set, skips outputs whose placement is `auto`.
 * Call it once, before pipeline_compile(); otherwise the CPU runs all
 * operations. -ENOMEM.
 */
int pipeline_split(struct pipeline *p, bool autos);

/*
 * After pipeline_split(): whether the CPU could do some of the split
 * operations.
 */
bool pipeline_has_choice(const struct pipeline *p);

/*
 * The CUDA C of the kernel of an output, after pipeline_compile(); see
 * emit_device.h. NULL: no kernel, or no memory. The caller frees it.
 */
char *pipeline_rest(const struct pipeline *p, size_t i);
/* Whether the output has operations left for a kernel. */
bool pipeline_has_rest(const struct pipeline *p, size_t i);

/* The size of an image's output, in pixels. */
void pipeline_image_size(const struct pipeline *p, size_t i, uint32_t *width,
			 uint32_t *height);

/* The number of floats that a kernel needs for a row, and their values. */
size_t pipeline_num_operands(const struct pipeline *p, size_t i);
void pipeline_operands(const struct pipeline *p, size_t i,
		       const struct pipeline_row *row, float *out);

/* The next epoch with other numbers; UINT64_MAX: none. */
uint64_t pipeline_end(const struct pipeline *p);

/*
 * Whether two pipelines differ in numbers alone: outputs are equal but for
 * shapes and sizes of rows, and workers of one can run the other.
 */
bool pipeline_is_alike(const struct pipeline *a, const struct pipeline *b);

/*
 * Whether the cache of one pipeline serves the other as well, if they are
 * alike.
 */
bool pipeline_keeps_alike(const struct pipeline *a, const struct pipeline *b);

/*
 * Compiles code for the outputs that no part of the library serves (jit.h). It
 * is faster, and operations from files need it. Call it once, before workers
 * run. -EINVAL, -ENOSYS: with a message as from pipeline_parse(). -ECANCELED:
 * it was interrupted.
 */
int pipeline_compile(struct pipeline *p, struct jit *jit, char *error,
		     size_t error_size);

/*
 * Gives every cache() its memory; without it, nothing is cached. Call it once,
 * before workers run. All runs of the pipeline must then give a sample the same
 * value every time. -ENOMEM: there is not enough, which is logged.
 */
int pipeline_keep(struct pipeline *p, struct log *log);

/*
 * Instead of pipeline_keep(): uses the memory of another pipeline, which
 * outlives this one.
 */
void pipeline_keep_with(struct pipeline *p, const struct pipeline *owner);

/* The totals of all caches of a pipeline. Thread-safe. */
void pipeline_cached(const struct pipeline *p, struct value_store_stats *out);

/*
 * The engine that makes the rows of an image's output: "generic", "prebuilt" or
 * "generated"; "none" if there is only geometry, and for other outputs. It can
 * change until it is "generated". Thread-safe.
 */
const char *pipeline_engine(const struct pipeline *p, size_t i);

size_t pipeline_num_outputs(const struct pipeline *p);

/* Bytes of the host's memory that the outputs of a sample take, except those of
   ragged ones. UINT64_MAX: more than that. */
uint64_t pipeline_row_size(const struct pipeline *p);

const struct pipeline_output *pipeline_output_at(const struct pipeline *p,
						 size_t i);

int pipeline_worker_open(const struct pipeline *p,
			 struct pipeline_worker **out);
void pipeline_worker_close(struct pipeline_worker *w);

/*
 * Makes one row of output i (neither ragged nor a list) from one value.
 * `row_out` has output->row_size bytes and is written whole, or, on failure,
 * left anyhow. `until`: BETON_STAGE_DECODE stops after decoding the pixels that
 * the first geometry needs, and leaves row_out alone. decode_ns, if not NULL,
 * is increased by the time that decoding took. -EBADMSG: undecodable; -EINVAL:
 * a shape the output cannot take; the message is pipeline_worker_message().
 */
int pipeline_run(const struct pipeline *p, struct pipeline_worker *w, size_t i,
		 const struct pipeline_value *value,
		 const struct pipeline_row *row, enum beton_stage until,
		 void *row_out, uint64_t *decode_ns);

/*
 * Lists: the bytes that the rows of a value of `size` bytes take at most;
 * UINT64_MAX: more than that.
 */
uint64_t pipeline_list_size(const struct pipeline *p, size_t i, uint64_t size);

/*
 * As pipeline_run(), of an output with is_list. `out` has room for
 * pipeline_list_size() bytes. Sets *rows to how many rows it wrote.
 */
int pipeline_run_list(const struct pipeline *p, struct pipeline_worker *w,
		      size_t i, const struct pipeline_value *value,
		      const struct pipeline_row *row, enum beton_stage until,
		      void *out, uint64_t *rows);

/*
 * Makes one row of an output whose part_size is not 0, as pipeline_run() does.
 * `until` is past decoding.
 */
int pipeline_pair(const struct pipeline *p, struct pipeline_worker *w, size_t i,
		  const struct pipeline_pair *pair, void *row_out);

/* The reason why the last pipeline_run() failed; valid until the next. */
const char *pipeline_worker_message(const struct pipeline_worker *w);

#endif
