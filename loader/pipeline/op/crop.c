/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/crop.h"

#include <stdbool.h>

#include "loader/util/exact_math.h"

enum { ATTEMPTS = 10 };

static double draw_between(struct uniform u, double low, double high)
{
	return low + (high - low) * u.next(u.arg);
}

/* Draws the shape of one attempt. Returns false if it does not fit into the
   image. */
static bool draw_shape(const struct crop_limits *limits, struct uniform uniform,
		       uint32_t width, uint32_t height, struct rect *out)
{
	double area = (double)height * (double)width *
		      draw_between(uniform, limits->scale[0], limits->scale[1]);
	double ratio =
		exact_exp(draw_between(uniform, exact_log(limits->ratio[0]),
				       exact_log(limits->ratio[1])));
	double w = exact_round(exact_sqrt(area * ratio));
	double h = exact_round(exact_sqrt(area / ratio));

	if (!(w > 0 && w <= (double)width && h > 0 && h <= (double)height))
		return false;
	out->width = (uint32_t)w;
	out->height = (uint32_t)h;
	return true;
}

/* Returns the largest central crop with a permitted ratio. */
static struct rect largest_center(const struct crop_limits *limits,
				  uint32_t width, uint32_t height)
{
	double w = (double)width, h = (double)height;
	struct rect r = { .width = width, .height = height };

	if (w / h < limits->ratio[0])
		r.height = (uint32_t)exact_round(w / limits->ratio[0]);
	else if (w / h > limits->ratio[1])
		r.width = (uint32_t)exact_round(h * limits->ratio[1]);
	r.x = (width - r.width) / 2;
	r.y = (height - r.height) / 2;
	return r;
}

struct rect crop_random(const struct crop_limits *limits,
			struct uniform uniform, uint32_t width, uint32_t height)
{
	struct rect r = { 0 };

	for (int i = 0; i < ATTEMPTS; i++) {
		if (!draw_shape(limits, uniform, width, height, &r))
			continue;
		r.y = (uint32_t)draw_between(uniform, 0,
					     (double)(height - r.height) + 1);
		r.x = (uint32_t)draw_between(uniform, 0,
					     (double)(width - r.width) + 1);
		return r;
	}
	return largest_center(limits, width, height);
}

struct rect crop_center(double ratio, uint32_t width, uint32_t height)
{
	uint32_t side = width < height ? width : height;
	uint32_t crop = (uint32_t)(ratio * (double)side);

	return (struct rect){
		.x = (width - crop) / 2,
		.y = (height - crop) / 2,
		.width = crop,
		.height = crop,
	};
}

/* Returns half of a margin, rounded half to even. */
static uint32_t half_of(uint32_t margin)
{
	return margin / 2 + (margin % 2 && margin / 2 % 2);
}

struct rect crop_corner(unsigned corner, uint32_t crop_width,
			uint32_t crop_height, uint32_t width, uint32_t height)
{
	struct rect r = { .width = crop_width < width ? crop_width : width,
			  .height =
				  crop_height < height ? crop_height : height };
	uint32_t right = width - r.width, bottom = height - r.height;

	if (corner == CROP_CORNERS - 1) {
		r.x = half_of(right);
		r.y = half_of(bottom);
		return r;
	}
	r.x = corner % 2 ? right : 0;
	r.y = corner / 2 ? bottom : 0;
	return r;
}
