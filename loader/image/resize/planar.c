/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/resize/planar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/resize/filter.h"
#include "loader/image/resize/planar_class.h"
#include "loader/util/scratch.h"

enum {
	COMPONENTS = BASELINE_COMPONENTS,
	/* Half of the unit that the last shift rounds to. */
	HALF = 1 << (PLANAR_POINT - 1),
	/* libjpeg repeats the samples of narrower planes. */
	SMOOTH_MIN = 3,
};

struct component {
	struct filter x; /* its own filters, */
	struct filter y;
	const struct filter *fx; /* and the filters in use */
	const struct filter *fy;
	const uint8_t *samples; /* sample at the filters' origins */
	size_t stride;
	size_t width; /* x.span, rounded up to whole vectors */
};

struct planar {
	const struct planar_class *class;
	struct shares x;
	struct shares y;
	struct component components[COMPONENTS];
	unsigned num_components;
	uint32_t height; /* rows of the result */
	uint32_t next;
	struct planar_colours colors;
	struct scratch rows;	/* PLANAR_ROWS of the widest component */
	struct scratch columns; /* the same, turned */
	struct scratch results[COMPONENTS];
	struct scratch bytes;
};

int planar_open(struct planar **out)
{
	struct planar *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	planar_use(p, ISA_BEST(planar));
	*out = p;
	return 0;
}

void planar_close(struct planar *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < COMPONENTS; i++) {
		filter_fini(&p->components[i].x);
		filter_fini(&p->components[i].y);
		scratch_fini(&p->results[i]);
	}
	shares_fini(&p->x);
	shares_fini(&p->y);
	scratch_fini(&p->rows);
	scratch_fini(&p->columns);
	scratch_fini(&p->bytes);
	free(p);
}

void planar_use(struct planar *p, const struct planar_class *class)
{
	p->class = class;
}

/* The axes of a resize. */
static struct axis_part part_x(const struct resize *z)
{
	return (struct axis_part){ z->from_width, z->to_width, z->part.x,
				   z->part.width, z->mirror };
}

static struct axis_part part_y(const struct resize *z)
{
	return (struct axis_part){ z->from_height, z->to_height, z->part.y,
				   z->part.height, false };
}

/* The pixels of the reduced image that touch [at, at + size). */
static struct filter_grid grid_of(const struct planar_view *view, uint32_t at,
				  uint32_t size, bool mirror)
{
	uint32_t by = view->reduced, end = at + size;

	return (struct filter_grid){ by, mirror ? align_up(end, by) - end
						: at % by };
}

static struct filter_grid grid_x(const struct planar_view *view)
{
	return grid_of(view, view->rect.x, view->rect.width, view->mirror);
}

static struct filter_grid grid_y(const struct planar_view *view)
{
	return grid_of(view, view->rect.y, view->rect.height, false);
}

unsigned planar_reduction(const struct resize *z)
{
	uint32_t across = z->from_width / z->to_width;
	uint32_t down = z->from_height / z->to_height;
	unsigned by = BASELINE_REDUCE_MAX;

	while (by > 1 && (across < by || down < by))
		by /= 2;
	return by;
}

bool planar_needs(const struct resize *resize, const struct planar_view *view,
		  struct rect *needs)
{
	struct axis_part x = part_x(resize), y = part_y(resize);
	struct filter_grid gx = grid_x(view), gy = grid_y(view);
	struct rect r;
	enum filter_kind kind;

	if (!filter_kind(resize, view->reduced, &kind))
		return false;
	filter_needs(kind, &x, &gx, &r.x, &r.width);
	filter_needs(kind, &y, &gy, &r.y, &r.height);
	if (view->mirror)
		r.x = filter_pixels(x.from, &gx) - r.x - r.width;
	r.x += view->rect.x / view->reduced;
	r.y += view->rect.y / view->reduced;
	*needs = r;
	return true;
}

static int build_filters(struct planar *p, struct component *c,
			 const struct planar_view *view,
			 const struct baseline_component *whole,
			 const struct baseline_plane *plane)
{
	struct filter_source x = {
		.at = view->rect.x / view->reduced,
		.mirror = view->mirror,
		.across = whole->across,
		.samples = whole->width,
		.smooth = whole->width >= SMOOTH_MIN,
		.begin = plane->x,
	};
	struct filter_source y = {
		.at = view->rect.y / view->reduced,
		.across = whole->down,
		.samples = whole->height,
		.smooth = whole->across == 1 || whole->width >= SMOOTH_MIN,
		.begin = plane->y,
	};
	int r = filter_build(&c->x, &p->x, &x, &p->class->filter);

	return r ? r : filter_build(&c->y, &p->y, &y, &p->class->filter);
}

/* Whether the samples of two components lie at the same places. */
static bool is_alike(const struct baseline_component *a,
		     const struct baseline_component *b)
{
	return a->across == b->across && a->down == b->down;
}

