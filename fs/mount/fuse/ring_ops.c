/* SPDX-License-Identifier: Apache-2.0 */
#define FUSE_USE_VERSION 312

#include "fs/mount/fuse/ring_ops.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <string.h>

#include "fs/base/metrics/rings_count.h"
#include "fs/mount/fuse/directory.h"
#include "fs/mount/fuse/workers.h"

/* A request: its arguments are in the entry until the reply. */
struct decoded {
	struct fuse_request request;
	uint32_t opcode;
	uint64_t ino;
	const void *op;	  /* of a struct that depends on the opcode */
	const char *name; /* NULL: it has none */
};

/* A reply may overwrite the entry, so do not use the result after it. */
static struct decoded decode(const struct ring_ops *r, struct uring_entry *e)
{
	const struct fuse_in_header *in = (const void *)e->head->in_out;
	const char *text = e->payload;
	bool is_text = e->payload_size && !text[e->payload_size - 1];

	return (struct decoded){
		.request = { .ops = r->ops,
			     .ring = e,
			     .uid = in->uid,
			     .gid = in->gid,
			     .pid = (pid_t)in->pid },
		.opcode = in->opcode,
		.ino = in->nodeid,
		.op = e->head->op_in,
		.name = is_text ? text : NULL,
	};
}

static struct fuse_file_info of_read(const struct fuse_read_in *in)
{
	return (struct fuse_file_info){ .fh = in->fh, .flags = (int)in->flags };
}

static struct fuse_file_info of_release(const struct fuse_release_in *in)
{
	return (struct fuse_file_info){ .fh = in->fh, .flags = (int)in->flags };
}

static struct fuse_file_info of_open(const struct fuse_open_in *in)
{
	return (struct fuse_file_info){ .flags = (int)in->flags };
}

/* --- operations on names --- */

/* Copies the name, because the reply takes its place. Fails the request and
   returns false if there is none. */
static bool copy_name(const struct decoded *d, char name[NS_NAME_MAX + 2])
{
	size_t size;

	if (!d->name) {
		reply_error(&d->request, -EINVAL);
		return false;
	}
	size = strnlen(d->name, NS_NAME_MAX + 1);
	memcpy(name, d->name, size);
	name[size] = '\0';
	return true;
}

static void look_up(const struct decoded *d)
{
	char name[NS_NAME_MAX + 2];

	if (copy_name(d, name))
		op_lookup(&d->request, d->ino, name);
}

static void get_xattr(const struct decoded *d)
{
	const struct fuse_getxattr_in *in = d->op;
	char name[NS_NAME_MAX + 2];

	if (copy_name(d, name))
		op_getxattr(&d->request, d->ino, name, in->size);
}

/* --- all operations --- */

static void run_file(const struct decoded *d)
{
	const struct fuse_read_in *in = d->op;
	struct fuse_file_info fi;

	switch (d->opcode) {
	case FUSE_OPENDIR:
		fi = of_open(d->op);
		op_opendir(&d->request, d->ino, &fi);
		break;
	case FUSE_READDIR:
		op_readdir(&d->request, d->ino, in->size, (off_t)in->offset);
		break;
	case FUSE_READDIRPLUS:
		op_readdirplus(&d->request, d->ino, in->size,
			       (off_t)in->offset);
		break;
	case FUSE_OPEN:
		fi = of_open(d->op);
		op_open(&d->request, d->ino, &fi);
		break;
	case FUSE_READ:
		fi = of_read(in);
		op_read(&d->request, d->ino, in->size, (off_t)in->offset, &fi);
		break;
	default: /* FUSE_RELEASE */
		fi = of_release(d->op);
		op_release(&d->request, d->ino, &fi);
		break;
	}
}

