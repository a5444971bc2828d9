/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/tier/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/base/util/rng.h"

typedef unsigned long long ull;

enum {
	/* Two keys of 16 digits, with a dash between them. */
	STEM = 33,
	URL_PART = 17, /* the dash included */
	NAME_MAX_SIZE = STEM + sizeof(".index"),
	OTHERS_MAX = 1 << 16,
	/* Others hold the lock of the directory while they open a tier. */
	DIR_LOCK_TRIES = 500,
	OPEN_TRIES = 10,
};

/* The files of another object. */
struct other {
	char stem[STEM + 1];
	struct timespec used; /* when it was last opened */
	uint64_t bytes;	      /* that it occupies, or may occupy */
};

struct others {
	struct other *list;
	size_t num, room;
};

/* --- the directory --- */

static bool is_private(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static int refuse_dir(struct log *log, const char *dir, const struct stat *st)
{
	if (st->st_uid != geteuid())
		log_error(
			log,
			"%s: the directory belongs to user %u and not to user %u: give the disk tier a directory of its own",
			dir, (unsigned)st->st_uid, (unsigned)geteuid());
	else
		log_error(
			log,
			"%s: other users may write to the directory: run chmod 700, or give the disk tier a directory of its own",
			dir);
	return -EPERM;
}

static int open_dir(const char *dir, struct log *log, int *out)
{
	cleanup_fd int fd = -1;
	struct stat st;

	if (mkdir(dir, 0700) && errno != EEXIST) {
		log_error(log, "%s: cannot make the directory: %s", dir,
			  strerror(errno));
		return -errno;
	}
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		log_error(log, "%s: %s", dir, strerror(errno));
		return -errno;
	}
	if (!is_private(&st))
		return refuse_dir(log, dir, &st);
	*out = fd;
	fd = -1;
	return 0;
}

/* Without the lock the sum of all files may exceed the limit, and no more. */
static void lock_dir(int dir)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	for (unsigned i = 0; i < DIR_LOCK_TRIES; i++) {
		if (!flock(dir, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
			return;
		nanosleep(&pause, NULL);
	}
}

static void stem_of(const struct tier_identity *identity, char stem[STEM + 1])
{
	const uint64_t version[] = { rng_key_of_text(identity->version),
				     identity->size };

	snprintf(stem, STEM + 1, "%016" PRIx64 "-%016" PRIx64,
		 rng_key_of_text(identity->url), rng_key(version, 2));
}

/* --- a file --- */

/* A name that leads to anything but a regular file must not block. */
static int open_name(int dir, const char *stem, const char *kind, int flags)
{
	char name[NAME_MAX_SIZE + 1];
	int fd;

	snprintf(name, sizeof(name), "%s.%s", stem, kind);
	fd = openat(dir, name,
		    flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
		    0600);
	return fd < 0 ? -errno : fd;
}

static int open_file(int dir, const char *stem, const char *kind, int *out)
{
	int fd = open_name(dir, stem, kind, O_RDWR | O_CREAT);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !is_private(&st)) {
		close(fd);
		return -EPERM;
	}
	*out = fd;
	return 0;
}

static void log_failed_file(struct log *log, const char *dir, const char *stem,
			    const char *kind, int r)
{
	log_error(
		log, "%s/%s.%s: %s", dir, stem, kind,
		r == -EPERM || r == -ELOOP || r == -ENXIO || r == -EISDIR
			? "no regular file that this user alone may write: remove it, or use another directory for the disk tier"
			: strerror(-r));
}

static bool has_name(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_nlink;
}

/* Opens both files. -ESTALE: they were removed meanwhile. */
static int open_both(int dir, const char *dir_name, const char *stem,
		     struct log *log, struct tier_files *files)
{
	int r = open_file(dir, stem, "index", &files->index);

	if (r) {
		log_failed_file(log, dir_name, stem, "index", r);
		return r;
	}
	r = open_file(dir, stem, "data", &files->data);
	if (r) {
		log_failed_file(log, dir_name, stem, "data", r);
		return r;
	}
	flock(files->data, LOCK_SH | LOCK_NB);
	return has_name(files->data) && has_name(files->index) ? 0 : -ESTALE;
}

static void close_both(struct tier_files *files)
{
	if (files->data >= 0)
		close(files->data);
	if (files->index >= 0)
		close(files->index);
	files->data = -1;
	files->index = -1;
}

