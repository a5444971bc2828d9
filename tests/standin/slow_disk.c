/* SPDX-License-Identifier: Apache-2.0 */
/* A slow disk, by LD_PRELOAD: reads of any file wait as long as the file that
   SLOW_DISK names exists. Nothing is in the page cache then. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

/* The C library's own. */
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

static bool is_slow(void)
{
	const char *gate = getenv("SLOW_DISK");

	return gate && !access(gate, F_OK);
}

static void wait_for_disk(void)
{
	while (is_slow())
		usleep(1000);
}

SEEN ssize_t pread64(int fd, void *buf, size_t size, off64_t off)
{
	wait_for_disk();
	return NEXT(pread64)(fd, buf, size, off);
}

SEEN ssize_t preadv64(int fd, const struct iovec *iov, int n, off64_t off)
{
	wait_for_disk();
	return NEXT(preadv64)(fd, iov, n, off);
}

SEEN ssize_t preadv64v2(int fd, const struct iovec *iov, int n, off64_t off,
			int flags)
{
	if (flags & RWF_NOWAIT && is_slow()) {
		errno = EAGAIN;
		return -1;
	}
	wait_for_disk();
	return NEXT(preadv64v2)(fd, iov, n, off, flags);
}
