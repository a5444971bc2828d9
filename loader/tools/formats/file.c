/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/formats/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"

int file_open(const char *path, struct file *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st = { 0 };
	int r = fd < 0 || fstat(fd, &st) ? -errno : 0;

	r = r || S_ISREG(st.st_mode) ? r : -EINVAL;
	if (r) {
		if (fd >= 0)
			close(fd);
		return r;
	}
	*out = (struct file){ .fd = fd, .size = (uint64_t)st.st_size };
	return 0;
}

void file_close(struct file *f)
{
	if (f->fd > 0)
		close(f->fd);
	*f = (struct file){ .fd = -1 };
}

static int make_named(const char *dir)
{
	char *path;
	int fd;

	if (text_print(&path, "%s/.beton-XXXXXX", dir))
		return -ENOMEM;
	fd = mkostemp(path, O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	if (fd >= 0)
		unlink(path);
	free(path);
	return fd;
}

int file_make(struct file *out)
{
	const char *own = secure_getenv("TMPDIR");
	const char *dir = own && *own ? own : "/var/tmp";
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	fd = fd < 0 ? -errno : fd;
	/* Some file systems have named files only. */
	if (fd == -EOPNOTSUPP || fd == -EISDIR)
		fd = make_named(dir);
	if (fd < 0)
		return fd;
	*out = (struct file){ .fd = fd };
	return 0;
}

int file_read(const struct file *f, void *to, size_t size, uint64_t off)
{
	uint8_t *at = to;
	ssize_t n;

	if (!range_ok(off, size, INT64_MAX))
		return -EBADMSG;
	while (size) {
		n = pread(f->fd, at, size, (off_t)off);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			return -EBADMSG;
		if (n < 0)
			continue;
		at += n;
		off += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

int file_write(const struct file *f, const void *from, size_t size,
	       uint64_t off)
{
	const uint8_t *at = from;
	ssize_t n;

	if (!range_ok(off, size, INT64_MAX))
		return -EFBIG;
	while (size) {
		n = pwrite(f->fd, at, size, (off_t)off);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n < 0)
			continue;
		at += n;
		off += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

/* --- windows ------------------------------------------------------------- */

/* The end of the file or memory. */
static uint64_t end_of(const struct file_window *w)
{
	return w->memory ? w->size : w->file->size;
}

static int fill(struct file_window *w, uint64_t off)
{
	size_t n = (size_t)min_u64(WINDOW_SIZE, w->file->size - off);
	int r = file_read(w->file, w->bytes, n, off);

	w->off = off;
	w->have = r ? 0 : n;
	return r;
}

const uint8_t *window_at(struct file_window *w, uint64_t off, size_t size)
{
	w->error = range_ok(off, size, end_of(w)) && size <= WINDOW_SIZE
			   ? 0
			   : -EBADMSG;
	if (w->error)
		return NULL;
	if (w->memory)
		return w->memory + off;
	if (off < w->off || !range_ok(off - w->off, size, w->have))
		w->error = fill(w, off);
	return w->error ? NULL : w->bytes + (off - w->off);
}
