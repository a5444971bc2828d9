/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the output of a path or a URL: each kind of output has a row. */
#ifndef FS_DATA_WRITER_OUTPUT_OPEN_H
#define FS_DATA_WRITER_OUTPUT_OPEN_H

#include "fs/data/writer/output.h"

/*
 * Prepares to write a dataset to a path or a URL. Fails with -EEXIST if
 * anything but a dataset, zeros or nothing has the name.
 */
int output_open(const struct output_setup *setup, struct output **out);

/* Writes to an open file instead, which remains the caller's and keeps its
   name; `name` is for messages. */
int output_open_to(int fd, const char *name, struct log *log,
		   struct output **out);

/* Returns whether the path is a URL, which only an output reaches, not open(2).
 */
bool output_is_remote(const char *path);

#endif
