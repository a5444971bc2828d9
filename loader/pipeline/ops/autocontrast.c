/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include "loader/image/pixels/enhance.h"

enum { P };

static const struct param params[] = {
	[P] = OP_PARAM_P("1"),
	OP_PARAM_GROUP,
	{ 0 },
};

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	if (op_chance(&args->arg[P], sample->uniform))
		enhance_autocontrast(image);
}

const struct op op_autocontrast = {
	.name = "autocontrast",
	.help = "Stretch the values of each channel to 0..255",
	.kind = OP_IMAGE,
	.params = params,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.keeps_places = true,
			.in_place = image,
		},
};
