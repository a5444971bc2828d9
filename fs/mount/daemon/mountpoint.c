/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/daemon/mountpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/util/cleanup.h"

enum {
	STALE_MAX = 16, /* dead mounts on one directory */
	/* Tries while another process unmounts: 2 s in all. */
	TURN_MS = 10,
	TURNS_MAX = 200,
};

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

/* The errors of a mountpoint whose daemon died. ECANCELED: its rings of io_uring
   are just ending. */
static bool is_stale(int error)
{
	return error == ENOTCONN || error == ECONNABORTED || error == ECANCELED;
}

/* Sends a request to the daemon of a path or, if the path is "", of a
   descriptor, because cached attributes outlive a daemon. Returns an error
   number. */
static int ask_daemon(int fd, const char *path, struct statx *st)
{
	int flags = AT_STATX_FORCE_SYNC | (*path ? 0 : AT_EMPTY_PATH);

	return statx(fd, path, flags, STATX_BASIC_STATS, st) ? errno : 0;
}

static int stat_mountpoint(const char *path, bool *is_dir)
{
	struct statx st;
	int e = ask_daemon(AT_FDCWD, path, &st);

	if (!e)
		*is_dir = S_ISDIR(st.stx_mode);
	return e;
}

/* Root unmounts by descriptor, because the path may meanwhile have a working
   mount. */
static int detach_dead(const char *path)
{
	cleanup_fd int fd = -1;
	struct statx st;
	char link[64];

	if (geteuid() == 0)
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return detach_by_helper(path);
	if (!is_stale(ask_daemon(fd, "", &st)))
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return umount2(link, MNT_DETACH) ? detach_by_helper(path) : 0;
}

/*
 * fusermount3 unmounts by name. If two daemons find a dead mount, the slower
 * one would unmount the new mount of the faster one. Therefore each locks the
 * parent directory from the check to the unmount. Returns a descriptor to
 * close; -1: there is no lock.
 */
static int lock_parent(const char *path)
{
	const struct timespec pause = { .tv_nsec = TURN_MS * 1000000 };
	char parent[PATH_MAX];
	char *slash;
	int fd;

	snprintf(parent, sizeof(parent), "%s", path);
	slash = strrchr(parent, '/');
	if (!slash)
		return -1;
	slash[slash == parent] = '\0';
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; fd >= 0 && i < TURNS_MAX; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
			break;
		nanosleep(&pause, NULL);
	}
	return fd;
}

/* Unmounts the dead mounts at a path, and counts them. Returns the error number
   of the path afterwards; sets *is_dir if it is 0. */
static int uncover(const char *path, unsigned *count, bool *is_dir)
{
	int e = stat_mountpoint(path, is_dir);
	cleanup_fd int lock = is_stale(e) ? lock_parent(path) : -1;

	(void)lock; /* held until the function returns */
	*count = 0;
	if (is_stale(e))
		e = stat_mountpoint(path, is_dir);
	while (is_stale(e) && *count < STALE_MAX && !detach_dead(path)) {
		++*count;
		e = stat_mountpoint(path, is_dir);
	}
	return e;
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

/* Returns the N of "/dev/fd/N", and -1 for any other path. */
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
		log_error(log,
			  "mountpoint %s: not an open descriptor of /dev/fuse",
			  path);
		return -ENODEV;
	}
	return fcntl(fd, F_SETFD, FD_CLOEXEC) ? refuse_path(path, log, errno)
					      : 0;
}

/* Mounts stack, like those of mount(8). Log this, because the user may not
   intend it. */
static void warn_of_mount_below(const char *path, struct log *log)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	char text[8192], source[4096] = "";
	struct mntent m;

	while (mounts && getmntent_r(mounts, &m, text, sizeof(text))) {
		if (strcmp(m.mnt_dir, path) != 0)
			continue;
		snprintf(source, sizeof(source), "%s",
			 strcmp(m.mnt_type, "fuse.betonfs") ? ""
							    : m.mnt_fsname);
	}
	if (mounts)
		endmntent(mounts);
	if (*source)
		log_warning(
			log,
			"mountpoint %s: this mount hides the mount of %s until you unmount it with fusermount3 -u",
			path, source);
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
	unsigned count;
	int e;

	*made = false;
	if (mountpoint_is_fd(path))
		return check_fd(path, log);
	e = uncover(path, &count, &is_dir);
	if (count)
		log_info(
			log,
			"mountpoint %s: unmounted the mount of a daemon that had died",
			path);
	if (e == ENOENT)
		return make_directory(path, log, made);
	if (!e && !is_dir)
		e = ENOTDIR;
	if (e)
		return refuse_path(path, log, e);
	warn_of_mount_below(path, log);
	return 0;
}

int mountpoint_clear(const char *path)
{
	unsigned count;
	bool is_dir;
	int e = uncover(path, &count, &is_dir);

	return is_stale(e) ? -e : 0;
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

const char *mountpoint_explain(bool shared)
{
	if (access("/dev/fuse", R_OK | W_OK) && errno != ENOENT)
		return NULL;
	if (access("/dev/fuse", F_OK))
		return "there is no /dev/fuse: load the module fuse; a container needs --device /dev/fuse --cap-add SYS_ADMIN";
	if (shared && geteuid() && !users_may_share())
		return "to mount for other users, root puts the line user_allow_other into /etc/fuse.conf; or leave the option out";
	return NULL;
}
