/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/encode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "fs/util/rng.h"
#include "loader/codec/codec.h"
#include "loader/codec/index.h"
#include "loader/resize/resample.h"
#include "loader/tools/picture/picture.h"
#include "loader/tools/mkfs/scan.h"

/* The largest page and so the largest value. A larger image file is refused. */
static const uint64_t STORED_MAX = (uint64_t)2 << 30;

struct encoder {
	const struct recipe *recipe;
	struct codec *codec;
	struct codec_indexer *indexer;
	struct picture_decoder *pictures;
	struct resampler *resampler;
	struct image scaled; /* its memory is scaled_size bytes */
	size_t scaled_size;
	uint8_t *file;
	size_t file_room;
	uint64_t draw_key;
};

/* --- modes --------------------------------------------------------------- */

/* Returns whether an image of this many bytes of pixels becomes a JPEG. */
typedef bool wants_jpeg_fn(const struct encoder *e, uint64_t number,
			   uint64_t pixel_bytes);

struct encode_mode_row {
	const char *name;
	wants_jpeg_fn *wants_jpeg;
	bool keeps; /* plain JPEG files are stored as they are */
	bool has_proportion;
};

static bool always(const struct encoder *e, uint64_t number, uint64_t size)
{
	(void)e;
	(void)number;
	(void)size;
	return true;
}

static bool never(const struct encoder *e, uint64_t number, uint64_t size)
{
	return !always(e, number, size);
}

static bool if_large(const struct encoder *e, uint64_t number, uint64_t size)
{
	(void)number;
	return size > e->recipe->smart_threshold;
}

static bool by_chance(const struct encoder *e, uint64_t number, uint64_t size)
{
	struct rng rng = {
		.key = rng_key((uint64_t[]){ e->draw_key, number }, 2),
	};

	(void)size;
	return rng_uniform(&rng) < e->recipe->mode.proportion;
}

static const struct encode_mode_row modes[] = {
	{ .name = "jpg", .wants_jpeg = always },
	{ .name = "raw", .wants_jpeg = never },
	{ .name = "smart", .wants_jpeg = if_large },
	{ .name = "proportion",
	  .wants_jpeg = by_chance,
	  .has_proportion = true },
	{ .name = "keep", .wants_jpeg = always, .keeps = true },
};

static int parse_proportion(const char *text, double *out)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= 0 && v <= 1))
		return -EINVAL;
	*out = v;
	return 0;
}

int encode_parse_mode(const char *text, void *mode)
{
	struct encode_mode *out = mode;
	size_t n = strcspn(text, "=");
	double p = 0;

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		const struct encode_mode_row *row = &modes[i];

		if (strlen(row->name) != n || memcmp(row->name, text, n) != 0)
			continue;
		if (row->has_proportion != (text[n] == '='))
			return -EINVAL;
		if (text[n] && parse_proportion(text + n + 1, &p))
			return -EINVAL;
		*out = (struct encode_mode){ row, p };
		return 0;
	}
	return -EINVAL;
}

/* --- the encoder --------------------------------------------------------- */

int encoder_open(const struct recipe *recipe, struct encoder **out)
{
	struct encoder *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->recipe = recipe;
	e->draw_key = rng_key(
		(uint64_t[]){ recipe->seed, rng_key_of_text("proportion") }, 2);
	r = codec_open(&e->codec);
	r = r ? r : picture_decoder_open(e->codec, &e->pictures);
	r = r ? r : resampler_open(&e->resampler);
	r = r ? r : codec_indexer_open(&e->indexer);
	if (r) {
		encoder_close(e);
		return r;
	}
	*out = e;
	return 0;
}

void encoder_close(struct encoder *e)
{
	if (!e)
		return;
	codec_indexer_close(e->indexer);
	resampler_close(e->resampler);
	picture_decoder_close(e->pictures);
	codec_close(e->codec);
	free(e->scaled.pixels);
	free(e->file);
	free(e);
}

static int refuse_image(struct encoded *out, int error, const char *why)
{
	out->status = error;
	out->fatal = error == -ENOMEM;
	snprintf(out->why, sizeof(out->why), "%s", why);
	return error;
}

static int reserve_bytes(uint8_t **bytes, size_t *room, size_t size)
{
	if (*room >= size)
		return 0;
	free(*bytes);
	*bytes = malloc(size);
	*room = *bytes ? size : 0;
	return *bytes ? 0 : -ENOMEM;
}

