/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

#include "loader/pipeline/op/beta.h"
#include "loader/pipeline/op/mix.h"
#include "loader/util/exact_math.h"

enum { ALPHA, LAMBDA };

static const struct param params[] = {
	[ALPHA] = MIX_PARAM_ALPHA("1"),
	[LAMBDA] = MIX_PARAM_LAMBDA,
	MIX_PARAM_GROUP,
	{ 0 },
};

/* Draws the part of a side within `half` of a random position. */
static void draw_part(uint32_t side, double reach, struct uniform uniform,
		      uint32_t *from, uint32_t *size)
{
	uint32_t half = (uint32_t)(reach * side);
	uint32_t at = op_below(side, uniform);
	uint32_t end = at + half < side ? at + half : side;

	*from = at > half ? at - half : 0;
	*size = end - *from;
}

/* Returns the rectangle for the other image. */
static struct rect draw_rect(double alpha, struct size size,
			     struct uniform uniform)
{
	double reach = 0.5 * exact_sqrt(1 - beta_draw(alpha, uniform));
	struct rect rect;

	draw_part(size.width, reach, uniform, &rect.x, &rect.width);
	draw_part(size.height, reach, uniform, &rect.y, &rect.height);
	return rect;
}

static void cut_images(const struct op_pair *pair, const struct rect *rect)
{
	size_t stride = 3 * (size_t)pair->image.width;
	size_t at = rect->y * stride + 3 * (size_t)rect->x;

	memcpy(pair->out, pair->own, pair->count);
	for (uint32_t y = 0; y < rect->height; y++, at += stride)
		memcpy((uint8_t *)pair->out + at,
		       (const uint8_t *)pair->other + at,
		       3 * (size_t)rect->width);
}

static void pair(const struct args *args, const struct op_pair *pair)
{
	const struct uniform uniform = mix_uniform(&args->arg[LAMBDA], pair);
	double all = (double)pair->image.width * pair->image.height;
	struct rect rect = { 0 };

	if (pair->own != pair->other)
		rect = draw_rect(args->arg[ALPHA].number[0], pair->image,
				 uniform);
	if (pair->type->kind == TYPE_IMAGE)
		cut_images(pair, &rect);
	else
		mix_labels(pair,
			   (float)(1 - (double)rect.width * rect.height / all));
}

const struct op op_cutmix = {
	.name = "cutmix",
	.help = "Fill a rectangle of each image from the "
		"image before it",
	.kind = OP_BATCH,
	.params = params,
	.infer = mix_infer,
	.batch =
		&(const struct op_batch){
			.mix = pair,
			.needs_image = true,
		},
};
