/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/upsample.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/jpeg/upsample_class.h"
#include "loader/util/scratch.h"

enum {
	COMPONENTS = BASELINE_COMPONENTS,
	/* libjpeg repeats the samples of narrower planes. */
	SMOOTH_MIN = 3,
};

struct upsample {
	const struct upsample_class *class;
	struct baseline_image image;
	struct baseline_plane planes[COMPONENTS];
	struct rect rect;
	struct scratch sums;
	struct scratch chroma[COMPONENTS]; /* upsampled rows */
	struct scratch pixels;
};

/* Rounds up and down in turns, so that errors do not add up. */
static const struct upsample_rule ACROSS = { 1, 2, 2 };
static const struct upsample_rule BOTH = { 8, 7, 4 };

int upsample_open(struct upsample **out)
{
	struct upsample *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	upsample_use(f, ISA_BEST(fancy));
	*out = f;
	return 0;
}

void upsample_close(struct upsample *f)
{
	if (!f)
		return;
	for (unsigned i = 0; i < COMPONENTS; i++)
		scratch_fini(&f->chroma[i]);
	scratch_fini(&f->sums);
	scratch_fini(&f->pixels);
	free(f);
}

void upsample_use(struct upsample *f, const struct upsample_class *class)
{
	f->class = class;
}

bool upsample_can(const struct baseline_image *image)
{
	/* libjpeg-turbo interpolates rows alone since 2.0, and repeated them
	   before. */
	for (unsigned i = 0; i < image->components; i++)
		if (image->component[i].down > image->component[i].across)
			return false;
	return true;
}

static uint64_t padded(uint64_t n)
{
	return align_up(n, UPSAMPLE_BLOCK) + UPSAMPLE_BLOCK;
}

int upsample_start(struct upsample *f, const struct baseline_image *image,
		   const struct baseline_plane *planes, const struct rect *rect)
{
	uint64_t most = rect->width;
	int r;

	f->image = *image;
	f->rect = *rect;
	memcpy(f->planes, planes, image->components * sizeof(*planes));
	for (unsigned i = 0; i < image->components; i++)
		most = max_u64(most, 2 * (uint64_t)planes[i].width);
	r = scratch_grow(&f->sums, padded(most), sizeof(int16_t));
	if (!r)
		r = scratch_grow(&f->pixels, padded(rect->width), 3);
	for (unsigned i = 1; !r && i < COMPONENTS; i++)
		r = scratch_grow(&f->chroma[i], padded(most), 1);
	if (!r && image->components == 1)
		for (unsigned i = 1; i < COMPONENTS; i++)
			memset(f->chroma[i].p, UPSAMPLE_ZERO_CHROMA,
			       padded(most));
	return r;
}

/* Row y of the component, whose first and last rows are repeated beyond it. */
static const uint8_t *row_at(const struct upsample *f, unsigned i, int64_t y)
{
	const struct baseline_plane *p = &f->planes[i];
	int64_t last = f->image.component[i].height - 1;

	y = y < 0 ? 0 : y > last ? last : y;
	return p->samples + (size_t)(y - p->y) * p->stride;
}

static void repeat(const uint8_t *in, size_t n, uint8_t *out)
{
	for (size_t x = 0; x < n; x++)
		out[2 * x] = out[2 * x + 1] = in[x];
}

/* Row y of the image in one component, from the rectangle's left edge on. */
static const uint8_t *component_row(struct upsample *f, unsigned i, uint32_t y)
{
	const struct baseline_component *c = &f->image.component[i];
	const struct baseline_plane *p = &f->planes[i];
	const uint8_t *near = row_at(f, i, y / c->down), *far = NULL;
	int16_t *sums = (int16_t *)f->sums.p + UPSAMPLE_BLOCK;
	uint8_t *out = f->chroma[i].p;

	if (c->across == 1)
		return near + (f->rect.x - p->x);
	if (c->width < SMOOTH_MIN) {
		repeat(near, p->width, out);
	} else {
		if (c->down == 2)
			far = row_at(f, i, (int64_t)(y / 2) + (y % 2 ? 1 : -1));
		f->class->sum(near, far, p->width, sums);
		sums[-1] = sums[0];
		sums[p->width] = sums[p->width - 1];
		f->class->twice(sums, p->width, far ? BOTH : ACROSS, out);
	}
	return out + (f->rect.x - 2 * (size_t)p->x);
}

const uint8_t *upsample_row(struct upsample *f, uint32_t y)
{
	const uint8_t *in[COMPONENTS] = { NULL, f->chroma[1].p,
					  f->chroma[2].p };

	for (unsigned i = 0; i < f->image.components; i++)
		in[i] = component_row(f, i, f->rect.y + y);
	f->class->color(in, f->rect.width, f->pixels.p);
	return f->pixels.p;
}
