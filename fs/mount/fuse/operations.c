/* SPDX-License-Identifier: Apache-2.0 */
#define FUSE_USE_VERSION 312

#include "fs/mount/fuse/operations.h"

#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "fs/base/memory/budget.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/mount/fuse/inval.h"
#include "fs/mount/fuse/open_files.h"

enum {
	STATFS_BLOCK = 4096,
	/* Milliseconds that a read waits for memory of the budget. */
	WAIT_MS = 10000,
};

/* Seconds that the kernel may cache entries: a year, because a mount never
   changes. */
static const double for_long = 365 * 24 * 3600.0;
/* A lookup marks a name as used in the namespace. */
static const double for_now = 1;

/* A thread's memory for replies. It only grows. */
struct operations_scratch {
	struct budget *budget;
	size_t size;
	char bytes[];
};

void scratch_free(void *arg)
{
	struct operations_scratch *s = arg;

	if (!s)
		return;
	budget_give(s->budget, BUDGET_FILES, s->size);
	free(s);
}

/* Returns the calling thread's memory; NULL: there is none. */
static char *scratch_of(struct fuse_ops *ops, size_t size)
{
	struct operations_scratch *s = pthread_getspecific(ops->scratch);

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

char *op_room(const struct fuse_request *q, size_t size)
{
	char *room = request_room(q, size);

	return room ? room : scratch_of(q->ops, size);
}

static double timeout_of(const struct ns_entry *entry)
{
	return entry->may_change ? 0 : for_long;
}

static double name_timeout_of(const struct ns_entry *entry)
{
	return entry->is_named ? for_now : timeout_of(entry);
}

void op_fill_entry(struct ns *ns, const struct ns_entry *entry,
		   struct fuse_entry_param *out)
{
	*out = (struct fuse_entry_param){
		.ino = ns_ino(&entry->object),
		.attr_timeout = timeout_of(entry),
		.entry_timeout = name_timeout_of(entry),
	};
	ns_stat(ns, entry, &out->attr);
}

struct peer op_caller(const struct fuse_request *q)
{
	struct peer caller = { .pid = q->pid, .uid = q->uid, .gid = q->gid };
	cleanup_fd int status = -1;

	if (peer_is_trusted(&caller))
		return caller;
	status = q->ops->open_status(q->ops->watcher, q->pid);
	peer_groups_of(status, &caller);
	return caller;
}

bool op_may_read(const struct ns *ns, const struct peer *caller,
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
void op_statfs(const struct fuse_request *q, uint64_t ino)
{
	const struct ns *ns = q->ops->ns;
	const struct peer caller = op_caller(q);
	const struct ns_object object = ns_object(ino);
	struct statvfs st = {
		.f_bsize = STATFS_BLOCK,
		.f_frsize = STATFS_BLOCK,
		.f_namemax = NS_NAME_MAX,
	};
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < ns_datasets(ns); i++) {
		if ((object.dataset && object.dataset != i) ||
		    !op_may_read(ns, &caller, i))
			continue;
		st.f_files += ns_files(ns, i);
		bytes += ns_bytes(ns, i);
	}
	st.f_blocks = (bytes + STATFS_BLOCK - 1) / STATFS_BLOCK;
	reply_statfs(q, &st);
}

/* --- at once --- */

static struct open_file *file_of(const struct fuse_file_info *fi)
{
	return (struct open_file *)(uintptr_t)fi->fh;
}

bool op_is_mixed_root(const struct ns *ns, uint64_t ino)
{
	return ino == FUSE_ROOT_ID && ns_is_mixed(ns);
}

bool op_is_at_hand(const struct fuse_request *q, uint64_t ino)
{
	const struct ns_object object = ns_object(ino);

	return ns_is_at_hand(q->ops->ns, &object);
}

bool op_lists_at_once(const struct fuse_request *q, uint64_t ino)
{
	return op_is_at_hand(q, ino) && !op_is_mixed_root(q->ops->ns, ino);
}

bool op_releases_at_once(const struct fuse_file_info *fi)
{
	const struct open_file *f = file_of(fi);

	return !f || (!f->file.stream && !f->file.is_snapshot);
}

/* --- names and attributes --- */

void op_lookup(const struct fuse_request *q, uint64_t parent, const char *name)
{
	struct ns *ns = q->ops->ns;
	const struct ns_object dir = ns_object(parent);
	struct fuse_entry_param param = { .ino = 0 };
	struct ns_entry entry = { .may_change = false };
	int r = ns_lookup(ns, &dir, name, q->uid, &entry);

	/* Inode number 0: the kernel caches that the name does not exist. */
	param.entry_timeout = timeout_of(&entry);
	if (!r)
		op_fill_entry(ns, &entry, &param);
	if (r && r != -ENOENT)
		reply_error(q, r);
	else
		reply_entry(q, &param);
}

void op_getattr(const struct fuse_request *q, uint64_t ino)
{
	struct ns *ns = q->ops->ns;
	const struct ns_object object = ns_object(ino);
	struct ns_entry entry;
	struct stat st;
	int r = ns_attr(ns, &object, &entry);

	if (r) {
		reply_error(q, r);
		return;
	}
	ns_stat(ns, &entry, &st);
	reply_attr(q, &st, timeout_of(&entry));
}

void op_readlink(const struct fuse_request *q, uint64_t ino)
{
	const struct ns_object object = ns_object(ino);
	char target[SPEC_TEXT_MAX];
	int r = ns_readlink(q->ops->ns, &object, target);

	if (r)
		reply_error(q, r);
	else
		reply_readlink(q, target);
}

/* --- extended attributes --- */

/* `size` is the size of the caller's buffer; 0 requests the size needed. */
static void reply_xattr(const struct fuse_request *q, int r, const char *text,
			size_t need, size_t size)
{
	if (r)
		reply_error(q, r);
	else if (!size)
		reply_xattr_size(q, need);
	else if (size < need)
		reply_error(q, -ERANGE);
	else
		reply_bytes(q, text, need);
}

void op_getxattr(const struct fuse_request *q, uint64_t ino, const char *name,
		 size_t size)
{
	const struct ns_object object = ns_object(ino);
	char text[NS_XATTR_MAX];
	size_t need = 0;
	int r = ns_xattr(q->ops->ns, &object, name, text, &need);

	reply_xattr(q, r, text, need, size);
}

void op_listxattr(const struct fuse_request *q, uint64_t ino, size_t size)
{
	const struct ns_object object = ns_object(ino);
	char text[NS_XATTR_MAX];
	size_t need = 0;
	int r = ns_xattr_names(q->ops->ns, &object, text, &need);

	reply_xattr(q, r, text, need, size);
}

/* --- files --- */

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
static void note_reader(const struct fuse_request *q,
			const struct fuse_file_info *fi, struct open_file *f)
{
	const struct ns_object object = ns_object(f->ino);

	f->way = fi->flags & O_DIRECT ? JOBS_DIRECT : JOBS_PAGE_CACHE;
	f->job = jobs_get_session(q->ops->jobs, object.dataset, q->pid);
	job_add(f->job, f->way, 1, 0);
	if (!stream_ready(f->file.stream, (struct batch *)f->file.vfile))
		job_stalled(f->job, f->way);
}

/*
 * Opening a value reads nothing and keeps nothing, because the kernel may have
 * its pages. Reads find it by its inode number.
 */
static bool open_value(const struct fuse_request *q, uint64_t ino,
		       struct fuse_file_info *fi)
{
	const struct ns_object object = ns_object(ino);

	if (!ns_is_value(&object))
		return false;
	fi->keep_cache = true;
	reply_open(q, fi);
	return true;
}

static void reply_opened(const struct fuse_request *q, struct open_file *f,
			 struct fuse_file_info *fi)
{
	struct fuse_ops *ops = q->ops;

	if (f->file.stream)
		note_reader(q, fi, f);
	fi->fh = (uintptr_t)f;
	/* A batch with failed samples may be complete at the next open. */
	fi->keep_cache = !f->file.stream && !f->file.is_snapshot;
	fi->direct_io = f->file.is_snapshot ||
			open_file_has_other_layout(&ops->files, f);
	f->is_direct = fi->direct_io || fi->flags & O_DIRECT;
	forget_size(ops, f);
	/* If the caller was interrupted, the kernel does not release the file:
	   close it here. */
	if (!reply_open(q, fi))
		open_file_close(&ops->files, f);
}

void op_open(const struct fuse_request *q, uint64_t ino,
	     struct fuse_file_info *fi)
{
	struct open_file *f;
	int r;

	if (open_value(q, ino, fi))
		return;
	r = open_file_open(&q->ops->files, ino, q->uid, true, &f);
	if (r)
		reply_error(q, r);
	else
		reply_opened(q, f, fi);
}

bool op_open_at_once(const struct fuse_request *q, uint64_t ino,
		     struct fuse_file_info *fi)
{
	struct open_file *f;

	if (open_value(q, ino, fi))
		return true;
	if (!op_is_at_hand(q, ino) ||
	    open_file_open(&q->ops->files, ino, q->uid, false, &f))
		return false;
	reply_opened(q, f, fi);
	return true;
}

/* Drops the pages of a batch, which would be a second copy of its slot. */
static void drop_batch(struct fuse_ops *ops, uint64_t ino)
{
	const struct ns_object object = ns_object(ino);
	const struct ns_object directory = ns_parent(ops->ns, &object);
	char name[NS_NAME_MAX + 1];

	if (!ns_batch_name(ops->ns, &object, name))
		inval_push(ops->inval, ns_ino(&directory), name);
}

void op_release(const struct fuse_request *q, uint64_t ino,
		const struct fuse_file_info *fi)
{
	struct fuse_ops *ops = q->ops;
	struct open_file *f = file_of(fi);

	if (!f) {
		reply_done(q);
		return;
	}
	if (f->file.stream)
		stream_leave(f->file.stream, (struct batch *)f->file.vfile,
			     &f->reader);
	if (f->file.stream && !(fi->flags & O_DIRECT))
		drop_batch(ops, ino);
	open_file_close(&ops->files, f);
	reply_done(q);
}

/* Reads from the slot, which all readers of the batch share. */
static void read_slot(const struct fuse_request *q, struct open_file *f,
		      size_t size, uint64_t off)
{
	struct batch *batch = (struct batch *)f->file.vfile;
	struct slot *slot = NULL;
	int64_t begin = clock_ns();
	int r;

	if (off >= batch->vfile.size) {
		reply_bytes(q, NULL, 0);
		return;
	}
	r = stream_slot(f->file.stream, batch, &slot);
	/* Only the first part waits, because the slot then has the whole
	   batch. */
	if (!r && !off)
		job_waited(f->job, (uint64_t)(clock_ns() - begin));
	if (!r && !open_file_marks(&q->ops->files, f, slot_marks(slot)))
		r = -EIO;
	size = min_u64(size, batch->vfile.size - off);
	if (r) {
		reply_error(q, r);
	} else {
		/* Count it before the reader can read the statistics. */
		job_add(f->job, f->way, 0, size);
		slot_note_read(slot, &f->reader, size);
		reply_bytes(q, (const char *)slot_bytes(slot) + off, size);
	}
	slot_put(&slot);
}

static void read_vfile(const struct fuse_request *q, const struct vfile *vfile,
		       size_t size, uint64_t off)
{
	char *buf = op_room(q, size);
	ssize_t got =
		buf ? vfile_read(vfile, buf, size, off, NULL, NULL) : -ENOMEM;

	if (got < 0)
		reply_error(q, (int)got);
	else
		reply_bytes(q, buf, (size_t)got);
}

static void read_value(const struct fuse_request *q, uint64_t ino, size_t size,
		       uint64_t off)
{
	const struct ns_object object = ns_object(ino);
	struct ns_file file;
	int r = ns_open_file(q->ops->ns, &object, &file);

	if (r) {
		reply_error(q, r);
		return;
	}
	read_vfile(q, file.vfile, size, off);
	ns_close_file(&file);
}

/* Replies, unless the bytes are not in memory. */
static bool read_cached(const struct fuse_request *q, const struct vfile *vfile,
			size_t size, uint64_t off)
{
	char *room = request_room(q, size);
	ssize_t got = room ? vfile_read_cached(vfile, room, size, off) : -1;

	if (got < 0)
		return false;
	reply_bytes(q, room, (size_t)got);
	return true;
}

static bool read_value_at_once(const struct fuse_request *q, uint64_t ino,
			       size_t size, uint64_t off)
{
	const struct ns_object object = ns_object(ino);
	struct ns_file file;
	bool is_done;

	if (!op_is_at_hand(q, ino) || ns_open_file(q->ops->ns, &object, &file))
		return false;
	is_done = read_cached(q, file.vfile, size, off);
	ns_close_file(&file);
	return is_done;
}

bool op_read_at_once(const struct fuse_request *q, uint64_t ino, size_t size,
		     off_t off, const struct fuse_file_info *fi)
{
	const struct open_file *f = file_of(fi);

	if (!f)
		return read_value_at_once(q, ino, size, (uint64_t)off);
	return !f->file.stream &&
	       read_cached(q, f->file.vfile, size, (uint64_t)off);
}

void op_read(const struct fuse_request *q, uint64_t ino, size_t size, off_t off,
	     const struct fuse_file_info *fi)
{
	struct open_file *f = file_of(fi);

	if (!f)
		read_value(q, ino, size, (uint64_t)off);
	else if (f->file.stream)
		read_slot(q, f, size, (uint64_t)off);
	else
		read_vfile(q, f->file.vfile, size, (uint64_t)off);
}
