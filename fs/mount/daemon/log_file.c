/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/daemon/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Accepts a file or a character device, such as /dev/null or a terminal, and
   unnamed pipes, because /dev/stderr may be one. Refuses a FIFO, because
   opening it blocks until a process reads it. */
static bool is_log(int fd)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st))
		return false;
	return S_ISREG(st.st_mode) || S_ISCHR(st.st_mode) ||
	       (S_ISFIFO(st.st_mode) && !fstatfs(fd, &fs) &&
		fs.f_type == PIPEFS_MAGIC);
}

int log_file_open(const char *path)
{
	int fd = open(path,
		      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK |
			      O_NOCTTY,
		      0600);

	/* ENXIO: a FIFO without a reader, or a socket. */
	if (fd < 0)
		return errno == ENXIO ? -EINVAL : -errno;
	if (is_log(fd))
		return fd;
	close(fd);
	return -EINVAL;
}
