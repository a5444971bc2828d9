/* SPDX-License-Identifier: Apache-2.0 */
#define FUSE_USE_VERSION 312

#include "fs/mount/fuse/directory.h"

#include <errno.h>
#include <fuse_lowlevel.h>

enum {
	/* "." and ".." come first in every directory. */
	DOTS = 2,
	/* Bytes of an entry of a listing, to estimate how many fit. */
	ENTRY_BYTES = 40,
	ENTRY_PLUS_BYTES = 168,
};

/* A part of a listing, which fits into one reply. */
struct dirents {
	const struct fuse_request *q;
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
		op_fill_entry(d->ns, &name->entry, &param);
	else
		ns_stat_object(d->ns, &name->entry.object, &param.attr);
	if (d->plus)
		need = fuse_add_direntry_plus(d->q->fuse, at, left, name->name,
					      &param, next);
	else
		need = fuse_add_direntry(d->q->fuse, at, left, name->name,
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
	    !op_may_read(d->ns, d->caller, name->entry.object.dataset))
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

static void reply_dirents(struct dirents *d, uint64_t ino, off_t off)
{
	const struct ns_object dir = ns_object(ino);
	const struct ns_listing listing = {
		.first = off > DOTS ? (uint64_t)off - DOTS : 0,
		.hint = d->size / (d->plus ? ENTRY_PLUS_BYTES : ENTRY_BYTES),
		.with_attr = d->plus,
		.user = d->q->uid,
		.emit = append_listed,
		.arg = d,
	};
	struct peer caller;
	int r = d->buf ? 0 : -ENOMEM;

	if (op_is_mixed_root(d->ns, ino)) {
		caller = op_caller(d->q);
		d->caller = &caller;
	}
	if (!r && append_dots(d, &dir, off))
		r = ns_list(d->ns, &dir, &listing);
	/* Entries before a failure are valid; the next call returns the
	   error. */
	if (r && !d->used)
		reply_error(d->q, r);
	else
		reply_bytes(d->q, d->buf, d->used);
}

/*
 * A directory needs no handle, and the kernel may cache listings indefinitely,
 * but not the one that differs between users. On ENOSYS, a kernel with
 * FUSE_CAP_NO_OPENDIR_SUPPORT stops asking for this mount and caches all; an
 * older one would report a failure.
 */
void op_opendir(const struct fuse_request *q, uint64_t ino,
		struct fuse_file_info *fi)
{
	if (q->ops->no_opendir) {
		reply_error(q, -ENOSYS);
		return;
	}
	fi->cache_readdir = !op_is_mixed_root(q->ops->ns, ino);
	fi->keep_cache = fi->cache_readdir;
	reply_open(q, fi);
}

void op_readdir(const struct fuse_request *q, uint64_t ino, size_t size,
		off_t off)
{
	reply_dirents(&(struct dirents){ .q = q,
					 .ns = q->ops->ns,
					 .buf = op_room(q, size),
					 .size = size },
		      ino, off);
}

void op_readdirplus(const struct fuse_request *q, uint64_t ino, size_t size,
		    off_t off)
{
	reply_dirents(&(struct dirents){ .q = q,
					 .ns = q->ops->ns,
					 .buf = op_room(q, size),
					 .size = size,
					 .plus = true },
		      ino, off);
}
