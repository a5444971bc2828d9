/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/resize/filter.h"

#include <stddef.h>
#include <string.h>

#include "fs/base/util/bytes.h"

#define INLINE static inline __attribute__((always_inline))

enum {
	/* Rows of zeros around the shares, for filter_pair_fn. */
	SHARES_BEFORE = 3,
	SHARES_AFTER = 4,
};

/* An axis in units so small that every share is a whole number of them. */
struct measure {
	uint64_t output; /* length of an output */
	uint64_t pixel;	 /* length of a pixel of the grid */
	uint64_t before; /* where the axis begins */
	uint64_t pixels; /* of the grid */
};

/* The pixels of an output, and the share of each, `stride` numbers apart. */
typedef uint32_t shares_fn(const struct measure *m, uint64_t i, uint32_t *first,
			   int32_t *of, size_t stride);

/* The shares of the source pixels that an output covers. */
static uint32_t area_shares(const struct measure *m, uint64_t i,
			    uint32_t *first, int32_t *of, size_t stride)
{
	uint64_t begin = m->before + i * m->output, left = m->output;
	uint64_t k = begin / m->pixel, part = (k + 1) * m->pixel - begin;
	uint32_t n = 0;

	*first = (uint32_t)k;
	for (; part < left; left -= part, part = m->pixel)
		of[n++ * stride] = (int32_t)part;
	of[n++ * stride] = (int32_t)left;
	return n;
}

/* OpenCV's INTER_AREA for a side that grows. */
static uint32_t linear_shares(const struct measure *m, uint64_t i,
			      uint32_t *first, int32_t *of, size_t stride)
{
	uint64_t begin = m->before + i * m->output, end = begin + m->output;
	uint64_t k = begin / m->pixel, next = (k + 1) * m->pixel;
	uint64_t right = end > next && k + 1 < m->pixels ? end - next : 0;

	*first = (uint32_t)k;
	of[0] = (int32_t)(m->output - right);
	of[stride] = (int32_t)right;
	return 1 + (right > 0);
}

/* A triangle as wide as the reduction, in half units. */
static uint32_t triangle_shares(const struct measure *m, uint64_t i,
				uint32_t *first, int32_t *of, size_t stride)
{
	uint64_t half = 2 * max_u64(m->output, m->pixel);
	uint64_t center = 2 * m->before + (2 * i + 1) * m->output;
	uint64_t k = 0, at;
	uint32_t n = 0;

	if (center > half)
		k = ((center - half) / m->pixel + 1) / 2;
	*first = (uint32_t)k;
	for (; k < m->pixels; k++) {
		at = (2 * k + 1) * m->pixel;
		if (at >= center + half)
			break;
		of[n++ * stride] =
			(int32_t)(half -
				  (at > center ? at - center : center - at));
	}
	return n;
}

static shares_fn *const SHARES[] = {
	[FILTER_AREA] = area_shares,
	[FILTER_LINEAR] = linear_shares,
	[FILTER_TRIANGLE] = triangle_shares,
};

/*
 * The unit is 1 / to of a pixel of the image, so that nothing here is a
 * fraction.
 */
static struct measure measure_of(const struct axis_part *part,
				 const struct filter_grid *grid)
{
	return (struct measure){
		.output = part->from,
		.pixel = (uint64_t)grid->pixel * part->to,
		.before = (uint64_t)grid->before * part->to,
		.pixels = filter_pixels(part->from, grid),
	};
}

/* Most pixels of an output. A triangle spans twice the reduction. */
static uint64_t most_pixels(uint64_t output, uint64_t pixel)
{
	return 2 * (output / pixel) + 3;
}

bool filter_kind(const struct resize *z, uint32_t pixel, enum filter_kind *out)
{
	uint64_t width = (uint64_t)z->to_width * pixel;
	uint64_t height = (uint64_t)z->to_height * pixel;

	if (z->how != INTERPOLATION_AREA && z->how != INTERPOLATION_BILINEAR)
		return false;
	if (most_pixels(z->from_width, width) > FILTER_PIXELS_MAX ||
	    most_pixels(z->from_height, height) > FILTER_PIXELS_MAX)
		return false;
	if (z->how == INTERPOLATION_BILINEAR)
		*out = FILTER_TRIANGLE;
	else if (z->from_width < z->to_width || z->from_height < z->to_height)
		*out = FILTER_LINEAR;
	else
		*out = FILTER_AREA;
	return true;
}

