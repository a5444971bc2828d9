/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is no forget operation, because inode numbers are computed or never
 * reused; after -ESTALE the kernel looks a path up again. There is no flush, no
 * access and, without -o xattr, no getxattr: libfuse answers ENOSYS once per
 * mount, and the kernel sends no further requests.
 */
#define FUSE_USE_VERSION 312

#include "fs/mount/fuse/fuse_ops.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdlib.h>

#include "fs/base/util/cleanup.h"
#include "fs/mount/fuse/directory.h"
#include "fs/mount/fuse/inval.h"
#include "fs/mount/fuse/operations.h"

enum {
	/* Requests in the kernel's queue, for readahead of many files. */
	BACKGROUND = 64,
	CONGESTION = 48,
};

static void do_init(void *userdata, struct fuse_conn_info *conn)
{
	struct fuse_ops *ops = userdata;

	/* Replies come from memory, so that splice is no use, and contents
	   never change. */
	conn->want &=
		~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
			    FUSE_CAP_SPLICE_MOVE | FUSE_CAP_AUTO_INVAL_DATA |
			    FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_FLOCK_LOCKS |
			    FUSE_CAP_POSIX_LOCKS);
	conn->want |= conn->capable & FUSE_CAP_CACHE_SYMLINKS;
	ops->no_opendir = conn->capable & FUSE_CAP_NO_OPENDIR_SUPPORT &&
			  !ns_is_mixed(ops->ns);
	conn->max_background = BACKGROUND;
	conn->congestion_threshold = CONGESTION;
	if (!ops->is_starting)
		ops->ready(ops->arg);
}

/* --- requests that come through libfuse --- */

static struct fuse_request request_of(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return (struct fuse_request){
		.ops = fuse_req_userdata(req),
		.fuse = req,
		.uid = ctx->uid,
		.gid = ctx->gid,
		.pid = ctx->pid,
	};
}

static void do_statfs(fuse_req_t req, fuse_ino_t ino)
{
	const struct fuse_request q = request_of(req);

	op_statfs(&q, ino);
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	const struct fuse_request q = request_of(req);

	op_lookup(&q, parent, name);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	const struct fuse_request q = request_of(req);

	(void)fi;
	op_getattr(&q, ino);
}

static void do_readlink(fuse_req_t req, fuse_ino_t ino)
{
	const struct fuse_request q = request_of(req);

	op_readlink(&q, ino);
}

static void do_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
			size_t size)
{
	const struct fuse_request q = request_of(req);

	op_getxattr(&q, ino, name, size);
}

static void do_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	const struct fuse_request q = request_of(req);

	op_listxattr(&q, ino, size);
}

static void do_opendir(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	const struct fuse_request q = request_of(req);

	op_opendir(&q, ino, fi);
}

static void do_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	const struct fuse_request q = request_of(req);

	(void)fi;
	op_readdir(&q, ino, size, off);
}

static void do_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size,
			   off_t off, struct fuse_file_info *fi)
{
	const struct fuse_request q = request_of(req);

	(void)fi;
	op_readdirplus(&q, ino, size, off);
}

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	const struct fuse_request q = request_of(req);

	op_open(&q, ino, fi);
}

static void do_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	const struct fuse_request q = request_of(req);

	op_read(&q, ino, size, off, fi);
}

static void do_release(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	const struct fuse_request q = request_of(req);

	op_release(&q, ino, fi);
}

/*
 * --- interface ---
 */

int fuse_ops_open(const struct fuse_ops_options *options, struct fuse_ops **out)
{
	struct fuse_ops *ops = calloc(1, sizeof(*ops));

	if (!ops)
		return -ENOMEM;
	if (pthread_key_create(&ops->scratch, scratch_free)) {
		free(ops);
		return -EAGAIN;
	}
	open_files_init(&ops->files, options->ns, options->budget,
			options->log);
	if (inval_open(&ops->inval)) {
		fuse_ops_close(ops);
		return -ENOMEM;
	}
	ops->ns = options->ns;
	ops->jobs = options->jobs;
	ops->budget = options->budget;
	ops->open_status = options->open_status;
	ops->watcher = options->watcher;
	ops->ready = options->ready;
	ops->arg = options->arg;
	ops->with_xattr = options->with_xattr;
	*out = ops;
	return 0;
}

void fuse_ops_start_dropping(struct fuse_ops *ops, struct fuse_session *session,
			     const char *mountpoint)
{
	ops->session = session;
	inval_start(ops->inval, session, mountpoint);
}

void fuse_ops_stop_dropping(struct fuse_ops *ops)
{
	inval_close(steal(ops->inval));
	ops->session = NULL;
}

void fuse_ops_close(struct fuse_ops *ops)
{
	if (!ops)
		return;
	inval_close(ops->inval);
	open_files_close(&ops->files);
	/* Other threads free their memory when they end. If the session has one
	   thread (-s), the caller is that thread. */
	scratch_free(pthread_getspecific(ops->scratch));
	pthread_key_delete(ops->scratch);
	free(ops);
}

#define OPERATIONS                                                             \
	.init = do_init, .statfs = do_statfs, .lookup = do_lookup,             \
	.getattr = do_getattr, .readlink = do_readlink, .opendir = do_opendir, \
	.readdir = do_readdir, .readdirplus = do_readdirplus, .open = do_open, \
	.read = do_read, .release = do_release

static const struct fuse_lowlevel_ops table = { OPERATIONS };

static const struct fuse_lowlevel_ops table_with_xattr = {
	OPERATIONS,
	.getxattr = do_getxattr,
	.listxattr = do_listxattr,
};

const struct fuse_lowlevel_ops *fuse_ops_table(bool with_xattr, size_t *size)
{
	*size = sizeof(table);
	return with_xattr ? &table_with_xattr : &table;
}
