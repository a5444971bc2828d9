/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/fuse/open_files.h"

#include <stdlib.h>
#include <utlist.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/log.h"

enum {
	/* Memory of an open file besides what ns_file.bytes counts, with the
	   overhead of its allocations. */
	FILE_BYTES = 512,
	/* Milliseconds that a caller waits for memory. */
	WAIT_MS = 10000,
};

/* The layout of a batch stays in memory while the batch is open, once for all
   files of a user. */
static uint64_t layout_to_pin(const struct open_files *files,
			      const struct open_file *f)
{
	const struct open_file *other;

	if (!f->file.stream)
		return 0;
	DL_FOREACH(files->list, other)
	{
		if (other != f && other->user == f->user &&
		    other->file.vfile == f->file.vfile)
			return 0;
	}
	return ((const struct batch *)f->file.vfile)->charged;
}

/* Another file of the user with the same batch takes over its layout. */
static void pass_layout_on(const struct open_files *files, struct open_file *f)
{
	struct open_file *other;

	DL_FOREACH(files->list, other)
	{
		if (other == f || other->user != f->user ||
		    other->file.vfile != f->file.vfile)
			continue;
		other->pinned += f->pinned - f->charged;
		f->pinned = f->charged;
		return;
	}
}

static void free_file(struct open_files *files, struct open_file *f)
{
	budget_give(files->budget, BUDGET_FILES, f->charged);
	budget_unpin(files->budget, BUDGET_PIN_FILES, f->user, f->pinned);
	ns_close_file(&f->file);
	jobs_put(&f->job);
	free(f);
}

/* Charges the user for a file that is open. files.lock is held. */
static int pin_file(struct open_files *files, struct open_file *f)
{
	const uint64_t layout = layout_to_pin(files, f);
	int r = budget_pin(files->budget, BUDGET_PIN_FILES, f->user,
			   f->charged + layout, false);

	if (r)
		return -ENFILE;
	f->pinned = f->charged + layout;
	return 0;
}

/* Charges the budget, and the user. */
static int charge_file(struct open_files *files, struct open_file *f,
		       bool may_wait)
{
	const uint64_t bytes = FILE_BYTES + f->file.bytes;
	int r = may_wait ? budget_take(files->budget, BUDGET_FILES, bytes,
				       WAIT_MS)
			 : budget_take_unused(files->budget, BUDGET_FILES,
					      bytes);

	if (r)
		return r;
	f->charged = bytes;
	scoped_lock(&files->lock);
	r = pin_file(files, f);
	if (r) {
		log_warning(files->log,
			    "user %u cannot open more files: its open files "
			    "take its share of the memory; close files, or "
			    "give the mount a larger cache_size",
			    (unsigned)f->user);
		return r;
	}
	DL_APPEND(files->list, f);
	return 0;
}

int open_file_open(struct open_files *files, uint64_t ino, uid_t user,
		   bool may_wait, struct open_file **out)
{
	const struct ns_object object = ns_object(ino);
	struct open_file *f = calloc(1, sizeof(*f));
	int r = f ? ns_open_file(files->ns, &object, &f->file) : -ENOMEM;

	if (r) {
		free(f);
		return r;
	}
	f->ino = ino;
	f->user = user;
	r = charge_file(files, f, may_wait);
	if (r) {
		free_file(files, f);
		return r;
	}
	ns_note_file(&f->file);
	*out = f;
	return 0;
}

void open_file_close(struct open_files *files, struct open_file *f)
{
	pthread_mutex_lock(&files->lock);
	DL_DELETE(files->list, f);
	if (f->pinned > f->charged)
		pass_layout_on(files, f);
	pthread_mutex_unlock(&files->lock);
	free_file(files, f);
}

bool open_file_is_short(const struct open_file *f)
{
	return f->file.stream &&
	       ((const struct batch *)f->file.vfile)->has_io_errors;
}

bool open_file_has_other_layout(struct open_files *files,
				const struct open_file *f)
{
	const struct open_file *other;

	scoped_lock(&files->lock);
	DL_FOREACH(files->list, other)
	{
		if (other->ino == f->ino &&
		    other->file.vfile != f->file.vfile &&
		    (open_file_is_short(other) || open_file_is_short(f)))
			return true;
	}
	return false;
}

bool open_file_marks(struct open_files *files, struct open_file *f,
		     uint64_t marks)
{
	const struct open_file *other;

	scoped_lock(&files->lock);
	if (f->is_begun)
		return f->marks == marks;
	DL_FOREACH(files->list, other)
	{
		if (other->ino == f->ino && other->is_begun &&
		    !other->is_direct && !f->is_direct && other->marks != marks)
			return false;
	}
	f->is_begun = true;
	f->marks = marks;
	return true;
}

void open_files_init(struct open_files *files, struct ns *ns,
		     struct budget *budget, struct log *log)
{
	*files = (struct open_files){ .ns = ns, .budget = budget, .log = log };
	pthread_mutex_init(&files->lock, NULL);
}

void open_files_close(struct open_files *files)
{
	while (files->list)
		open_file_close(files, files->list);
	pthread_mutex_destroy(&files->lock);
}
