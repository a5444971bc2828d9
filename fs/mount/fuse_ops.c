/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is no forget operation, because inode numbers are computed or never
 * reused; after -ESTALE the kernel looks a path up again. There is no flush, no
 * access and, without -o xattr, no getxattr: libfuse answers ENOSYS once per
 * mount, and the kernel sends no further requests.
 */
#define FUSE_USE_VERSION 312

#include "fs/mount/fuse_ops.h"

#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "fs/memory/budget.h"
#include "fs/mount/inval.h"
#include "fs/mount/open_files.h"
#include "fs/mount/watcher.h"
#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "fs/util/clock.h"
#include "fs/zerocopy/peer.h"

enum {
	/* Requests in the kernel's queue, for readahead of many files. */
	BACKGROUND = 64,
	CONGESTION = 48,
	STATFS_BLOCK = 4096,
	/* "." and ".." come first in every directory. */
	DOTS = 2,
	/* Bytes of an entry of a listing, to estimate how many fit. */
	ENTRY_BYTES = 40,
	ENTRY_PLUS_BYTES = 168,
	/* Milliseconds that a read waits for memory of the budget. */
	WAIT_MS = 10000,
};

/* Seconds that the kernel may cache entries: a year, because a mount never
   changes. */
static const double for_long = 365 * 24 * 3600.0;
/* A lookup marks a name as used in the namespace. */
static const double for_now = 1;

/* A thread's memory for replies. It only grows. */
struct scratch {
	struct budget *budget;
	size_t size;
	char bytes[];
};

struct fuse_ops {
	struct ns *ns;
	struct jobs *jobs;
	struct budget *budget;
	struct watcher *watcher;
	void (*ready)(void *arg);
	void *arg;
	/* The kernel supports mounts without opendir, and may cache all
	   listings, because they are the same for all users. */
	bool no_opendir;
	pthread_key_t scratch;
	struct inval *inval;
	struct fuse_session *session; /* while it is mounted */
	struct open_files files;
};

static struct fuse_ops *ops_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* Only this function converts damaged data to an error number of the system. */
static void reply_error(fuse_req_t req, int r)
{
	fuse_reply_err(req, r == -BETON_ECORRUPT ? EIO : -r);
}

static void scratch_free(void *arg)
{
	struct scratch *s = arg;

	if (!s)
		return;
	budget_give(s->budget, BUDGET_FILES, s->size);
	free(s);
}

/* NULL: no memory. */
static char *scratch_of(struct fuse_ops *ops, size_t size)
{
	struct scratch *s = pthread_getspecific(ops->scratch);

	if (s && s->size >= size)
		return s->bytes;
	scratch_free(s);
	pthread_setspecific(ops->scratch, NULL);
	if (budget_take(ops->budget, BUDGET_FILES, size, WAIT_MS))
		return NULL;
	s = malloc(sizeof(*s) + size);
	if (!s) {
		budget_give(ops->budget, BUDGET_FILES, size);
		return NULL;
	}
	s->budget = ops->budget;
	s->size = size;
	pthread_setspecific(ops->scratch, s);
	return s->bytes;
}

static double timeout_of(const struct ns_entry *entry)
{
	return entry->may_change ? 0 : for_long;
}

static double name_timeout_of(const struct ns_entry *entry)
{
	return entry->is_named ? for_now : timeout_of(entry);
}

static void fill_entry(struct ns *ns, const struct ns_entry *entry,
		       struct fuse_entry_param *out)
{
	*out = (struct fuse_entry_param){
		.ino = ns_ino(&entry->object),
		.attr_timeout = timeout_of(entry),
		.entry_timeout = name_timeout_of(entry),
	};
	ns_stat(ns, entry, &out->attr);
}

/* --- the session --- */

static void op_init(void *userdata, struct fuse_conn_info *conn)
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
	ops->ready(ops->arg);
}

/* Returns the process that made a request, with its groups from /proc, or
   without groups if that fails. The sandbox forbids /proc; therefore the
   watcher opens the file. */
static struct peer caller_of(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct peer caller = { .pid = ctx->pid,
			       .uid = ctx->uid,
			       .gid = ctx->gid };
	cleanup_fd int status = -1;

	if (peer_is_trusted(&caller))
		return caller;
	status = watcher_open_status(ops_of(req)->watcher, ctx->pid);
	peer_groups_of(status, &caller);
	return caller;
}

