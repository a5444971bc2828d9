/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/local/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utlist.h>

#include "fs/base/files/acl.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"
#include "fs/source/local/netfs.h"
#include "fs/source/url/scheme.h"
#include "fs/source/url/url.h"

/* Pieces of memory per system call. */
enum { WINDOW = 128 };

enum direct { DIRECT_UNTRIED, DIRECT_WORKS, DIRECT_FAILS };

/* A file, and the offset of its first byte in the source. */
struct file_piece {
	struct file_source *file;
	uint64_t base;
};

struct file_source {
	struct source base;
	/* The files, in the order of their offsets. */
	struct file_piece *pieces;
	size_t num_pieces;
	struct file_piece self;
	int fd;
	/* Set once, before `direct` becomes DIRECT_WORKS. */
	_Atomic int direct_fd;
	atomic_int direct;     /* enum direct */
	atomic_bool no_nowait; /* RWF_NOWAIT was refused */
	struct netfs netfs;    /* of several files: that of any */
	atomic_bool is_replaced;
	pthread_mutex_t lock; /* innermost; guards all members below */
	pthread_cond_t waiting;
	pthread_cond_t again;	      /* a failed read is tried again */
	struct source_request *queue; /* first those with readers */
	unsigned num_queued;
	unsigned num_idle;
	unsigned num_threads;
	bool stopping;
	pthread_t threads[NETFS_THREADS_MAX];
};

static struct file_source *file_of(const struct source *source)
{
	return (struct file_source *)source;
}

/* --- reading --- */

/* The file and the offset of a byte of the source. */
struct file_place {
	struct file_source *file;
	uint64_t off;  /* in the file */
	uint64_t left; /* bytes to where the next file begins */
	bool is_last;  /* no other file follows */
};

static struct file_place place_of(const struct file_source *s, uint64_t off)
{
	size_t low = 0, high = s->num_pieces, mid;
	const struct file_piece *piece;

	while (high - low > 1) {
		mid = low + (high - low) / 2;
		if (s->pieces[mid].base <= off)
			low = mid;
		else
			high = mid;
	}
	piece = &s->pieces[low];
	return (struct file_place){
		.file = piece->file,
		.off = off - piece->base,
		.left = high == s->num_pieces ? UINT64_MAX
					      : piece[1].base - off,
		.is_last = high == s->num_pieces,
	};
}

/* Returns the place of the first byte that the request has not read yet. */
static struct file_place next_place(const struct file_source *s,
				    const struct source_request *q)
{
	return place_of(s, q->off + q->got);
}

/* Zeros lie between the end of a file and the next one. */
static bool is_gap(const struct file_place *at)
{
	return !at->is_last && at->off >= (uint64_t)at->file->base.stat.st_size;
}

/* The request's memory from byte `got` on, or as much of it as fits and is
   `most` bytes at most. */
static int window_of(const struct source_request *q, uint64_t most,
		     struct iovec *out)
{
	const struct iovec whole = { q->buf, q->size };
	const struct iovec *iov = q->buf ? &whole : q->iov;
	unsigned iovcnt = q->buf ? 1 : q->iovcnt;
	size_t skip = q->got, size;
	int n = 0;

	for (unsigned i = 0; i < iovcnt && n < WINDOW && most; i++) {
		if (skip >= iov[i].iov_len) {
			skip -= iov[i].iov_len;
			continue;
		}
		size = min_u64(iov[i].iov_len - skip, most);
		out[n++] =
			(struct iovec){ (char *)iov[i].iov_base + skip, size };
		most -= size;
		skip = 0;
	}
	return n;
}

static ssize_t read_some(int fd, const struct file_place *at,
			 const struct source_request *q, int flags)
{
	struct iovec window[WINDOW];
	int n = window_of(q, at->left, window);
	off_t off = (off_t)at->off;

	if (flags)
		return preadv2(fd, window, n, off, flags);
	if (n == 1)
		return pread(fd, window->iov_base, window->iov_len, off);
	return preadv(fd, window, n, off);
}

static void fill_gap(const struct file_place *at, struct source_request *q)
{
	struct iovec window[WINDOW];
	int n = window_of(q, at->left, window);

	for (int i = 0; i < n; i++) {
		memset(window[i].iov_base, 0, window[i].iov_len);
		q->got += window[i].iov_len;
	}
}

static bool is_enough(const struct source_request *q)
{
	return q->got >= (q->need ? q->need : q->size);
}

