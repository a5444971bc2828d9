/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/open.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/net/url.h"
#include "fs/source/file.h"
#include "fs/source/tables.h"
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

static uint64_t memory_of(const struct source_options *options)
{
	return options && options->memory ? options->memory : SOURCE_MEMORY;
}

/* tables -> url */
static int open_url(const char *path, const struct source_options *options,
		    struct log *log, struct source **out)
{
	cleanup_free void *head = NULL;
	struct source *url;
	size_t size;
	int r = url_source_open(path, options, log, &url);

	if (r)
		return r;
	head = url_source_take_head(url, &size);
	r = tables_open(url, memory_of(options), log, out);
	if (!r && head)
		tables_store(*out, head, size, 0);
	return r;
}

int source_open(const char *path, const struct source_options *options,
		struct log *log, struct source **out)
{
	if (url_is(path))
		return open_url(path, options, log, out);
	return open_file(path, log, out);
}