uint32_t filter_pixels(uint32_t from, const struct filter_grid *grid)
{
	return (grid->before + from + grid->pixel - 1) / grid->pixel;
}

void filter_needs(enum filter_kind kind, const struct axis_part *part,
		  const struct filter_grid *grid, uint32_t *first, uint32_t *n)
{
	struct measure m = measure_of(part, grid);
	int32_t unused[FILTER_PIXELS_MAX];
	uint32_t last;

	SHARES[kind](&m, part->begin, first, unused, 1);
	*n = SHARES[kind](&m, part->begin + part->count - 1, &last, unused, 1);
	*n += last - *first;
}

static bool same_part(const struct axis_part *a, const struct axis_part *b)
{
	return a->from == b->from && a->to == b->to && a->begin == b->begin &&
	       a->count == b->count && a->mirror == b->mirror;
}

static bool same_grid(const struct filter_grid *a, const struct filter_grid *b)
{
	return a->pixel == b->pixel && a->before == b->before;
}

static void fill_shares(struct shares *s, const struct measure *m)
{
	const struct axis_part *part = &s->part;
	uint32_t n = part->count;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = part->begin + (part->mirror ? n - 1 - i : i);

		s->n[i] = SHARES[s->kind](m, at, &s->first[i], s->of + i,
					  s->stride);
	}
}

int shares_build(struct shares *s, enum filter_kind kind,
		 const struct axis_part *part, const struct filter_grid *grid)
{
	struct measure m = measure_of(part, grid);
	uint64_t most = most_pixels(m.output, m.pixel);
	uint64_t rows = SHARES_BEFORE + most + SHARES_AFTER;
	uint32_t n = part->count;
	size_t stride = align_up(n, FILTER_LANES);
	int r;

	if (s->most && s->kind == kind && same_part(&s->part, part) &&
	    same_grid(&s->grid, grid))
		return 0;
	s->most = 0;
	r = scratch_grow(&s->memory[0], 2 * stride, sizeof(*s->first));
	if (!r)
		r = scratch_grow(&s->memory[1], rows * stride, sizeof(*s->of));
	if (r)
		return r;
	memset(s->memory[0].p, 0, 2 * stride * sizeof(*s->first));
	memset(s->memory[1].p, 0, rows * stride * sizeof(*s->of));
	s->kind = kind;
	s->part = *part;
	s->grid = *grid;
	s->pixels = (uint32_t)m.pixels;
	s->most = (uint32_t)most;
	s->stride = stride;
	s->first = s->memory[0].p;
	s->n = s->first + stride;
	s->of = (int32_t *)s->memory[1].p + SHARES_BEFORE * stride;
	fill_shares(s, &m);
	return 0;
}

void shares_fini(struct shares *s)
{
	scratch_fini(&s->memory[0]);
	scratch_fini(&s->memory[1]);
	*s = (struct shares){ 0 };
}

/* The farther one of the two samples of a pixel. */
static uint32_t far_of(const struct filter_source *s, uint32_t pixel)
{
	uint32_t near = pixel / 2;

	if (!s->smooth)
		return near;
	if (pixel % 2)
		return near + 1 < s->samples ? near + 1 : near;
	return near ? near - 1 : near;
}

/* The first and the last pixel of an output. */
struct pixels {
	uint32_t low;
	uint32_t high;
};

INLINE struct pixels pixels_of(const struct shares *shares,
			       const struct filter_source *s, uint32_t i)
{
	uint32_t first = shares->first[i], rest = shares->n[i] - 1;
	uint32_t low = s->at + first;

	if (s->mirror)
		low = s->at + shares->pixels - 1 - first - rest;
	return (struct pixels){ low, low + rest };
}

/* The first sample of an output, and the one after the last. */
struct samples {
	uint32_t begin;
	uint32_t end;
};

INLINE struct samples samples_of(const struct filter_source *s, struct pixels p)
{
	uint32_t end = (p.high + 1) / 2 + 1;

	if (s->across == 1)
		return (struct samples){ p.low, p.high + 1 };
	if (!s->smooth)
		return (struct samples){ p.low / 2, p.high / 2 + 1 };
	return (struct samples){ p.low ? (p.low - 1) / 2 : 0,
				 end < s->samples ? end : s->samples };
}

