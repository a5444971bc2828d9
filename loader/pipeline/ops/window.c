/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { LENGTH, AT = 2 };

/* Keep the order of the choices of at. */
enum { RANDOM, CENTER, START };

static const struct param params[] = {
	[LENGTH] = { .name = "length",
		     .kind = PARAM_INTEGERS,
		     .min_count = 1,
		     .max_count = 1,
		     .min = 1,
		     .max = OP_SIZE_MAX,
		     .help = "number of frames" },
	[OP_FRAMES_STRIDE] = { .name = "stride",
			       .kind = PARAM_INTEGERS,
			       .initial = "1",
			       .min_count = 1,
			       .max_count = 1,
			       .min = 1,
			       .max = OP_SIZE_MAX,
			       .help = "distance from one frame to the next, in frames" },
	[AT] = { .name = "at",
		 .kind = PARAM_CHOICE,
		 .initial = "random",
		 .choices = "random|center|start",
		 .help = "position in the value" },
	OP_PARAM_GROUP,
	{ 0 },
};

static uint32_t span_of(const struct args *args)
{
	return ((uint32_t)args->arg[LENGTH].number[0] - 1) *
		       (uint32_t)args->arg[OP_FRAMES_STRIDE].number[0] +
	       1;
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	if (in->kind != TYPE_GRID || (!in->frames && in->width))
		return "works on arrays of four axes, frames first, and on "
		       "lists of images after decode(rgb)";
	if (in->layout != LAYOUT_HWC)
		return "must stand before chw";
	if (in->frames && span_of(args) > in->frames)
		return "is longer than the number of frames";
	if (in->device)
		return "runs on the CPU and must stand before cuda";
	out->frames = (uint32_t)args->arg[LENGTH].number[0];
	return NULL;
}

static uint32_t first(const struct args *args, struct uniform uniform,
		      uint32_t frames)
{
	uint32_t span = span_of(args);
	uint32_t places = frames < span ? 1 : frames - span + 1;

	if (args->arg[AT].choice == CENTER)
		return (places - 1) / 2;
	return args->arg[AT].choice == START ? 0 : op_below(places, uniform);
}

const struct op op_window = {
	.name = "window",
	.help = "Take consecutive frames of a value",
	.kind = OP_FRAMES,
	.params = params,
	.infer = infer,
	.frames =
		&(const struct op_frames){
			.first = first,
		},
};
