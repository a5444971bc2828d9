/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline converts values of a dataset to rows of tensors. pipeline_parse()
 * creates it from a pipeline string (beton-transforms(7)). Immutable after
 * parsing, except for the caches. Any number of threads may run it, each with
 * its own pipeline_worker.
 */
#ifndef LOADER_RUN_TRANSFORM_PIPELINE_H
#define LOADER_RUN_TRANSFORM_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/loader.h"
#include "loader/util/value.h"

struct entry_store;
struct jit;
struct log;
struct value_store_stats;
struct pipeline;
struct pipeline_worker;

/*
 * Parses the string for an epoch. The fields may be freed after the call. On
 * failure returns -EINVAL, and `error`, unless NULL, receives one line that
 * quotes the string and names the column.
 */
int pipeline_parse(const char *text, const struct pipeline_field *fields,
		   size_t num_fields, uint64_t epoch, struct pipeline **out,
		   char *error, size_t error_size);
/* Closes a pipeline. Close the jit that compiled it before. */
void pipeline_close(struct pipeline *p);

/*
 * Appends cuda() to each output that has none and is not ragged. Call it once,
 * before pipeline_split().
 */
void pipeline_put_on(struct pipeline *p, int gpu);

/*
 * Assigns the operations after cuda() to kernels of the GPU, if they are more
 * than a copy. Unless `autos` is set, skips outputs whose placement is `auto`.
 * Call it once, before pipeline_compile(). Without this call the CPU runs all
 * operations. Returns -ENOMEM.
 */
int pipeline_split(struct pipeline *p, bool autos);

/*
 * Divide the work between makers and a trainer. A maker's pipeline, after
 * pipeline_cut(), makes the rows that it sends. A trainer makes its rows of
 * these by pipeline_finish(), or runs the whole pipeline. Call one of both
 * instead of pipeline_split() or after it, and before pipeline_compile(). They
 * return -ENOMEM.
 */
int pipeline_cut(struct pipeline *p);
int pipeline_plan_finish(struct pipeline *p);

/*
 * Whether the CPU could run operations that pipeline_split() has assigned to
 * the GPU.
 */
bool pipeline_has_choice(const struct pipeline *p);

/*
 * Returns the CUDA C source of an output's kernel (emit_device.h), or NULL if
 * there is no kernel or no memory. The caller frees it. Call it after
 * pipeline_compile().
 */
char *pipeline_rest(const struct pipeline *p, size_t i);
/* Whether the output has operations for a kernel. */
bool pipeline_has_rest(const struct pipeline *p, size_t i);

/* Sets the size of an image output in pixels. */
void pipeline_image_size(const struct pipeline *p, size_t i, uint32_t *width,
			 uint32_t *height);

/* Return the number of a kernel's operands for a row, and write them. */
size_t pipeline_num_operands(const struct pipeline *p, size_t i);
void pipeline_operands(const struct pipeline *p, size_t i,
		       const struct pipeline_row *row, float *out);

/* Returns the next epoch with other numbers, or UINT64_MAX if there is none. */
uint64_t pipeline_end(const struct pipeline *p);

/*
 * Whether two pipelines differ only in numbers. If so, their outputs are equal
 * except for shapes and sizes of rows, and a worker of one can run the other.
 */
bool pipeline_is_alike(const struct pipeline *a, const struct pipeline *b);

/*
 * Whether two pipelines that are alike can share their caches.
 */
bool pipeline_caches_alike(const struct pipeline *a, const struct pipeline *b);

/*
 * Compiles code for outputs without prebuilt code (jit.h). Compiled code is
 * faster, and custom operations need it. Call it once, before workers run.
 * Returns -EINVAL or -ENOSYS, with a message as from pipeline_parse(), or
 * -ECANCELED after an interruption.
 */
int pipeline_compile(struct pipeline *p, struct jit *jit, char *error,
		     size_t error_size);

