/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a dataset that FFCV can read. Samples are appended in order; values
 * are encoded already. The file, or the object of a URL, appears under its name
 * when it is complete (output.h). Memory does not depend on the number of
 * samples. One thread.
 */
#ifndef FS_DATA_WRITER_WRITER_H
#define FS_DATA_WRITER_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "fs/base/util/log.h"
#include "fs/data/dataset/field.h"
#include "fs/data/writer/output.h"
#include "fs/data/writer/pages.h"
#include "fs/data/writer/schema.h"

struct writer;

struct writer_setup {
	const char *path; /* or a URL */
	const struct writer_field *fields;
	size_t num_fields;
	uint64_t num_samples; /* at most so many are appended */
	uint32_t page_size;   /* a power of two from 2 MiB to 2 GiB */
	/* How a URL is reached; NULL: the defaults. */
	const struct source_options *options;
	/* Called now and then if the path is a URL: once for some samples, and
	   about every 100 ms while the writer waits for the server. A result
	   other than 0 ends the writer without a message, and becomes its
	   result. NULL: none. */
	output_poll_fn *poll;
	void *arg;
	struct sums *sums; /* of struct output_setup */
	bool renews_sums;  /* likewise */
	struct log *log;
};

/* Begins a file or an object. Failures are logged, with the path. */
int writer_begin(const struct writer_setup *setup, struct writer **out);

/* Like writer_begin(), with defaults. */
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

/* For messages: a URL is without its secrets. */
const char *writer_path(const struct writer *w);

/* Requires that the file of `old` still has the name at the end, unchanged;
   otherwise writer_finish() fails with -ESTALE. */
void writer_expect(struct writer *w, const struct stat *old);

/* Completes the file and gives it its name. If that or an earlier call failed,
   there is no file. Frees the writer in either case. */
int writer_finish(struct writer **w);

/* Like writer_finish(), and sets *size to the size of the file. */
int writer_finish_size(struct writer **w, uint64_t *size);

/* Frees the writer and removes its unfinished file. Takes NULL. */
void writer_abort(struct writer **w);

#endif
