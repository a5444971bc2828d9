/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/feed/feed_table.h"

#include <errno.h>

#include "fs/base/files/paths.h"
#include "fs/base/util/bytes.h"
#include "loader/run/feed/synthetic_text.h"

/* The first feed that accepts a path serves it. A file is the last resort: it
   reports what is wrong with a path that no other feed accepts. */
static const struct feed_ops *const feeds[] = { &feed_mount, &feed_file };

int feed_open(const char *path, const struct feed_options *options,
	      struct feed **out)
{
	if (options->synthetic->samples)
		return feed_synthetic.open(path, options, out);
	if (paths_is_url(path))
		return feed_file.open(path, options, out);
	for (size_t i = 0; i < ARRAY_LEN(feeds); i++) {
		int r = feeds[i]->open(path, options, out);

		if (r != FEED_OTHER)
			return r;
	}
	return -ENOENT;
}
