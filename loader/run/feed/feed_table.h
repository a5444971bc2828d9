/* SPDX-License-Identifier: Apache-2.0 */
/* The feeds, and which of them serves a path. */
#ifndef LOADER_RUN_FEED_FEED_TABLE_H
#define LOADER_RUN_FEED_FEED_TABLE_H

#include "loader/run/feed/feed.h"

/* Opens the feed that serves the path, or that of synthetic data. Failures are
   logged, except for -ECANCELED. */
int feed_open(const char *path, const struct feed_options *options,
	      struct feed **out);

#endif
