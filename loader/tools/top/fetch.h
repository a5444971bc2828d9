/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readings of a mount, taken by a thread: a daemon that does not answer holds
 * up that thread only, and nobody who wants to quit. One reading at a time.
 */
#ifndef LOADER_TOOLS_TOP_FETCH_H
#define LOADER_TOOLS_TOP_FETCH_H

#include <pthread.h>
#include <stdbool.h>

#include "loader/tools/top/reading.h"

struct top_fetch {
	const char *mount;
	pthread_t thread;
	int asks[2];	/* a pipe: a byte for each reading that is wanted */
	int answers[2]; /* and for each that is there; [0] is to poll */
	bool is_busy;	/* the caller's */
	/* The thread's until it has answered. */
	int result;
	struct top_reading *reading;
	char why[TOP_WHY_SIZE];
};

/* `mount` must outlive it. 0 or -errno. */
int top_fetch_open(const char *mount, struct top_fetch **out);
/* If the mount does not answer, the thread and all that it needs stay, until
   the process ends. Takes NULL. */
void top_fetch_close(struct top_fetch *f);

/* Does nothing while one is under way. */
void top_fetch_ask(struct top_fetch *f);
/* When there is something to read: as top_reading_take(), which `why` is of. */
int top_fetch_answer(struct top_fetch *f, struct top_reading **out);

#endif
