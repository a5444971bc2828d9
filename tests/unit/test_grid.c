/* SPDX-License-Identifier: Apache-2.0 */
/* Grids: resizing of any size, PNGs and lists of images that are damaged. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/image/codec/png.h"
#include "loader/pipeline/grid/resize.h"
#include "loader/run/transform/image_list.h"
#include "t.h"

enum { TRIALS = 300, SIDE = 40 };

static uint32_t state = 1;

static uint32_t below(uint32_t n)
{
	state = state * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(state >> 8) * n >> 24);
}

static struct grid make(enum dtype dtype, uint32_t width, uint32_t height,
			uint32_t channels, uint32_t frames)
{
	struct grid g = { .dtype = dtype,
			  .width = width,
			  .height = height,
			  .channels = channels,
			  .frames = frames };
	uint64_t size = grid_pack(&g);

	g.values = malloc(size);
	CHECK(g.values);
	for (uint64_t i = 0; i < size; i++)
		g.values[i] = (uint8_t)below(256);
	return g;
}

/* Copies channel `c` to a grid of its own. */
static struct grid channel_of(const struct grid *in, uint32_t c)
{
	struct grid g = make(in->dtype, in->width, in->height, 1, in->frames);
	size_t n = (size_t)in->width * in->height * in->frames;
	size_t item = dtype_size(in->dtype);

	for (size_t i = 0; i < n; i++)
		memcpy(g.values + i * item,
		       in->values + (i * in->channels + c) * item, item);
	return g;
}

static uint32_t any_side(void)
{
	return below(8) ? 1 + below(SIDE) : 1 + below(2);
}

/* 8-bit RGB is resized as images are; each channel gets the same bits alone. */
static void a_channel_alone_is_one_of_three(struct grid_resizer *r)
{
	for (int t = 0; t < TRIALS; t++) {
		struct grid in = make(DTYPE_U1, any_side(), any_side(), 3, 2);
		struct grid out = make(DTYPE_U1, any_side(), any_side(), 3, 2);
		uint32_t c = below(3);
		struct grid own = channel_of(&in, c), want;
		struct grid got = make(DTYPE_U1, out.width, out.height, 1, 2);
		enum interpolation how =
			(enum interpolation)below(INTERPOLATIONS);
		bool mirror = below(2);

		CHECK(!grid_resize(r, how, mirror, &in, &out));
		CHECK(!grid_resize(r, how, mirror, &own, &got));
		want = channel_of(&out, c);
		CHECK(!memcmp(got.values, want.values,
			      2 * (size_t)out.width * out.height));
		free(in.values);
		free(out.values);
		free(own.values);
		free(got.values);
		free(want.values);
	}
}

/* A constant stays what it is, whatever the numbers and the size. */
static void a_constant_stays(struct grid_resizer *r)
{
	static const enum dtype dtypes[] = { DTYPE_U1, DTYPE_I2, DTYPE_U2,
					     DTYPE_F2, DTYPE_F4, DTYPE_F8 };
	static const uint32_t sides[][4] = { { 1, 1, 5, 7 },
					     { 1, OP_SIZE_MAX, 3, 2 },
					     { OP_SIZE_MAX, 1, 1, 1 },
					     { 3, 2, 1, OP_SIZE_MAX },
					     { 9, 9, 4, 9 } };
	const double v = 100;

	for (int t = 0; t < 6 * 5 * INTERPOLATIONS; t++) {
		const uint32_t *s = sides[t % 5];
		enum dtype dtype = dtypes[t / 5 % 6];
		struct grid in = make(dtype, s[0], s[1], 2, 1);
		struct grid out = make(dtype, s[2], s[3], 2, 1);
		size_t n = 2 * (size_t)out.width * out.height;
		double *all = malloc(n * sizeof(*all));

		for (size_t i = 0; i < 2 * (size_t)s[0] * s[1]; i++)
			dtype_convert(DTYPE_F8, &v, dtype,
				      in.values + i * dtype_size(dtype), 1);
		CHECK(!grid_resize(r, (enum interpolation)(t / 30), false, &in,
				   &out));
		dtype_convert(dtype, out.values, DTYPE_F8, all, n);
		for (size_t i = 0; i < n; i++)
			CHECK(all[i] > 99.9 && all[i] < 100.1);
		free(in.values);
		free(out.values);
		free(all);
	}
}

/* 2 x 1, 8 bits, gray. */
static const uint8_t png[] = {
	0x89, 'P', 'N',	 'G',  0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0,	   13,	'I',
	'H',  'D', 'R',	 0,    0,    0,	   2,	 0,    0, 0, 1,	   8,	0,
	0,    0,   0,	 0xd1, 0x49, 0x20, 0x95, 0,    0, 0, 11,   'I', 'D',
	'A',  'T', 0x78, 0x9c, 0x63, 0x60, 0x64, 0x02, 0, 0, 0x07, 0,	0x04,
};

static void damaged_pngs_are_refused(void)
{
	const struct png_form form = { true, 1, 1 };
	struct buffer memory = { 0 };
	uint8_t bytes[sizeof(png)];
	char why[PNG_WHY_SIZE];

	for (size_t i = 0; i < 8 * sizeof(png); i++) {
		memcpy(bytes, png, sizeof(png));
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
		png_decode(bytes, sizeof(png), &form, &memory, why);
		png_decode(png, i / 8, &form, &memory, why);
	}
	CHECK(png_decode(png, 7, &form, &memory, why) == -EBADMSG);
	buffer_fini(&memory);
}

static void damaged_lists_are_refused(void)
{
	uint8_t bytes[64] = "betonimg\2\0\0\0\3\0\0\0\5\0\0\0abcdefgh";
	struct image_list list;
	uint64_t size;

	CHECK(!image_list_read(bytes, 28, &list) && list.count == 2);
	CHECK(!memcmp(image_list_at(&list, 0, &size), "abc", 3) && size == 3);
	CHECK(!memcmp(image_list_at(&list, 1, &size), "defgh", 5) && size == 5);
	CHECK(image_list_read(bytes, 27, &list) == -EBADMSG);
	CHECK(image_list_read(bytes, 29, &list) == -EBADMSG);
	CHECK(image_list_read(bytes, 12, &list) == -EBADMSG);
	memset(bytes + 8, 0xff, 4);
	CHECK(image_list_read(bytes, sizeof(bytes), &list) == -EBADMSG);
	memset(bytes + 8, 0, 4);
	CHECK(image_list_read(bytes, sizeof(bytes), &list) == -EBADMSG);
	CHECK(!image_list_read(bytes, 5, &list) && list.count == 1);
	CHECK(image_list_at(&list, 0, &size) == bytes && size == 5);
	CHECK(!image_list_read(bytes, 0, &list) && list.count == 1);
}

int main(void)
{
	struct grid_resizer *r;

	CHECK(!grid_resizer_open(&r));
	a_channel_alone_is_one_of_three(r);
	a_constant_stays(r);
	grid_resizer_close(r);
	damaged_pngs_are_refused();
	damaged_lists_are_refused();
	return 0;
}