bool tier_files_lock(const struct tier_files *files)
{
	return !flock(files->index, LOCK_EX | LOCK_NB);
}

/* The index comes first, because it would fit no other data. */
int tier_files_repair(const struct tier_files *files,
		      const struct tier_identity *identity)
{
	struct tier_index index;
	struct stat st;
	int r = tier_index_init(&index, files->index, identity);

	if (r)
		return r;
	if (fstat(files->data, &st))
		return -errno;
	if ((uint64_t)st.st_size == identity->size &&
	    tier_index_is_right(&index, identity))
		return 0;
	if (ftruncate(files->index, 0) || ftruncate(files->data, 0) ||
	    ftruncate(files->data, (off_t)identity->size))
		return -errno;
	return tier_index_reset(&index, identity);
}

/* --- other objects --- */

static bool is_stem(const char *name)
{
	for (unsigned i = 0; i < STEM; i++)
		if (i == URL_PART - 1
			    ? name[i] != '-'
			    : !memchr("0123456789abcdef", name[i], 16))
			return false;
	return true;
}

static bool is_index_name(const char *name)
{
	return strnlen(name, NAME_MAX_SIZE) == STEM + strlen(".index") &&
	       is_stem(name) && !strcmp(name + STEM, ".index");
}

/* Opens the data of another object with a lock. -1: a process uses it, or it is
   no file of ours. */
static int claim(int dir, const char *stem)
{
	int fd = open_name(dir, stem, "data", O_RDONLY);
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && is_private(&st) &&
	    !flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	close(fd);
	return -1;
}

static bool remove_other(int dir, const char *stem)
{
	cleanup_fd int fd = claim(dir, stem);
	char name[NAME_MAX_SIZE + 1];
	bool removed;

	if (fd < 0)
		return false;
	snprintf(name, sizeof(name), "%s.data", stem);
	removed = !unlinkat(dir, name, 0);
	snprintf(name, sizeof(name), "%s.index", stem);
	return !unlinkat(dir, name, 0) && removed;
}

static uint64_t occupied(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) ? (uint64_t)st.st_blocks * 512 : 0;
}

/* Fills in what another object occupies; if it is in use, it may still grow to
   what it is allowed. Returns false if it is no file of ours. */
static bool look_at(int dir, struct other *other)
{
	cleanup_fd int index = open_name(dir, other->stem, "index", O_RDONLY);
	cleanup_fd int data = open_name(dir, other->stem, "data", O_RDONLY);
	struct stat st;

	if (index < 0 || fstat(index, &st) || !S_ISREG(st.st_mode))
		return false;
	other->used = st.st_mtim;
	other->bytes = occupied(data);
	if (flock(index, LOCK_SH | LOCK_NB))
		other->bytes = max_u64(other->bytes, tier_index_allowed(index));
	other->bytes += (uint64_t)st.st_blocks * 512;
	return true;
}

static bool add_other(struct others *all, const struct other *other)
{
	struct other *list;

	if (all->num == all->room) {
		list = realloc(all->list, (2 * all->room + 16) * sizeof(*list));
		if (!list)
			return false;
		all->list = list;
		all->room = 2 * all->room + 16;
	}
	all->list[all->num++] = *other;
	return true;
}

