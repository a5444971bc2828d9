/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/foreign/unpacked.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_ZSTD
#	include <zstd.h>
#endif

#include "fs/util/cleanup.h"
#include "loader/tools/formats/file.h"
#include "loader/tools/input/foreign/file.h"

enum {
	KEPT = 4, /* copies without a user */
	BLOCK = 128 << 10,
	FRAME_HEAD = 18,
};

/* Offsets in a shard have 32 bits, so a larger one is damaged or made to fill
   the disk. */
static const uint64_t COPY_MAX = UINT32_MAX;

struct unpacked_copy {
	struct unpacked_copy *next;
	uint64_t which;
	unsigned users;
	int fd;
	uint64_t size;
};

#ifdef HAVE_ZSTD

/* --- decompression ------------------------------------------------------- */

struct job {
	struct input_file in;
	uint64_t at;
	int fd;
	uint64_t size; /* written */
	uint64_t max;
	ZSTD_DStream *stream;
	uint8_t *from;
	uint8_t *to;
	struct input_error *error;
};

static int refuse_large(const struct job *j)
{
	return input_refuse(j->error, -EBADMSG,
			    "decompresses to more than %" PRIu64 " bytes",
			    j->max);
}

/* The header may contain the size. */
static int check_frame(const struct job *j)
{
	uint8_t head[FRAME_HEAD];
	uint64_t n = j->in.size < FRAME_HEAD ? j->in.size : FRAME_HEAD;
	int r = input_file_read(&j->in, head, n, 0, j->error);
	unsigned long long size = r ? 0 : ZSTD_getFrameContentSize(head, n);

	if (r || size == ZSTD_CONTENTSIZE_UNKNOWN ||
	    size == ZSTD_CONTENTSIZE_ERROR)
		return r;
	return size > j->max ? refuse_large(j) : 0;
}

