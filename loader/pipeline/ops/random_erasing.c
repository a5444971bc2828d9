/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/util/exact_math.h"

enum { P, SCALE, RATIO, VALUE };

enum { ATTEMPTS = 10 };

static const struct param params[] = {
	[P] = OP_PARAM_P("0.5"),
	[SCALE] = { .name = "scale",
		    .kind = PARAM_REALS,
		    .initial = "0.02,0.33",
		    .min_count = 2,
		    .max_count = 2,
		    .min = 0,
		    .max = 1,
		    .help = "least and greatest area, as fractions of the image's" },
	[RATIO] = { .name = "ratio",
		    .kind = PARAM_REALS,
		    .initial = "0.3,3.3",
		    .min_count = 2,
		    .max_count = 2,
		    .min = 0x1p-10,
		    .max = 0x1p10,
		    .help = "least and greatest height divided by width" },
	[VALUE] = { .name = "value",
		    .kind = PARAM_INTEGERS,
		    .initial = "0",
		    .min_count = 1,
		    .max_count = 3,
		    .min = 0,
		    .max = 255,
		    .choices = "random",
		    .help = "color, one number or \"R,G,B\"; random: noise" },
	OP_PARAM_GROUP,
	{ 0 },
};

static const char *check(const struct args *args)
{
	if (op_check_range(&args->arg[SCALE]))
		return "the least scale is greater than the greatest";
	if (op_check_range(&args->arg[RATIO]))
		return "the least ratio is greater than the greatest";
	return op_check_color(&args->arg[VALUE]);
}

/* Draws the size of one attempt. Returns false if a side is as long as the
   image's. */
static bool draw_size(const struct args *args, struct uniform uniform,
		      const struct image *image, struct rect *out)
{
	const double *ratio = args->arg[RATIO].number;
	const double least = exact_log(ratio[0]), most = exact_log(ratio[1]);
	double area = (double)image->height * (double)image->width *
		      op_within(&args->arg[SCALE], uniform);
	double r =
		exact_exp(least + (most - least) * uniform.next(uniform.arg));
	double height = exact_round(exact_sqrt(area * r));
	double width = exact_round(exact_sqrt(area / r));

	if (height >= image->height || width >= image->width)
		return false;
	out->height = (uint32_t)height;
	out->width = (uint32_t)width;
	return true;
}

static bool draw_part(const struct args *args, struct uniform uniform,
		      const struct image *image, struct rect *out)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		if (!draw_size(args, uniform, image, out))
			continue;
		out->y = op_below(image->height - out->height + 1, uniform);
		out->x = op_below(image->width - out->width + 1, uniform);
		return true;
	}
	return false;
}

/* Each random number gives eight bytes of noise. A row begins with a new
   number. */
static void fill_noise_row(struct rng *rng, uint8_t *to, size_t n)
{
	uint8_t bytes[8];
	size_t some;

	for (; n; n -= some, to += some) {
		some = min_u64(n, sizeof(bytes));
		store64(bytes, rng_next(rng));
		memcpy(to, bytes, some);
	}
}

static void fill_noise(const struct image *image, const struct rect *part,
		       struct uniform uniform)
{
	double u = uniform.next(uniform.arg);
	struct rng rng = { .key = (uint64_t)(u * 0x1p53) };

	for (size_t y = part->y; y < part->y + part->height; y++)
		fill_noise_row(&rng,
			       image->pixels + y * image->stride +
				       3 * (size_t)part->x,
			       3 * (size_t)part->width);
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	struct rect part;

	if (!op_chance(&args->arg[P], sample->uniform) ||
	    !draw_part(args, sample->uniform, image, &part))
		return;
	if (args->arg[VALUE].count)
		op_fill(image, &part, &args->arg[VALUE]);
	else
		fill_noise(image, &part, sample->uniform);
}

const struct op op_random_erasing = {
	.name = "random_erasing",
	.help = "Replace a random rectangle by a color or noise",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.keeps_places = true,
			.in_place = image,
		},
};
