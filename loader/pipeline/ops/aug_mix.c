/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

#include "loader/pipeline/op/beta.h"

enum { SEVERITY, WIDTH, DEPTH, ALPHA, ALL_OPS, INTERPOLATION, FILL };

enum { BINS = 10, WIDTH_MAX = 16, DEPTH_MAX = 16, DEPTHS = 3 };

/* Keep the order of the choices of all_ops. */
enum { ALL, PARTIAL };

#define WHOLE(text, first, least, most, about)                                 \
	{                                                                      \
		.name = text, .kind = PARAM_INTEGERS, .initial = first,        \
		.min_count = 1, .max_count = 1, .min = (least), .max = (most), \
		.help = about                                                  \
	}

static const struct param params[] = {
	[SEVERITY] =
		WHOLE("severity", "3", 1, BINS, "number of magnitudes in use"),
	[WIDTH] = WHOLE("width", "3", 1, WIDTH_MAX, "number of copies"),
	[DEPTH] = WHOLE("depth", "-1", -1, DEPTH_MAX,
			"operations for each copy; -1: 1 to 3 at random"),
	[ALPHA] = { .name = "alpha",
		    .kind = PARAM_REALS,
		    .initial = "1",
		    .min_count = 1,
		    .max_count = 1,
		    .min = 0x1p-10,
		    .max = 0x1p10,
		    .help = "weights have the distribution Dirichlet(alpha, ...)" },
	[ALL_OPS] = { .name = "all_ops",
		      .kind = PARAM_CHOICE,
		      .initial = "true",
		      .choices = "true|false",
		      .help = "include brightness, color, contrast, sharpness" },
	[INTERPOLATION] = { .name = "interpolation",
			    .kind = PARAM_CHOICE,
			    .initial = "bilinear",
			    .choices = "nearest|bilinear",
			    .help = "how values between pixels are calculated" },
	[FILL] = OP_PARAM_FILL,
	OP_PARAM_GROUP,
	{ 0 },
};

static const char *check(const struct args *args)
{
	return op_check_color(&args->arg[FILL]);
}

/* The scratch memory: that of a canvas, an image to start it on, and sums. */
static uint64_t scratch(const struct args *args, struct size in)
{
	uint64_t values = IMAGE_CHANNELS * (uint64_t)in.width * in.height;

	return values * sizeof(float) + values + op_canvas_scratch(args, in);
}

static void add(const struct image *image, float share, bool first, float *sums)
{
	size_t count = IMAGE_CHANNELS * (size_t)image->width;

	for (uint32_t y = 0; y < image->height; y++, sums += count) {
		const uint8_t *row = image->pixels + y * image->stride;

		for (size_t i = 0; i < count && first; i++)
			sums[i] = share * row[i];
		for (size_t i = 0; i < count && !first; i++)
			sums[i] += share * row[i];
	}
}

static void put(const float *sums, const struct image *image)
{
	size_t count = IMAGE_CHANNELS * (size_t)image->width;

	for (uint32_t y = 0; y < image->height; y++, sums += count) {
		uint8_t *row = image->pixels + y * image->stride;

		for (size_t i = 0; i < count; i++)
			row[i] = (uint8_t)(int)(sums[i] < 255 ? sums[i] : 255);
	}
}

static void run_chain(const struct args *args, struct uniform uniform,
		      struct canvas *c)
{
	uint32_t severity = (uint32_t)args->arg[SEVERITY].number[0];
	unsigned rows = args->arg[ALL_OPS].choice == PARTIAL
				? POLICY_AUG_MIX_PARTIAL
				: policy_aug_mix.count;
	uint32_t depth = 1 + op_below(DEPTHS, uniform);

	if (args->arg[DEPTH].number[0] > 0)
		depth = (uint32_t)args->arg[DEPTH].number[0];
	while (depth--) {
		uint32_t row = op_below(rows, uniform);
		uint32_t bin = op_below(severity, uniform);

		struct augmentation step = { &policy_aug_mix.rows[row], bin,
					     BINS, uniform.next(uniform.arg) };

		op_augment(c, &step, 1);
	}
}

/* Start each chain on a copy of the image, because later chains need the
   original. */
static struct canvas begin(const struct args *args,
			   const struct op_sample *sample,
			   const struct image *image, uint8_t *memory)
{
	size_t row = IMAGE_CHANNELS * (size_t)image->width;
	struct image copy = { memory + canvas_scratch(image->width,
						      image->height),
			      image->width, image->height, row };
	const struct op_sample own = { .id = sample->id,
				       .uniform = sample->uniform,
				       .scratch = memory };

	for (uint32_t y = 0; y < image->height; y++)
		memcpy(copy.pixels + y * row, image->pixels + y * image->stride,
		       row);
	return op_canvas(&args->arg[INTERPOLATION], &args->arg[FILL], &own,
			 &copy);
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	size_t values = IMAGE_CHANNELS * (size_t)image->width * image->height;
	unsigned width = (unsigned)args->arg[WIDTH].number[0];
	double alpha = args->arg[ALPHA].number[0], shares[WIDTH_MAX], kept;
	float *sums = sample->scratch;

	kept = beta_draw(alpha, sample->uniform);
	beta_shares(alpha, width, sample->uniform, shares);
	add(image, (float)kept, true, sums);
	for (unsigned i = 0; i < width; i++) {
		struct canvas c =
			begin(args, sample, image, (uint8_t *)(sums + values));

		run_chain(args, sample->uniform, &c);
		add(&c.now, (float)((1 - kept) * shares[i]), false, sums);
	}
	put(sums, image);
}

const struct op op_aug_mix = {
	.name = "aug_mix",
	.help = "Mix the image with randomly augmented "
		"copies of itself",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.in_place = image,
			.scratch = scratch,
		},
};
