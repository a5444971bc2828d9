/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

#include "fs/util/bytes.h"

enum { SIZE, FILL, P };

static const struct param params[] = {
	[SIZE] = OP_PARAM_SIZE("of what is cut out, one number or \"H,W\""),
	[FILL] = OP_PARAM_FILL,
	[P] = OP_PARAM_P("1"),
	OP_PARAM_GROUP,
	{ 0 },
};

static const char *check(const struct args *args)
{
	return op_check_colour(&args->arg[FILL]);
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	struct size size = op_size(&args->arg[SIZE]);
	uint32_t height = (uint32_t)min_u64(size.height, image->height);
	uint32_t width = (uint32_t)min_u64(size.width, image->width);
	bool on = op_chance(&args->arg[P], sample->uniform);
	uint32_t top = op_below(image->height - height + 1, sample->uniform);
	uint32_t left = op_below(image->width - width + 1, sample->uniform);

	if (on)
		op_fill(image, &(struct rect){ left, top, width, height },
			&args->arg[FILL]);
}

const struct op op_cutout = {
	.name = "cutout",
	.help = "a random part of the image becomes a colour",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image = image,
};
