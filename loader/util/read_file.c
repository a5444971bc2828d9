/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fs/base/util/cleanup.h"

int read_file_fd(int fd, size_t max, char **out, size_t *size)
{
	/* Grows with the bytes read, because the size from stat() may be
	   wrong. */
	cleanup_free char *bytes = NULL;
	size_t used = 0, room = 0;
	char *more;
	ssize_t n = 1;

	while (n) {
		if (used == room) {
			room = room ? 2 * room : 1 << 16;
			room = room < max + 1 ? room : max + 1;
			more = realloc(bytes, room + 1);
			if (!more)
				return -ENOMEM;
			bytes = more;
		}
		n = read(fd, bytes + used, room - used);
		if (n < 0 && errno != EINTR)
			return -errno;
		used += n > 0 ? (size_t)n : 0;
		if (used > max)
			return -EFBIG;
	}
	bytes[used] = '\0';
	*size = used;
	*out = steal(bytes);
	return 0;
}

int read_file(const char *path, size_t max, char **out, size_t *size)
{
	/* O_NONBLOCK: a FIFO must not be waited for. */
	cleanup_fd int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return read_file_fd(fd, max, out, size);
}