/* Cr uses Cb's filters if its samples lie at the same places. */
static int start_components(struct planar *p, const struct planar_view *view,
			    const struct baseline_image *image,
			    const struct baseline_plane *planes)
{
	for (unsigned i = 0; i < p->num_components; i++) {
		struct component *c = &p->components[i];
		const struct baseline_plane *plane = &planes[i];
		unsigned of = i == 2 && is_alike(&image->component[1],
						 &image->component[2])
				      ? 1
				      : i;
		int r = of == i ? build_filters(p, c, view,
						&image->component[i], plane)
				: 0;

		if (r)
			return r;
		c->fx = &p->components[of].x;
		c->fy = &p->components[of].y;
		c->samples = plane->samples + c->fy->origin * plane->stride +
			     c->fx->origin;
		c->stride = plane->stride;
		c->width = align_up(c->fx->span, PLANAR_ROWS);
	}
	return 0;
}

static int reserve_buffers(struct planar *p, uint32_t width)
{
	uint64_t most = 0, columns = align_up(width, PLANAR_COLUMNS);
	int r;

	for (unsigned i = 0; i < p->num_components; i++)
		most = max_u64(most, p->components[i].width);
	r = scratch_grow(&p->rows, most * PLANAR_ROWS, sizeof(int16_t));
	if (!r)
		r = scratch_grow(&p->columns, most, sizeof(planar_column));
	for (unsigned i = 0; !r && i < p->num_components; i++)
		r = scratch_grow(&p->results[i], columns,
				 sizeof(planar_column));
	if (!r)
		r = scratch_grow(&p->bytes,
				 columns * PLANAR_ROWS * p->num_components, 1);
	return r;
}

/* Also clears the columns that the last vector reads past the width. */
static void point_colours(struct planar *p, uint32_t width)
{
	struct planar_colours *c = &p->colors;
	size_t columns = align_up(width, PLANAR_COLUMNS);

	c->width = width;
	c->stride = columns;
	c->rounding = HALF;
	for (unsigned i = 0; i < COMPONENTS; i++) {
		unsigned k = i < p->num_components ? i : 0;
		planar_column *in = p->results[k].p;

		memset(in + width, 0, (columns - width) * sizeof(*in));
		c->in[i] = p->results[k].p;
		c->out[i] = (uint8_t *)p->bytes.p + k * columns * PLANAR_ROWS;
	}
}

int planar_start(struct planar *p, const struct resize *resize,
		 const struct planar_view *view,
		 const struct baseline_image *image,
		 const struct baseline_plane *planes)
{
	struct axis_part x = part_x(resize), y = part_y(resize);
	struct filter_grid gx = grid_x(view), gy = grid_y(view);
	enum filter_kind kind;
	int r;

	if (!filter_kind(resize, view->reduced, &kind))
		return -EINVAL;
	p->num_components = image->components;
	r = shares_build(&p->x, kind, &x, &gx);
	if (!r)
		r = shares_build(&p->y, kind, &y, &gy);
	if (!r)
		r = start_components(p, view, image, planes);
	if (!r)
		r = reserve_buffers(p, resize->part.width);
	if (r)
		return r;
	point_colours(p, resize->part.width);
	p->height = resize->part.height;
	p->next = 0;
	return 0;
}

static void run_component(struct planar *p, unsigned i, uint32_t rows)
{
	struct component *c = &p->components[i];
	int16_t *out = p->rows.p;

	for (uint32_t y = 0; y < PLANAR_ROWS; y++, out += c->width) {
		/* Repeats the last row where fewer than PLANAR_ROWS are
		   left. */
		uint32_t at = p->next + (y < rows ? y : rows - 1);

		p->class->down(&(struct planar_down){
			.samples = c->samples + c->fy->first[at] * c->stride,
			.stride = c->stride,
			.weights = c->fy->weights + (size_t)at * c->fy->taps,
			.taps = c->fy->taps,
			.width = c->fx->span,
			.out = out,
		});
	}
	p->class->turn(p->rows.p, c->width, c->fx->span, p->columns.p);
	p->class->across(c->fx, p->columns.p, p->results[i].p);
}

void planar_next(struct planar *p, struct planar_rows *out)
{
	uint32_t rows = (uint32_t)min_u64(p->height - p->next, PLANAR_ROWS);

	*out = (struct planar_rows){ .stride = p->colors.stride, .rows = rows };
	if (!rows)
		return;
	for (unsigned i = 0; i < p->num_components; i++)
		run_component(p, i, rows);
	if (p->num_components == COMPONENTS)
		p->class->color(&p->colors);
	else
		p->class->gray(&p->colors);
	p->next += rows;
	for (unsigned i = 0; i < COMPONENTS; i++)
		out->channel[i] = p->colors.out[i];
}
