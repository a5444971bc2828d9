/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watcher: a process that is forked before the daemon enters its sandbox,
 * for work that the sandbox forbids. It opens the log again and the status of
 * callers, passes messages to syslog(3), and unmounts, also if the daemon was
 * killed. It holds no descriptor of the daemon.
 */
#ifndef FS_MOUNT_DAEMON_WATCHER_H
#define FS_MOUNT_DAEMON_WATCHER_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct watcher {
	int socket; /* to the process; -1: there is none */
	pid_t pid;
	pthread_mutex_t lock; /* held from a request to its answer */
	bool is_lost;	      /* an answer did not come; guarded by lock */
};

/* Forks; therefore the process must not have threads yet. Both paths are
   absolute and must outlive the watcher. `mountpoint` is NULL if another
   process unmounts, `log` if there is no file. */
int watcher_start(struct watcher *watcher, const char *mountpoint,
		  const char *log);

/* Call before the daemon mounts. From then on the watcher unmounts as soon as
   the daemon ends. `made`: it also removes the directory. */
void watcher_mounting(struct watcher *watcher, bool made);

/* Unmounts the dead mount; the caller has closed /dev/fuse. */
int watcher_unmount(struct watcher *watcher);

/* Opens the log again, to append to it. Returns a descriptor or -errno. */
int watcher_open_log(struct watcher *watcher);

/* Opens /proc/PID/status of a process, which contains its groups. Returns a
   descriptor or -errno. Thread-safe. */
int watcher_open_status(struct watcher *watcher, pid_t pid);

/* Thread-safe. Never waits: if the process has ended, or many messages wait for
   syslog(3), the message is lost. */
void watcher_syslog(struct watcher *watcher, int priority, const char *message);

/* Waits until the process has ended. Does nothing if there is none. */
void watcher_close(struct watcher *watcher);

#endif