static bool may_read(const struct ns *ns, const struct peer *caller,
		     uint32_t dataset)
{
	const struct ns_object top = { NS_FIXED, dataset, 0, NS_ROOT };
	struct stat st;

	ns_stat_object(ns, &top, &st);
	return peer_may(caller, &st, 4);
}

/* Any user may call statfs(2). Therefore the reply contains only data that this
   user may read: of the dataset with this inode, or of all datasets below the
   root. */
static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	const struct ns *ns = ops_of(req)->ns;
	const struct peer caller = caller_of(req);
	const struct ns_object object = ns_object(ino);
	struct statvfs st = {
		.f_bsize = STATFS_BLOCK,
		.f_frsize = STATFS_BLOCK,
		.f_namemax = NS_NAME_MAX,
	};
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < ns_datasets(ns); i++) {
		if ((object.dataset && object.dataset != i) ||
		    !may_read(ns, &caller, i))
			continue;
		st.f_files += ns_files(ns, i);
		bytes += ns_bytes(ns, i);
	}
	st.f_blocks = (bytes + STATFS_BLOCK - 1) / STATFS_BLOCK;
	fuse_reply_statfs(req, &st);
}

/* --- names and attributes --- */

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct ns *ns = ops_of(req)->ns;
	const struct ns_object dir = ns_object(parent);
	struct fuse_entry_param param = { .ino = 0 };
	struct ns_entry entry = { .may_change = false };
	int r = ns_lookup(ns, &dir, name, fuse_req_ctx(req)->uid, &entry);

	/* Inode number 0: the kernel caches that the name does not exist. */
	param.entry_timeout = timeout_of(&entry);
	if (!r)
		fill_entry(ns, &entry, &param);
	if (r && r != -ENOENT)
		reply_error(req, r);
	else
		fuse_reply_entry(req, &param);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	struct ns *ns = ops_of(req)->ns;
	const struct ns_object object = ns_object(ino);
	struct ns_entry entry;
	struct stat st;
	int r = ns_attr(ns, &object, &entry);

	(void)fi;
	if (r) {
		reply_error(req, r);
		return;
	}
	ns_stat(ns, &entry, &st);
	fuse_reply_attr(req, &st, timeout_of(&entry));
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	const struct ns_object object = ns_object(ino);
	char target[SPEC_TEXT_MAX];
	int r = ns_readlink(ops_of(req)->ns, &object, target);

	if (r)
		reply_error(req, r);
	else
		fuse_reply_readlink(req, target);
}

/* --- extended attributes --- */

/* `size` is the size of the caller's buffer; 0 requests the size needed. */
static void reply_xattr(fuse_req_t req, int r, const char *text, size_t need,
			size_t size)
{
	if (r)
		reply_error(req, r);
	else if (!size)
		fuse_reply_xattr(req, need);
	else if (size < need)
		reply_error(req, -ERANGE);
	else
		fuse_reply_buf(req, text, need);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
			size_t size)
{
	const struct ns_object object = ns_object(ino);
	char text[NS_XATTR_MAX];
	size_t need = 0;
	int r = ns_xattr(ops_of(req)->ns, &object, name, text, &need);

	reply_xattr(req, r, text, need, size);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	const struct ns_object object = ns_object(ino);
	char text[NS_XATTR_MAX];
	size_t need = 0;
	int r = ns_xattr_names(ops_of(req)->ns, &object, text, &need);

	reply_xattr(req, r, text, need, size);
}

/* --- directories --- */

static bool is_mixed_root(const struct ns *ns, fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID && ns_is_mixed(ns);
}

/* A part of a listing, which fits into one reply. */
struct dirents {
	fuse_req_t req;
	struct ns *ns;
	char *buf;
	size_t size;
	size_t used;
	bool plus;
	/* The user, who sees only entries that this user may read; NULL: all
	   users see the same entries. */
	const struct peer *caller;
};

/* Appends a name; `next` is the offset after it. Returns false if it does not
   fit. */
