/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/mix.h"

enum { LABELS = 3 };

/* Values of the parameter lambda. Keep the order of its choices. */
enum { OF_BATCH, OF_SAMPLE };

const char *mix_infer(const struct args *args, const struct type *in,
		      struct type *out)
{
	if (in->kind == TYPE_IMAGE)
		return op_infer_image(args, in, out);
	if (in->kind != TYPE_ARRAY ||
	    (in->dtype != DTYPE_F4 && (in->ndim || !dtype_is_whole(in->dtype))))
		return "works on 8-bit images, whole numbers, and float32";
	if (in->device)
		return "runs on the CPU and must stand before cuda";
	if (in->dtype == DTYPE_F4)
		return NULL;
	out->dtype = DTYPE_F4;
	out->ndim = 1;
	out->shape[0] = LABELS;
	out->mixed = true;
	return NULL;
}

struct uniform mix_uniform(const struct arg *lambda, const struct op_pair *pair)
{
	return lambda->choice == OF_BATCH ? pair->batch : pair->row;
}

static void mix_whole(const struct op_pair *pair, float share, float *out)
{
	dtype_convert(pair->type->dtype, pair->own, DTYPE_F4, &out[0], 1);
	dtype_convert(pair->type->dtype, pair->other, DTYPE_F4, &out[1], 1);
	out[2] = share;
}

static void mix_reals(const float *own, const float *other, size_t count,
		      float share, float *out)
{
	for (size_t i = 0; i < count; i++)
		out[i] = mix_values(own[i], other[i], share);
}

void mix_labels(const struct op_pair *pair, float share)
{
	if (pair->type->dtype == DTYPE_F4)
		mix_reals(pair->own, pair->other, pair->count, share,
			  pair->out);
	else
		mix_whole(pair, share, pair->out);
}
