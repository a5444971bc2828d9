/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/decode.h"

#include <errno.h>
#include <stdlib.h>

#include "loader/image/codec/codec.h"
#include "loader/image/jpeg/baseline.h"

/* Larger images are decoded a few rows at a time. */
enum { PLANES_MAX = 32 << 20 };

struct decoder {
	struct codec *codec;
	struct baseline *baseline;
};

int decoder_open(struct decoder **out)
{
	struct decoder *d = calloc(1, sizeof(*d));
	int r = d ? codec_open(&d->codec) : -ENOMEM;

	r = r ? r : baseline_open(&d->baseline);
	if (r)
		decoder_close(d);
	else
		*out = d;
	return r;
}

void decoder_close(struct decoder *d)
{
	if (!d)
		return;
	codec_close(d->codec);
	baseline_close(d->baseline);
	free(d);
}

/* -ENOTSUP: the other decoder has to decide. *odd is why it may be odd. */
static int check_baseline(struct decoder *d, const uint8_t *bytes, size_t size,
			  uint32_t width, uint32_t height, const char **odd)
{
	struct baseline_plane planes[BASELINE_COMPONENTS];
	struct baseline_image image;
	struct entry_index index;
	int r = baseline_header(d->baseline, bytes, size, &image);

	if (r)
		return r;
	if (image.width != width || image.height != height ||
	    (uint64_t)width * height > PLANES_MAX / 3)
		return -ENOTSUP;
	/* The decoder compares an index with the scan. */
	if (!baseline_stored_index(d->baseline, &image, &index)) {
		if (!baseline_decode_whole(d->baseline, &image, &index, planes))
			return 0;
		r = -EUCLEAN;
	} else if (image.index) {
		*odd = "the index in the JPEG is of another scan";
		r = -EINVAL;
	}
	if (!baseline_decode_whole(d->baseline, &image, NULL, planes))
		return r;
	*odd = baseline_message(d->baseline);
	return -ENOTSUP;
}

/* The libjpeg-turbo decoder reads to the last row. */
static int check_codec(struct decoder *d, const uint8_t *bytes, size_t size,
		       uint32_t width, uint32_t height, const char **why)
{
	const struct rect all = { .width = width, .height = height };
	struct codec_info info;
	struct image rows = { .height = 1 };
	int r = codec_probe(d->codec, bytes, size, &info);

	if (!r && (info.width != width || info.height != height)) {
		*why = "the JPEG has other sides than the record";
		return -EBADMSG;
	}
	r = r ? r : codec_start(d->codec, bytes, size, &all);
	while (!r && rows.height)
		r = codec_rows(d->codec, &rows);
	if (r)
		*why = codec_message(d->codec);
	return r == -ENOMEM || !r ? r : -EBADMSG;
}

int decoder_check(struct decoder *d, const uint8_t *bytes, size_t size,
		  uint32_t width, uint32_t height, const char **why)
{
	const char *odd = NULL;
	int r = check_baseline(d, bytes, size, width, height, &odd);

	*why = r == -EUCLEAN ? "the index in the JPEG has wrong positions"
			     : odd;
	if (r != -ENOTSUP)
		return r;
	r = check_codec(d, bytes, size, width, height, why);
	if (r || !odd)
		return r;
	*why = odd;
	return -EINVAL;
}
