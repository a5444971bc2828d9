/* SPDX-License-Identifier: Apache-2.0 */
/* A local file as an output: fs/base/files/outfile. */
#ifndef FS_DATA_WRITER_OUTPUT_FILE_H
#define FS_DATA_WRITER_OUTPUT_FILE_H

#include "fs/data/writer/output.h"

extern const struct output_ops output_file;

/* As output_open_to(). */
int output_file_open_to(int fd, const char *name, struct log *log,
			struct output **out);

#endif
