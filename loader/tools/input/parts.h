/* SPDX-License-Identifier: Apache-2.0 */
/* Files whose samples follow each other, one of which a reader has open. */
#ifndef LOADER_TOOLS_INPUT_PARTS_H
#define LOADER_TOOLS_INPUT_PARTS_H

#include "loader/tools/formats/file.h"
#include "loader/tools/input/input.h"

struct part {
	char *path;
	uint64_t first; /* number of its sample 0 in the input */
};

struct parts {
	struct part *at;
	size_t num;
};

/* Copies the paths. -ENOMEM, logged. */
int parts_init(struct parts *parts, const struct input_path *paths, size_t num,
	       struct log *log);
void parts_fini(struct parts *parts);

/* Returns the part of a sample. */
const struct part *parts_find(const struct parts *parts, uint64_t sample);

/* The open part of a reader; zero-initialize. */
struct part_file {
	const struct part *part; /* NULL: none is open */
	struct file file;
};

/* Opens the part unless it is open. -errno. */
int part_file_move(struct part_file *f, const struct part *part);
void part_file_fini(struct part_file *f);

/* Opens a file, and logs a failure. */
int part_open(const char *path, struct log *log, struct file *out);

/* Reads `size` bytes of the open part into memory. */
int part_file_read(const struct part_file *f, struct input_memory *memory,
		   uint64_t off, uint64_t size, struct input_error *error);

#endif
