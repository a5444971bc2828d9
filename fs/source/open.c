/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/open.h"

#include "fs/source/file.h"

int source_open(const char *path, const struct source_options *options,
		struct log *log, struct source **out)
{
	(void)options;
	return file_source_open(path, log, out);
}
