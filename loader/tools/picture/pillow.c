/* SPDX-License-Identifier: Apache-2.0 */
/* Formats that Pillow decodes, in a process of Python, because few datasets have
   them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/tools/picture/format.h"
#include "loader/tools/python/block.h"
#include "loader/tools/python/server.h"

static int start(struct picture_decoder *d)
{
	static const char *const none[] = { NULL };

	if (d->server)
		return 0;
	d->server = calloc(1, sizeof(*d->server));
	if (!d->server)
		return picture_refuse(d, -ENOMEM, "out of memory");
	if (!server_start(d->server, "a GIF or BMP image", none, NULL))
		return 0;
	free(d->server);
	d->server = NULL;
	return picture_refuse(d, -ELIBACC,
			      "GIF and BMP images need the Python package of "
			      "betonfs, and Pillow");
}

/* Returns a file in memory with these bytes, or -errno. */
static int share(const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("picture", MFD_CLOEXEC);
	size_t at = 0;

	if (fd < 0)
		return -errno;
	while (at < size) {
		ssize_t n = write(fd, bytes + at, size - at);

		if (n < 0) {
			n = -errno;
			close(fd);
			return (int)n;
		}
		at += (size_t)n;
	}
	return fd;
}

static int ask(struct picture_decoder *d, const uint8_t *bytes, size_t size,
	       int *answer)
{
	cleanup_fd int fd = share(bytes, size);
	char why[SERVER_WHY_SIZE];
	json_t *request;
	int r;

	if (fd < 0)
		return picture_refuse(d, fd, "%s", strerror(-fd));
	request = json_pack("{s:b}", "picture", 1);
	r = server_ask(d->server, 0, request, fd, why);
	json_decref(request);
	r = r ? r : server_answer(d->server, 0, answer, why);
	if (!r)
		return 0;
	/* A library that is missing, or that crashed, fails for all images. */
	return picture_refuse(d, r == -EBADMSG ? r : -ELIBACC, "%.150s",
			      *why ? why : "Python cannot decode it");
}

static int take_pixels(struct picture_decoder *d, const struct block *b,
		       struct image *out)
{
	struct block_value v = { 0 };
	int r = block_value(b, 0, 0, &v);

	if (r || v.channels != 3)
		return picture_refuse(d, -EBADMSG, "Pillow has no pixels");
	r = picture_reserve(d, v.width, v.height, out);
	if (!r)
		memcpy(out->pixels, v.bytes, v.size);
	return r;
}

static int decode(struct picture_decoder *d, const uint8_t *bytes, size_t size,
		  struct picture_found *out)
{
	cleanup_fd int fd = -1;
	struct block *b = NULL;
	struct stat st = { 0 };
	int r = start(d);

	r = r ? r : ask(d, bytes, size, &fd);
	if (r)
		return r;
	r = fstat(fd, &st) < 0
		    ? -errno
		    : block_map(fd, 0, (uint64_t)st.st_size, 1, 1, &b);
	if (r)
		return picture_refuse(d, r, "Python sent a damaged block");
	r = take_pixels(d, b, &out->image);
	block_put(&b);
	return r;
}

void picture_pillow_close(struct picture_decoder *d)
{
	if (d->server)
		server_end(d->server);
	free(d->server);
}

static bool is_gif(const uint8_t *bytes, size_t size)
{
	return size >= 6 &&
	       (!memcmp(bytes, "GIF87a", 6) || !memcmp(bytes, "GIF89a", 6));
}

/* Two letters alone are too few to recognize a format: the size of the second
   header follows those of the first. */
static bool is_bmp(const uint8_t *bytes, size_t size)
{
	enum { FIRST = 14, OS2 = 12, WINDOWS = 40, MOST = 124 };
	uint32_t head = size >= FIRST + OS2 ? load32(bytes + FIRST) : 0;

	return head && !memcmp(bytes, "BM", 2) &&
	       (head == OS2 || (head >= WINDOWS && head <= MOST));
}

const struct picture_format picture_gif = {
	.name = "GIF",
	.extensions = ".gif",
	.matches = is_gif,
	.decode = decode,
};

const struct picture_format picture_bmp = {
	.name = "BMP",
	.extensions = ".bmp",
	.matches = is_bmp,
	.decode = decode,
};
