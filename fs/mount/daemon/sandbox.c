/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/daemon/sandbox.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/mount/daemon/sandbox_calls.h"

/* --- landlock(7), which headers of the C library may not have yet --- */

#ifndef SYS_landlock_create_ruleset
#	define SYS_landlock_create_ruleset 444
#	define SYS_landlock_add_rule 445
#	define SYS_landlock_restrict_self 446
#endif

enum { RULESET_VERSION = 1 };

/* The kinds of access that landlock refuses, because no rule allows them. */
struct ruleset {
	uint64_t files;
	uint64_t ports;
	uint64_t scopes;
};

/* The additions of each version of landlock. */
static const struct {
	int version;
	struct ruleset added;
} versions[] = {
	{ 1, { .files = (1 << 13) - 1 } },    /* execute to make_sym */
	{ 2, { .files = 1 << 13 } },	      /* rename to another directory */
	{ 3, { .files = 1 << 14 } },	      /* truncate */
	{ 4, { .ports = 1 << 0 | 1 << 1 } },  /* bind, connect */
	{ 5, { .files = 1 << 15 } },	      /* ioctl of a device */
	{ 6, { .scopes = 1 << 0 | 1 << 1 } }, /* abstract sockets, signals */
};

static int landlock_version(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0,
			    RULESET_VERSION);
}

enum {
	RULE_PATH_BENEATH = 1,
	FS_READ_FILE = 1 << 2,
	FS_READ_DIR = 1 << 3,
	NET_CONNECT = 1 << 1,
};

struct path_beneath {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

static int allow_path(int ruleset, const char *path, uint64_t access)
{
	cleanup_fd int fd = open(path, O_PATH | O_CLOEXEC);
	const struct path_beneath rule = { access, fd };

	return syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule,
		       0)
		       ? -errno
		       : 0;
}

/* For sanitizers: the threads and the memory of the process, and the names of
   functions in reports. */
static int allow_reports(int ruleset)
{
	static const char *const paths[] = { "/proc", "/usr", "/lib" };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(paths) && !r; i++)
		r = allow_path(ruleset, paths[i], FS_READ_FILE | FS_READ_DIR);
	return r ? r : allow_path(ruleset, "/proc/self/exe", FS_READ_FILE);
}

/*
 * Without a network there are no rules. Memory that has no path is outside of
 * landlock, and so /proc/self/fd still opens a memfd. If there is a network, the
 * daemon can read every file that its user can, because the files of the
 * resolver, of TLS and of credentials may be anywhere, and may be replaced.
 */
static int allow_reading(int ruleset, bool network)
{
	if (network)
		return allow_path(ruleset, "/", FS_READ_FILE | FS_READ_DIR);
	return SANDBOX_IS_WATCHED ? allow_reports(ruleset) : 0;
}

static int give_up_paths(bool network)
{
	struct ruleset all = { 0 };
	int version = landlock_version(), r;
	cleanup_fd int fd = -1;

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		if (versions[i].version > version)
			break;
		all.files |= versions[i].added.files;
		all.ports |= versions[i].added.ports;
		all.scopes |= versions[i].added.scopes;
	}
	if (network)
		all.ports &= ~(uint64_t)NET_CONNECT;
	/* Older kernels accept a longer struct whose end is zero. */
	fd = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);
	if (fd < 0)
		return -errno;
	r = allow_reading(fd, network);
	if (r)
		return r;
	return syscall(SYS_landlock_restrict_self, fd, 0) ? -errno : 0;
}

/* --- seccomp(2) --- */

static bool has_seccomp(void)
{
	const uint32_t action = SECCOMP_RET_ERRNO;
	struct sock_fprog program;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) ||
	    sandbox_calls(false, &program))
		return false;
	free(program.filter);
	return true;
}

/*
 * A sanitizer may have a thread already, hence TSYNC. Without SPEC_ALLOW,
 * kernels before 5.16 slow down all code of the process, against attacks by
 * code that the process runs for others; the daemon runs none.
 */
static int give_up_calls(bool network)
{
	const unsigned flags =
		SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
	struct sock_fprog program;
	int r = sandbox_calls(network, &program);

	if (r)
		return r;
	r = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	if (r)
		r = r < 0 ? -errno : -ESRCH;
	free(program.filter);
	return r;
}

/* --- both --- */

enum sandbox_layers sandbox_offered(void)
{
	return (landlock_version() > 0 ? SANDBOX_LANDLOCK : 0) |
	       (has_seccomp() ? SANDBOX_SECCOMP : 0);
}

const char *sandbox_name(enum sandbox_layers layers)
{
	static const char *const names[] = {
		[SANDBOX_NONE] = "none",
		[SANDBOX_LANDLOCK] = "landlock",
		[SANDBOX_SECCOMP] = "seccomp",
		[SANDBOX_ALL] = "landlock,seccomp",
	};

	return names[layers];
}

/* The C library would open these when they are first needed: the time zone of
   the log, and the library that ends a thread from outside, as libfuse does. */
static void load_early(void)
{
	void *frame;

	tzset();
	backtrace(&frame, 1);
}

int sandbox_enter(enum sandbox_layers layers, bool network)
{
	int r = 0;

	if (!layers)
		return 0;
	load_early();
	/* Both layers require this of processes without privileges. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	if (layers & SANDBOX_LANDLOCK)
		r = give_up_paths(network);
	if (!r && layers & SANDBOX_SECCOMP)
		r = give_up_calls(network);
	return r;
}
