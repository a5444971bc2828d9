/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/writer/output_file.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/base/files/outfile.h"

struct plain_file {
	struct output output;
	struct outfile *file;
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
		struct output **out)
{
	struct plain_file *f;

	if (r)
		return r;
	f = calloc(1, sizeof(*f));
	if (!f) {
		log_error(log, "%s: out of memory", path);
		outfile_abort(&file);
		return -ENOMEM;
	}
	*f = (struct plain_file){ { .ops = &output_file }, file };
	*out = &f->output;
	return 0;
}

static int open_path(const struct output_setup *setup, struct output **out)
{
	struct outfile *file = NULL;
	int r = outfile_open(setup->path, true, setup->log, &file);

	return wrap(r, file, setup->path, setup->log, out);
}

int output_file_open_to(int fd, const char *name, struct log *log,
			struct output **out)
{
	struct outfile *file = NULL;
	int r = outfile_open_to(fd, name, log, &file);

	return wrap(r, file, name, log, out);
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

static int publish(struct output *o)
{
	return outfile_publish(&((struct plain_file *)o)->file);
}

static void close_file(struct output *o)
{
	outfile_abort(&((struct plain_file *)o)->file);
	free(o);
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
