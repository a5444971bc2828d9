/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/pipeline/grid/grid.h"

enum { P, PIECE = 1024 };

static const struct param params[] = {
	[P] = OP_PARAM_P("0.5"),
	OP_PARAM_GROUP,
	{ 0 },
};

static void exchange(uint8_t *a, uint8_t *b, size_t size)
{
	uint8_t piece[PIECE];
	size_t n;

	for (; size; a += n, b += n, size -= n) {
		n = min_u64(size, PIECE);
		memcpy(piece, a, n);
		memcpy(a, b, n);
		memcpy(b, piece, n);
	}
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	uint8_t *top = image->pixels;
	uint8_t *bottom = top + (image->height - 1) * image->stride;

	if (!op_chance(&args->arg[P], sample->uniform))
		return;
	for (; top < bottom; top += image->stride, bottom -= image->stride)
		exchange(top, bottom, 3 * (size_t)image->width);
}

static void flip_grid(const struct args *args, const struct op_sample *sample,
		      const struct grid *in, const struct grid *out)
{
	bool on = op_chance(&args->arg[P], sample->uniform);
	size_t size = grid_row_size(in);

	for (uint32_t f = 0; f < in->frames; f++) {
		for (uint32_t y = 0; y < in->height; y++)
			memcpy(grid_row(out, f, on ? in->height - 1 - y : y),
			       grid_row(in, f, y), size);
	}
}

static void move(const struct args *args, struct uniform uniform,
		 struct size in, struct move *out)
{
	*out = move_none(in.width, in.height);
	if (!op_chance(&args->arg[P], uniform))
		return;
	out->m[4] = -1;
	out->m[5] = in.height;
}

const struct op op_vertical_flip = {
	.name = "vertical_flip",
	.help = "Exchange top and bottom at random",
	.kind = OP_IMAGE,
	.params = params,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.in_place = image,
			.grid = flip_grid,
			.move = move,
		},
};
