/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/cancel.h"

#include <errno.h>
#include <poll.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/clock.h"

/* A call may have to wait for a lock of the caller's interpreter. */
enum { ASK_MS = 50 };

bool cancel_is_asked(struct cancel *c)
{
	int64_t now = clock_ns() / 1000000;

	if (!c || !c->asked || now < c->next_ms)
		return false;
	c->next_ms = now + ASK_MS;
	return c->asked(c->arg);
}

int cancel_poll(struct cancel *c, struct pollfd *also, int ms)
{
	struct pollfd fds[] = { { .fd = -1 },
				{ .fd = c ? c->fd : -1, .events = POLLIN } };

	if (also)
		fds[0] = *also;
	if (poll(fds, ARRAY_LEN(fds), ms) < 0)
		return errno == EINTR ? 0 : -errno;
	if (also)
		also->revents = fds[0].revents;
	return fds[1].revents || cancel_is_asked(c) ? -ECANCELED : 0;
}
