/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipelines of a pipeline string with schedules. A phase is a range of
 * epochs with the same numbers, and has one pipeline. The pipelines differ only
 * in numbers (pipeline_is_alike()), and share compiled code. phases_parse()
 * parses and checks all of them. Immutable, except by phases_compile().
 */
#ifndef LOADER_RUN_TRANSFORM_PHASES_H
#define LOADER_RUN_TRANSFORM_PHASES_H

#include "loader/run/transform/pipeline.h"

/* Maximum number of phases. Each phase has separate tables for every output. */
enum { PHASES_MAX = 64 };

struct entry_store;
struct jit_options;
struct log;
struct phases;
struct value_store_stats;

/* Does pipeline_parse() for all epochs. */
int phases_parse(const char *text, const struct pipeline_field *fields,
		 size_t num_fields, struct phases **out, char *error,
		 size_t error_size);
/*
 * Frees the pipelines, but not the descriptions of outputs. No thread may run a
 * row. Takes NULL.
 */
void phases_stop(struct phases *p);
void phases_close(struct phases *p);

/*
 * Does pipeline_compile() for all phases. Call it once. Logs an error of the
 * environment and leaves `error` empty.
 */
int phases_compile(struct phases *p, const struct jit_options *options,
		   char *error, size_t error_size);

/* Do pipeline_put_on(), _split(), _cut() and _plan_finish() for all phases. */
void phases_put_on(struct phases *p, int gpu);
int phases_split(struct phases *p, bool autos);
int phases_cut(struct phases *p);
int phases_plan_finish(struct phases *p);

/* Do pipeline_cache() and _cached(). All epochs share one cache. */
int phases_cache(struct phases *p, struct log *log);
/*
 * Uses the caches of other phases of the same string, instead of
 * phases_cache(). Close the other phases later.
 */
void phases_cache_with(struct phases *p, const struct phases *owner);
/* Does pipeline_keep_entries() for all phases. */
void phases_keep_entries(struct phases *p, struct entry_store *store);
void phases_cached(const struct phases *p, struct value_store_stats *out);

/* Returns the pipeline_row_size() of the largest phase. */
uint64_t phases_row_size(const struct phases *p);

/* Returns the pipeline of an epoch. Valid until the phases are closed. */
const struct pipeline *phases_at(const struct phases *p, uint64_t epoch);

/* Returns phase i, or NULL past the last phase. */
const struct pipeline *phases_row(const struct phases *p, size_t i);

#endif
