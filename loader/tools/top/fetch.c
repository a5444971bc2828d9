/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/top/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/thread.h"

/* Milliseconds to wait for the thread. A daemon that responds takes less. */
enum { END_MS = 500 };

static void *answer_asks(void *arg)
{
	struct top_fetch *f = arg;
	char byte;

	while (read(f->asks[0], &byte, 1) == 1) {
		f->result = top_reading_take(f->mount, &f->reading, f->why);
		if (write(f->answers[1], &byte, 1) != 1)
			break;
	}
	return NULL;
}

static void free_fetch(struct top_fetch *f)
{
	for (unsigned i = 0; i < 2; i++) {
		if (f->asks[i] >= 0)
			close(f->asks[i]);
		if (f->answers[i] >= 0)
			close(f->answers[i]);
	}
	free(f->reading);
	free(f);
}

int top_fetch_open(const char *mount, struct top_fetch **out)
{
	struct top_fetch *f = calloc(1, sizeof(*f));
	int r = 0;

	if (!f)
		return -ENOMEM;
	*f = (struct top_fetch){ .mount = mount,
				 .asks = { -1, -1 },
				 .answers = { -1, -1 } };
	if (pipe2(f->asks, O_CLOEXEC) || pipe2(f->answers, O_CLOEXEC))
		r = -errno;
	r = r ? r : thread_start(&f->thread, answer_asks, f);
	if (r)
		free_fetch(f);
	else
		*out = f;
	return r;
}

void top_fetch_close(struct top_fetch *f)
{
	struct timespec end;

	if (!f)
		return;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += (end.tv_nsec + END_MS * 1000000L) / 1000000000;
	end.tv_nsec = (end.tv_nsec + END_MS * 1000000L) % 1000000000;
	/* The thread reads the end of the pipe and returns. */
	close(f->asks[1]);
	f->asks[1] = -1;
	if (!pthread_timedjoin_np(f->thread, NULL, &end))
		free_fetch(f);
}

void top_fetch_ask(struct top_fetch *f)
{
	if (!f->is_busy)
		f->is_busy = write(f->asks[1], "", 1) == 1;
}

int top_fetch_answer(struct top_fetch *f, struct top_reading **out)
{
	char byte;

	if (read(f->answers[0], &byte, 1) != 1)
		return -errno;
	f->is_busy = false;
	if (!f->result)
		*out = steal(f->reading);
	return f->result;
}
