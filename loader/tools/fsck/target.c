/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/target.h"

#include <errno.h>
#include <string.h>

int target_poll(struct target *t, uint64_t more)
{
	const struct timespec now = { 0 };

	t->read += more;
	progress_show(t->report->progress, t->read >> 20);
	return sigtimedwait(t->signals, NULL, &now) > 0 ? -EINTR : 0;
}

int target_read(struct target *t, void *buf, size_t size, uint64_t off)
{
	int r = source_read(t->source, buf, size, off);

	if (r)
		report_file(t->report, CHECK_READ, off, "cannot read: %s",
			    strerror(-r));
	return r;
}
