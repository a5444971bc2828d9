/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mountpoint.h"

#include <errno.h>
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

int mountpoint_prepare(const char *path, struct log *log, bool *made)
{
	struct stat st;
	int r = stat(path, &st) ? errno : 0;

	*made = false;
	for (int i = 0; is_stale(r) && i < STALE_MAX; i++) {
		if (detach(path))
			break;
		log_info(log, "mountpoint %s: its daemon had died: unmounted",
			 path);
		r = stat(path, &st) ? errno : 0;
	}
	if (r == ENOENT)
		return make(path, log, made);
	if (!r && !S_ISDIR(st.st_mode))
		r = ENOTDIR;
	return r ? refuse(path, log, r) : 0;
}

void mountpoint_remove(const char *path)
{
	rmdir(path);
}
