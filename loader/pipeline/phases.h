/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipelines of a text whose numbers change from epoch to epoch: one for
 * every run of epochs in which it means the same. They differ in numbers alone
 * (pipeline_is_alike()), are all parsed, and so checked, at once, and share the
 * code that is compiled for them. Immutable but for phases_compile().
 */
#ifndef LOADER_PIPELINE_PHASES_H
#define LOADER_PIPELINE_PHASES_H

#include "loader/pipeline/pipeline.h"

/* Each has tables of its own for every output. */
enum { PHASES_MAX = 64 };

struct log;
struct phases;
struct stash_stats;

/* As pipeline_parse(), of all epochs. */
int phases_parse(const char *text, const struct pipeline_field *fields,
		 size_t num_fields, struct phases **out, char *error,
		 size_t error_size);
/* No row is run any more; what is told of outputs stays. Takes NULL. */
void phases_stop(struct phases *p);
void phases_close(struct phases *p);

/*
 * As pipeline_compile(), of all. To be called once. What is wrong with the
 * environment is told to the log, and then `error` is empty.
 */
int phases_compile(struct phases *p, struct log *log, char *error,
		   size_t error_size);

/* As pipeline_split(), of all. */
int phases_split(struct phases *p, bool autos);

/* As pipeline_keep() and _kept(): what is kept serves all epochs. */
int phases_keep(struct phases *p, struct log *log);
/* Instead: has them use what another of the same text keeps, and that is closed
   later. */
void phases_keep_with(struct phases *p, const struct phases *owner);
void phases_kept(const struct phases *p, struct stash_stats *out);

/* That of an epoch; lives as long as the phases. */
const struct pipeline *phases_at(const struct phases *p, uint64_t epoch);

/* In their order; NULL past the last. */
const struct pipeline *phases_row(const struct phases *p, size_t i);

#endif
