/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of FUSE over a namespace. Each replies to its request once.
 * They may wait for a disk, a network, memory or a batch. A thread that must
 * not wait asks first: op_is_at_hand() and the functions below it.
 */
#ifndef FS_MOUNT_FUSE_OPERATIONS_H
#define FS_MOUNT_FUSE_OPERATIONS_H

#include <pthread.h>

#include "fs/base/metrics/jobs.h"
#include "fs/mount/fuse/open_files.h"
#include "fs/mount/fuse/request.h"
#include "fs/mount/namespace/ns.h"
#include "fs/mount/zerocopy/peer.h"

struct fuse_entry_param;
struct fuse_session;
struct inval;
struct watcher;

struct fuse_ops {
	struct ns *ns;
	struct jobs *jobs;
	struct budget *budget;
	int (*open_status)(struct watcher *watcher, pid_t pid);
	struct watcher *watcher;
	void (*ready)(void *arg);
	void *arg;
	bool is_starting; /* the mount is not ready with the reply to INIT */
	/* The kernel supports mounts without opendir, and may cache all
	   listings, because they are the same for all users. */
	bool no_opendir;
	bool with_xattr;
	pthread_key_t scratch;
	struct inval *inval;
	struct fuse_session *session; /* while it is mounted */
	struct open_files files;
};

/* Frees a thread's memory for replies, the value of fuse_ops.scratch. */
void scratch_free(void *arg);

void op_statfs(const struct fuse_request *q, uint64_t ino);
void op_lookup(const struct fuse_request *q, uint64_t parent, const char *name);
void op_getattr(const struct fuse_request *q, uint64_t ino);
void op_readlink(const struct fuse_request *q, uint64_t ino);
void op_getxattr(const struct fuse_request *q, uint64_t ino, const char *name,
		 size_t size);
void op_listxattr(const struct fuse_request *q, uint64_t ino, size_t size);
void op_open(const struct fuse_request *q, uint64_t ino,
	     struct fuse_file_info *fi);
void op_read(const struct fuse_request *q, uint64_t ino, size_t size, off_t off,
	     const struct fuse_file_info *fi);
void op_release(const struct fuse_request *q, uint64_t ino,
		const struct fuse_file_info *fi);

/* Returns whether the operations on an object, other than those below, answer
   from memory. */
bool op_is_at_hand(const struct fuse_request *q, uint64_t ino);
bool op_lists_at_once(const struct fuse_request *q, uint64_t ino);
bool op_releases_at_once(const struct fuse_file_info *fi);
/* Do the operation of a request that came out of a ring, unless it has to wait.
   False: there is no reply yet. */
bool op_open_at_once(const struct fuse_request *q, uint64_t ino,
		     struct fuse_file_info *fi);
bool op_read_at_once(const struct fuse_request *q, uint64_t ino, size_t size,
		     off_t off, const struct fuse_file_info *fi);

/* Returns memory for a reply of `size` bytes; NULL: there is none. */
char *op_room(const struct fuse_request *q, size_t size);
/* Describes an entry to the kernel. */
void op_fill_entry(struct ns *ns, const struct ns_entry *entry,
		   struct fuse_entry_param *out);
/* Returns the process that made a request, with its groups from /proc, or
   without groups if that fails. The sandbox forbids /proc; therefore the
   watcher opens the file. */
struct peer op_caller(const struct fuse_request *q);
/* Returns whether a process may read a dataset. */
bool op_may_read(const struct ns *ns, const struct peer *caller,
		 uint32_t dataset);
/* Returns whether it is a root whose entries differ between users. */
bool op_is_mixed_root(const struct ns *ns, uint64_t ino);

#endif
