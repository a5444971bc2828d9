/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

static const struct param params[] = {
	{ .name = "quality",
	  .kind = PARAM_WORD,
	  .initial = "default",
	  .words = "default|exact|draft|gray|gray16|rgb|rgb16",
	  /* as enum quality */
	  .help = "which pixels decoding may give, or one gray channel" },
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
	int word = args->arg[0].word;

	if (in->kind == TYPE_RAGGED && in->fresh)
		return word < QUALITY_GRAY
			       ? "needs the kind of image that a field of "
				 "bytes has: gray, gray16, rgb or rgb16"
			       : enter_grid(word, out);
	if (in->kind != TYPE_IMAGE)
		return "works on images only";
	if (!in->fresh)
		return "must be the first operation";
	if (word > QUALITY_GRAY)
		return "takes gray or a quality for an image field, which is "
		       "RGB of 8 bits already";
	return word == QUALITY_GRAY ? enter_grid(word, out) : NULL;
}

const struct op op_decode = {
	.name = "decode",
	.help = "the quality of JPEG decoding",
	.kind = OP_DECODE,
	.params = params,
	.infer = infer,
};
