/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/writer/output_open.h"

#include "fs/data/writer/output_file.h"
#include "fs/data/writer/output_url.h"

/* The last row takes every path. */
static const struct output_ops *const rows[] = {
	&output_url,
	&output_file,
};

static const struct output_ops *row_of(const char *path)
{
	size_t i = 0;

	while (!rows[i]->takes(path))
		i++;
	return rows[i];
}

int output_open(const struct output_setup *setup, struct output **out)
{
	return row_of(setup->path)->open(setup, out);
}

int output_open_to(int fd, const char *name, struct log *log,
		   struct output **out)
{
	return output_file_open_to(fd, name, log, out);
}

bool output_is_remote(const char *path)
{
	return row_of(path) != &output_file;
}
