/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the kernel drop batches that were read through the page cache, which
 * would hold a second copy of each. A separate thread does this, because the
 * kernel may wait for another request meanwhile.
 */
#ifndef FS_MOUNT_FUSE_INVAL_H
#define FS_MOUNT_FUSE_INVAL_H

#include "fs/base/util/log.h"

struct fuse_session;
struct inval;

/* Ignores all names until inval_start(). */
int inval_open(struct inval **out);
/* The session must be mounted, at `mountpoint`, and outlive the inval. */
void inval_start(struct inval *inval, struct fuse_session *session,
		 const char *mountpoint);

/* Queues a name of a directory. Does nothing if the queue is full. */
void inval_push(struct inval *inval, uint64_t directory, const char *name);

/*
 * Stops the thread. Call it after the loop of the session and before the
 * unmount. Answers requests of the session for as long as the kernel needs that
 * to forget a name; aborts the connection if that takes long. Accepts NULL.
 */
void inval_close(struct inval *inval);

#endif
