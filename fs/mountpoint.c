/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mountpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STALE_MAX = 16 }; /* dead mounts on one directory */

extern char **environ;

/* fusermount3 may unmount what the user mounted. */
static int detach_by_helper(const char *path)
{
	char program[] = "fusermount3", flags[] = "-uqz", end[] = "--";
	char *argv[] = { program, flags, end, (char *)path, NULL };
	pid_t pid;
	int status, r = -posix_spawnp(&pid, program, NULL, NULL, argv, environ);

	while (!r && waitpid(pid, &status, 0) < 0)
		r = errno == EINTR ? 0 : -errno;
	if (!r && status)
		r = -EPERM;
	return r;
}

static int detach(const char *path)
{
	if (geteuid() == 0 && !umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW))
		return 0;
	return detach_by_helper(path);
}

/* What a dead daemon's mountpoint answers. */
static bool is_stale(int error)
{
	return error == ENOTCONN || error == ECONNABORTED;
}

static int refuse(const char *path, struct log *log, int error)
{
	log_error(log, "mountpoint %s: %s", path, strerror(error));
	return -error;
}

static int make(const char *path, struct log *log, bool *made)
{
	if (mkdir(path, 0777))
		return refuse(path, log, errno);
	*made = true;
	return 0;
}

/* Asks whoever serves it: what the kernel remembers outlives the daemon. */
static int look(const char *path, bool *is_dir)
{
	struct statx st;

	if (statx(AT_FDCWD, path, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &st))
		return errno;
	*is_dir = S_ISDIR(st.stx_mode);
	return 0;
}

int mountpoint_prepare(const char *path, struct log *log, bool *made)
{
	bool is_dir = false;
	int e = look(path, &is_dir);

	*made = false;
	for (int i = 0; is_stale(e) && i < STALE_MAX && !detach(path); i++) {
		log_info(log, "mountpoint %s: its daemon had died: unmounted",
			 path);
		e = look(path, &is_dir);
	}
	if (e == ENOENT)
		return make(path, log, made);
	if (!e && !is_dir)
		e = ENOTDIR;
	return e ? refuse(path, log, e) : 0;
}

void mountpoint_remove(const char *path)
{
	rmdir(path);
}