static bool append(struct dirents *d, const struct ns_name *name, off_t next)
{
	struct fuse_entry_param param = { .ino = 0 };
	char *at = d->buf + d->used;
	size_t left = d->size - d->used, need;

	if (d->plus && name->has_attr)
		fill_entry(d->ns, &name->entry, &param);
	else
		ns_stat_object(d->ns, &name->entry.object, &param.attr);
	if (d->plus)
		need = fuse_add_direntry_plus(d->req, at, left, name->name,
					      &param, next);
	else
		need = fuse_add_direntry(d->req, at, left, name->name,
					 &param.attr, next);
	if (need > left)
		return false;
	d->used += need;
	return true;
}

static bool append_listed(void *arg, const struct ns_name *name)
{
	const struct dirents *d = arg;

	if (d->caller &&
	    !may_read(d->ns, d->caller, name->entry.object.dataset))
		return true;
	return append(arg, name, (off_t)name->next + DOTS);
}

static bool append_dots(struct dirents *d, const struct ns_object *dir,
			off_t off)
{
	const struct ns_name dots[DOTS] = {
		{ .name = ".", .entry.object = *dir },
		{ .name = "..", .entry.object = ns_parent(d->ns, dir) },
	};

	for (; off < DOTS; off++) {
		if (!append(d, &dots[off], off + 1))
			return false;
	}
	return true;
}

static void reply_dirents(struct dirents *d, fuse_ino_t ino, off_t off)
{
	const struct ns_object dir = ns_object(ino);
	const struct ns_listing listing = {
		.first = off > DOTS ? (uint64_t)off - DOTS : 0,
		.hint = d->size / (d->plus ? ENTRY_PLUS_BYTES : ENTRY_BYTES),
		.with_attr = d->plus,
		.user = fuse_req_ctx(d->req)->uid,
		.emit = append_listed,
		.arg = d,
	};
	struct peer caller;
	int r = d->buf ? 0 : -ENOMEM;

	if (is_mixed_root(d->ns, ino)) {
		caller = caller_of(d->req);
		d->caller = &caller;
	}
	if (!r && append_dots(d, &dir, off))
		r = ns_list(d->ns, &dir, &listing);
	/* Entries before a failure are valid; the next call returns the
	   error. */
	if (r && !d->used)
		reply_error(d->req, r);
	else
		fuse_reply_buf(d->req, d->buf, d->used);
}

/*
 * A directory needs no handle, and the kernel may cache listings indefinitely,
 * but not the one that differs between users. On ENOSYS, a kernel with
 * FUSE_CAP_NO_OPENDIR_SUPPORT stops asking for this mount and caches all; an
 * older one would report a failure.
 */
static void op_opendir(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	if (ops_of(req)->no_opendir) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	fi->cache_readdir = !is_mixed_root(ops_of(req)->ns, ino);
	fi->keep_cache = fi->cache_readdir;
	fuse_reply_open(req, fi);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	struct fuse_ops *ops = ops_of(req);

	(void)fi;
	reply_dirents(&(struct dirents){ .req = req,
					 .ns = ops->ns,
					 .buf = scratch_of(ops, size),
					 .size = size },
		      ino, off);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size,
			   off_t off, struct fuse_file_info *fi)
{
	struct fuse_ops *ops = ops_of(req);

	(void)fi;
	reply_dirents(&(struct dirents){ .req = req,
					 .ns = ops->ns,
					 .buf = scratch_of(ops, size),
					 .size = size,
					 .plus = true },
		      ino, off);
}

/* --- files --- */

static struct open_file *file_of(const struct fuse_file_info *fi)
{
	return (struct open_file *)(uintptr_t)fi->fh;
}

/*
 * A batch whose metadata cannot be read is shorter. The kernel has to ask for
 * its size again, now and whenever the batch is opened.
 */
static void forget_size(const struct fuse_ops *ops, const struct open_file *f)
{
	if (open_file_is_short(f) && ops->session)
		fuse_lowlevel_notify_inval_inode(ops->session, f->ino, -1, 0);
}

/* Counts a reader that is not a loader by its session. */
static void note_reader(fuse_req_t req, const struct fuse_file_info *fi,
			struct open_file *f)
{
	const struct ns_object object = ns_object(f->ino);

	f->way = fi->flags & O_DIRECT ? JOBS_DIRECT : JOBS_PAGE_CACHE;
	f->job = jobs_get_session(ops_of(req)->jobs, object.dataset,
				  fuse_req_ctx(req)->pid);
	job_add(f->job, f->way, 1, 0);
	if (!stream_ready(f->file.stream, (struct batch *)f->file.vfile))
		job_stalled(f->job, f->way);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fuse_ops *ops = ops_of(req);
	struct open_file *f;
	int r = open_file_open(&ops->files, ino, fuse_req_ctx(req)->uid, &f);