/* Returns the result of a read that reached the end of a file: -ENODATA if it
   ends too early. Only the last file may end before the request. */
static int end_of(const struct file_place *at, const struct source_request *q)
{
	return at->is_last && is_enough(q) ? 0 : -ENODATA;
}

/*
 * Reads the rest of a request. Returns 0 with fewer bytes only at the end of
 * the last file, and only if `need` bytes are there. If `is_direct`, bypasses
 * the page cache; the files must support this.
 */
static int read_rest(struct file_source *s, struct source_request *q,
		     bool is_direct)
{
	struct file_place at;
	ssize_t got;

	while (q->got < q->size) {
		at = next_place(s, q);
		if (is_gap(&at)) {
			fill_gap(&at, q);
			continue;
		}
		got = read_some(is_direct ? atomic_load(&at.file->direct_fd)
					  : at.file->fd,
				&at, q, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return end_of(&at, q);
		q->got += (size_t)got;
		/* A direct read ends inside a block only at the end of a
		   file. */
		at = next_place(s, q);
		if (is_direct && q->got % SOURCE_ALIGN && !is_gap(&at))
			return end_of(&at, q);
	}
	return 0;
}

/*
 * Reads the bytes that are in the page cache. Returns 0 if those were all,
 * -EAGAIN if the rest is on the device, or another error, which read_rest()
 * will report.
 */
static int read_cached(struct file_source *file, struct source_request *q)
{
	struct file_place at;
	ssize_t got;

	if (atomic_load_explicit(&file->no_nowait, memory_order_relaxed))
		return -EOPNOTSUPP;
	while (q->got < q->size) {
		at = next_place(file, q);
		if (is_gap(&at)) {
			fill_gap(&at, q);
			continue;
		}
		got = read_some(at.file->fd, &at, q, RWF_NOWAIT);
		if (got < 0 && (errno == EOPNOTSUPP || errno == EINVAL))
			atomic_store(&file->no_nowait, true);
		if (got <= 0)
			return got ? -errno : -ENODATA;
		q->got += (size_t)got;
	}
	return 0;
}

static int file_descriptor(const struct source *source, uint64_t off,
			   uint64_t *at, uint64_t *left)
{
	struct file_place place = place_of(file_of(source), off);

	*at = place.off;
	*left = place.left;
	return place.file->fd;
}

/* --- past the page cache --- */

/* Returns whether the kernel reports that blocks of SOURCE_ALIGN are too
   small. */
static bool needs_more_alignment(int fd)
{
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) &&
	    stx.stx_mask & STATX_DIOALIGN)
		return !stx.stx_dio_offset_align ||
		       stx.stx_dio_offset_align > SOURCE_ALIGN ||
		       stx.stx_dio_mem_align > SOURCE_ALIGN;
#else
	(void)fd;
#endif
	return false;
}

static bool is_same_file(const struct file_source *file, int fd)
{
	const struct stat *mine = &file->base.stat;
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == mine->st_dev &&
	       st.st_ino == mine->st_ino;
}

/*
 * Opens the same file again, or returns -1. Its name may belong to another file
 * by now.
 */
static int open_direct(const struct file_source *file)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	char link[64];
	int fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	fd = open(link, flags | O_DIRECT);
	if (fd < 0)
		fd = open(file->base.path, flags | O_DIRECT);
	if (fd < 0)
		return -1;
	if (is_same_file(file, fd) && !needs_more_alignment(fd))
		return fd;
	close(fd);
	return -1;
}

static void direct_fails(struct file_source *file)
{
	if (atomic_exchange(&file->direct, DIRECT_FAILS) == DIRECT_FAILS)
		return;
	log_info(
		file->base.log,
		"%s: the file system has no direct reads: reading through the page cache",
		file->base.path);
}

static bool reads_direct(struct file_source *file)
{
	if (atomic_load(&file->direct) == DIRECT_UNTRIED) {
		scoped_lock(&file->lock);
		if (atomic_load(&file->direct) == DIRECT_UNTRIED) {
			file->direct_fd = open_direct(file);
			if (file->direct_fd >= 0)
				atomic_store(&file->direct, DIRECT_WORKS);
			else
				direct_fails(file);
		}
	}
	return atomic_load(&file->direct) == DIRECT_WORKS;
}

