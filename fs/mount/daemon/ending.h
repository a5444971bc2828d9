/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a daemon. Its threads end when their requests are answered. If a
 * disk or a file server hangs, this may never happen. Therefore, after a time,
 * the process unmounts and ends with the requests open.
 */
#ifndef FS_MOUNT_DAEMON_ENDING_H
#define FS_MOUNT_DAEMON_ENDING_H

#include <pthread.h>
#include <stdbool.h>

#include "fs/base/util/log.h"
#include "fs/mount/daemon/watcher.h"

struct fuse_session;

/* The caller sets the first five members, and the others to 0. */
struct ending {
	struct transport *transport;
	struct fuse_session *session;
	const char *mountpoint;
	struct watcher *watcher;
	struct log *log;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	bool has_begun;
	bool is_over;
	bool is_cut_off;
	bool has_thread;
	pthread_t thread;
};

void ending_init(struct ending *e);

/* Starts to wait for the end of the mounted session, by a signal or an unmount.
   Returns 0 or -errno. */
int ending_start(struct ending *e);

/* Call after all requests are answered. Detaches from the mount, so that the
   session may be destroyed. */
void ending_disconnect(struct ending *e);

/* Unmounts the mount from which the daemon has detached. */
void ending_unmount(struct ending *e);

/* Call after all other threads of the daemon have ended. */
void ending_close(struct ending *e);

#endif
