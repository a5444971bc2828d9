/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/resize/filter.h"

#include <stddef.h>
#include <string.h>

#include "fs/util/bytes.h"

enum {
	ONE_BITS = 15,
	ONE = 1 << ONE_BITS,
	/* Bits of the reciprocal that shares are multiplied by. */
	SCALE_BITS = 32,
	/* Weights of libjpeg's upsampling, for the nearer and the farther
	   sample. */
	NEAR = 3,
	FAR = 1,
	/* Most samples of an output: those of its pixels, and a neighbor on
	   each side. */
	CELLS_MAX = FILTER_PIXELS_MAX + 2,
};

/* An axis in units so small that every share is a whole number of them. */
struct measure {
	uint64_t output; /* length of an output */
	uint64_t pixel;	 /* length of a pixel of the grid */
	uint64_t before; /* where the axis begins */
	uint64_t pixels; /* of the grid */
};

/* The pixels of an output, and the share of each. */
typedef uint32_t shares_fn(const struct measure *m, uint64_t i, uint32_t *first,
			   uint32_t *of);

/* The shares of the source pixels that an output covers. */
static uint32_t area_shares(const struct measure *m, uint64_t i,
			    uint32_t *first, uint32_t *of)
{
	uint64_t begin = m->before + i * m->output, left = m->output;
	uint64_t k = begin / m->pixel, part = (k + 1) * m->pixel - begin;
	uint32_t n = 0;

	*first = (uint32_t)k;
	for (; part < left; left -= part, part = m->pixel)
		of[n++] = (uint32_t)part;
	of[n++] = (uint32_t)left;
	return n;
}

/* OpenCV's INTER_AREA for a side that grows. */
static uint32_t linear_shares(const struct measure *m, uint64_t i,
			      uint32_t *first, uint32_t *of)
{
	uint64_t begin = m->before + i * m->output, end = begin + m->output;
	uint64_t k = begin / m->pixel, next = (k + 1) * m->pixel;
	uint64_t right = end > next && k + 1 < m->pixels ? end - next : 0;

	*first = (uint32_t)k;
	of[0] = (uint32_t)(m->output - right);
	of[1] = (uint32_t)right;
	return 1 + (right > 0);
}

/* A triangle as wide as the reduction, in half units. */
static uint32_t triangle_shares(const struct measure *m, uint64_t i,
				uint32_t *first, uint32_t *of)
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
		of[n++] = (uint32_t)(half -
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
	uint32_t unused[FILTER_PIXELS_MAX], last;

	SHARES[kind](&m, part->begin, first, unused);
	*n = SHARES[kind](&m, part->begin + part->count - 1, &last, unused);
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

		s->n[i] = SHARES[s->kind](m, at, &s->first[i],
					  s->of + (size_t)i * s->most);
	}
}

