/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of an input that one thread reads at the moment. An input can have
 * more files than a process may open, so a reader holds one descriptor.
 */
#ifndef LOADER_TOOLS_INPUT_FOREIGN_FILE_H
#define LOADER_TOOLS_INPUT_FOREIGN_FILE_H

#include <stdint.h>

#include "loader/tools/input/input.h"

struct input_file {
	int fd; /* -1: none */
	uint64_t which;
	uint64_t size;
};

#define INPUT_FILE_NONE                                                        \
	{                                                                      \
		.fd = -1                                                       \
	}

/* Opens the regular file `path`, which has the number `which` among the files
   of the input. Does nothing if it is open. */
int input_file_switch(struct input_file *f, const char *path, uint64_t which,
		      struct input_error *error);
/* Reads all of [at, at + size). -EBADMSG: the file is shorter. */
int input_file_read(const struct input_file *f, void *out, uint64_t size,
		    uint64_t at, struct input_error *error);
void input_file_close(struct input_file *f);

#endif
