/* SPDX-License-Identifier: Apache-2.0 */
/* A local file as a source. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "fs/dataset/source.h"
#include "fs/util/acl.h"
#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "fs/util/clock.h"
#include "fs/util/thread.h"

enum {
	/* Enough to keep a solid-state disk busy with reads of 100 KiB. */
	THREADS_MAX = 16,
	/* Pieces of memory per system call. */
	WINDOW = 128,
};

enum direct { DIRECT_UNTRIED, DIRECT_WORKS, DIRECT_FAILS };

struct file_source {
	struct source base;
	int fd;
	int direct_fd;	   /* set once, before `direct` becomes DIRECT_WORKS */
	atomic_int direct; /* enum direct */
	atomic_bool no_nowait; /* RWF_NOWAIT was refused */
	pthread_mutex_t lock;  /* innermost; guards all members below */
	pthread_cond_t waiting;
	struct source_request *queue;
	unsigned num_queued;
	unsigned num_idle;
	unsigned num_threads;
	bool stopping;
	pthread_t threads[THREADS_MAX];
};

static struct file_source *file_of(const struct source *source)
{
	return (struct file_source *)source;
}

/* --- reading --- */

/* The request's memory from byte `got` on, or as much of it as fits. */
static int window_of(const struct source_request *q, struct iovec *out)
{
	size_t skip = q->got;
	int n = 0;

	if (q->buf) {
		out[0] =
			(struct iovec){ (char *)q->buf + skip, q->size - skip };
		return 1;
	}
	for (unsigned i = 0; i < q->iovcnt && n < WINDOW; i++) {
		const struct iovec *v = &q->iov[i];

		if (skip >= v->iov_len) {
			skip -= v->iov_len;
			continue;
		}
		out[n++] = (struct iovec){ (char *)v->iov_base + skip,
					   v->iov_len - skip };
		skip = 0;
	}
	return n;
}

static ssize_t read_some(int fd, const struct source_request *q)
{
	struct iovec window[WINDOW];
	off_t off = (off_t)(q->off + q->got);

	if (q->buf)
		return pread(fd, (char *)q->buf + q->got, q->size - q->got,
			     off);
	return preadv(fd, window, window_of(q, window), off);
}

static bool is_enough(const struct source_request *q)
{
	return q->got >= (q->need ? q->need : q->size);
}

/*
 * Reads the rest of a request. Returns 0 with fewer bytes only at the end of
 * the file, and only if `need` bytes are there. `is_direct`: the descriptor is
 * for direct reads.
 */
static int read_rest(int fd, struct source_request *q, bool is_direct)
{
	ssize_t got;

	while (q->got < q->size) {
		got = read_some(fd, q);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return is_enough(q) ? 0 : -EIO;
		q->got += (size_t)got;
		/* A direct read stops inside a block only at the file's end. */
		if (is_direct && q->got % SOURCE_ALIGN)
			return is_enough(q) ? 0 : -EIO;
	}
	return 0;
}

static void log_failed_read(const struct file_source *file,
			    const struct source_request *q, int r)
{
	log_error(file->base.log, "%s: read of %zu bytes at %llu: %s",
		  file->base.path, q->size, (unsigned long long)q->off,
		  strerror(-r));
}

static void finish_request(struct file_source *file, struct source_request *q,
			   int r)
{
	if (r && r != -ECANCELED)
		log_failed_read(file, q, r);
	q->done(q, r);
}

/*
 * Reads the bytes that are in the page cache. Returns 0 if those were all,
 * -EAGAIN if the rest is on the device, or another error, which read_rest()
 * will report.
 */
static int read_cached(struct file_source *file, struct source_request *q)
{
	struct iovec window[WINDOW];
	ssize_t got;

	if (atomic_load_explicit(&file->no_nowait, memory_order_relaxed))
		return -EOPNOTSUPP;
	while (q->got < q->size) {
		got = preadv2(file->fd, window, window_of(q, window),
			      (off_t)(q->off + q->got), RWF_NOWAIT);
		if (got < 0 && (errno == EOPNOTSUPP || errno == EINVAL))
			atomic_store(&file->no_nowait, true);
		if (got <= 0)
			return got ? -errno : -ENODATA;
		q->got += (size_t)got;
	}
	return 0;
}

