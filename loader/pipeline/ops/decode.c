/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

static const struct param params[] = {
	{ .name = "quality",
	  .kind = PARAM_CHOICE,
	  .initial = "default",
	  .choices = "default|exact|draft|gray|gray16|rgb|rgb16",
	  /* in the order of enum quality */
	  .help = "decode quality, or the channels of a grid" },
	{ 0 },
};

static const char *enter_grid(int word, struct type *out)
{
	bool deep = word == QUALITY_GRAY16 || word == QUALITY_RGB16;

	out->kind = TYPE_GRID;
	out->channels = word == QUALITY_GRAY || word == QUALITY_GRAY16 ? 1 : 3;
	out->dtype = deep ? DTYPE_U2 : DTYPE_U1;
	out->unit = deep ? 65535 : 255;
	return NULL;
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	int word = args->arg[0].choice;

	if (in->kind == TYPE_RAGGED && in->fresh)
		return word < QUALITY_GRAY
			       ? "needs one of gray, gray16, rgb and rgb16 "
				 "for a bytes field"
			       : enter_grid(word, out);
	if (in->kind != TYPE_IMAGE)
		return "works on images only";
	if (!in->fresh)
		return "must be the first operation";
	if (word > QUALITY_GRAY)
		return "takes gray or a quality for an image field, "
		       "which already is 8-bit RGB";
	return word == QUALITY_GRAY ? enter_grid(word, out) : NULL;
}

const struct op op_decode = {
	.name = "decode",
	.help = "Choose how JPEGs are decoded",
	.kind = OP_DECODE,
	.params = params,
	.infer = infer,
};
