/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/foreign/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "fs/util/bytes.h"

int input_file_switch(struct input_file *f, const char *path, uint64_t which,
		      struct input_error *error)
{
	struct stat st;
	int r = 0;

	if (f->fd >= 0 && f->which == which)
		return 0;
	input_file_close(f);
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (f->fd < 0 || fstat(f->fd, &st) < 0)
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = -EINVAL;
	if (r) {
		input_file_close(f);
		return input_refuse(error, r, "cannot open: %s",
				    r == -EINVAL ? "not a regular file"
						 : strerror(-r));
	}
	f->which = which;
	f->size = (uint64_t)st.st_size;
	return 0;
}

int input_file_read(const struct input_file *f, void *out, uint64_t size,
		    uint64_t at, struct input_error *error)
{
	char *to = out;

	if (!range_ok(at, size, f->size))
		return input_refuse(error, -EBADMSG,
				    "needs %" PRIu64 " bytes at %" PRIu64
				    ", but the file has %" PRIu64,
				    size, at, f->size);
	while (size) {
		ssize_t n = pread(f->fd, to, size, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return input_refuse(error, -errno,
					    "cannot read at byte %" PRIu64
					    ": %s",
					    at, strerror(errno));
		if (!n)
			return input_refuse(error, -EBADMSG,
					    "became shorter than %" PRIu64
					    " bytes while it was read",
					    at + size);
		to += n;
		at += (uint64_t)n;
		size -= (uint64_t)n;
	}
	return 0;
}

void input_file_close(struct input_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}
