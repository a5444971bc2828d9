/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of FUSE on directories (operations.h). */
#ifndef FS_MOUNT_FUSE_DIRECTORY_H
#define FS_MOUNT_FUSE_DIRECTORY_H

#include "fs/mount/fuse/operations.h"

void op_opendir(const struct fuse_request *q, uint64_t ino,
		struct fuse_file_info *fi);
void op_readdir(const struct fuse_request *q, uint64_t ino, size_t size,
		off_t off);
void op_readdirplus(const struct fuse_request *q, uint64_t ino, size_t size,
		    off_t off);

#endif
