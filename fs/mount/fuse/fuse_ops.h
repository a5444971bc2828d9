/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a mount, and the table by which libfuse calls them. */
#ifndef FS_MOUNT_FUSE_FUSE_OPS_H
#define FS_MOUNT_FUSE_FUSE_OPS_H

#include "fs/base/metrics/jobs.h"
#include "fs/mount/namespace/ns.h"

struct budget;
struct fuse_lowlevel_ops;
struct fuse_session;
struct fuse_ops;
struct log;
struct watcher;

/* All pointers must stay valid until the operations are closed. */
struct fuse_ops_options {
	struct ns *ns;
	struct jobs *jobs;     /* counts readers of batches; may be NULL */
	struct budget *budget; /* charged for open files; may be NULL */
	struct log *log;
	/* Opens /proc/PID/status of callers, which has their groups. */
	int (*open_status)(struct watcher *watcher, pid_t pid);
	struct watcher *watcher;
	bool with_xattr; /* there are extended attributes */
	/* Called once by the thread that answers the kernel's INIT. The mount
	   works from then on. */
	void (*ready)(void *arg);
	void *arg;
};

int fuse_ops_open(const struct fuse_ops_options *options,
		  struct fuse_ops **out);
/* Between these two calls, the page cache drops a batch when it is closed. At
   the first call the session must be mounted at the path, and at the second its
   loop must have ended. */
void fuse_ops_start_dropping(struct fuse_ops *ops, struct fuse_session *session,
			     const char *mountpoint);
void fuse_ops_stop_dropping(struct fuse_ops *ops);
/* Closes all files that are still open, after the session's threads have ended.
   Accepts NULL. */
void fuse_ops_close(struct fuse_ops *ops);

/* The user data of a session with this table is a struct fuse_ops. ls(1) asks
   for extended attributes of every file unless the table lacks them. */
const struct fuse_lowlevel_ops *fuse_ops_table(bool with_xattr, size_t *size);

#endif
