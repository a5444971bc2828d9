/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the file from front to back in large pieces, and checks the bytes of
 * values, and those that no value uses, on several threads. Findings are in the
 * order of the file, whatever the number of threads.
 */
#ifndef LOADER_TOOLS_FSCK_CONTENT_H
#define LOADER_TOOLS_FSCK_CONTENT_H

#include "loader/tools/fsck/window.h"

struct content;

/* Failures are logged. */
int content_open(struct target *t, struct content **out);
void content_close(struct content *c);

/* Reads [low, high), where no values are: everything in front of the pages, or
   behind them. Reads only what a check needs. */
int content_plain(struct content *c, uint64_t low, uint64_t high);

/* Checks the bytes of a window, from the end of the last one on. The window may
   change when the call returns. */
int content_window(struct content *c, const struct window *w);

#endif
