/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/mountpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STALE_MAX = 16 }; /* dead mounts on one directory */

/* The device numbers of /dev/fuse. */
enum { FUSE_MAJOR = 10, FUSE_MINOR = 229 };

static const char fd_prefix[] = "/dev/fd/";

extern char **environ;

/* fusermount3 has the privilege to unmount the user's own mounts. */
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

static int detach_mount(const char *path)
{
	if (geteuid() == 0 && !umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW))
		return 0;
	return detach_by_helper(path);
}

/* The errors of a mountpoint whose daemon died. */
static bool is_stale(int error)
{
	return error == ENOTCONN || error == ECONNABORTED;
}

static int refuse_path(const char *path, struct log *log, int error)
{
	log_error(log, "mountpoint %s: %s", path, strerror(error));
	return -error;
}

static int make_directory(const char *path, struct log *log, bool *made)
{
	if (mkdir(path, 0777))
		return refuse_path(path, log, errno);
	*made = true;
	return 0;
}

/* Asks the daemon that serves the path: attributes in the kernel's cache
   outlive it. */
static int stat_mountpoint(const char *path, bool *is_dir)
{
	struct statx st;

	if (statx(AT_FDCWD, path, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &st))
		return errno;
	*is_dir = S_ISDIR(st.stx_mode);
	return 0;
}

/* The N of "/dev/fd/N". -1: another path. */
static int fd_of(const char *path)
{
	const char *digits = path + sizeof(fd_prefix) - 1;
	size_t size;

	if (strncmp(path, fd_prefix, sizeof(fd_prefix) - 1))
		return -1;
	size = strspn(digits, "0123456789");
	return !digits[size] && size && size <= 9 ? atoi(digits) : -1;
}

bool mountpoint_is_fd(const char *path)
{
	return fd_of(path) > STDERR_FILENO;
}

/* Checks the descriptor, and closes it in programs that the daemon starts. */
static int check_fd(const char *path, struct log *log)
{
	int fd = fd_of(path);
	struct stat st;

	if (fstat(fd, &st))
		return refuse_path(path, log, errno);
	if (!S_ISCHR(st.st_mode) ||
	    st.st_rdev != makedev(FUSE_MAJOR, FUSE_MINOR)) {
		log_error(log, "mountpoint %s: that is no open /dev/fuse",
			  path);
		return -ENODEV;
	}
	return fcntl(fd, F_SETFD, FD_CLOEXEC) ? refuse_path(path, log, errno)
					      : 0;
}

int mountpoint_check(const char *path, struct log *log)
{
	bool is_dir = true;
	int e;

	if (mountpoint_is_fd(path))
		return check_fd(path, log);
	e = stat_mountpoint(path, &is_dir);
	if (e == ENOENT || is_stale(e))
		return 0;
	if (!e && !is_dir)
		e = ENOTDIR;
	return e ? refuse_path(path, log, e) : 0;
}

int mountpoint_prepare(const char *path, struct log *log, bool *made)
{
	bool is_dir = false;
	int e;

	*made = false;
	if (mountpoint_is_fd(path))
		return check_fd(path, log);
	e = stat_mountpoint(path, &is_dir);
	for (int i = 0; is_stale(e) && i < STALE_MAX && !detach_mount(path);
	     i++) {
		log_info(log, "mountpoint %s: its daemon had died: unmounted",
			 path);
		e = stat_mountpoint(path, &is_dir);
	}
	if (e == ENOENT)
		return make_directory(path, log, made);
	if (!e && !is_dir)
		e = ENOTDIR;
	return e ? refuse_path(path, log, e) : 0;
}

void mountpoint_remove(const char *path)
{
	rmdir(path);
}

static bool users_may_share(void)
{
	FILE *conf = fopen("/etc/fuse.conf", "re");
	char line[256], word[32];
	bool found = false;

	while (conf && !found && fgets(line, sizeof(line), conf))
		found = sscanf(line, "%31s", word) == 1 &&
			!strcmp(word, "user_allow_other");
	if (conf)
		fclose(conf);
	return found;
}

void mountpoint_explain(bool shared, struct log *log)
{
	if (access("/dev/fuse", R_OK | W_OK) && errno != ENOENT)
		return;
	if (access("/dev/fuse", F_OK))
		log_error(
			log,
			"there is no /dev/fuse: load the module fuse; a container needs --device /dev/fuse --cap-add SYS_ADMIN");
	else if (shared && geteuid() && !users_may_share())
		log_error(
			log,
			"to mount for other users, root puts the line user_allow_other into /etc/fuse.conf; or leave the option out");
}
