/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a few fields of all samples of a source, before work begins. */
#ifndef LOADER_TOOLS_MKFS_SURVEY_H
#define LOADER_TOOLS_MKFS_SURVEY_H

#include "fs/base/util/log.h"
#include "loader/tools/input/input.h"

/*
 * Called for each sample in order, with the values of all fields of the source,
 * of which only the wanted ones are set. `values` is NULL if the sample cannot
 * be read, which a later read reports. Nonzero ends the survey.
 */
typedef int survey_fn(void *arg, uint64_t sample,
		      const struct input_value *values);

/* Reads the samples [first, first + n). Failures that are no sample's fault
   are logged. */
int survey_run(struct input *in, const bool *wanted, uint64_t first, uint64_t n,
	       struct log *log, survey_fn *fn, void *arg);

/* Lists the texts of a field, sorted by their bytes, each once. The caller
   frees them. Failures are logged: -EINVAL if a text has a NUL, -E2BIG if there
   are over a million. */
int survey_texts(struct input *in, size_t field, struct log *log, char ***texts,
		 size_t *num);

/* Compares the text of a value with another one by their bytes, as strcmp(). */
int survey_compare_text(const struct input_value *value, const char *text);

/* Finds the text of a value among those of survey_texts(). Returns false if it
   is not there. */
bool survey_find_text(char *const *texts, size_t num,
		      const struct input_value *value, size_t *index);

#endif
