/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/code_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/log.h"
#include "fs/base/util/name.h"
#include "fs/base/util/rng.h"
#include "loader/util/cancel.h"

enum {
	OBJECT_MAX = 16 << 20,
	LOCK_POLL_MS = 20,
	NAME_ROOM = 48,
	OBJECT_DIGITS = 32,
	TEMPORARY_DIGITS = 16,
	STALE_S = 3600,	   /* age at which a temporary file is garbage */
	TOUCH_S = 6 * 3600 /* the time of last use may be this old */
};

struct code_cache {
	int dir;
	uint64_t limit;
};

/* The trailer of a file, after the object and its key. */
struct trailer {
	char magic[8];
	uint64_t object_size;
	uint64_t key_size;
	uint64_t sum[2]; /* of all bytes before the trailer */
};

static const char magic[8] = "betonso1";

/* --- the directory --- */

/* Only the user may have been able to write here. */
static bool is_private(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * Opens the directory `name` in `at`, and makes it if it is missing. Returns
 * -errno on failure.
 */
static int open_dir(int at, const char *name)
{
	if (mkdirat(at, name, 0700) && errno != EEXIST)
		return -errno;
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int complain_of_owner(const char *path, const struct stat *st,
			     struct log *log)
{
	log_warning(log,
		    "%s belongs to user %u, not to user %u; compiled code is "
		    "not kept: set BETON_CACHE_DIR to a directory of your own",
		    path, st->st_uid, geteuid());
	return -EPERM;
}

static int check_private(int fd, const char *path, struct log *log)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (is_private(&st))
		return 0;
	if (st.st_uid != geteuid())
		return complain_of_owner(path, &st, log);
	log_warning(log,
		    "%s: other users can write there, by its mode %04o; "
		    "compiled code is not kept: chmod go-w it",
		    path, st.st_mode & 07777);
	return -EPERM;
}

/* `path` is for messages. */
static int open_private(int at, const char *name, const char *path,
			struct log *log)
{
	int fd = open_dir(at, name);
	int r = fd < 0 ? fd : check_private(fd, path, log);

	if (r && fd >= 0)
		close(fd);
	return r ? r : fd;
}

/* The user's cache directory; NULL: none. */
static char *default_path(void)
{
	const char *xdg = secure_getenv("XDG_CACHE_HOME"),
		   *home = secure_getenv("HOME");
	char *path = NULL;
	int r = -1;

	/* By the rules of XDG, a relative path counts as none. */
	if (xdg && *xdg == '/')
		r = asprintf(&path, "%s/betonfs", xdg);
	else if (home && *home == '/')
		r = asprintf(&path, "%s/.cache/betonfs", home);
	return r < 0 ? NULL : path;
}

/*
 * Root with the environment of another user must not make that user's ~/.cache,
 * which would then be root's. The nearest directory that exists decides.
 */
static int check_home(const char *path, struct log *log)
{
	cleanup_free char *at = strdup(path);
	struct stat st;
	char *end;

	if (!at)
		return -ENOMEM;
	while (stat(at, &st)) {
		end = strrchr(at, '/');
		if (errno != ENOENT || end == at)
			return 0;
		*end = '\0';
	}
	return st.st_uid == geteuid() || !st.st_uid
		       ? 0
		       : complain_of_owner(at, &st, log);
}

/* $BETON_CACHE_DIR, or a default that this user may make; NULL: none. */
static char *base_path(struct log *log)
{
	const char *own = secure_getenv("BETON_CACHE_DIR");
	char *path = NULL;

	if (own && *own)
		return strdup(own);
	path = default_path();
	if (path && check_home(path, log)) {
		free(path);
		path = NULL;
	}
	return path;
}

static void make_parents(const char *path)
{
	cleanup_free char *copy = strdup(path);

	for (char *c = copy; c && (c = strchr(c + 1, '/'));) {
		*c = '\0';
		mkdir(copy, 0700);
		*c = '/';
	}
}

static int open_path(const char *path, const char *isa, struct log *log)
{
	cleanup_fd int base = -1;
	cleanup_free char *below = NULL;

	make_parents(path);
	base = open_private(AT_FDCWD, path, path, log);
	if (base < 0)
		return base;
	if (text_print(&below, "%s/%s", path, isa))
		return -ENOMEM;
	return open_private(base, isa, below, log);
}

struct code_cache *code_cache_open(const char *isa, uint64_t limit,
				   struct log *log)
{
	cleanup_free char *path = base_path(log);
	struct code_cache *o = path ? calloc(1, sizeof(*o)) : NULL;

	if (!o)
		return NULL;
	o->limit = limit;
	o->dir = open_path(path, isa, log);
	if (o->dir >= 0)
		return o;
	free(o);
	return NULL;
}

void code_cache_close(struct code_cache *o)
{
	if (!o)
		return;
	close(o->dir);
	free(o);
}

/* --- objects --- */

static void sum_bytes(const uint8_t *bytes, size_t size, uint64_t sum[2])
{
	size_t i = 0;

	sum[0] = sum[1] = rng_mix(size);
	for (; i + 8 <= size; i += 8) {
		sum[0] = rng_mix(sum[0] ^ load64(bytes + i));
		sum[1] += sum[0];
	}
	for (; i < size; i++)
		sum[0] = rng_mix(sum[0] ^ bytes[i]);
	sum[1] = rng_mix(sum[1] + sum[0]);
}

static void hash_key(const char *key, uint64_t hash[2])
{
	sum_bytes((const uint8_t *)key, strlen(key), hash);
}

static void file_name(const char *key, char out[NAME_ROOM])
{
	uint64_t hash[2];

	hash_key(key, hash);
	snprintf(out, NAME_ROOM, "%016" PRIx64 "%016" PRIx64 ".so", hash[0],
		 hash[1]);
}

static int read_all(int fd, uint8_t *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = read(fd, bytes + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENOENT;
		done += (size_t)n;
	}
	return 0;
}

static int write_all(int fd, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	while (size) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Whether the bytes are an object and its key. Sets *size to the object's. */
static bool is_whole(const uint8_t *bytes, size_t *size, const char *key)
{
	struct trailer t;
	uint64_t sum[2], body = *size - sizeof(t);

	if (*size < sizeof(t))
		return false;
	memcpy(&t, bytes + body, sizeof(t));
	if (memcmp(t.magic, magic, sizeof(magic)) != 0 ||
	    t.key_size != strlen(key) || t.object_size > body ||
	    body - t.object_size != t.key_size ||
	    memcmp(bytes + t.object_size, key, t.key_size) != 0)
		return false;
	sum_bytes(bytes, body, sum);
	*size = t.object_size;
	return sum[0] == t.sum[0] && sum[1] == t.sum[1];
}

static void touch(int fd, const struct stat *st)
{
	if (time(NULL) - st->st_mtime > TOUCH_S)
		futimens(fd, NULL);
}

int code_cache_load(struct code_cache *o, const char *key, uint8_t **out,
		    size_t *size_out)
{
	cleanup_fd int fd = -1;
	cleanup_free uint8_t *bytes = NULL;
	char name[NAME_ROOM];
	struct stat st;
	size_t size;

	if (!o)
		return -ENOENT;
	file_name(key, name);
	fd = openat(o->dir, name,
		    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    !is_private(&st) || st.st_size <= 0 || st.st_size > OBJECT_MAX)
		return -ENOENT;
	size = (size_t)st.st_size;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	if (read_all(fd, bytes, size) || !is_whole(bytes, &size, key))
		return -ENOENT;
	touch(fd, &st);
	*out = steal(bytes);
	*size_out = size;
	return 0;
}

static int write_object(int fd, const char *key, const uint8_t *object,
			size_t object_size)
{
	size_t key_size = strlen(key), size = object_size + key_size;
	cleanup_free uint8_t *bytes = malloc(size);
	struct trailer t = { .object_size = object_size, .key_size = key_size };
	int r;

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, object, object_size);
	memcpy(bytes + object_size, key, key_size);
	memcpy(t.magic, magic, sizeof(magic));
	sum_bytes(bytes, size, t.sum);
	r = write_all(fd, bytes, size);
	return r ? r : write_all(fd, &t, sizeof(t));
}

/* --- making room --- */

struct code_cache_entry {
	char name[NAME_ROOM];
	uint64_t size;
	struct timespec used;
};

struct listing {
	struct code_cache_entry *entries;
	size_t count;
	size_t room;
	uint64_t bytes;
};

static int older_first(const void *a, const void *b)
{
	const struct timespec *x = &((const struct code_cache_entry *)a)->used;
	const struct timespec *y = &((const struct code_cache_entry *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec > y->tv_sec ? 1 : -1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Other files in the directory are not the cache's to remove. */
static bool has_digits(const char *name, size_t digits, const char *end)
{
	return strspn(name, "0123456789abcdef") == digits &&
	       !strcmp(name + digits, end);
}

static bool is_object(const char *name)
{
	return has_digits(name, OBJECT_DIGITS, ".so");
}

static bool is_temporary(const char *name)
{
	return *name == '.' && has_digits(name + 1, TEMPORARY_DIGITS, "");
}

static void list_object(const char *name, const struct stat *st,
			struct listing *l)
{
	struct code_cache_entry *more;

	if (l->count == l->room) {
		more = realloc(l->entries,
			       (2 * l->room + 16) * sizeof(*l->entries));
		if (!more)
			return;
		l->entries = more;
		l->room = 2 * l->room + 16;
	}
	more = &l->entries[l->count++];
	strcpy(more->name, name);
	more->size = (uint64_t)st->st_size;
	more->used = st->st_mtim;
	l->bytes += more->size;
}

static void list_one(int dir, const char *name, struct listing *l)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode))
		return;
	if (is_temporary(name) && time(NULL) - st.st_mtime > STALE_S)
		unlinkat(dir, name, 0);
	else if (is_object(name))
		list_object(name, &st, l);
}

/* Never evicts the file `stored`, even if the clock was set back. */
static void evict_objects(const struct code_cache *o, const char *stored)
{
	struct listing l = { 0 };
	int fd = openat(o->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((d = readdir(dir)))
		list_one(o->dir, d->d_name, &l);
	closedir(dir);
	qsort(l.entries, l.count, sizeof(*l.entries), older_first);
	for (size_t i = 0; i < l.count && l.bytes > o->limit; i++) {
		if (strcmp(l.entries[i].name, stored) != 0 &&
		    !unlinkat(o->dir, l.entries[i].name, 0))
			l.bytes -= l.entries[i].size;
	}
	free(l.entries);
}

/*
 * Does not sync to disk. If a crash leaves an incomplete file,
 * code_cache_load() notices.
 */
int code_cache_store(struct code_cache *o, const char *key,
		     const uint8_t *bytes, size_t size)
{
	cleanup_fd int fd = -1;
	char name[NAME_ROOM], temporary[NAME_ROOM];
	uint64_t number;
	int r;

	if (!o)
		return -ENOENT;
	file_name(key, name);
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		return -errno;
	snprintf(temporary, sizeof(temporary), ".%016" PRIx64, number);
	fd = openat(o->dir, temporary,
		    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = write_object(fd, key, bytes, size);
	if (!r && renameat(o->dir, temporary, o->dir, name))
		r = -errno;
	if (r)
		unlinkat(o->dir, temporary, 0);
	else
		evict_objects(o, name);
	return r;
}

int code_cache_lock(struct code_cache *o, const char *key, int timeout_ms,
		    struct cancel *cancel)
{
	cleanup_fd int fd = -1;
	struct flock lock = { .l_type = F_WRLCK,
			      .l_whence = SEEK_SET,
			      .l_len = 1 };
	uint64_t hash[2];
	int r;

	if (!o)
		return -ENOLCK;
	/* One file has the locks of all keys, a byte for each. Locks belong to
	   the descriptor, so they exclude threads too. */
	hash_key(key, hash);
	lock.l_start = (off_t)(hash[0] >> 2);
	fd = openat(o->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return -errno;
	for (int waited = 0; fcntl(fd, F_OFD_SETLK, &lock);
	     waited += LOCK_POLL_MS) {
		if (errno != EAGAIN && errno != EACCES)
			return -errno;
		if (waited >= timeout_ms)
			return -ETIMEDOUT;
		r = cancel_poll(cancel, NULL, LOCK_POLL_MS);
		if (r)
			return r;
	}
	/* The descriptor is the lock. The caller owns it from now on. */
	int held = fd;

	fd = -1;
	return held;
}

void code_cache_unlock(int fd)
{
	struct flock all = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

	if (fd < 0)
		return;
	/* Closing alone leaves the lock to children that have the descriptor
	   from fork(). */
	fcntl(fd, F_OFD_SETLK, &all);
	close(fd);
}
