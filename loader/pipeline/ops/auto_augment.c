/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

enum { POLICY, INTERPOLATION, FILL, GROUP, LABEL };

/* Keep the order of the choices of policy. */
enum { IMAGENET, CIFAR10, SVHN, POLICIES };

enum { PAIRS = 25, BINS = 10 };

static const struct param params[] = {
	[POLICY] = { .name = "policy",
		     .kind = PARAM_CHOICE,
		     .initial = "imagenet",
		     .choices = "imagenet|cifar10|svhn",
		     .help = "dataset for which the policy was learned" },
	[INTERPOLATION] = OP_PARAM_WARP,
	[FILL] = OP_PARAM_FILL,
	[GROUP] = OP_PARAM_GROUP,
	[LABEL] = OP_PARAM_LABEL,
	{ 0 },
};

/* An operation, its probability, and the index of its magnitude. */
struct auto_augment_step {
	enum policy_kind kind;
	double p;
	unsigned bin;
};

/* The policies of torchvision, which follow the paper. */
static const struct auto_augment_step policies[POLICIES][PAIRS][2] = {
	[IMAGENET] = {
		{ { POLICY_POSTERIZE, 0.4, 8 }, { POLICY_ROTATE, 0.6, 9 } },
		{ { POLICY_SOLARIZE, 0.6, 5 }, { POLICY_AUTOCONTRAST, 0.6, 0 } },
		{ { POLICY_EQUALIZE, 0.8, 0 }, { POLICY_EQUALIZE, 0.6, 0 } },
		{ { POLICY_POSTERIZE, 0.6, 7 }, { POLICY_POSTERIZE, 0.6, 6 } },
		{ { POLICY_EQUALIZE, 0.4, 0 }, { POLICY_SOLARIZE, 0.2, 4 } },
		{ { POLICY_EQUALIZE, 0.4, 0 }, { POLICY_ROTATE, 0.8, 8 } },
		{ { POLICY_SOLARIZE, 0.6, 3 }, { POLICY_EQUALIZE, 0.6, 0 } },
		{ { POLICY_POSTERIZE, 0.8, 5 }, { POLICY_EQUALIZE, 1, 0 } },
		{ { POLICY_ROTATE, 0.2, 3 }, { POLICY_SOLARIZE, 0.6, 8 } },
		{ { POLICY_EQUALIZE, 0.6, 0 }, { POLICY_POSTERIZE, 0.4, 6 } },
		{ { POLICY_ROTATE, 0.8, 8 }, { POLICY_COLOR, 0.4, 0 } },
		{ { POLICY_ROTATE, 0.4, 9 }, { POLICY_EQUALIZE, 0.6, 0 } },
		{ { POLICY_EQUALIZE, 0, 0 }, { POLICY_EQUALIZE, 0.8, 0 } },
		{ { POLICY_INVERT, 0.6, 0 }, { POLICY_EQUALIZE, 1, 0 } },
		{ { POLICY_COLOR, 0.6, 4 }, { POLICY_CONTRAST, 1, 8 } },
		{ { POLICY_ROTATE, 0.8, 8 }, { POLICY_COLOR, 1, 2 } },
		{ { POLICY_COLOR, 0.8, 8 }, { POLICY_SOLARIZE, 0.8, 7 } },
		{ { POLICY_SHARPNESS, 0.4, 7 }, { POLICY_INVERT, 0.6, 0 } },
		{ { POLICY_SHEAR_X, 0.6, 5 }, { POLICY_EQUALIZE, 1, 0 } },
		{ { POLICY_COLOR, 0.4, 0 }, { POLICY_EQUALIZE, 0.6, 0 } },
		{ { POLICY_EQUALIZE, 0.4, 0 }, { POLICY_SOLARIZE, 0.2, 4 } },
		{ { POLICY_SOLARIZE, 0.6, 5 }, { POLICY_AUTOCONTRAST, 0.6, 0 } },
		{ { POLICY_INVERT, 0.6, 0 }, { POLICY_EQUALIZE, 1, 0 } },
		{ { POLICY_COLOR, 0.6, 4 }, { POLICY_CONTRAST, 1, 8 } },
		{ { POLICY_EQUALIZE, 0.8, 0 }, { POLICY_EQUALIZE, 0.6, 0 } },
	},
	[CIFAR10] = {
		{ { POLICY_INVERT, 0.1, 0 }, { POLICY_CONTRAST, 0.2, 6 } },
		{ { POLICY_ROTATE, 0.7, 2 }, { POLICY_TRANSLATE_X, 0.3, 9 } },
		{ { POLICY_SHARPNESS, 0.8, 1 }, { POLICY_SHARPNESS, 0.9, 3 } },
		{ { POLICY_SHEAR_Y, 0.5, 8 }, { POLICY_TRANSLATE_Y, 0.7, 9 } },
		{ { POLICY_AUTOCONTRAST, 0.5, 0 }, { POLICY_EQUALIZE, 0.9, 0 } },
		{ { POLICY_SHEAR_Y, 0.2, 7 }, { POLICY_POSTERIZE, 0.3, 7 } },
		{ { POLICY_COLOR, 0.4, 3 }, { POLICY_BRIGHTNESS, 0.6, 7 } },
		{ { POLICY_SHARPNESS, 0.3, 9 }, { POLICY_BRIGHTNESS, 0.7, 9 } },
		{ { POLICY_EQUALIZE, 0.6, 0 }, { POLICY_EQUALIZE, 0.5, 0 } },
		{ { POLICY_CONTRAST, 0.6, 7 }, { POLICY_SHARPNESS, 0.6, 5 } },
		{ { POLICY_COLOR, 0.7, 7 }, { POLICY_TRANSLATE_X, 0.5, 8 } },
		{ { POLICY_EQUALIZE, 0.3, 0 }, { POLICY_AUTOCONTRAST, 0.4, 0 } },
		{ { POLICY_TRANSLATE_Y, 0.4, 3 }, { POLICY_SHARPNESS, 0.2, 6 } },
		{ { POLICY_BRIGHTNESS, 0.9, 6 }, { POLICY_COLOR, 0.2, 8 } },
		{ { POLICY_SOLARIZE, 0.5, 2 }, { POLICY_INVERT, 0, 0 } },
		{ { POLICY_EQUALIZE, 0.2, 0 }, { POLICY_AUTOCONTRAST, 0.6, 0 } },
		{ { POLICY_EQUALIZE, 0.2, 0 }, { POLICY_EQUALIZE, 0.6, 0 } },
		{ { POLICY_COLOR, 0.9, 9 }, { POLICY_EQUALIZE, 0.6, 0 } },
		{ { POLICY_AUTOCONTRAST, 0.8, 0 }, { POLICY_SOLARIZE, 0.2, 8 } },
		{ { POLICY_BRIGHTNESS, 0.1, 3 }, { POLICY_COLOR, 0.7, 0 } },
		{ { POLICY_SOLARIZE, 0.4, 5 }, { POLICY_AUTOCONTRAST, 0.9, 0 } },
		{ { POLICY_TRANSLATE_Y, 0.9, 9 }, { POLICY_TRANSLATE_Y, 0.7, 9 } },
		{ { POLICY_AUTOCONTRAST, 0.9, 0 }, { POLICY_SOLARIZE, 0.8, 3 } },
		{ { POLICY_EQUALIZE, 0.8, 0 }, { POLICY_INVERT, 0.1, 0 } },
		{ { POLICY_TRANSLATE_Y, 0.7, 9 }, { POLICY_AUTOCONTRAST, 0.9, 0 } },
	},
	[SVHN] = {
		{ { POLICY_SHEAR_X, 0.9, 4 }, { POLICY_INVERT, 0.2, 0 } },
		{ { POLICY_SHEAR_Y, 0.9, 8 }, { POLICY_INVERT, 0.7, 0 } },
		{ { POLICY_EQUALIZE, 0.6, 0 }, { POLICY_SOLARIZE, 0.6, 6 } },
		{ { POLICY_INVERT, 0.9, 0 }, { POLICY_EQUALIZE, 0.6, 0 } },
		{ { POLICY_EQUALIZE, 0.6, 0 }, { POLICY_ROTATE, 0.9, 3 } },
		{ { POLICY_SHEAR_X, 0.9, 4 }, { POLICY_AUTOCONTRAST, 0.8, 0 } },
		{ { POLICY_SHEAR_Y, 0.9, 8 }, { POLICY_INVERT, 0.4, 0 } },
		{ { POLICY_SHEAR_Y, 0.9, 5 }, { POLICY_SOLARIZE, 0.2, 6 } },
		{ { POLICY_INVERT, 0.9, 0 }, { POLICY_AUTOCONTRAST, 0.8, 0 } },
		{ { POLICY_EQUALIZE, 0.6, 0 }, { POLICY_ROTATE, 0.9, 3 } },
		{ { POLICY_SHEAR_X, 0.9, 4 }, { POLICY_SOLARIZE, 0.3, 3 } },
		{ { POLICY_SHEAR_Y, 0.8, 8 }, { POLICY_INVERT, 0.7, 0 } },
		{ { POLICY_EQUALIZE, 0.9, 0 }, { POLICY_TRANSLATE_Y, 0.6, 6 } },
		{ { POLICY_INVERT, 0.9, 0 }, { POLICY_EQUALIZE, 0.6, 0 } },
		{ { POLICY_CONTRAST, 0.3, 3 }, { POLICY_ROTATE, 0.8, 4 } },
		{ { POLICY_INVERT, 0.8, 0 }, { POLICY_TRANSLATE_Y, 0, 2 } },
		{ { POLICY_SHEAR_Y, 0.7, 6 }, { POLICY_SOLARIZE, 0.4, 8 } },
		{ { POLICY_INVERT, 0.6, 0 }, { POLICY_ROTATE, 0.8, 4 } },
		{ { POLICY_SHEAR_Y, 0.3, 7 }, { POLICY_TRANSLATE_X, 0.9, 3 } },
		{ { POLICY_SHEAR_X, 0.1, 6 }, { POLICY_INVERT, 0.6, 0 } },
		{ { POLICY_SOLARIZE, 0.7, 2 }, { POLICY_TRANSLATE_Y, 0.6, 7 } },
		{ { POLICY_SHEAR_Y, 0.8, 4 }, { POLICY_INVERT, 0.8, 0 } },
		{ { POLICY_SHEAR_X, 0.7, 9 }, { POLICY_TRANSLATE_Y, 0.8, 3 } },
		{ { POLICY_SHEAR_Y, 0.8, 5 }, { POLICY_AUTOCONTRAST, 0.7, 0 } },
		{ { POLICY_SHEAR_X, 0.7, 2 }, { POLICY_INVERT, 0.1, 0 } },
	},
};

