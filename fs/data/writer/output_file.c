/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/writer/output_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/files/outfile.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/data/dataset/sums.h"

struct plain_file {
	struct output output;
	struct outfile *file;
	struct log *log;
	char *side; /* of checksums; NULL: the file was open */
	bool renews_sums;
};

static struct outfile *file_of(struct output *o)
{
	return ((struct plain_file *)o)->file;
}

static bool takes(const char *path)
{
	(void)path;
	return true;
}

/* Takes an open file, unless opening it failed with `r`. */
static int wrap(int r, struct outfile *file, const char *path, struct log *log,
		struct plain_file **out)
{
	struct plain_file *f;

	if (r)
		return r;
	f = calloc(1, sizeof(*f));
	if (!f) {
		log_no_memory(log, path);
		outfile_abort(&file);
		return -ENOMEM;
	}
	*f = (struct plain_file){ .output.ops = &output_file,
				  .file = file,
				  .log = log };
	*out = f;
	return 0;
}

static void close_file(struct output *o)
{
	struct plain_file *f = (struct plain_file *)o;

	outfile_abort(&f->file);
	free(f->side);
	free(f);
}

static int open_path(const struct output_setup *setup, struct output **out)
{
	struct outfile *file = NULL;
	struct plain_file *f;
	int r = outfile_open(setup->path, true, setup->log, &file);

	r = wrap(r, file, setup->path, setup->log, &f);
	if (r)
		return r;
	f->renews_sums = setup->renews_sums;
	f->side = sums_path(setup->path);
	if (!f->side) {
		close_file(&f->output);
		return log_no_memory(setup->log, setup->path);
	}
	*out = &f->output;
	return 0;
}

int output_file_open_to(int fd, const char *name, struct log *log,
			struct output **out)
{
	struct outfile *file = NULL;
	struct plain_file *f;
	int r = outfile_open_to(fd, name, log, &file);

	r = wrap(r, file, name, log, &f);
	if (!r)
		*out = &f->output;
	return r;
}

static int write_bytes(struct output *o, const void *bytes, size_t size,
		       uint64_t off)
{
	return outfile_write(file_of(o), bytes, size, off);
}

static int read_bytes(struct output *o, void *bytes, size_t size, uint64_t off)
{
	return outfile_read(file_of(o), bytes, size, off);
}

static int64_t copy(struct output *o, int fd, uint64_t from, uint64_t size,
		    uint64_t off)
{
	return outfile_copy(file_of(o), fd, from, size, off);
}

static int scratch(struct output *o, int *fd)
{
	return outfile_scratch(file_of(o), fd);
}

static int move_down(struct output *o, uint64_t from, uint64_t to,
		     uint64_t size)
{
	return outfile_move_down(file_of(o), from, to, size);
}

static int resize(struct output *o, uint64_t size)
{
	return outfile_resize(file_of(o), size);
}

static void expect(struct output *o, const struct stat *old)
{
	outfile_expect(file_of(o), old);
}

/* --- checksums of the replaced file -------------------------------------- */

static bool has_sums(const struct plain_file *f)
{
	struct stat st;

	return f->side && !lstat(f->side, &st) &&
	       (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode));
}

/* Moves the checksums of the file to be replaced away, so that at no moment the
   new file has them. *away is NULL if there are none. */
static int put_away(const struct plain_file *f, char **away)
{
	char *to = NULL;

	if (!has_sums(f))
		return 0;
	if (text_print(&to, "%s.old", f->side))
		return log_no_memory(f->log, f->side);
	if (!rename(f->side, to)) {
		*away = to;
		return 0;
	}
	log_warning(f->log,
		    "%s: contains the checksums of the replaced file, and "
		    "cannot be removed: %s",
		    f->side, strerror(errno));
	free(to);
	return 0;
}

/* After a failure, the old file has its checksums again. */
static void settle(const struct plain_file *f, const char *away, int r)
{
	if (r) {
		rename(away, f->side);
		return;
	}
	unlink(away);
	if (!f->renews_sums)
		log_warning(f->log,
			    "%s: removed, because it contained the checksums "
			    "of the replaced file; fsck.beton --update-sums "
			    "makes new ones",
			    f->side);
}

static int publish(struct output *o)
{
	struct plain_file *f = (struct plain_file *)o;
	cleanup_free char *away = NULL;
	int r = put_away(f, &away);

	r = r ? r : outfile_publish(&f->file);
	if (away)
		settle(f, away, r);
	return r;
}

const struct output_ops output_file = {
	.name = "file",
	.takes = takes,
	.open = open_path,
	.write = write_bytes,
	.read = read_bytes,
	.copy = copy,
	.scratch = scratch,
	.move_down = move_down,
	.resize = resize,
	.expect = expect,
	.publish = publish,
	.close = close_file,
};
