/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of text: lines, or records of CSV (RFC 4180), whose quoted cells may
 * contain line ends. A quote in a cell that does not begin with one is an
 * ordinary character.
 */
#ifndef LOADER_TOOLS_FORMATS_CSV_H
#define LOADER_TOOLS_FORMATS_CSV_H

#include <stdbool.h>

#include "loader/tools/formats/file.h"

enum { RECORD_MAX = 16 << 20 };

/* Reads a file from its start. Set `file` and `separator`; the rest is zero. */
struct records {
	const struct file *file;
	char separator;	  /* of CSV; NUL: records are lines */
	uint64_t next;	  /* offset of the next record */
	uint64_t line;	  /* number of lines before `next` */
	uint64_t off;	  /* of this record */
	uint64_t at_line; /* its first line, from 1 */
	char *bytes;	  /* [start, have) are in memory, from `next` on */
	size_t start;
	size_t have;
	size_t room;
};

/*
 * Reads the next record, without its line end, followed by a NUL; the bytes are
 * the caller's to change until the next call. Returns 1, 0 at the end, or
 * -errno: -EFBIG for more than RECORD_MAX bytes, -EBADMSG for a quote without
 * an end.
 */
int records_next(struct records *r, char **text, size_t *size);
void records_fini(struct records *r);

/* Ends the record at the start of bytes by a NUL, in the place of its line end
   or at text[size]. Returns its size. */
size_t record_find(char *text, size_t size, char separator);

struct csv_cell {
	const char *text; /* ends in a NUL */
	size_t size;
};

/*
 * Splits a record in place, whose size is followed by a NUL. Returns the number
 * of cells, of which the first `max` are stored. 0: characters follow a quote
 * that ends a cell.
 */
size_t csv_split(char *text, size_t size, char separator,
		 struct csv_cell *cells, size_t max);

#endif
