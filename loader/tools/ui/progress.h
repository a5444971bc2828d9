/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A progress bar on stderr: drawn only on a terminal, and only from the second
 * second of the work on. One thread. Whoever prints something else meanwhile
 * calls progress_hide() before.
 */
#ifndef LOADER_TOOLS_UI_PROGRESS_H
#define LOADER_TOOLS_UI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	uint64_t total;
	int64_t started_ns;
	int64_t drawn_ns; /* when it was last drawn */
	bool terminal;
	bool visible;
};

void progress_init(struct progress *p, uint64_t total);

/* Call as often as is convenient; draws ten times a second at most. */
void progress_show(struct progress *p, uint64_t done);
void progress_hide(struct progress *p);

/* Seconds since progress_init(). */
double progress_seconds(const struct progress *p);

#endif
