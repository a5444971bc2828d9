/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the kernel to forget files that were read to their end of use: batches
 * that somebody read through the page cache, which would keep a second copy of
 * each. On a thread of its own, for the kernel may wait for a request while it
 * forgets.
 */
#ifndef FS_MOUNT_INVAL_H
#define FS_MOUNT_INVAL_H

#include "fs/util/log.h"

struct fuse_session;
struct dropper;

/* Nothing is dropped before dropper_start(). */
int dropper_open(struct dropper **out);
/* The session must be mounted, and outlive the dropper. */
void dropper_start(struct dropper *dropper, struct fuse_session *session);

/* Forgets a name of a directory, soon; or never, if there are too many. */
void dropper_push(struct dropper *dropper, uint64_t directory,
		  const char *name);

/*
 * After the loop of the session, before it is unmounted: stops. A look-up that
 * nobody will answer any more may hold it up; then the connection of what is
 * mounted at `mountpoint` is aborted. Takes NULL.
 */
void dropper_close(struct dropper *dropper, const char *mountpoint);

#endif
