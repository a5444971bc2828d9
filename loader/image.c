/* SPDX-License-Identifier: Apache-2.0 */
/* Implements <beton/image.h>: the codec and the resampler for single images. */
#include "beton/image.h"

#include <errno.h>

#include "fs/base/util/float_mode.h"
#include "loader/image/codec/codec.h"
#include "loader/image/resize/resample.h"

static struct image image_of(const struct beton_image *from)
{
	return (struct image){ .pixels = from->pixels,
			       .width = from->width,
			       .height = from->height,
			       .stride = 3 * (size_t)from->width };
}

int beton_image_size(const void *jpeg, uint64_t size, uint32_t *width,
		     uint32_t *height)
{
	struct codec_info info;
	struct codec *codec;
	int r = codec_open(&codec);

	if (r)
		return r;
	r = codec_probe(codec, jpeg, size, &info);
	codec_close(codec);
	if (r)
		return r;
	*width = info.width;
	*height = info.height;
	return 0;
}

int beton_image_decode(const void *jpeg, uint64_t size,
		       const struct beton_image_part *part,
		       const struct beton_image *out)
{
	const struct rect rect = { part->x, part->y, part->width,
				   part->height };
	struct image image = image_of(out);
	struct codec *codec;
	int r;

	if (part->width != out->width || part->height != out->height)
		return -EINVAL;
	r = codec_open(&codec);
	if (r)
		return r;
	r = codec_decode(codec, jpeg, size, &rect, &image);
	codec_close(codec);
	return r;
}

static bool is_inside(const struct beton_image_part *part,
		      const struct beton_image *image)
{
	return (uint64_t)part->x + part->width <= image->width &&
	       (uint64_t)part->y + part->height <= image->height;
}

int beton_image_resize(const struct beton_image *in,
		       const struct beton_image_part *part,
		       const struct beton_image *out)
{
	struct image from = image_of(in), to = image_of(out);
	struct resampler *resampler;
	fenv_t mode;
	int r;

	if (!part->width || !part->height || !out->width || !out->height)
		return -EINVAL;
	if (!is_inside(part, in))
		return -ERANGE;
	from.pixels += part->y * from.stride + 3 * (size_t)part->x;
	from.width = part->width;
	from.height = part->height;
	r = resampler_open(&resampler);
	if (r)
		return r;
	float_mode_begin(&mode);
	r = resample(resampler, INTERPOLATION_AREA, &from, &to);
	float_mode_end(&mode);
	resampler_close(resampler);
	return r;
}