static const char *check(const struct args *args)
{
	return op_check_color(&args->arg[FILL]);
}

/* Draws which operations of a pair to apply. */
static unsigned draw(const struct args *args, struct uniform uniform,
		     struct augmentation out[2])
{
	unsigned count = 0;
	const struct auto_augment_step *steps =
		policies[args->arg[POLICY].choice][op_below(PAIRS, uniform)];

	for (unsigned i = 0; i < 2; i++) {
		bool on = uniform.next(uniform.arg) <= steps[i].p;
		double sign = uniform.next(uniform.arg);
		const struct policy_row *row =
			&policy_auto.rows[steps[i].kind - POLICY_SHEAR_X];

		if (on)
			out[count++] = (struct augmentation){ row, steps[i].bin,
							      BINS, sign };
	}
	return count;
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	struct canvas c = op_canvas(&args->arg[INTERPOLATION], &args->arg[FILL],
				    sample, image);
	struct augmentation steps[2];

	op_augment(&c, steps, draw(args, sample->uniform, steps));
	canvas_end(&c, image);
}

static unsigned maps(const struct args *args, struct uniform uniform,
		     struct size in, struct warp_map *out)
{
	struct augmentation steps[2];
	unsigned count = draw(args, uniform, steps);

	return op_augment_maps(steps, count, in, out);
}

const struct op op_auto_augment = {
	.name = "auto_augment",
	.help = "Apply two operations of a learned policy",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.in_place = image,
			.maps = maps,
			.scratch = op_canvas_scratch,
		},
};
