/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/build_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

enum { DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* --- making it --- */

static bool is_entry(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

/* A stream of its own, so that it begins with the first entry. */
static DIR *open_stream(int fd)
{
	int own = openat(fd, ".", DIRECTORY);
	DIR *dir = own < 0 ? NULL : fdopendir(own);

	if (!dir && own >= 0)
		close(own);
	return dir;
}

/*
 * If it is not empty, it is another directory of this user, which another user
 * moved here.
 */
static bool is_empty(int fd)
{
	DIR *dir = open_stream(fd);
	bool empty = dir != NULL;
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		empty &= !is_entry(e);
	if (dir)
		closedir(dir);
	return empty;
}

static bool is_private(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IRWXG | S_IRWXO)) && is_empty(fd);
}

/* A file server that maps root to another user makes the directory that
   user's. */
static int open_made(struct build_dir *d)
{
	d->fd = openat(d->parent, d->name, DIRECTORY);
	if (d->fd < 0)
		return -errno;
	if (is_private(d->fd))
		return 0;
	close(d->fd);
	return -EPERM;
}

static int make_in_parent(struct build_dir *d)
{
	uint64_t number;
	int r;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		return -errno;
	snprintf(d->name, sizeof(d->name), "betonfs-%016" PRIx64, number);
	if (mkdirat(d->parent, d->name, S_IRWXU))
		return -errno;
	r = open_made(d);
	if (r)
		unlinkat(d->parent, d->name, AT_REMOVEDIR);
	return r;
}

static int make_below(const char *path, struct build_dir *d)
{
	int r;

	d->parent = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (d->parent < 0)
		return -errno;
	r = make_in_parent(d);
	if (r)
		close(d->parent);
	return r;
}

int build_dir_open(struct build_dir *out)
{
	const char *own = secure_getenv("TMPDIR");
	const char *const paths[] = { own ? own : "/tmp", "/tmp", "/dev/shm" };
	int r = -ENOENT;

	for (size_t i = 0; r && i < ARRAY_LEN(paths); i++) {
		if (*paths[i] == '/')
			r = make_below(paths[i], out);
	}
	return r;
}

/* --- removing it --- */

static void remove_entries(int fd);

static void remove_entry(int at, const char *name)
{
	if (!unlinkat(at, name, 0) || errno != EISDIR)
		return;
	cleanup_fd int fd = openat(at, name, DIRECTORY);

	remove_entries(fd);
	unlinkat(at, name, AT_REMOVEDIR);
}

/* A compiler that was killed leaves files of its own. */
static void remove_entries(int fd)
{
	DIR *dir = open_stream(fd);
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		if (is_entry(e))
			remove_entry(fd, e->d_name);
	}
	if (dir)
		closedir(dir);
}

void build_dir_close(struct build_dir *d)
{
	remove_entries(d->fd);
	/* Another user may have replaced the directory; this call removes
	   nothing but an empty directory. */
	unlinkat(d->parent, d->name, AT_REMOVEDIR);
	close(d->fd);
	close(d->parent);
}

/* --- its files --- */

int build_dir_write(const struct build_dir *d, const char *name,
		    const char *text)
{
	int fd = openat(d->fd, name,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			S_IRUSR | S_IWUSR);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	int r = 0;

	if (!f) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	if (fputs(text, f) < 0)
		r = -errno;
	if (fclose(f) && !r)
		r = -errno;
	return r;
}

int build_dir_read(const struct build_dir *d, const char *name, size_t max,
		   uint8_t **out, size_t *size)
{
	/* A pipe of that name must not block. */
	cleanup_fd int fd = openat(
		d->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	cleanup_free uint8_t *bytes = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid() || st.st_size <= 0 ||
	    (uint64_t)st.st_size > max)
		return -EINVAL;
	bytes = malloc((size_t)st.st_size);
	if (!bytes)
		return -ENOMEM;
	n = read(fd, bytes, (size_t)st.st_size);
	if (n != st.st_size)
		return -EIO;
	*out = steal(bytes);
	*size = (size_t)n;
	return 0;
}