static bool file_is_direct(const struct source *source)
{
	const struct file_source *s = file_of(source);
	bool all = true;

	/* Tries all files, also after a failure. */
	for (size_t i = 0; i < s->num_pieces; i++)
		all &= reads_direct(s->pieces[i].file);
	return all;
}

/* Drops the pages of the request from the page cache. */
static void drop_pages(const struct file_source *s,
		       const struct source_request *q)
{
	struct file_place at;
	uint64_t n;

	for (uint64_t done = 0; done < q->size; done += n) {
		at = place_of(s, q->off + done);
		n = min_u64(at.left, q->size - done);
		posix_fadvise(at.file->fd, (off_t)at.off, (off_t)n,
			      POSIX_FADV_DONTNEED);
	}
}

/* Some file systems open a file for direct reads and then refuse them. */
static int read_direct(struct file_source *file, struct source_request *q)
{
	int r = -EINVAL;

	if (file_is_direct(&file->base)) {
		r = read_rest(file, q, true);
		if (r == -EINVAL)
			direct_fails(next_place(file, q).file);
	}
	if (r != -EINVAL)
		return r;
	r = read_rest(file, q, false);
	drop_pages(file, q);
	return r;
}

/* --- failures --- */

static void log_failed_read(const struct file_source *file,
			    const struct source_request *q, int r)
{
	struct file_place at = place_of(file, q->off);

	log_error(file->base.log, "%s: read of %zu bytes at %llu: %s",
		  at.file->base.path, q->size, (unsigned long long)at.off,
		  strerror(-r));
}

static bool is_unchanged(const struct file_source *file, int fd)
{
	const struct stat *mine = &file->base.stat;
	struct stat st;

	return is_same_file(file, fd) && !fstat(fd, &st) &&
	       st.st_size == mine->st_size &&
	       st.st_mtim.tv_sec == mine->st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == mine->st_mtim.tv_nsec;
}

/* Other threads read from the descriptor meanwhile, so it keeps its number. */
static void replace_descriptor(int fd, int with)
{
	if (fd >= 0 && with >= 0)
		dup3(with, fd, O_CLOEXEC);
}

/*
 * Opens the path again, because the server does not know the file any more.
 * Returns false if another file is there. If the path cannot be opened, which
 * the sandbox of a daemon never allows, the server may still find the file
 * again.
 */
static bool open_again(struct file_source *file)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	cleanup_fd int fd = open(file->base.path, flags);
	cleanup_fd int direct = -1;

	if (fd < 0)
		return true;
	if (!is_unchanged(file, fd)) {
		if (!atomic_exchange(&file->is_replaced, true))
			log_error(
				file->base.log,
				"%s: another file has replaced it: reads fail until it is opened or mounted again",
				file->base.path);
		return false;
	}
	replace_descriptor(file->fd, fd);
	if (atomic_load(&file->direct) == DIRECT_WORKS) {
		direct = open(file->base.path, flags | O_DIRECT);
		replace_descriptor(atomic_load(&file->direct_fd), direct);
	}
	return true;
}

/* Waits until it is time for the next attempt. Returns false if the source is
   being closed. */
static bool wait_for_server(struct file_source *s, int64_t ns)
{
	struct timespec at = clock_in_ms(ns / 1000000 + 1);

	scoped_lock(&s->lock);
	while (!s->stopping &&
	       pthread_cond_timedwait(&s->again, &s->lock, &at) != ETIMEDOUT)
		;
	return !s->stopping;
}

/* Logs a failed read, or decides to try it again and waits. */
static bool tries_again(struct file_source *s, const struct source_request *q,
			struct netfs_failures *failures, int r)
{
	struct file_place at = next_place(s, q);
	int64_t wait;

	if (r == -ESTALE && atomic_load(&at.file->is_replaced))
		return false;
	if (!at.file->netfs.kind || r == -ENODATA || r == -EINVAL) {
		log_failed_read(s, q, r == -ENODATA ? -EIO : r);
		return false;
	}
	if (r == -ESTALE && !open_again(at.file))
		return false;
	wait = netfs_fails(&at.file->netfs, failures, -r, at.off, q->size);
	return wait >= 0 && wait_for_server(s, wait);
}

/* Reads a request to its end. Failures are logged. */
static int read_request(struct file_source *s, struct source_request *q)
{
	struct netfs_failures failures = { 0 };
	int r;

	do {
		r = q->direct ? read_direct(s, q) : read_rest(s, q, false);
	} while (r && tries_again(s, q, &failures, r));
	if (!r)
		netfs_succeeds(&place_of(s, q->off).file->netfs);
	return r == -ENODATA ? -EIO : r;
}