static int file_read(struct source *source, void *buf, size_t size,
		     uint64_t off)
{
	struct source_request q = { .buf = buf, .size = size, .off = off };
	struct file_source *file = file_of(source);
	int r = read_rest(file->fd, &q, false);

	if (r)
		log_failed_read(file, &q, r);
	return r;
}

/* --- past the page cache --- */

/* Whether the kernel reports that blocks of SOURCE_ALIGN are too small. */
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
	log_info(file->base.log,
		 "%s: no direct reads here: through the page cache instead",
		 file->base.path);
}

static bool file_is_direct(const struct source *source)
{
	struct file_source *file = file_of(source);

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

/* Some file systems open a file for direct reads and then refuse them. */
static int read_direct(struct file_source *file, struct source_request *q)
{
	int r = -EINVAL;

	if (file_is_direct(&file->base)) {
		r = read_rest(file->direct_fd, q, true);
		if (r == -EINVAL)
			direct_fails(file);
	}
	if (r != -EINVAL)
		return r;
	r = read_rest(file->fd, q, false);
	posix_fadvise(file->fd, (off_t)q->off, (off_t)q->size,
		      POSIX_FADV_DONTNEED);
	return r;
}

/* --- threads --- */

static void serve_request(struct file_source *file, struct source_request *q)
{
	struct counters *reads = &file->base.reads;
	uint64_t begin = (uint64_t)clock_ns();
	int r = q->direct ? read_direct(file, q)
			  : read_rest(file->fd, q, false);

	counters_item(reads, q->got, (uint64_t)clock_ns() - begin);
	counters_add(&reads->room_wait_ns, begin - q->since_ns);
	finish_request(file, q, r);
}

/* Called under the lock. */
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

/* Returns false if no thread can be started. */
static bool enqueue_request(struct file_source *file, struct source_request *q)
{
	scoped_lock(&file->lock);
	DL_APPEND(file->queue, q);
	file->num_queued++;
	q->queued = true;
	if (file->num_queued > file->num_idle &&
	    file->num_threads < THREADS_MAX &&
	    !thread_start(&file->threads[file->num_threads], serve_requests,
			  file))
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
	if (r != -EAGAIN || !enqueue_request(file, q))
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
		finish_request(file, q, -ECANCELED);
}

/* --- opening and closing --- */

static void stop_threads(struct file_source *file)
{
	pthread_mutex_lock(&file->lock);
	file->stopping = true;
	pthread_cond_broadcast(&file->waiting);
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
	pthread_cond_destroy(&file->waiting);
	pthread_mutex_destroy(&file->lock);
}

static const struct source_ops file_ops = {
	.name = "file",
	.submit = file_submit,
	.cancel = file_cancel,
	.read = file_read,
	.is_direct = file_is_direct,
	.close = file_close,
};

/* O_NONBLOCK: opening a FIFO or a device must not block. */
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

int source_open(const char *path, struct log *log, struct source **out)
{
	struct file_source *file = calloc(1, sizeof(*file));
	int r;

	if (!file)
		return -ENOMEM;
	file->base.ops = &file_ops;
	file->base.log = log;
	file->base.path = strdup(path);
	file->fd = -1;
	file->direct_fd = -1;
	pthread_mutex_init(&file->lock, NULL);
	pthread_cond_init(&file->waiting, NULL);
	r = file->base.path ? open_regular(path, &file->base.stat, &file->fd)
			    : -ENOMEM;
	if (!r) {
		*out = &file->base;
		return 0;
	}
	log_error(log, "%s: %s", path,
		  r == -BETON_ENOTBETON ? "not a regular file" : strerror(-r));
	source_close(&file->base);
	return r;
}
