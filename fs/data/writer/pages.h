/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a new file's pages, in the order of their offsets. Bytes of
 * memory pass through one buffer. Ranges of other files are copied within the
 * kernel; those that follow each other in both files become one copy, and short
 * ones pass through the buffer as well. One thread.
 */
#ifndef FS_DATA_WRITER_PAGES_H
#define FS_DATA_WRITER_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "fs/data/writer/output.h"
#include "fs/source/local/source.h"

/* Bytes of a source. */
struct pages_range {
	struct source *source; /* NULL: none */
	uint64_t off;
	uint64_t size;
};

/* Zero-initialize. */
struct pages {
	struct output *file;
	uint64_t end;	 /* of all bytes; the caller sets the first offset */
	uint8_t *buffer; /* the bytes before those of `pending` */
	size_t buffered;
	struct pages_range pending; /* the last bytes, not copied yet */
};

/* -ENOMEM, not logged. */
int pages_init(struct pages *p);
void pages_fini(struct pages *p);

/* Appends bytes. Failures are logged, here and below. */
int pages_put(struct pages *p, const void *bytes, uint64_t size);

/* Appends a range. Its source must outlive the range, until pages_settle(). */
int pages_copy(struct pages *p, const struct pages_range *range);

/* Continues at a higher offset. The bytes between stay a hole, which reads as
   zeros. */
int pages_skip(struct pages *p, uint64_t to);

/* Copies what is left of the ranges, so that no source is needed any more. */
int pages_settle(struct pages *p);

/* Writes everything to the file. */
int pages_flush(struct pages *p);

#endif
