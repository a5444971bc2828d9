/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a dataset that FFCV can read. Samples are appended in order; values
 * are encoded already. The file appears under its name when it is complete:
 * until then it has no name, or a temporary one in the same directory. It is
 * synced before it gets its name. Memory does not depend on the number of
 * samples. One thread.
 */
#ifndef FS_WRITER_WRITER_H
#define FS_WRITER_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "fs/dataset/field.h"
#include "fs/util/log.h"
#include "fs/writer/pages.h"
#include "fs/writer/schema.h"

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

/*
 * Like writer_append(), but the bytes of value i are ranges[i] of a source,
 * with the NUL of JSON, if ranges[i].source is not NULL; its size is still
 * values[i].size. The caller has checked the value. The source must stay open
 * until writer_settle(). For copy.h.
 */
int writer_append_ranges(struct writer *w, const struct writer_value *values,
			 const struct pages_range *ranges);

/* Copies what is left of ranges, so that their sources may be closed. Failures
   are logged and final. */
int writer_settle(struct writer *w);

/* Returns the fields of the new file: their types, names and sizes of arrays.
 */
const struct field *writer_fields(const struct writer *w, size_t *num);

const char *writer_path(const struct writer *w);

/* Requires that the file of `old` still has the name at the end, unchanged;
   otherwise writer_finish() fails with -ESTALE. */
void writer_expect(struct writer *w, const struct stat *old);

/* Completes the file and gives it its name. If that or an earlier call failed,
   there is no file. Frees the writer in either case. */
int writer_finish(struct writer **w);

/* Frees the writer and removes its unfinished file. Takes NULL. */
void writer_abort(struct writer **w);

#endif
