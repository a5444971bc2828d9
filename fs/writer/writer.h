/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a dataset that FFCV can read. Samples are appended in order; values
 * are encoded already. The file appears under its name when it is complete:
 * until then it has no name, or a temporary one in the same directory. It is
 * synced before it gets its name. One thread.
 */
#ifndef FS_WRITER_WRITER_H
#define FS_WRITER_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "fs/dataset/field.h"
#include "fs/writer/schema.h"
#include "fs/util/log.h"

struct writer;

/*
 * Begins a file of at most `num_samples` samples; page_size is a power of two
 * from 2 MiB to 2 GiB. Failures are logged, with the path.
 */
int writer_open(const char *path, const struct writer_field *fields,
		size_t num_fields, uint64_t num_samples, uint32_t page_size,
		struct log *log, struct writer **out);

/* Like writer_open(), into an open file that the caller closes; `name` is for
   messages. */
int writer_open_to(int fd, const char *name, const struct writer_field *fields,
		   size_t num_fields, uint64_t num_samples, uint32_t page_size,
		   struct log *log, struct writer **out);

/*
 * Appends one sample: one value per field. -BETON_ETOOLARGE: its bytes do not
 * fit into a page; nothing was written or logged, and the writer remains
 * usable. Any other error is final: later calls return it as well.
 */
int writer_append(struct writer *w, const struct writer_value *values);

/* Completes the file and gives it its name. If that or an earlier call failed,
   there is no file. Frees the writer in either case. */
int writer_finish(struct writer **w);

/* Frees the writer and removes its unfinished file. Takes NULL. */
void writer_abort(struct writer **w);

#endif