static int write_all(struct job *j, size_t size)
{
	const uint8_t *from = j->to;

	if (size > j->max - j->size)
		return refuse_large(j);
	while (size) {
		ssize_t n = write(j->fd, from, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return input_refuse(j->error, -errno,
					    "cannot write a decompressed copy "
					    "to TMPDIR: %s",
					    strerror(errno));
		from += n;
		size -= (size_t)n;
		j->size += (uint64_t)n;
	}
	return 0;
}

/* Decompresses a block of the file. *left is 0 at the end of a frame. */
static int unpack_block(struct job *j, uint64_t n, size_t *left)
{
	ZSTD_inBuffer in = { j->from, n, 0 };
	int r = input_file_read(&j->in, j->from, n, j->at, j->error);
	bool is_full = true;

	while (!r && (in.pos < in.size || is_full)) {
		ZSTD_outBuffer out = { j->to, BLOCK, 0 };

		*left = ZSTD_decompressStream(j->stream, &out, &in);
		if (ZSTD_isError(*left))
			return input_refuse(j->error, -EBADMSG,
					    "damaged zstd: %s",
					    ZSTD_getErrorName(*left));
		is_full = out.pos == out.size;
		r = write_all(j, out.pos);
	}
	return r;
}

static int unpack_all(struct job *j)
{
	size_t left = 0;
	int r = 0;

	while (!r && j->at < j->in.size) {
		uint64_t n =
			j->in.size - j->at < BLOCK ? j->in.size - j->at : BLOCK;

		r = unpack_block(j, n, &left);
		j->at += n;
	}
	if (!r && left)
		return input_refuse(j->error, -EBADMSG,
				    "the zstd frame is incomplete");
	return r;
}

static int open_unnamed(struct input_error *error)
{
	struct file file;
	int r = file_make(&file);

	if (r)
		return input_refuse(error, r,
				    "cannot make a temporary file below "
				    "TMPDIR: %s",
				    strerror(-r));
	return file.fd;
}

static int unpack_file(const char *path, uint64_t most,
		       struct unpacked_copy *copy, struct input_error *error)
{
	struct job j = {
		.in = INPUT_FILE_NONE,
		.max = most && most < COPY_MAX ? most : COPY_MAX,
		.error = error,
	};
	int r = input_file_switch(&j.in, path, 0, error);

	r = r ? r : check_frame(&j);
	if (!r) {
		j.fd = open_unnamed(error);
		copy->fd = j.fd;
		r = j.fd < 0 ? j.fd : 0;
	}
	j.stream = ZSTD_createDStream();
	j.from = malloc(BLOCK);
	j.to = malloc(BLOCK);
	if (!r && (!j.stream || !j.from || !j.to))
		r = input_refuse(error, -ENOMEM, "out of memory");
	r = r ? r : unpack_all(&j);
	copy->size = j.size;
	ZSTD_freeDStream(j.stream);
	free(j.from);
	free(j.to);
	input_file_close(&j.in);
	return r;
}

int unpacked_block(const void *packed, uint64_t packed_size, uint64_t max,
		   uint8_t **out, uint64_t *size, struct input_error *error)
{
	unsigned long long n = ZSTD_getFrameContentSize(packed, packed_size);
	cleanup_free uint8_t *bytes = NULL;

	if (n == ZSTD_CONTENTSIZE_ERROR || n == ZSTD_CONTENTSIZE_UNKNOWN ||
	    n > max)
		return input_refuse(
			error, -EBADMSG,
			"no zstd frame of at most %" PRIu64 " bytes", max);
	bytes = malloc(n + 1);
	if (!bytes)
		return input_refuse(error, -ENOMEM, "out of memory");
	if (ZSTD_decompress(bytes, n, packed, packed_size) != n)
		return input_refuse(error, -EBADMSG, "damaged zstd");
	*size = n;
	*out = steal(bytes);
	return 0;
}

#else

static int lacks(struct input_error *error)
{
	return input_refuse(error, -ENOTSUP,
			    "compressed by zstd: install libzstd-dev, and "
			    "build betonfs again");
}

static int unpack_file(const char *path, uint64_t most,
		       struct unpacked_copy *copy, struct input_error *error)
{
	(void)path;
	(void)most;
	(void)copy;
	return lacks(error);
}

int unpacked_block(const void *packed, uint64_t packed_size, uint64_t max,
		   uint8_t **out, uint64_t *size, struct input_error *error)
{
	(void)packed;
	(void)packed_size;
	(void)max;
	(void)out;
	(void)size;
	return lacks(error);
}

#endif

/* --- copies -------------------------------------------------------------- */

static void free_copy(struct unpacked_copy *copy)
{
	if (copy->fd >= 0)
		close(copy->fd);
	free(copy);
}

/* Frees the copies without a user, except the first KEPT. */
static void drop(struct unpacked *u, unsigned kept)
{
	struct unpacked_copy **at = &u->first, *copy;

	while ((copy = *at)) {
		if (copy->users || kept) {
			kept -= !copy->users;
			at = &copy->next;
			continue;
		}
		*at = copy->next;
		free_copy(copy);
	}
}

void unpacked_init(struct unpacked *u)
{
	pthread_mutex_init(&u->lock, NULL);
	u->first = NULL;
}

void unpacked_fini(struct unpacked *u)
{
	drop(u, 0);
	pthread_mutex_destroy(&u->lock);
}

static struct unpacked_copy *take(struct unpacked *u, uint64_t which)
{
	struct unpacked_copy **at = &u->first, *copy;

	for (; (copy = *at); at = &copy->next) {
		if (copy->which == which) {
			*at = copy->next;
			return copy;
		}
	}
	return NULL;
}

int unpacked_get(struct unpacked *u, const char *path, uint64_t which,
		 uint64_t most, struct unpacked_copy **out,
		 struct input_error *error)
{
	scoped_lock(&u->lock);
	struct unpacked_copy *copy = take(u, which);
	int r;

	if (!copy) {
		copy = calloc(1, sizeof(*copy));
		if (!copy)
			return input_refuse(error, -ENOMEM, "out of memory");
		copy->which = which;
		copy->fd = -1;
		r = unpack_file(path, most, copy, error);
		if (r) {
			free_copy(copy);
			return r;
		}
	}
	copy->users++;
	copy->next = u->first;
	u->first = copy;
	drop(u, KEPT);
	*out = copy;
	return 0;
}

int unpacked_fd(const struct unpacked_copy *copy)
{
	return copy->fd;
}

uint64_t unpacked_size(const struct unpacked_copy *copy)
{
	return copy->size;
}

void unpacked_put(struct unpacked *u, struct unpacked_copy **copy)
{
	if (!*copy)
		return;
	scoped_lock(&u->lock);
	(*copy)->users--;
	*copy = NULL;
	drop(u, KEPT);
}