INLINE void measure_as(struct filter *f, const struct shares *shares,
		       struct filter_source s)
{
	uint32_t low = UINT32_MAX, end = 0, taps = 1;

	for (uint32_t i = 0; i < f->count; i++) {
		struct samples of = samples_of(&s, pixels_of(shares, &s, i));

		f->first[i] = of.begin;
		taps = of.end - of.begin > taps ? of.end - of.begin : taps;
		low = of.begin < low ? of.begin : low;
		end = of.end > end ? of.end : end;
	}
	f->taps = taps;
	f->origin = low - s.begin;
	f->span = end - low;
}

/* Counts the samples of the outputs, and finds where they begin. Constants make
   the usual loops short. */
static void measure_filter(struct filter *f, const struct shares *shares,
			   const struct filter_source *source)
{
	struct filter_source s = *source;

	if (s.mirror || (s.across == 2 && !s.smooth)) {
		measure_as(f, shares, s);
		return;
	}
	s.mirror = false;
	if (s.across == 1) {
		s.across = 1;
		measure_as(f, shares, s);
	} else {
		s.across = 2;
		s.smooth = true;
		measure_as(f, shares, s);
	}
}

/* Adds the shares of an output's pixels to its samples, of which the first is
   `first`. */
static void spread(const struct filter_source *s, const struct shares *shares,
		   uint32_t i, uint32_t first, int32_t *cells)
{
	struct pixels p = pixels_of(shares, s, i);
	size_t stride = shares->stride;

	for (uint32_t k = 0; k < shares->n[i]; k++) {
		uint32_t pixel = s->mirror ? p.high - k : p.low + k;
		int32_t share = shares->of[k * stride + i];

		if (s->across == 1) {
			cells[(pixel - first) * stride] += share;
			continue;
		}
		cells[(pixel / 2 - first) * stride] += FILTER_NEAR * share;
		cells[(far_of(s, pixel) - first) * stride] +=
			FILTER_FAR * share;
	}
}

/* Whether an output may have samples at an edge of the image. */
static bool is_at_edge(const struct filter *f, const struct filter_source *s,
		       uint32_t first)
{
	return !s->smooth || !first || first + f->taps >= s->samples;
}

/*
 * Computes the cells of most outputs at once. The others are mirrored, would end
 * too late and so begin earlier, or have neighbors that the image lacks.
 */
static void fill_cells(struct filter *f, const struct shares *shares,
		       const struct filter_source *s, filter_pair_fn *pair)
{
	uint32_t low = s->begin + f->origin, last = low + f->span - f->taps;

	if (s->across == 2)
		pair(shares, s->at, f->taps, f->cells);
	else
		memcpy(f->cells, shares->of,
		       f->taps * f->stride * sizeof(*f->cells));
	for (uint32_t i = 0; i < f->count; i++) {
		uint32_t first = f->first[i];
		uint32_t begin = first < last ? first : last;

		f->first[i] = begin - low;
		if (!s->mirror && first == begin &&
		    !(s->across == 2 && is_at_edge(f, s, first)))
			continue;
		for (uint32_t k = 0; k < f->taps; k++)
			f->cells[k * f->stride + i] = 0;
		spread(s, shares, i, begin, f->cells + i);
	}
}

int filter_build(struct filter *f, const struct shares *shares,
		 const struct filter_source *source,
		 const struct filter_class *class)
{
	uint64_t n;
	int r;

	f->count = shares->part.count;
	f->stride = shares->stride;
	r = scratch_grow(&f->memory[0], f->count, sizeof(*f->first));
	if (r)
		return r;
	f->first = f->memory[0].p;
	measure_filter(f, shares, source);
	n = (uint64_t)f->taps * f->stride;
	r = scratch_grow(&f->memory[1], n, sizeof(*f->weights));
	if (!r)
		r = scratch_grow(&f->memory[2], n, sizeof(*f->cells));
	if (r)
		return r;
	f->weights = f->memory[1].p;
	f->cells = f->memory[2].p;
	fill_cells(f, shares, source, class->pair);
	class->weigh(f);
	return 0;
}

void filter_fini(struct filter *f)
{
	for (int i = 0; i < 3; i++)
		scratch_fini(&f->memory[i]);
	*f = (struct filter){ 0 };
}