int shares_build(struct shares *s, enum filter_kind kind,
		 const struct axis_part *part, const struct filter_grid *grid)
{
	struct measure m = measure_of(part, grid);
	uint64_t most = most_pixels(m.output, m.pixel);
	uint32_t n = part->count;
	int r;

	if (s->most && s->kind == kind && same_part(&s->part, part) &&
	    same_grid(&s->grid, grid))
		return 0;
	s->most = 0;
	r = scratch_grow(&s->memory[0], 2 * (uint64_t)n, sizeof(*s->first));
	if (!r)
		r = scratch_grow(&s->memory[1], n * most, sizeof(*s->of));
	if (r)
		return r;
	s->kind = kind;
	s->part = *part;
	s->grid = *grid;
	s->pixels = (uint32_t)m.pixels;
	s->most = (uint32_t)most;
	s->first = s->memory[0].p;
	s->n = s->first + n;
	s->of = s->memory[1].p;
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

static struct pixels pixels_of(const struct shares *shares,
			       const struct filter_source *s, uint32_t i)
{
	uint32_t first = shares->first[i], rest = shares->n[i] - 1;
	uint32_t low = s->at + first;

	if (s->mirror)
		low = s->at + shares->pixels - 1 - first - rest;
	return (struct pixels){ low, low + rest };
}

/* Counts the samples of the outputs, and finds where they begin. */
static void measure_filter(struct filter *f, const struct shares *shares,
			   const struct filter_source *s)
{
	uint32_t low = UINT32_MAX, end = 0, taps = 1;

	for (uint32_t i = 0; i < f->count; i++) {
		struct pixels p = pixels_of(shares, s, i);
		uint32_t a = p.low, b = p.high + 1;

		if (s->across == 2) {
			a = far_of(s, p.low);
			a = a < p.low / 2 ? a : p.low / 2;
			b = far_of(s, p.high);
			b = (b > p.high / 2 ? b : p.high / 2) + 1;
		}
		f->first[i] = a;
		taps = b - a > taps ? b - a : taps;
		low = a < low ? a : low;
		end = b > end ? b : end;
	}
	f->taps = taps;
	f->origin = low - s->begin;
	f->span = end - low;
}

/*
 * Adds pixels, by their filter weights, to their samples; `first` is the first
 * sample. Returns the sum of the weights.
 */
static uint64_t spread(const struct filter_source *s, struct pixels p,
		       const uint32_t *of, uint32_t first, uint64_t *cells)
{
	const uint32_t *share = s->mirror ? of + (p.high - p.low) : of;
	const ptrdiff_t step = s->mirror ? -1 : 1;
	uint64_t sum = 0;

	for (uint32_t pixel = p.low; pixel <= p.high; pixel++, share += step) {
		sum += *share;
		if (s->across == 1) {
			*cells++ = *share;
			continue;
		}
		cells[pixel / 2 - first] += NEAR * (uint64_t)*share;
		cells[far_of(s, pixel) - first] += FAR * (uint64_t)*share;
	}
	return s->across == 1 ? sum : (NEAR + FAR) * sum;
}

/*
 * Rounds to the nearest, then adds the rest of the sum to the first of the
 * largest weights.
 */
static void weigh(const uint64_t *cells, uint32_t n, uint64_t scale,
		  uint32_t *weights)
{
	uint32_t left = ONE, most = 0, largest = 0;

	for (uint32_t k = 0; k < n; k++) {
		uint64_t w = cells[k] * scale + (1ull << (SCALE_BITS - 1));
		uint32_t weight = (uint32_t)(w >> SCALE_BITS);

		weights[k] = weight << 16 | weight;
		left -= weight;
		if (weight > most) {
			most = weight;
			largest = k;
		}
	}
	most += left;
	/* 2^15 is the only weight that a signed 16-bit number cannot hold. */
	most -= most == ONE;
	weights[largest] = most << 16 | most;
}

static void fill_weights(struct filter *f, const struct shares *shares,
			 const struct filter_source *s)
{
	uint32_t low = s->begin + f->origin;
	uint64_t sum = 0, scale = 0;

	for (uint32_t i = 0; i < f->count; i++) {
		uint64_t cells[CELLS_MAX], total;
		uint32_t last = f->span - f->taps, first = f->first[i] - low;
		const uint32_t *of = shares->of + (size_t)i * shares->most;

		/* An output that would end too late begins earlier. */
		first = first < last ? first : last;
		memset(cells, 0, f->taps * sizeof(*cells));
		total = spread(s, pixels_of(shares, s, i), of, f->first[i],
			       cells + (f->first[i] - low - first));
		/* Most outputs have the same number. */
		if (total != sum) {
			sum = total;
			scale = (1ull << (ONE_BITS + SCALE_BITS)) / sum;
		}
		f->first[i] = first;
		weigh(cells, f->taps, scale, f->weights + (size_t)i * f->taps);
	}
}

int filter_build(struct filter *f, const struct shares *shares,
		 const struct filter_source *source)
{
	int r;

	f->count = shares->part.count;
	r = scratch_grow(&f->memory[0], f->count, sizeof(*f->first));
	if (r)
		return r;
	f->first = f->memory[0].p;
	measure_filter(f, shares, source);
	r = scratch_grow(&f->memory[1], (uint64_t)f->count * f->taps,
			 sizeof(*f->weights));
	if (r)
		return r;
	f->weights = f->memory[1].p;
	fill_weights(f, shares, source);
	return 0;
}

void filter_fini(struct filter *f)
{
	scratch_fini(&f->memory[0]);
	scratch_fini(&f->memory[1]);
	*f = (struct filter){ 0 };
}
