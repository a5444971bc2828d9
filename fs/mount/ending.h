/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a daemon. Its threads end when their requests are answered, which
 * a disk or a server of files that hangs can put off for ever. If that takes
 * too long, the process unmounts and ends with the requests open.
 */
#ifndef FS_MOUNT_ENDING_H
#define FS_MOUNT_ENDING_H

#include <pthread.h>
#include <stdbool.h>

#include "fs/mount/watcher.h"
#include "fs/util/log.h"

struct fuse_session;

/* The caller sets the first four members, and the others to 0. */
struct ending {
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

/* Waits from now on for the end of the session, which is mounted: a signal
   ends it, or somebody unmounts it. 0 or -errno. */
int ending_start(struct ending *e);

/* All requests are answered: lets go of the mount, so that the session may be
   destroyed. */
void ending_disconnect(struct ending *e);

/* Unmounts what the daemon has let go of. */
void ending_unmount(struct ending *e);

/* All other threads of the daemon have ended. */
void ending_close(struct ending *e);

#endif