static int file_read(struct source *source, void *buf, size_t size,
		     uint64_t off)
{
	struct source_request q = { .buf = buf, .size = size, .off = off };

	return read_request(file_of(source), &q);
}

static int file_read_cached(struct source *source, void *buf, size_t size,
			    uint64_t off)
{
	struct source_request q = { .buf = buf, .size = size, .off = off };

	return read_cached(file_of(source), &q) ? -EAGAIN : 0;
}

static unsigned file_depth(const struct source *source)
{
	return netfs_depth(&file_of(source)->netfs);
}

/* --- threads --- */

static void serve_request(struct file_source *file, struct source_request *q)
{
	struct counters *reads = &file->base.reads;
	uint64_t begin = (uint64_t)clock_ns(), ns;
	int r;

	netfs_begin(&file->netfs, q->size);
	r = read_request(file, q);
	ns = (uint64_t)clock_ns() - begin;
	netfs_done(&file->netfs, q->got, (int64_t)ns);
	counters_item(reads, q->got, ns);
	counters_add(&reads->room_wait_ns, begin - q->since_ns);
	q->done(q, r);
}

/* The caller holds the lock. */
static void dequeue_request(struct file_source *file, struct source_request *q)
{
	DL_DELETE(file->queue, q);
	file->num_queued--;
	q->queued = false;
}

static void *serve_requests(void *arg)
{
	struct file_source *file = arg;
	struct source_request *q;

	pthread_mutex_lock(&file->lock);
	while (!file->stopping) {
		q = file->queue;
		if (!q) {
			file->num_idle++;
			pthread_cond_wait(&file->waiting, &file->lock);
			file->num_idle--;
			continue;
		}
		dequeue_request(file, q);
		pthread_mutex_unlock(&file->lock);
		serve_request(file, q);
		pthread_mutex_lock(&file->lock);
	}
	pthread_mutex_unlock(&file->lock);
	return NULL;
}

/* If a reader waits for a request, it goes before the first one that has no
   reader. The caller holds the lock. */
static void insert_request(struct file_source *file, struct source_request *q)
{
	struct source_request *before = q->must ? file->queue : NULL;

	while (before && before->must)
		before = before->next;
	if (before)
		DL_PREPEND_ELEM(file->queue, before, q);
	else
		DL_APPEND(file->queue, q);
	file->num_queued++;
	q->queued = true;
}

/* Returns false if no thread can be started. */
static bool enqueue_request(struct file_source *file, struct source_request *q)
{
	unsigned most = netfs_threads(&file->netfs);

	scoped_lock(&file->lock);
	insert_request(file, q);
	if (file->num_queued > file->num_idle && file->num_threads >= most)
		netfs_full(&file->netfs);
	else if (file->num_queued > file->num_idle &&
		 !thread_start(&file->threads[file->num_threads],
			       serve_requests, file))
		file->num_threads++;
	if (!file->num_threads) {
		dequeue_request(file, q);
		return false;
	}
	pthread_cond_signal(&file->waiting);
	return true;
}

static void file_submit(struct source *source, struct source_request *q)
{
	struct file_source *file = file_of(source);
	int r;

	q->got = 0;
	q->queued = false;
	r = q->direct ? -EAGAIN : read_cached(file, q);
	if (!r) {
		q->done(q, 0);
		return;
	}
	q->since_ns = (uint64_t)clock_ns();
	/* A read that fails may be tried again for minutes. */
	if ((r != -EAGAIN && !file->netfs.kind) || !enqueue_request(file, q))
		serve_request(file, q);
}

static void file_cancel(struct source *source, struct source_request *q)
{
	struct file_source *file = file_of(source);
	bool waited;

	pthread_mutex_lock(&file->lock);
	waited = q->queued;
	if (waited)
		dequeue_request(file, q);
	pthread_mutex_unlock(&file->lock);
	if (waited)
		q->done(q, -ECANCELED);
}

/* --- opening and closing --- */

static void stop_threads(struct file_source *file)
{
	pthread_mutex_lock(&file->lock);
	file->stopping = true;
	pthread_cond_broadcast(&file->waiting);
	pthread_cond_broadcast(&file->again);
	pthread_mutex_unlock(&file->lock);
	for (unsigned i = 0; i < file->num_threads; i++)
		pthread_join(file->threads[i], NULL);
}