/*
 * Allocates the memory of every cache(). Without this call the pipeline caches
 * nothing. Call it once, before workers run. Afterwards, each sample must have
 * the same value in all runs. If memory is short, logs it and returns -ENOMEM.
 */
int pipeline_cache(struct pipeline *p, struct log *log);

/*
 * Uses the caches of another pipeline, which must outlive this one, instead of
 * pipeline_cache().
 */
void pipeline_cache_with(struct pipeline *p, const struct pipeline *owner);

/*
 * Uses and keeps entry points of JPEGs in a store, which must outlive the
 * pipeline. Without this call the pipeline keeps none. The condition of
 * pipeline_cache() applies.
 */
void pipeline_keep_entries(struct pipeline *p, struct entry_store *store);

/* Sets *out to the totals of all caches of a pipeline. Thread-safe. */
void pipeline_cached(const struct pipeline *p, struct value_store_stats *out);

/*
 * Returns the engine of an output: "generic", "prebuilt" or "generated", or
 * "none" if the output needs no code. It can change until it is "generated".
 * Thread-safe.
 */
const char *pipeline_engine(const struct pipeline *p, size_t i);

size_t pipeline_num_outputs(const struct pipeline *p);

/* Returns the bytes of host memory for the outputs of a sample, without ragged
   outputs, or UINT64_MAX on overflow. */
uint64_t pipeline_row_size(const struct pipeline *p);

const struct pipeline_output *pipeline_output_at(const struct pipeline *p,
						 size_t i);

int pipeline_worker_open(const struct pipeline *p,
			 struct pipeline_worker **out);
void pipeline_worker_close(struct pipeline_worker *w);

/*
 * Makes one row of output i, neither ragged nor a list, from one value.
 * `row_out` has output->row_size bytes; after a failure its content is
 * undefined. If `until` is BETON_STAGE_DECODE, the call only decodes the pixels
 * that the first geometry needs, and does not write row_out. If decode_ns is
 * not NULL, adds the time of decoding to it, in nanoseconds. Returns -EBADMSG
 * for an undecodable value or -EINVAL for an unsuitable shape.
 * pipeline_worker_message() returns the reason.
 */
int pipeline_run(const struct pipeline *p, struct pipeline_worker *w, size_t i,
		 const struct pipeline_value *value,
		 const struct pipeline_row *row, enum beton_stage until,
		 void *row_out, uint64_t *decode_ns);

/*
 * Returns the maximum bytes of the rows that a list output makes from a value
 * of `size` bytes, or UINT64_MAX on overflow.
 */
uint64_t pipeline_list_size(const struct pipeline *p, size_t i, uint64_t size);

/*
 * Does pipeline_run() for an output with is_list. `out` has room for
 * pipeline_list_size() bytes. *rows receives the number of rows.
 */
int pipeline_run_list(const struct pipeline *p, struct pipeline_worker *w,
		      size_t i, const struct pipeline_value *value,
		      const struct pipeline_row *row, enum beton_stage until,
		      void *out, uint64_t *rows);

/*
 * Mixes two rows of an output whose part_size is not 0 to one row, with the
 * errors of pipeline_run(). `until` must be a stage after decoding.
 */
int pipeline_pair(const struct pipeline *p, struct pipeline_worker *w, size_t i,
		  const struct pipeline_pair *pair, void *row_out);

/*
 * Makes one row of output i, of row->made_size bytes, from the row that a maker
 * sent, of row->sent_size bytes. Returns -ENOMEM.
 */
int pipeline_finish(const struct pipeline *p, struct pipeline_worker *w,
		    size_t i, const void *sent, const struct pipeline_row *row,
		    void *row_out);
/* Whether a row differs from the row that a maker sent. */
bool pipeline_has_finish(const struct pipeline *p, size_t i);

/* Returns the reason of the last failure. Valid until the next
   pipeline_run(). */
const char *pipeline_worker_message(const struct pipeline_worker *w);

#endif