static int by_use(const void *a, const void *b)
{
	const struct timespec *x = &((const struct other *)a)->used;
	const struct timespec *y = &((const struct other *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Lists the other objects, least recently opened first, and removes older
   versions of the same URL. */
static void list_others(int dir, const char *stem, struct others *all)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	struct other other = { .bytes = 0 };
	struct dirent *e;

	if (!entries && fd >= 0)
		close(fd);
	while (entries && all->num < OTHERS_MAX && (e = readdir(entries))) {
		if (!is_index_name(e->d_name) || !memcmp(e->d_name, stem, STEM))
			continue;
		memcpy(other.stem, e->d_name, STEM);
		if (!memcmp(other.stem, stem, URL_PART) &&
		    remove_other(dir, other.stem))
			continue;
		if (look_at(dir, &other) && !add_other(all, &other))
			break;
	}
	if (entries)
		closedir(entries);
	if (all->num)
		qsort(all->list, all->num, sizeof(*all->list), by_use);
}

/* Bytes of the file system that a tier may take. */
static uint64_t free_bytes(int fd)
{
	struct statvfs s;
	uint64_t all, free;

	if (fstatvfs(fd, &s))
		return 0;
	all = (uint64_t)s.f_blocks * s.f_frsize;
	free = (uint64_t)s.f_bavail * s.f_frsize;
	return free > all / 20 ? free - all / 20 : 0;
}

/* Returns what this object may occupy beside the others, its index included. */
static uint64_t room_beside(uint64_t others, uint64_t limit, uint64_t own,
			    int dir)
{
	uint64_t room = own + free_bytes(dir);

	if (limit)
		room = min_u64(room, limit > others ? limit - others : 0);
	return room;
}

/* Removes other objects until this one fits, and returns the bytes that its
   data may occupy. */
static uint64_t make_room(int dir, const char *stem, uint64_t limit,
			  const struct tier_files *files, uint64_t size,
			  struct log *log)
{
	uint64_t index = tier_index_size(size), need, sum = 0, room, own;
	struct others all = { .num = 0 };

	if (!add_ok(align_up(min_u64(size, INT64_MAX), TIER_PAGE), index,
		    &need))
		return 0;
	own = occupied(files->data) + occupied(files->index);
	list_others(dir, stem, &all);
	for (size_t i = 0; i < all.num; i++)
		sum += all.list[i].bytes;
	room = room_beside(sum, limit, own, dir);
	for (size_t i = 0; i < all.num && room < need; i++) {
		if (!remove_other(dir, all.list[i].stem))
			continue;
		sum -= all.list[i].bytes;
		log_info(
			log,
			"%s: removed the files %s of another dataset from the disk tier, because their %llu MiB are needed",
			files->path, all.list[i].stem,
			(ull)all.list[i].bytes >> 20);
		room = room_beside(sum, limit, own, dir);
	}
	free(all.list);
	return room > index ? min_u64(room - index, need - index) : 0;
}

/* --- opening --- */

static int open_in(int dir, const char *dir_name, const char *stem,
		   struct log *log, struct tier_files *files)
{
	int r = -ESTALE;

	for (unsigned i = 0; i < OPEN_TRIES && r == -ESTALE; i++) {
		close_both(files);
		r = open_both(dir, dir_name, stem, log, files);
	}
	if (r == -ESTALE)
		log_failed_file(log, dir_name, stem, "data", r);
	return r;
}

/* Sets up the files for a writer. A failure leaves the tier without effect, but
   does not keep the object from being read. */
static void prepare(int dir, const char *stem, uint64_t limit,
		    const struct tier_identity *identity, struct log *log,
		    const struct tier_files *files, uint64_t *allowed)
{
	int r = tier_files_repair(files, identity);

	*allowed = make_room(dir, stem, limit, files, identity->size, log);
	if (!r)
		r = tier_index_set_allowed(files->index, *allowed);
	if (r)
		log_warning(log, "%s: cannot write to the disk tier: %s",
			    files->path, strerror(-r));
	futimens(files->index, NULL);
}

int tier_files_open(const char *dir_name, uint64_t limit,
		    const struct tier_identity *identity, struct log *log,
		    struct tier_files *out, bool *is_writer, uint64_t *allowed)
{
	struct tier_files files = { .data = -1, .index = -1 };
	cleanup_fd int dir = -1;
	char stem[STEM + 1];
	int r = open_dir(dir_name, log, &dir);

	if (r)
		return r;
	if (strlen(identity->url) > TIER_URL_MAX ||
	    strlen(identity->version) > TIER_VERSION_MAX) {
		log_error(log, "%s: the URL is too long for the disk tier",
			  identity->url);
		return -ENAMETOOLONG;
	}
	stem_of(identity, stem);
	lock_dir(dir);
	r = open_in(dir, dir_name, stem, log, &files);
	if (!r)
		r = text_print(&files.path, "%s/%s.data", dir_name, stem);
	if (r) {
		tier_files_close(&files);
		return r;
	}
	*is_writer = tier_files_lock(&files);
	*allowed = tier_index_allowed(files.index);
	if (*is_writer)
		prepare(dir, stem, limit, identity, log, &files, allowed);
	*out = files;
	return 0;
}

void tier_files_close(struct tier_files *files)
{
	close_both(files);
	free(files->path);
	files->path = NULL;
}