static void file_close(struct source *source)
{
	struct file_source *file = file_of(source);

	stop_threads(file);
	while (file->queue)
		file_cancel(source, file->queue);
	if (file->fd >= 0)
		close(file->fd);
	if (file->direct_fd >= 0)
		close(file->direct_fd);
	if (file->pieces != &file->self)
		free(file->pieces);
	netfs_fini(&file->netfs);
	pthread_cond_destroy(&file->again);
	pthread_cond_destroy(&file->waiting);
	pthread_mutex_destroy(&file->lock);
}

static const struct source_ops file_ops = {
	.name = "file",
	.submit = file_submit,
	.cancel = file_cancel,
	.read = file_read,
	.read_cached = file_read_cached,
	.is_direct = file_is_direct,
	.depth = file_depth,
	.descriptor = file_descriptor,
	.close = file_close,
};

/* O_NONBLOCK keeps the open of a FIFO or a device from blocking. */
static int open_regular(const char *path, struct stat *st, int *fd)
{
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0 || fstat(*fd, st))
		return -errno;
	st->st_mode = acl_mode(*fd, st->st_mode);
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	return S_ISREG(st->st_mode) ? 0 : -BETON_ENOTBETON;
}

/* Returns why a path cannot be opened, and the remedy. */
static const char *open_error(int r)
{
	if (r == -BETON_ENOTBETON)
		return "not a regular file";
	if (r == -EISDIR)
		return "a directory, and neither a .beton file nor a mount of betonfs; mkfs.beton makes a file of a directory of images";
	return strerror(-r);
}

static void log_failed_open(struct log *log, const char *path, int r)
{
	cleanup_free char *visible = url_visible(path);
	char names[URL_SCHEMES_SIZE];
	struct rlimit files;

	if (!visible)
		return;
	if (r == -ENOENT && strstr(path, "://"))
		log_error(
			log,
			"%s: no file, and no URL of a known scheme: expected %s or file",
			visible, url_scheme_names(names));
	else if (r == -EMFILE && !getrlimit(RLIMIT_NOFILE, &files))
		log_error(
			log,
			"%s: the process has reached its limit of %llu open files: raise it with ulimit -n",
			visible, (unsigned long long)files.rlim_cur);
	else
		log_error(log, "%s: %s", visible, open_error(r));
}

/* Returns NULL if memory is short. */
static struct file_source *new_source(const char *path, struct log *log)
{
	struct file_source *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->base.ops = &file_ops;
	file->base.log = log;
	file->base.path = strdup(path);
	file->self.file = file;
	file->pieces = &file->self;
	file->num_pieces = 1;
	file->fd = -1;
	file->direct_fd = -1;
	pthread_mutex_init(&file->lock, NULL);
	pthread_cond_init(&file->waiting, NULL);
	clock_cond_init(&file->again);
	netfs_init(&file->netfs, file->base.path, log);
	if (file->base.path)
		return file;
	source_close(&file->base);
	return NULL;
}

int file_source_open(const char *path, const struct source_options *options,
		     struct log *log, struct source **out)
{
	struct file_source *file = new_source(path, log);
	int r;

	if (!file)
		return -ENOMEM;
	r = open_regular(path, &file->base.stat, &file->fd);
	if (!r) {
		netfs_set(&file->netfs, netfs_kind(file->fd), options);
		*out = &file->base;
		return 0;
	}
	log_failed_open(log, path, r);
	source_close(&file->base);
	return r;
}

/* --- several files --- */

bool file_source_is(const struct source *source)
{
	return source->ops == &file_ops;
}

int file_source_join(struct source *const *sources, const uint64_t *bases,
		     size_t n, const char *path, struct source **out)
{
	struct file_source *s = new_source(path, sources[0]->log);

	if (!s)
		return -ENOMEM;
	s->pieces = calloc(n, sizeof(*s->pieces));
	if (!s->pieces) {
		s->pieces = &s->self;
		source_close(&s->base);
		return -ENOMEM;
	}
	s->num_pieces = n;
	for (size_t i = 0; i < n; i++) {
		s->pieces[i] =
			(struct file_piece){ file_of(sources[i]), bases[i] };
		if (s->pieces[i].file->netfs.kind)
			s->netfs.kind = s->pieces[i].file->netfs.kind;
	}
	*out = &s->base;
	return 0;
}
