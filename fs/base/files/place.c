/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/files/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/cleanup.h"

enum {
	LINKS_MAX = 40, /* the kernel's */
	/* Other writers may replace the file between two looks at it. */
	LOOKS_MAX = 100,
};

static size_t trimmed_size(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	return n;
}

/* Changes *p to the directory and the name of a path, which is relative to the
   directory of *p. */
static int enter_path(struct place *p, const char *path)
{
	size_t size = trimmed_size(path);
	const char *slash = memrchr(path, '/', size);
	size_t at = slash ? (size_t)(slash - path) + 1 : 0;
	cleanup_free char *parent = at ? strndup(path, at) : strdup(".");
	cleanup_free char *name =
		size > at ? strndup(path + at, size - at) : strdup(".");
	int dir;

	if (!parent || !name)
		return -ENOMEM;
	if (!size)
		return -ENOENT;
	dir = openat(p->dir, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	place_close(p);
	p->dir = dir;
	p->name = steal(name);
	return 0;
}

bool place_is_foreign(const struct place *p, const struct stat *file)
{
	const mode_t shared = S_ISVTX | S_IWOTH;
	struct stat dir;

	if (file->st_uid == geteuid())
		return false;
	if (fstat(p->dir, &dir))
		return true;
	return (dir.st_mode & shared) == shared && dir.st_uid != file->st_uid;
}

/* Reads the link at the place. */
static int read_link(const struct place *p, const struct stat *st,
		     char to[PATH_MAX])
{
	ssize_t n;

	if (place_is_foreign(p, st))
		return -EPERM;
	n = readlinkat(p->dir, p->name, to, PATH_MAX);
	if (n < 0)
		return -errno;
	if (n == PATH_MAX)
		return -ENAMETOOLONG;
	to[n] = '\0';
	return 0;
}

/* Asks the kernel, which also sees owners that a user namespace hides. */
static int ask_kernel(const char *path)
{
	struct stat st;

	return !stat(path, &st) || errno == ENOENT ? 0 : -errno;
}

/* Follows links from the path to *p. `file`: the file there, if p->is_taken. */
static int follow_links(struct place *p, const char *path, struct stat *file)
{
	char to[PATH_MAX];

	for (int i = 0; i <= LINKS_MAX; i++) {
		int r = enter_path(p, path);

		if (r)
			return r;
		p->is_taken =
			!fstatat(p->dir, p->name, file, AT_SYMLINK_NOFOLLOW);
		if (!p->is_taken)
			return errno == ENOENT ? 0 : -errno;
		if (!S_ISLNK(file->st_mode))
			return 0;
		r = read_link(p, file, to);
		if (r)
			return r;
		path = to;
	}
	return -ELOOP;
}

static int check_kind(const struct stat *st)
{
	return S_ISREG(st->st_mode)   ? 0
	       : S_ISDIR(st->st_mode) ? -EISDIR
				      : -EINVAL;
}

/* Follows the path step by step, and compares the result with the file that the
   kernel finds. They differ if the text of a link in /proc is no path, or if
   the file was replaced meanwhile: -ESTALE. */
static int look_at_path(const char *path, struct place *out)
{
	struct place p = { .dir = AT_FDCWD };
	struct stat file, named;
	bool is_named = !stat(path, &named);
	int r = is_named ? check_kind(&named) : 0;

	if (!r && path[trimmed_size(path)])
		r = -EISDIR;
	r = r ? r : follow_links(&p, path, &file);
	r = r ? r : ask_kernel(path);
	if (!r && p.is_taken)
		r = check_kind(&file);
	if (!r && is_named &&
	    (!p.is_taken || file.st_dev != named.st_dev ||
	     file.st_ino != named.st_ino))
		r = -ESTALE;
	p.is_taken = !r && p.is_taken && !place_is_foreign(&p, &file);
	if (r)
		place_close(&p);
	else
		*out = p;
	return r;
}

int place_open(const char *path, struct place *out)
{
	int r = -ESTALE;

	for (int i = 0; i < LOOKS_MAX && r == -ESTALE; i++)
		r = look_at_path(path, out);
	return r;
}

int place_open_in(int dir, const char *name, struct place *out)
{
	struct place p = {
		.dir = fcntl(dir, F_DUPFD_CLOEXEC, 0),
		.name = strdup(name),
	};
	struct stat file;
	int r = p.dir < 0 ? -errno : p.name ? 0 : -ENOMEM;

	if (!r && !fstatat(dir, name, &file, AT_SYMLINK_NOFOLLOW)) {
		r = S_ISLNK(file.st_mode) ? 0 : check_kind(&file);
		p.is_taken =
			S_ISREG(file.st_mode) && !place_is_foreign(&p, &file);
	}
	if (r)
		place_close(&p);
	else
		*out = p;
	return r;
}

int place_make_dir(const char *path, int *out)
{
	struct place p = { .dir = AT_FDCWD };
	struct stat file;
	int fd = -1, r = follow_links(&p, path, &file);

	r = r ? r : ask_kernel(path);
	if (!r && !p.is_taken && mkdirat(p.dir, p.name, 0777) &&
	    errno != EEXIST)
		r = -errno;
	if (!r) {
		fd = openat(p.dir, p.name,
			    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	place_close(&p);
	if (!r)
		*out = fd;
	return r;
}

bool place_has_dataset(int fd)
{
	static const char version[] = { 2, 0 };
	char begin[sizeof(version)];

	return pread(fd, begin, sizeof(begin), 0) == sizeof(begin) &&
	       !memcmp(begin, version, sizeof(begin));
}

bool place_is_for_dataset(int fd)
{
	char begin[2] = { 0 };

	return place_has_dataset(fd) ||
	       (pread(fd, begin, sizeof(begin), 0) >= 0 && !begin[0] &&
		!begin[1]);
}

const char *place_why(int error)
{
	switch (-error) {
	case ENOTUNIQ:
		return "a file that is no dataset has this name; choose "
		       "another name, or remove it";
	case EEXIST:
		return "a dataset has this name; choose another name, or "
		       "remove it";
	case EINVAL:
		return "not a regular file";
	case EPERM:
		return "it belongs to another user, in a directory where all "
		       "may write; choose another name";
	default:
		return strerror(-error);
	}
}

void place_close(struct place *p)
{
	if (p->dir >= 0)
		close(p->dir);
	free(p->name);
	*p = (struct place){ .dir = -1 };
}