	if (r) {
		reply_error(req, r);
		return;
	}
	if (f->file.stream)
		note_reader(req, fi, f);
	fi->fh = (uintptr_t)f;
	/* A batch with failed samples may be complete at the next open. */
	fi->keep_cache = !f->file.stream && !f->file.is_snapshot;
	fi->direct_io = f->file.is_snapshot ||
			open_file_has_other_layout(&ops->files, f);
	f->is_direct = fi->direct_io || fi->flags & O_DIRECT;
	forget_size(ops, f);
	/* If the caller was interrupted, the kernel does not release the file:
	   close it here. */
	if (fuse_reply_open(req, fi))
		open_file_close(&ops->files, f);
}

/* Drops the pages of a batch, which would be a second copy of its slot. */
static void drop_batch(struct fuse_ops *ops, fuse_ino_t ino)
{
	const struct ns_object object = ns_object(ino);
	const struct ns_object directory = ns_parent(ops->ns, &object);
	char name[NS_NAME_MAX + 1];

	if (!ns_batch_name(ops->ns, &object, name))
		inval_push(ops->inval, ns_ino(&directory), name);
}

static void op_release(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	struct fuse_ops *ops = ops_of(req);
	struct open_file *f = file_of(fi);

	if (f->file.stream)
		stream_leave(f->file.stream, (struct batch *)f->file.vfile);
	if (f->file.stream && !(fi->flags & O_DIRECT))
		drop_batch(ops, ino);
	open_file_close(&ops->files, f);
	fuse_reply_err(req, 0);
}

/* Reads from the slot, which all readers of the batch share. */
static void read_slot(fuse_req_t req, struct open_file *f, size_t size,
		      uint64_t off)
{
	struct batch *batch = (struct batch *)f->file.vfile;
	struct slot *slot = NULL;
	int64_t begin = clock_ns();
	int r;

	if (off >= batch->vfile.size) {
		fuse_reply_buf(req, NULL, 0);
		return;
	}
	r = stream_slot(f->file.stream, batch, &slot);
	/* Only the first part waits, because the slot then has the whole
	   batch. */
	if (!r && !off)
		job_waited(f->job, (uint64_t)(clock_ns() - begin));
	if (!r && !open_file_marks(&ops_of(req)->files, f, slot_marks(slot)))
		r = -EIO;
	size = min_u64(size, batch->vfile.size - off);
	/* Count it before the reader can read the statistics. */
	if (!r)
		job_add(f->job, f->way, 0, size);
	if (r)
		reply_error(req, r);
	else
		fuse_reply_buf(req, (const char *)slot_bytes(slot) + off, size);
	if (!r && off + size < batch->vfile.size)
		slot_put_begun(&slot);
	else
		slot_put(&slot);
}

static void read_vfile(fuse_req_t req, const struct ns_file *file, size_t size,
		       uint64_t off)
{
	char *buf = scratch_of(ops_of(req), size);
	ssize_t got = buf ? vfile_read(file->vfile, buf, size, off, NULL, NULL)
			  : -ENOMEM;

	if (got < 0)
		reply_error(req, (int)got);
	else
		fuse_reply_buf(req, buf, (size_t)got);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct open_file *f = file_of(fi);

	(void)ino;
	if (f->file.stream)
		read_slot(req, f, size, (uint64_t)off);
	else
		read_vfile(req, &f->file, size, (uint64_t)off);
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
	ops->watcher = options->watcher;
	ops->ready = options->ready;
	ops->arg = options->arg;
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
	.init = op_init, .statfs = op_statfs, .lookup = op_lookup,             \
	.getattr = op_getattr, .readlink = op_readlink, .opendir = op_opendir, \
	.readdir = op_readdir, .readdirplus = op_readdirplus, .open = op_open, \
	.read = op_read, .release = op_release

static const struct fuse_lowlevel_ops table = { OPERATIONS };

static const struct fuse_lowlevel_ops table_with_xattr = {
	OPERATIONS,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
};

const struct fuse_lowlevel_ops *fuse_ops_table(bool with_xattr, size_t *size)
{
	*size = sizeof(table);
	return with_xattr ? &table_with_xattr : &table;
}
