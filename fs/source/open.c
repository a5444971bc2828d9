/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/open.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/net/url.h"
#include "fs/source/file.h"
#include "fs/source/url.h"
#include "fs/util/cleanup.h"

/* file:///PATH is a local file. */
static int open_file(const char *path, struct log *log, struct source **out)
{
	cleanup_free char *local = NULL;
	int r = url_file_path(path, &local);

	if (r == -EINVAL)
		log_error(log, "%s: expected file:///PATH", path);
	if (r)
		return r;
	return file_source_open(local ? local : path, log, out);
}

int source_open(const char *path, const struct source_options *options,
		struct log *log, struct source **out)
{
	if (url_is(path))
		return url_source_open(path, options, log, out);
	return open_file(path, log, out);
}
