/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the statistics of a mount in a thread, so that a daemon that does not
 * respond blocks neither the view nor quitting. One reading at a time.
 */
#ifndef LOADER_TOOLS_TOP_FETCH_H
#define LOADER_TOOLS_TOP_FETCH_H

#include <pthread.h>
#include <stdbool.h>

#include "loader/tools/top/reading.h"

struct top_fetch {
	const char *mount;
	pthread_t thread;
	int asks[2];	/* a pipe with a byte per request */
	int answers[2]; /* a pipe with a byte per reading; poll answers[0] */
	bool is_busy;	/* a request is open; used by the caller only */
	/* Written by the thread until it answers. */
	int result;
	struct top_reading *reading;
	char why[TOP_WHY_SIZE];
};

/* Starts the thread. `mount` must outlive the fetch. 0 or -errno. */
int top_fetch_open(const char *mount, struct top_fetch **out);
/* Stops the thread. If the mount does not respond, the thread and its memory
   remain until the process ends. Accepts NULL. */
void top_fetch_close(struct top_fetch *f);

/* Requests a reading. Does nothing while a request is open. */
void top_fetch_ask(struct top_fetch *f);
/* Call when answers[0] is readable. Returns what top_reading_take() returned;
   `why` is its sentence. */
int top_fetch_answer(struct top_fetch *f, struct top_reading **out);

#endif
