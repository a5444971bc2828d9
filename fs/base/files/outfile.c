/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/files/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fs/base/files/place.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

enum {
	TEMPORARY_SIZE = sizeof(".beton-XXXXXXXX.tmp"),
	NAME_TRIES = 100,
	MOVE_SIZE = 1 << 20,
	/* Bytes that may wait in memory before the disk starts to write. */
	BEHIND_MAX = 64 << 20,
	ACL_SIZE = 4096,
	BLOCK_SIZE = 4096, /* of most file systems */
	COPY_MAX = 64 << 20,
};

struct outfile {
	struct log *log;
	char *path; /* as the caller wrote it, for messages */
	struct place place;
	bool syncs;
	bool expects; /* the name to have the file of `expected` */
	struct stat expected;
	int fd;
	uint64_t behind; /* bytes written since begin_write_back() */
	char temporary[TEMPORARY_SIZE]; /* "": the file has no name yet */
};

static int failed(const struct outfile *f, const char *what, int error)
{
	log_error(f->log, "%s: %s: %s", f->path, what, strerror(error));
	return -error;
}

/* A new name on every call. */
static void make_name(char name[TEMPORARY_SIZE])
{
	uint32_t noise = 0;

	if (getrandom(&noise, sizeof(noise), GRND_NONBLOCK) < 0)
		noise = (uint32_t)getpid();
	snprintf(name, TEMPORARY_SIZE, ".beton-%08x.tmp", noise);
}

