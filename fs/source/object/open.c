/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/open.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/base/util/cleanup.h"
#include "fs/source/local/file.h"
#include "fs/source/object/disk.h"
#include "fs/source/object/tables.h"
#include "fs/source/object/url.h"
#include "fs/source/url/url.h"

/* file:///PATH is a local file. */
static int open_file(const char *path, const struct source_options *options,
		     struct log *log, struct source **out)
{
	cleanup_free char *local = NULL;
	int r = url_file_path(path, &local);

	if (r == -EINVAL)
		log_error(log, "%s: expected file:///PATH", path);
	if (r)
		return r;
	return file_source_open(local ? local : path, options, log, out);
}

static uint64_t memory_of(const struct source_options *options)
{
	return options && options->memory ? options->memory : SOURCE_MEMORY;
}

/* Puts the disk tier in front of the source of a URL. The first bytes, which
   were read already, are not read again for the tier. */
static int open_disk(const struct source_options *options, struct log *log,
		     const void *head, size_t size, struct source **source)
{
	const struct tier_identity identity = {
		.url = (*source)->path,
		.version = url_source_identity(*source),
		.size = (uint64_t)(*source)->stat.st_size,
	};
	struct source *url = *source;
	int r;

	if (!url_source_is_strong(url))
		log_warning(
			log,
			"%s: the disk tier is of use to this process only, because without a strong ETag a later one cannot recognize the same bytes",
			url->path);
	r = disk_open(url, &identity, options, log, source);
	if (r)
		source_close(url);
	else if (head)
		disk_keep(*source, head, size, 0);
	return r;
}

/* tables -> disk -> url */
static int open_url(const char *path, const struct source_options *options,
		    struct log *log, struct source **out)
{
	cleanup_free void *head = NULL;
	struct source *source;
	size_t size;
	int r = url_source_open(path, options, log, &source);

	if (r)
		return r;
	head = url_source_take_head(source, &size);
	if (options && options->disk)
		r = open_disk(options, log, head, size, &source);
	if (r)
		return r;
	r = tables_open(source, memory_of(options), log, out);
	if (!r && head)
		tables_store(*out, head, size, 0);
	return r;
}

/* For programs whose command lines have no such options. */
static int open_url_by_environment(const char *path, struct log *log,
				   struct source **out)
{
	struct source_options options;
	int r = source_options_read(NULL, log, &options);

	if (!r)
		r = open_url(path, &options, log, out);
	source_options_fini(&options);
	return r;
}

int source_open(const char *path, const struct source_options *options,
		struct log *log, struct source **out)
{
	if (url_is(path) && !options)
		return open_url_by_environment(path, log, out);
	if (url_is(path))
		return open_url(path, options, log, out);
	return open_file(path, options, log, out);
}
