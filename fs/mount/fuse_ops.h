/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of FUSE over a namespace: decode, ask, reply. The only file
 * that replies to the kernel.
 */
#ifndef FS_MOUNT_FUSE_OPS_H
#define FS_MOUNT_FUSE_OPS_H

#include "fs/metrics/jobs.h"
#include "fs/namespace/ns.h"

struct fuse_lowlevel_ops;
struct fuse_session;
struct ops;

/*
 * `ready` is called once, by the thread that answers the kernel's INIT: the
 * mount works from then on. Who reads batches is counted in `jobs`, which may
 * be NULL; both must outlive the result.
 */
int ops_open(struct ns *ns, struct jobs *jobs, void (*ready)(void *arg),
	     void *arg, struct ops **out);
/* Once mounted, batches that were read through the page cache are dropped from
   it when they are closed; until the loop has ended. */
void ops_start_dropping(struct ops *ops, struct fuse_session *session);
void ops_stop_dropping(struct ops *ops, const char *mountpoint);
/* After the session's threads have ended. Closes what the kernel held open.
   Takes NULL. */
void ops_close(struct ops *ops);

/* The user data of a session with these is a struct ops. Extended attributes
   are asked for at every file that ls(1) lists, unless they are left out. */
const struct fuse_lowlevel_ops *ops_table(bool with_xattr, size_t *size);

#endif
