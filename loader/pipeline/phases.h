/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipelines of a pipeline string whose numbers change from epoch to epoch:
 * one for each run of epochs with the same numbers. They differ in numbers
 * alone (pipeline_is_alike()), and share compiled code. All of them are parsed,
 * and so checked, at once. Immutable except by phases_compile().
 */
#ifndef LOADER_PIPELINE_PHASES_H
#define LOADER_PIPELINE_PHASES_H

#include "loader/pipeline/pipeline.h"

/* Most phases: each has tables of its own for every output. */
enum { PHASES_MAX = 64 };

struct jit_options;
struct log;
struct phases;
struct value_store_stats;

/* As pipeline_parse(), for all epochs. */
int phases_parse(const char *text, const struct pipeline_field *fields,
		 size_t num_fields, struct phases **out, char *error,
		 size_t error_size);
/*
 * Frees the pipelines; no thread runs a row any more. The descriptions of
 * outputs stay. Takes NULL.
 */
void phases_stop(struct phases *p);
void phases_close(struct phases *p);

/*
 * As pipeline_compile(), for all phases. Call it once. An error of the
 * environment is logged, and `error` is then empty.
 */
int phases_compile(struct phases *p, const struct jit_options *options,
		   char *error, size_t error_size);

/* As pipeline_put_on() and _split(), for all phases. */
void phases_put_on(struct phases *p, int gpu);
int phases_split(struct phases *p, bool autos);

/* As pipeline_keep() and _kept(). One cache serves all epochs. */
int phases_keep(struct phases *p, struct log *log);
/*
 * Instead of phases_keep(): uses the caches of other phases of the same string,
 * which are closed later.
 */
void phases_keep_with(struct phases *p, const struct phases *owner);
void phases_kept(const struct phases *p, struct value_store_stats *out);

/* As pipeline_row_size(), of the largest phase. */
uint64_t phases_row_size(const struct phases *p);

/* The pipeline of an epoch; lives as long as the phases. */
const struct pipeline *phases_at(const struct phases *p, uint64_t epoch);

/* Phase i in order; NULL past the last. */
const struct pipeline *phases_row(const struct phases *p, size_t i);

#endif