static void run(const struct decoded *d)
{
	const struct fuse_getxattr_in *in = d->op;

	switch (d->opcode) {
	case FUSE_LOOKUP:
		look_up(d);
		break;
	case FUSE_GETATTR:
		op_getattr(&d->request, d->ino);
		break;
	case FUSE_READLINK:
		op_readlink(&d->request, d->ino);
		break;
	case FUSE_STATFS:
		op_statfs(&d->request, d->ino);
		break;
	case FUSE_GETXATTR:
		get_xattr(d);
		break;
	case FUSE_LISTXATTR:
		op_listxattr(&d->request, d->ino, in->size);
		break;
	case FUSE_RELEASEDIR:
	case FUSE_DESTROY:
		reply_done(&d->request);
		break;
	default:
		run_file(d);
		break;
	}
}

/* libfuse replies the same to operations that its table lacks. */
static bool is_known(const struct ring_ops *r, uint32_t opcode)
{
	switch (opcode) {
	case FUSE_GETXATTR:
	case FUSE_LISTXATTR:
		return r->ops->with_xattr;
	case FUSE_LOOKUP:
	case FUSE_GETATTR:
	case FUSE_READLINK:
	case FUSE_STATFS:
	case FUSE_OPENDIR:
	case FUSE_READDIR:
	case FUSE_READDIRPLUS:
	case FUSE_RELEASEDIR:
	case FUSE_OPEN:
	case FUSE_READ:
	case FUSE_RELEASE:
	case FUSE_DESTROY:
		return true;
	default:
		return false;
	}
}

/* Operations on open files come from the user who opened them. */
static bool is_denied(const struct ring_ops *r, const struct decoded *d)
{
	if (!r->denies_others || !d->request.uid || d->request.uid == r->user)
		return false;
	switch (d->opcode) {
	case FUSE_READ:
	case FUSE_RELEASE:
	case FUSE_READDIR:
	case FUSE_READDIRPLUS:
	case FUSE_RELEASEDIR:
	case FUSE_DESTROY:
		return false;
	default:
		return true;
	}
}

/* Returns false if the request may have to wait; then there is no reply yet. */
static bool run_at_once(const struct decoded *d)
{
	const struct fuse_request *q = &d->request;
	const struct fuse_read_in *in = d->op;
	struct fuse_file_info fi;

	switch (d->opcode) {
	case FUSE_READ:
		fi = of_read(in);
		return op_read_at_once(q, d->ino, in->size, (off_t)in->offset,
				       &fi);
	case FUSE_OPEN:
		fi = of_open(d->op);
		return op_open_at_once(q, d->ino, &fi);
	case FUSE_OPENDIR:
	case FUSE_RELEASEDIR:
	case FUSE_DESTROY:
		break;
	case FUSE_RELEASE:
		fi = of_release(d->op);
		if (!op_releases_at_once(&fi))
			return false;
		break;
	case FUSE_READDIR:
	case FUSE_READDIRPLUS:
		if (!op_lists_at_once(q, d->ino))
			return false;
		break;
	case FUSE_STATFS: /* asks the watcher */
		return false;
	default:
		if (!op_is_at_hand(q, d->ino))
			return false;
		break;
	}
	run(d);
	return true;
}

void ring_ops_run(void *arg, struct uring_entry *e)
{
	const struct ring_ops *r = arg;
	const struct decoded d = decode(r, e);

	run(&d);
}

void ring_ops_serve(void *arg, struct uring_entry *e)
{
	struct ring_ops *r = arg;
	const struct decoded d = decode(r, e);
	int failed;

	if (is_denied(r, &d)) {
		reply_error(&d.request, -EACCES);
	} else if (!is_known(r, d.opcode)) {
		reply_error(&d.request, -ENOSYS);
	} else if (run_at_once(&d)) {
		atomic_fetch_add_explicit(&r->count->answered, 1,
					  memory_order_relaxed);
	} else {
		atomic_fetch_add_explicit(&r->count->passed_on, 1,
					  memory_order_relaxed);
		failed = workers_push(r->workers, e);
		if (failed)
			reply_error(&d.request, failed);
	}
}
