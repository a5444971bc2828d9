/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests out of rings: decodes them, and answers them on the thread of the
 * ring if that does not wait. Other requests go to the workers.
 */
#ifndef FS_MOUNT_FUSE_RING_OPS_H
#define FS_MOUNT_FUSE_RING_OPS_H

#include "fs/mount/fuse/operations.h"
#include "fs/mount/fuse/uring.h"

struct rings_count;
struct workers;

struct ring_ops {
	struct fuse_ops *ops;
	struct workers *workers;
	struct rings_count *count;
	/* Only root and this user may use the mount: -o allow_root. */
	bool denies_others;
	uid_t user;
};

/* uring_start() takes this function, with a struct ring_ops. */
void ring_ops_serve(void *arg, struct uring_entry *entry);

/* workers_open() takes this function, with a struct ring_ops. */
void ring_ops_run(void *arg, struct uring_entry *entry);

#endif
