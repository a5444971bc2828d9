/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a dataset that FFCV reads: samples are appended in order, values are
 * bytes already encoded. The file appears under its name only when it is
 * complete: it is written without a name (or under a temporary one beside its
 * place), synced, and then renamed. One thread.
 */
#ifndef FS_DATASET_WRITER_H
#define FS_DATASET_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "fs/dataset/field.h"
#include "fs/dataset/schema.h"
#include "fs/util/log.h"

struct writer;

/*
 * Prepares `path` for `num_samples` samples at most; page_size is a power of
 * two from 2 MiB to 2 GiB. Failures name the path through `log`.
 */
int writer_open(const char *path, const struct writer_field *fields,
		size_t num_fields, uint64_t num_samples, uint32_t page_size,
		struct log *log, struct writer **out);

/* The same into an open file, which stays the caller's; `name` is for messages.
 */
int writer_open_to(int fd, const char *name, const struct writer_field *fields,
		   size_t num_fields, uint64_t num_samples, uint32_t page_size,
		   struct log *log, struct writer **out);

/*
 * Appends one sample, one value per field. -EFBIG: its bytes do not fit into a
 * page (nothing was written, nothing logged). Other errors are final.
 */
int writer_append(struct writer *w, const struct writer_value *values);

/* Completes the file under its name. Errors leave no file; w is gone. */
int writer_finish(struct writer **w);

/* Drops everything; takes NULL. */
void writer_abort(struct writer **w);

#endif
