/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a tar archive: V7, ustar, GNU or pax. Reads headers only. Input
   is hostile. */
#ifndef LOADER_TOOLS_FORMATS_TAR_H
#define LOADER_TOOLS_FORMATS_TAR_H

#include <stdbool.h>

#include "loader/tools/formats/file.h"

enum { TAR_BLOCK = 512, TAR_NAME_SIZE = 4097, TAR_WHY_SIZE = 120 };

/* Set `window.file`; the rest is zero. */
struct tar {
	struct file_window window;
	uint64_t at;	  /* of the next header */
	uint64_t skipped; /* links, directories and devices */
	bool no_end;	  /* the archive lacks its end marker */
	char why[TAR_WHY_SIZE];
};

struct tar_file {
	char name[TAR_NAME_SIZE];
	uint64_t header; /* offset of its last header */
	uint64_t off;	 /* of its bytes */
	uint64_t size;
};

/* Finds the next regular file. Returns 1, 0 at the end, or -errno with t->why,
   -EBADMSG for a damaged archive, -ENOTSUP for sparse files. */
int tar_next(struct tar *t, struct tar_file *out);

/* Copies the name in the header at `off`, which is cut if it is long. */
int tar_name_at(const struct file *file, uint64_t off, char *out, size_t size);

#endif
