/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/pixels/enhance.h"
#include "loader/pipeline/op/op.h"

enum { MAGNITUDE, P, VALUES = 256 };

static const struct param params[] = {
	[MAGNITUDE] = OP_PARAM_MAGNITUDE,
	[P] = OP_PARAM_P("0.5"),
	OP_PARAM_GROUP,
	{ 0 },
};

/* Sums whole numbers, so that the result does not depend on the order. */
static float mean_gray(const struct image *image)
{
	double count = (double)image->width * image->height;

	return (float)((double)enhance_level_sum(image) / count);
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	float factor = op_factor(&args->arg[MAGNITUDE], &args->arg[P],
				 sample->uniform);
	uint8_t table[VALUES];
	float gray;

	if (factor == 1)
		return;
	gray = (1 - factor) * mean_gray(image);
	for (unsigned v = 0; v < VALUES; v++)
		table[v] = op_whole(factor * (float)v + gray);
	enhance_scale(image, table, factor, gray);
}

const struct op op_contrast = {
	.name = "contrast",
	.help = "Blend values with the image's mean gray by "
		"a random factor",
	.kind = OP_IMAGE,
	.params = params,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.in_place = image,
			.keeps_places = true,
		},
};