/* Opens a regular file only, and never waits for a FIFO. */
static int open_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r;
	struct stat st;

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0			? -errno
	    : !S_ISREG(st.st_mode)		? -EINVAL
	    : (uint64_t)st.st_size > STORED_MAX ? -EFBIG
						: 0;
	if (r) {
		close(fd);
		return r;
	}
	*size = (size_t)st.st_size;
	return fd;
}

/*
 * Reads the whole file into e->file. If the file shrinks meanwhile, less is
 * read.
 */
static int read_file(struct encoder *e, const char *path, size_t *out)
{
	size_t size = 0, used = 0;
	cleanup_fd int fd = open_file(path, &size);
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	if (reserve_bytes(&e->file, &e->file_room, size))
		return -ENOMEM;
	while (used < size && n) {
		n = read(fd, e->file + used, size - used);
		if (n < 0 && errno != EINTR)
			return -errno;
		used += n > 0 ? (size_t)n : 0;
	}
	*out = used;
	return 0;
}

/* Shrinks *image if its longer side is above the limit. */
static int limit_size(struct encoder *e, struct image *image)
{
	struct image *s = &e->scaled;
	int r;

	resample_limit(image, e->recipe->max_resolution, s);
	r = reserve_bytes(&s->pixels, &e->scaled_size, s->stride * s->height);
	r = r ? r : resample(e->resampler, INTERPOLATION_AREA, image, s);
	if (!r)
		*image = *s;
	return r;
}

static int store_copy(struct encoded *out, const uint8_t *bytes, size_t size)
{
	if (size > STORED_MAX)
		return refuse_image(out, -EFBIG, "more than 2 GiB of pixels");
	out->bytes = malloc(size);
	if (!out->bytes)
		return refuse_image(out, -ENOMEM, "out of memory");
	memcpy(out->bytes, bytes, size);
	out->size = size;
	return 0;
}

static int store_jpeg(struct encoder *e, const struct image *image,
		      struct encoded *out)
{
	uint8_t *bytes = NULL;
	int r = codec_encode(e->codec, image, (unsigned)e->recipe->quality,
			     &bytes, &out->size);

	out->mode = BETON_MODE_JPG;
	out->bytes = bytes;
	return r ? refuse_image(out, r, codec_message(e->codec)) : 0;
}

static int store_image(struct encoder *e, const struct image *image,
		       uint64_t number, struct encoded *out)
{
	uint64_t size = (uint64_t)image->width * image->height * 3;

	if (e->recipe->mode.row->wants_jpeg(e, number, size))
		return store_jpeg(e, image, out);
	out->mode = BETON_MODE_RAW;
	return store_copy(out, image->pixels, size);
}

/*
 * Adds an index to a JPEG that can have one: to all that the codec encodes and
 * to most that are kept as they are.
 */
static void add_index(struct encoder *e, struct encoded *out)
{
	uint8_t *bytes = NULL;
	size_t size = 0;
	int r = codec_index(e->indexer, out->bytes, out->size, INDEX_ROWS,
			    &bytes, &size);

	if (r && r != -ENOMEM)
		return;
	free(out->bytes);
	out->bytes = bytes;
	out->size = size;
	if (r)
		refuse_image(out, r, "out of memory");
}

void encode(struct encoder *e, const char *path, uint64_t number,
	    struct encoded *out)
{
	uint64_t limit = e->recipe->max_resolution;
	struct picture picture;
	bool fits;
	size_t size = 0;
	int r = read_file(e, path, &size);

	*out = (struct encoded){ 0 };
	if (r) {
		refuse_image(out, r, strerror(-r));
		out->fatal = !scan_is_own_fault(r);
		return;
	}
	r = picture_decode(e->pictures, e->file, size, &picture);
	if (r) {
		refuse_image(out, r, picture_message(e->pictures));
		return;
	}
	fits = !limit ||
	       (picture.image.width <= limit && picture.image.height <= limit);
	if (!fits)
		r = limit_size(e, &picture.image);
	if (r) {
		refuse_image(out, r, strerror(-r));
		return;
	}
	out->width = (uint16_t)picture.image.width;
	out->height = (uint16_t)picture.image.height;
	if (fits && picture.plain && e->recipe->mode.row->keeps)
		store_copy(out, e->file, size);
	else
		store_image(e, &picture.image, number, out);
	if (e->recipe->index && !out->status && out->mode == BETON_MODE_JPG)
		add_index(e, out);
}
