/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include "fs/base/util/bytes.h"
#include "loader/image/pixels/enhance.h"
#include "loader/image/pixels/hue.h"
#include "loader/util/exact_math.h"

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, P, GROUP, LIKE, STEPS = 4 };

/* Keep the order of the choices of like. */
enum { FFCV, TORCHVISION };

#define MAGNITUDE(text, least, most)                                           \
	{                                                                      \
		.name = text, .kind = PARAM_REALS, .initial = "0",             \
		.min_count = 1, .max_count = 2, .min = (least), .max = (most), \
		.help = "greatest change, or \"LEAST,MOST\"; hue: in turns"    \
	}

static const struct param params[] = {
	[BRIGHTNESS] = MAGNITUDE("brightness", 0, 16),
	[CONTRAST] = MAGNITUDE("contrast", 0, 16),
	[SATURATION] = MAGNITUDE("saturation", 0, 16),
	[HUE] = MAGNITUDE("hue", -0.5, 0.5),
	[P] = OP_PARAM_P("1"),
	[GROUP] = OP_PARAM_GROUP,
	[LIKE] = { .name = "like",
		   .kind = PARAM_CHOICE,
		   .initial = "ffcv",
		   .choices = "ffcv|torchvision",
		   .help = "implementation whose order, rounding and hue apply" },
	{ 0 },
};

static const char *check(const struct args *args)
{
	for (int i = BRIGHTNESS; i <= HUE; i++) {
		const char *wrong = op_check_range(&args->arg[i]);

		if (wrong)
			return wrong;
	}
	if (args->arg[HUE].count == 1 && args->arg[HUE].number[0] < 0)
		return "hue is from 0 to 0.5, or \"LEAST,MOST\"";
	return NULL;
}

/* The parameters of the change of one image. */
struct jitter {
	float factor[3]; /* index: BRIGHTNESS, CONTRAST, SATURATION */
	float mean;	 /* mean gray, after the change of brightness */
	float turn[3];	 /* first row of the hue's matrix; the other rows are
			    rotations of it */
};

/* Some pixels, by channel, so that compilers vectorize loops over them. */
enum { LOT = 64 };

struct color_jitter_lot {
	float r[LOT];
	float g[LOT];
	float b[LOT];
	float gray[LOT];
};

static inline float clip(float v)
{
	v = v > 0 ? v : 0;
	return v < 255 ? v : 255;
}

static inline float gray(float r, float g, float b)
{
	return 0.2989F * r + 0.587F * g + 0.114F * b;
}

/* Loads `count` pixels, changes their brightness, and computes their grays. */
static void begin_lot(const uint8_t *p, size_t count, float brightness,
		      struct color_jitter_lot *lot)
{
	for (size_t i = 0; i < count; i++, p += 3) {
		lot->r[i] = p[0];
		lot->g[i] = p[1];
		lot->b[i] = p[2];
	}
	for (size_t i = 0; i < LOT; i++) {
		lot->r[i] = clip(brightness * lot->r[i]);
		lot->g[i] = clip(brightness * lot->g[i]);
		lot->b[i] = clip(brightness * lot->b[i]);
		lot->gray[i] = gray(lot->r[i], lot->g[i], lot->b[i]);
	}
}

static void blend(struct color_jitter_lot *lot, float factor)
{
	for (size_t i = 0; i < LOT; i++) {
		float rest = (1 - factor) * lot->gray[i];

		lot->r[i] = clip(factor * lot->r[i] + rest);
		lot->g[i] = clip(factor * lot->g[i] + rest);
		lot->b[i] = clip(factor * lot->b[i] + rest);
	}
}

static void set_grays(struct color_jitter_lot *lot)
{
	for (size_t i = 0; i < LOT; i++)
		lot->gray[i] = gray(lot->r[i], lot->g[i], lot->b[i]);
}

static void turn(struct color_jitter_lot *lot, const float m[3])
{
	for (size_t i = 0; i < LOT; i++) {
		float r = lot->r[i], g = lot->g[i], b = lot->b[i];

		lot->r[i] = clip(m[0] * r + m[1] * g + m[2] * b);
		lot->g[i] = clip(m[2] * r + m[0] * g + m[1] * b);
		lot->b[i] = clip(m[1] * r + m[2] * g + m[0] * b);
	}
}

static void end_lot(const struct color_jitter_lot *lot, size_t count,
		    uint8_t *p)
{
	for (size_t i = 0; i < count; i++, p += 3) {
		p[0] = (uint8_t)lot->r[i];
		p[1] = (uint8_t)lot->g[i];
		p[2] = (uint8_t)lot->b[i];
	}
}

