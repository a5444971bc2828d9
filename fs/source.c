/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/scope.h"

struct file_source {
	struct source base;
	int fd;
};

/* Reads all of the range; 0, or -EIO at the end of the file. */
static int read_all(int fd, char *buf, size_t size, uint64_t off)
{
	ssize_t got;

	while (size) {
		got = pread(fd, buf, size, (off_t)off);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -EIO;
		buf += got;
		size -= (size_t)got;
		off += (uint64_t)got;
	}
	return 0;
}

static void file_submit(struct source *source, struct source_request *q)
{
	struct file_source *file = (struct file_source *)source;
	int r = read_all(file->fd, q->buf, q->size, q->off);

	if (r)
		log_error(source->log, "%s: read of %zu bytes at %llu: %s",
			  source->path, q->size, (unsigned long long)q->off,
			  strerror(-r));
	q->done(q, r);
}

/* A pread is over before submit returns, so there is nothing to cancel. */
static void file_cancel(struct source *source, struct source_request *request)
{
	(void)source;
	(void)request;
}

static void file_close(struct source *source)
{
	struct file_source *file = (struct file_source *)source;

	if (file->fd >= 0)
		close(file->fd);
}

static const struct source_ops file_ops = {
	.name = "file",
	.submit = file_submit,
	.cancel = file_cancel,
	.close = file_close,
};

/* O_NONBLOCK: opening a FIFO or a device must not wait for anybody. */
static int open_regular(const char *path, struct stat *st, int *fd)
{
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0 || fstat(*fd, st))
		return -errno;
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

void source_close(struct source *source)
{
	if (!source)
		return;
	source->ops->close(source);
	free(source->path);
	free(source);
}

void source_submit(struct source *source, struct source_request *request)
{
	source->ops->submit(source, request);
}

void source_cancel(struct source *source, struct source_request *request)
{
	source->ops->cancel(source, request);
}

void source_wait_init(struct source_wait *wait)
{
	pthread_mutex_init(&wait->lock, NULL);
	pthread_cond_init(&wait->idle, NULL);
	wait->pending = 0;
}

void source_wait_add(struct source_wait *wait)
{
	scoped_lock(&wait->lock);
	wait->pending++;
}

/* Signals under the lock: the waiter may destroy `wait` as soon as it runs. */
void source_wait_done(struct source_wait *wait)
{
	scoped_lock(&wait->lock);
	if (!--wait->pending)
		pthread_cond_signal(&wait->idle);
}

void source_wait_idle(struct source_wait *wait)
{
	scoped_lock(&wait->lock);
	while (wait->pending)
		pthread_cond_wait(&wait->idle, &wait->lock);
}

void source_wait_fini(struct source_wait *wait)
{
	pthread_cond_destroy(&wait->idle);
	pthread_mutex_destroy(&wait->lock);
}

struct read_arg {
	struct source_wait wait;
	int result;
};

static void read_done(struct source_request *request, int result)
{
	struct read_arg *arg = request->arg;

	arg->result = result;
	source_wait_done(&arg->wait);
}

int source_read(struct source *source, void *buf, size_t size, uint64_t off)
{
	struct read_arg arg = { .result = 0 };
	struct source_request request = {
		.buf = buf,
		.off = off,
		.size = size,
		.done = read_done,
		.arg = &arg,
	};

	source_wait_init(&arg.wait);
	source_wait_add(&arg.wait);
	source_submit(source, &request);
	source_wait_idle(&arg.wait);
	source_wait_fini(&arg.wait);
	return arg.result;
}
