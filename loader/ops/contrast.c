/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

enum { MAGNITUDE, P, VALUES = 256 };

static const struct param params[] = {
	[MAGNITUDE] = OP_PARAM_MAGNITUDE,
	[P] = OP_PARAM_P("0.5"),
	OP_PARAM_GROUP,
	{ 0 },
};

/* The sum is of whole numbers, so its order does not matter. */
static float mean_grey(const struct image *image)
{
	uint64_t sum = 0, count = (uint64_t)image->width * image->height;

	for (uint32_t y = 0; y < image->height; y++) {
		const uint8_t *p = image->pixels + y * image->stride;
		uint32_t row = 0;

		for (size_t x = 0; x < image->width; x++, p += 3)
			row += (uint32_t)(0.2989F * p[0] + 0.587F * p[1] +
					  0.114F * p[2]);
		sum += row;
	}
	return (float)((double)sum / (double)count);
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	float factor = op_factor(&args->arg[MAGNITUDE], &args->arg[P],
				 sample->uniform);
	float grey = factor == 1 ? 0 : (1 - factor) * mean_grey(image);
	uint8_t table[VALUES];

	for (unsigned v = 0; v < VALUES; v++)
		table[v] = op_whole(factor * (float)v + grey);
	for (uint32_t y = 0; y < image->height; y++) {
		uint8_t *row = image->pixels + y * image->stride;

		for (size_t i = 0; i < 3 * (size_t)image->width; i++)
			row[i] = table[row[i]];
	}
}

const struct op op_contrast = {
	.name = "contrast",
	.help = "values blended with the image's mean grey by a random factor",
	.kind = OP_IMAGE,
	.params = params,
	.infer = op_infer_image,
	.image = image,
};
