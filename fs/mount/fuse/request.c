/* SPDX-License-Identifier: Apache-2.0 */
#define FUSE_USE_VERSION 312

#include "fs/mount/fuse/request.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <string.h>

#include "beton/beton.h"
#include "fs/mount/fuse/uring.h"

/* --- replies in the kernel's form --- */

static void reply_struct(const struct fuse_request *q, const void *bytes,
			 size_t size)
{
	memcpy(q->ring->payload, bytes, size);
	uring_reply(q->ring, 0, size);
}

static struct fuse_attr attr_of(const struct stat *st)
{
	return (struct fuse_attr){
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
		.atime = (uint64_t)st->st_atim.tv_sec,
		.mtime = (uint64_t)st->st_mtim.tv_sec,
		.ctime = (uint64_t)st->st_ctim.tv_sec,
		.atimensec = (uint32_t)st->st_atim.tv_nsec,
		.mtimensec = (uint32_t)st->st_mtim.tv_nsec,
		.ctimensec = (uint32_t)st->st_ctim.tv_nsec,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.rdev = (uint32_t)st->st_rdev,
		.blksize = (uint32_t)st->st_blksize,
	};
}

void reply_error(const struct fuse_request *q, int r)
{
	const int error = r == -BETON_ECORRUPT ? EIO : -r;

	if (q->fuse)
		fuse_reply_err(q->fuse, error);
	else
		uring_reply(q->ring, -error, 0);
}

void reply_done(const struct fuse_request *q)
{
	reply_error(q, 0);
}

void reply_entry(const struct fuse_request *q, const struct fuse_entry_param *e)
{
	const struct fuse_entry_out out = {
		.nodeid = e->ino,
		.generation = e->generation,
		.entry_valid = (uint64_t)e->entry_timeout,
		.attr_valid = (uint64_t)e->attr_timeout,
		.attr = attr_of(&e->attr),
	};

	if (q->fuse)
		fuse_reply_entry(q->fuse, e);
	else
		reply_struct(q, &out, sizeof(out));
}

void reply_attr(const struct fuse_request *q, const struct stat *st,
		double timeout)
{
	const struct fuse_attr_out out = {
		.attr_valid = (uint64_t)timeout,
		.attr = attr_of(st),
	};

	if (q->fuse)
		fuse_reply_attr(q->fuse, st, timeout);
	else
		reply_struct(q, &out, sizeof(out));
}

void reply_readlink(const struct fuse_request *q, const char *target)
{
	if (q->fuse)
		fuse_reply_readlink(q->fuse, target);
	else
		reply_bytes(q, target, strlen(target));
}

void reply_statfs(const struct fuse_request *q, const struct statvfs *st)
{
	const struct fuse_statfs_out out = {
		.st = {
			.blocks = st->f_blocks,
			.bfree = st->f_bfree,
			.bavail = st->f_bavail,
			.files = st->f_files,
			.ffree = st->f_ffree,
			.bsize = (uint32_t)st->f_bsize,
			.namelen = (uint32_t)st->f_namemax,
			.frsize = (uint32_t)st->f_frsize,
		},
	};

	if (q->fuse)
		fuse_reply_statfs(q->fuse, st);
	else
		reply_struct(q, &out, sizeof(out));
}

void reply_xattr_size(const struct fuse_request *q, size_t size)
{
	const struct fuse_getxattr_out out = { .size = (uint32_t)size };

	if (q->fuse)
		fuse_reply_xattr(q->fuse, size);
	else
		reply_struct(q, &out, sizeof(out));
}

void reply_bytes(const struct fuse_request *q, const void *bytes, size_t size)
{
	if (q->fuse) {
		fuse_reply_buf(q->fuse, bytes, size);
		return;
	}
	if (size > uring_reply_max(q->ring)) {
		uring_reply(q->ring, -EIO, 0);
		return;
	}
	if (bytes != q->ring->payload && size)
		memcpy(q->ring->payload, bytes, size);
	uring_reply(q->ring, 0, size);
}

bool reply_open(const struct fuse_request *q, const struct fuse_file_info *fi)
{
	const struct fuse_open_out out = {
		.fh = fi->fh,
		.open_flags = (fi->direct_io ? FOPEN_DIRECT_IO : 0) |
			      (fi->keep_cache ? FOPEN_KEEP_CACHE : 0) |
			      (fi->cache_readdir ? FOPEN_CACHE_DIR : 0),
	};

	if (q->fuse)
		return !fuse_reply_open(q->fuse, fi);
	reply_struct(q, &out, sizeof(out));
	return true;
}

char *request_room(const struct fuse_request *q, size_t size)
{
	return q->ring && size <= uring_reply_max(q->ring) ? q->ring->payload
							   : NULL;
}