static int create_named(struct outfile *f, mode_t mode)
{
	for (int i = 0; i < NAME_TRIES; i++) {
		make_name(f->temporary);
		f->fd = openat(f->place.dir, f->temporary,
			       O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (f->fd >= 0)
			return 0;
		f->temporary[0] = '\0';
		if (errno != EEXIST)
			break;
	}
	return failed(f, "cannot write it", errno);
}

/* --- access -------------------------------------------------------------- */

/* Copies the access control list of `from`, a descriptor with O_PATH. If it has
   none, removes the list that `to` inherited from its directory. Returns
   whether both are equal now. */
static bool copy_acl(int from, int to)
{
	static const char name[] = "system.posix_acl_access";
	char path[32], list[ACL_SIZE];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", from);
	n = getxattr(path, name, list, sizeof(list));
	if (n >= 0)
		return !fsetxattr(to, name, list, (size_t)n, 0);
	if (errno == ENODATA)
		return !fremovexattr(to, name) || errno == ENODATA;
	return errno == ENOTSUP;
}

/* Copies mode, owner and access control list of the file that has the name, as
   if that file were written to. If the group or the list cannot be copied, the
   group gets no more rights than others. */
static void keep_access(struct outfile *f)
{
	cleanup_fd int old = openat(f->place.dir, f->place.name,
				    O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	mode_t mode;
	bool same;

	if (old < 0 || fstat(old, &st) || !S_ISREG(st.st_mode) ||
	    place_is_foreign(&f->place, &st))
		return;
	mode = st.st_mode & 0777;
	same = !fchown(f->fd, st.st_uid, st.st_gid) ||
	       !fchown(f->fd, (uid_t)-1, st.st_gid);
	if (!copy_acl(old, f->fd) || !same)
		mode &= 0707 | (mode & 7) << 3;
	/* If the file system has no modes, ignore the failure. */
	(void)!fchmod(f->fd, mode);
}

/* A file without a name can get one only by /proc. */
static int create_file(struct outfile *f)
{
	/* The old file may be private: keep the new one private until it has
	   the same mode. */
	mode_t mode = f->place.is_taken ? 0600 : 0666;
	int r = 0;

	if (access("/proc/self/fd", X_OK) == 0)
		f->fd = openat(f->place.dir, ".",
			       O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
	if (f->fd < 0)
		r = create_named(f, mode);
	if (!r)
		keep_access(f);
	return r;
}

void outfile_abort(struct outfile **file)
{
	struct outfile *f = *file;

	if (!f)
		return;
	*file = NULL;
	if (f->temporary[0])
		unlinkat(f->place.dir, f->temporary, 0);
	if (f->fd >= 0)
		close(f->fd);
	place_close(&f->place);
	free(f->path);
	free(f);
}

/* Logs a failure and returns NULL. */
static struct outfile *new_outfile(const char *path, struct log *log)
{
	struct outfile *f = calloc(1, sizeof(*f));
	char *copy = strdup(path);

	if (!f || !copy) {
		log_error(log, "%s: out of memory", path);
		free(copy);
		free(f);
		return NULL;
	}
	f->log = log;
	f->place.dir = f->fd = -1;
	f->path = copy;
	return f;
}

int outfile_open_to(int fd, const char *name, struct log *log,
		    struct outfile **out)
{
	struct outfile *f = new_outfile(name, log);
	int r = 0;

	if (!f)
		return -ENOMEM;
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0) {
		r = failed(f, "cannot write it", errno);
		outfile_abort(&f);
		return r;
	}
	*out = f;
	return 0;
}

/* Creates the file at its place, unless finding that failed with `r`. */
static int open_at_place(struct outfile *f, int r, struct outfile **out)
{
	if (r)
		log_error(f->log, "%s: cannot write it: %s", f->path,
			  place_why(r));
	else
		r = create_file(f);
	if (r)
		outfile_abort(&f);
	else
		*out = f;
	return r;
}

/* Only a dataset replaces a dataset, and it replaces nothing else: the name may
   be a mistake, for example the last shard of the source. A file that cannot be
   read may be replaced. */
static int check_kind(const struct outfile *f, bool is_dataset)
{
	cleanup_fd int fd = -1;

	if (!f->place.is_taken)
		return 0;
	fd = openat(f->place.dir, f->place.name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (is_dataset)
		return place_is_for_dataset(fd) ? 0 : -ENOTUNIQ;
	return place_has_dataset(fd) ? -EEXIST : 0;
}

int outfile_open(const char *path, bool is_dataset, struct log *log,
		 struct outfile **out)
{
	struct outfile *f = new_outfile(path, log);
	int r;

	if (!f)
		return -ENOMEM;
	f->syncs = true;
	r = place_open(path, &f->place);
	r = open_at_place(f, r ? r : check_kind(f, is_dataset), out);
	return r == -ENOTUNIQ ? -EEXIST : r;
}

int outfile_open_in(int dir, const char *name, const char *path,
		    struct log *log, struct outfile **out)
{
	struct outfile *f = new_outfile(path, log);

	if (!f)
		return -ENOMEM;
	return open_at_place(f, place_open_in(dir, name, &f->place), out);
}

/* Starts to write back, so that the final sync, which cannot be interrupted, is
   short. Failures do not matter. */
static void begin_write_back(struct outfile *f, size_t size)
{
	f->behind += size;
	if (f->behind < BEHIND_MAX)
		return;
	f->behind = 0;
	(void)sync_file_range(f->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

int outfile_write(struct outfile *f, const void *bytes, size_t size,
		  uint64_t off)
{
	const char *from = bytes;

	begin_write_back(f, size);
	while (size) {
		ssize_t n = pwrite(f->fd, from, size, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(f, "cannot write", errno);
		from += n;
		off += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

int outfile_resize(struct outfile *f, uint64_t size)
{
	int r;

	do
		r = ftruncate(f->fd, (off_t)size);
	while (r < 0 && errno == EINTR);
	return r < 0 ? failed(f, "cannot write", errno) : 0;
}

int outfile_read(struct outfile *f, void *bytes, size_t size, uint64_t off)
{
	char *to = bytes;

	while (size) {
		ssize_t n = pread(f->fd, to, size, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return failed(f, "cannot read back", n ? errno : EIO);
		to += n;
		off += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

/* Returns the size of a copy that begins at `from` in one file and at `off` in
   the other. A file system shares blocks only if both begin at one. */
static size_t copy_size(uint64_t from, uint64_t off, uint64_t size)
{
	uint64_t past = from % BLOCK_SIZE;

	if (past && past == off % BLOCK_SIZE)
		size = min_u64(size, BLOCK_SIZE - past);
	return (size_t)min_u64(size, COPY_MAX);
}

/* Returns whether an error concerns the new file, not the way to copy. */
static bool is_own_error(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EFBIG ||
	       error == ENOMEM;
}

/* Does not begin_write_back(), which waits for the disk's queue: the disk could
   not read the next bytes meanwhile. */
int64_t outfile_copy(struct outfile *f, int fd, uint64_t from, uint64_t size,
		     uint64_t off)
{
	size_t most = copy_size(from, off, size);
	loff_t in = (loff_t)from, out = (loff_t)off;
	ssize_t n;

	do
		n = copy_file_range(fd, &in, f->fd, &out, most, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && is_own_error(errno))
		return failed(f, "cannot write", errno);
	return n < 0 ? 0 : n;
}

int outfile_scratch(struct outfile *f, int *fd)
{
	char name[TEMPORARY_SIZE];

	if (f->place.dir < 0)
		return -ENOTDIR;
	*fd = openat(f->place.dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	for (int i = 0; *fd < 0 && i < NAME_TRIES; i++) {
		make_name(name);
		*fd = openat(f->place.dir, name,
			     O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (*fd >= 0)
			unlinkat(f->place.dir, name, 0);
		else if (errno != EEXIST)
			break;
	}
	return *fd < 0 ? failed(f, "cannot write a temporary file beside it",
				errno)
		       : 0;
}

int outfile_move_down(struct outfile *f, uint64_t from, uint64_t to,
		      uint64_t size)
{
	cleanup_free char *buf = malloc(MOVE_SIZE);
	ssize_t n;
	int r;

	if (!buf)
		return failed(f, "cannot write", ENOMEM);
	while (from < size) {
		n = pread(f->fd, buf, min_u64(MOVE_SIZE, size - from),
			  (off_t)from);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return failed(f, "cannot read back", n ? errno : EIO);
		r = outfile_write(f, buf, (size_t)n, to);
		if (r)
			return r;
		from += (uint64_t)n;
		to += (uint64_t)n;
	}
	return outfile_resize(f, to);
}

/* Links the nameless file to `name`. Returns -errno, without a message. */
static int link_to(const struct outfile *f, const char *name)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", f->fd);
	return linkat(AT_FDCWD, self, f->place.dir, name, AT_SYMLINK_FOLLOW) < 0
		       ? -errno
		       : 0;
}

/* link(2) cannot replace a file, rename(2) can. So a temporary name exists for
   a moment, but only if the name is taken. */
static int give_name(struct outfile *f)
{
	char name[TEMPORARY_SIZE];
	int r = -EEXIST;

	if (!f->temporary[0]) {
		r = link_to(f, f->place.name);
		for (int i = 0; r == -EEXIST && i < NAME_TRIES; i++) {
			make_name(name);
			r = link_to(f, name);
			if (!r)
				memcpy(f->temporary, name, sizeof(name));
		}
		if (r || !f->temporary[0])
			return r;
	}
	if (renameat(f->place.dir, f->temporary, f->place.dir, f->place.name) <
	    0)
		return -errno;
	f->temporary[0] = '\0';
	return 0;
}

/* --- the expected file --------------------------------------------------- */

void outfile_expect(struct outfile *f, const struct stat *old)
{
	f->expects = true;
	f->expected = *old;
}

static bool has_expected(const struct outfile *f)
{
	const struct stat *old = &f->expected;
	struct stat now;

	return !fstatat(f->place.dir, f->place.name, &now,
			AT_SYMLINK_NOFOLLOW) &&
	       now.st_dev == old->st_dev && now.st_ino == old->st_ino &&
	       now.st_size == old->st_size &&
	       now.st_mtim.tv_sec == old->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == old->st_mtim.tv_nsec;
}

/*
 * Locks the expected file before looking at its name, until `fd` is closed: of
 * two programs that would replace it, the other one finds it locked, or another
 * file in its place. Some file systems have no locks.
 */
static bool lock_expected(const struct outfile *f, int *fd)
{
	if (!f->expects)
		return true;
	*fd = openat(f->place.dir, f->place.name,
		     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (*fd < 0 || (flock(*fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK))
		return false;
	return has_expected(f);
}

static int replace(struct outfile *f)
{
	cleanup_fd int locked = -1;
	int r;

	if (!lock_expected(f, &locked)) {
		log_error(f->log,
			  "%s: another program changed it meanwhile: nothing "
			  "was written; try again",
			  f->path);
		return -ESTALE;
	}
	r = give_name(f);
	if (r)
		failed(f, "cannot give the file its name", -r);
	return r;
}

/* Some file systems cannot sync a directory; the data is safe. */
static void sync_dir(const struct outfile *f)
{
	cleanup_fd int fd =
		openat(f->place.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd))
		log_info(f->log, "%s: cannot sync its directory: %s", f->path,
			 strerror(errno));
}

int outfile_publish(struct outfile **file)
{
	struct outfile *f = *file;
	int r = 0;

	if (f->place.dir < 0) {
		outfile_abort(file);
		return 0;
	}
	if (f->syncs && fsync(f->fd) < 0)
		r = failed(f, "cannot write", errno);
	if (!r) {
		keep_access(f);
		r = replace(f);
	}
	if (!r && f->syncs)
		sync_dir(f);
	outfile_abort(file);
	return r;
}

int outfile_save(const char *path, const void *bytes, size_t size,
		 struct log *log)
{
	struct outfile *f;
	int r = outfile_open(path, false, log, &f);

	if (r)
		return r;
	r = outfile_write(f, bytes, size, 0);
	if (!r)
		r = outfile_publish(&f);
	outfile_abort(&f);
	return r;
}
