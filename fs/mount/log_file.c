/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* A file or a character device, such as /dev/null or a terminal. Of pipes only
   those without a name, which are what /dev/stderr may be: a FIFO blocks
   whoever opens it, until it is read. */
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

	/* A FIFO that is not read, or a socket. */
	if (fd < 0)
		return errno == ENXIO ? -EINVAL : -errno;
	if (is_log(fd))
		return fd;
	close(fd);
	return -EINVAL;
}
