/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A progress bar on stderr, if that is a terminal and the work takes more than
 * a second. Callers call progress_hide() before they print something else. One
 * thread.
 */
#ifndef LOADER_TOOLS_UI_PROGRESS_H
#define LOADER_TOOLS_UI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/base/util/log.h"

struct progress {
	uint64_t total;
	int64_t started_ns;
	int64_t drawn_ns; /* when it was last drawn */
	bool terminal;
	bool visible;
};

/* The bar stays hidden if the log prints errors only. NULL: it does not. */
void progress_init(struct progress *p, uint64_t total, const struct log *log);

/* May be called at any rate; draws at most ten times a second. */
void progress_show(struct progress *p, uint64_t done);
void progress_hide(struct progress *p);

/* Seconds since progress_init(). */
double progress_seconds(const struct progress *p);

#endif
