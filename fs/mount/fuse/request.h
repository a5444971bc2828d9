/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of the kernel, and the replies to it. It came through libfuse, or
 * out of an entry of a ring (uring.h), and its reply goes the same way. Each
 * request gets one reply, from any thread.
 */
#ifndef FS_MOUNT_FUSE_REQUEST_H
#define FS_MOUNT_FUSE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

struct fuse_entry_param;
struct fuse_file_info;
struct fuse_ops;
struct fuse_req;
struct uring_entry;

struct fuse_request {
	struct fuse_ops *ops;
	struct fuse_req *fuse;	  /* NULL: of a ring */
	struct uring_entry *ring; /* NULL: of libfuse */
	uid_t uid;
	gid_t gid;
	pid_t pid;
};

/* Only this function converts damaged data to an error number of the system. */
void reply_error(const struct fuse_request *request, int r);
void reply_done(const struct fuse_request *request);
void reply_entry(const struct fuse_request *request,
		 const struct fuse_entry_param *entry);
/* `timeout` is in whole seconds. */
void reply_attr(const struct fuse_request *request, const struct stat *st,
		double timeout);
void reply_readlink(const struct fuse_request *request, const char *target);
void reply_statfs(const struct fuse_request *request, const struct statvfs *st);
void reply_xattr_size(const struct fuse_request *request, size_t size);
/* `bytes` may be the memory that request_room() returned. */
void reply_bytes(const struct fuse_request *request, const void *bytes,
		 size_t size);
/* Returns false if the kernel does not want the file any more, and so does not
   release it. */
bool reply_open(const struct fuse_request *request,
		const struct fuse_file_info *fi);

/* Returns the memory of a ring's entry for a reply of `size` bytes; NULL: the
   request came through libfuse, or is for more. */
char *request_room(const struct fuse_request *request, size_t size);

#endif