static float mean_gray(const struct image *image, float brightness)
{
	struct color_jitter_lot lot = { 0 };
	double sum = 0;
	size_t count;

	for (uint32_t y = 0; y < image->height; y++) {
		const uint8_t *row = image->pixels + y * image->stride;

		for (size_t x = 0; x < image->width; x += count) {
			count = min_u64(image->width - x, LOT);
			begin_lot(row + 3 * x, count, brightness, &lot);
			for (size_t i = 0; i < count; i++)
				sum += lot.gray[i];
		}
	}
	return (float)(sum / ((double)image->width * image->height));
}

static void jitter_row(const struct jitter *j, uint8_t *row, size_t width)
{
	struct color_jitter_lot lot = { 0 };
	size_t count;

	for (size_t x = 0; x < width; x += count) {
		count = min_u64(width - x, LOT);
		begin_lot(row + 3 * x, count, j->factor[BRIGHTNESS], &lot);
		for (size_t i = 0; i < LOT; i++)
			lot.gray[i] = j->mean;
		blend(&lot, j->factor[CONTRAST]);
		set_grays(&lot);
		blend(&lot, j->factor[SATURATION]);
		turn(&lot, j->turn);
		end_lot(&lot, count, row + 3 * x);
	}
}

/* Draws a factor between two numbers, or within one number's distance from
   1. */
static float draw_factor(const struct arg *arg, struct uniform uniform)
{
	double magnitude = arg->number[0];
	double low = magnitude < 1 ? 1 - magnitude : 0;

	if (arg->count == 2)
		return (float)op_within(arg, uniform);
	return (float)(low + (1 + magnitude - low) * uniform.next(uniform.arg));
}

/* Makes a rotation about the gray axis. The angle is in turns. */
static void fill_turn(double by, float out[3])
{
	double cosine = exact_sine(by + 0.25), third = (1 - cosine) / 3;
	double side = exact_sqrt(1.0 / 3) * exact_sine(by);

	out[0] = (float)(cosine + third);
	out[1] = (float)(third - side);
	out[2] = (float)(third + side);
}

/* --- as FFCV --- */

static void jitter_image(const struct args *args, struct uniform uniform,
			 const struct image *image)
{
	bool on = op_chance(&args->arg[P], uniform);
	struct jitter j = { 0 };

	for (int i = BRIGHTNESS; i <= SATURATION; i++)
		j.factor[i] = draw_factor(&args->arg[i], uniform);
	fill_turn(op_about(&args->arg[HUE], uniform), j.turn);
	if (!on)
		return;
	if (j.factor[CONTRAST] != 1)
		j.mean = mean_gray(image, j.factor[BRIGHTNESS]);
	for (uint32_t y = 0; y < image->height; y++)
		jitter_row(&j, image->pixels + y * image->stride, image->width);
}

/* --- as torchvision --- */

/* A hue of 0 changes nothing. Any other hue needs a conversion to HSV and
   back. */
static bool has_hue(const struct arg *hue)
{
	return hue->number[0] != 0 || hue->number[hue->count - 1] != 0;
}

static void jitter_step(unsigned step, const float by[STEPS],
			const struct image *image)
{
	if (step == BRIGHTNESS)
		enhance_brightness(image, by[step]);
	else if (step == CONTRAST)
		enhance_contrast(image, by[step]);
	else if (step == SATURATION)
		enhance_saturation(image, by[step]);
	else
		hue_turn(image, (uint8_t)(int)by[step]);
}

static void jitter_in_turn(const struct args *args, struct uniform uniform,
			   const struct image *image)
{
	bool on = op_chance(&args->arg[P], uniform);
	unsigned order[STEPS];
	float by[STEPS];

	op_shuffle(STEPS, uniform, order);
	for (int i = BRIGHTNESS; i <= SATURATION; i++)
		by[i] = draw_factor(&args->arg[i], uniform);
	by[HUE] = (float)(int)(255 * op_about(&args->arg[HUE], uniform));
	for (unsigned i = 0; i < STEPS && on; i++) {
		if (order[i] != HUE || has_hue(&args->arg[HUE]))
			jitter_step(order[i], by, image);
	}
}

static void image(const struct args *args, const struct op_sample *sample,
		  const struct image *image)
{
	if (args->arg[LIKE].choice == TORCHVISION)
		jitter_in_turn(args, sample->uniform, image);
	else
		jitter_image(args, sample->uniform, image);
}

const struct op op_color_jitter = {
	.name = "color_jitter",
	.help = "Change brightness, contrast, saturation and "
		"hue at random",
	.kind = OP_IMAGE,
	.params = params,
	.check = check,
	.infer = op_infer_image,
	.image =
		&(const struct op_image){
			.in_place = image,
			.keeps_places = true,
		},
};
