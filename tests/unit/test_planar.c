/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/resize/planar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/image/resize/filter.h"
#include "tests/unit/planar_model.h"
#include "tests/unit/t.h"

enum { SIDE_MAX = 90, COMPONENTS = 3, MARGIN = 1 };

/* An image as planes, the resize of a part of it, and what comes out. */
struct work {
	struct baseline_image image;  /* perhaps a reduced one */
	uint8_t *samples[COMPONENTS]; /* of whole components */
	struct planar_view view;
	struct resize resize;
};

static uint32_t below(struct rng *rng, uint32_t n)
{
	return (uint32_t)(rng_uniform(rng) * n);
}

static void *allocate(size_t size)
{
	void *p = malloc(size ? size : 1);

	CHECK(p);
	return p;
}

static uint32_t divide_up(uint32_t a, uint32_t b)
{
	return (a + b - 1) / b;
}

static struct rect random_part(struct rng *rng, uint32_t width, uint32_t height)
{
	struct rect r = { .width = 1 + below(rng, width),
			  .height = 1 + below(rng, height) };

	r.x = below(rng, width - r.width + 1);
	r.y = below(rng, height - r.height + 1);
	return r;
}

static void make_components(struct work *w, struct rng *rng)
{
	w->image.components = below(rng, 4) ? 3 : 1;
	for (unsigned i = 0; i < w->image.components; i++) {
		struct baseline_component *c = &w->image.component[i];

		c->across = i ? (uint8_t)(1 + below(rng, 2)) : 1;
		c->down = i ? (uint8_t)(1 + below(rng, 2)) : 1;
		if (i == 2 && below(rng, 4)) {
			c->across = w->image.component[1].across;
			c->down = w->image.component[1].down;
		}
		c->width = divide_up(w->image.width, c->across);
		c->height = divide_up(w->image.height, c->down);
		w->samples[i] = allocate((size_t)c->width * c->height);
		for (size_t k = 0; k < (size_t)c->width * c->height; k++)
			w->samples[i][k] = below(rng, 6)
						   ? (uint8_t)rng_next(rng)
						   : (uint8_t)(255 * (k & 1));
	}
}

/* No reduction by more than what is done so; none grows of a reduced image. */
static uint32_t random_side(struct rng *rng, uint32_t from, uint32_t by)
{
	uint32_t most = by > 1 ? from / by : SIDE_MAX;

	return 1 + from / by / 25 + below(rng, most);
}

static struct work work_make(struct rng *rng)
{
	struct work w = {
		.image = { .width = 1 + below(rng, SIDE_MAX),
			   .height = 1 + below(rng, SIDE_MAX) },
		.resize = { .how = below(rng, 2), .mirror = below(rng, 2) },
	};
	struct resize *z = &w.resize;
	uint32_t by = below(rng, 2) ? 1 : 1u << below(rng, 4);

	make_components(&w, rng);
	w.view.rect = random_part(rng, w.image.width * by - below(rng, by),
				  w.image.height * by - below(rng, by));
	w.view.mirror = below(rng, 2);
	w.view.reduced = by;
	z->from_width = w.view.rect.width;
	z->from_height = w.view.rect.height;
	z->to_width = random_side(rng, z->from_width, by);
	z->to_height = random_side(rng, z->from_height, by);
	z->part = random_part(rng, z->to_width, z->to_height);
	return w;
}

static void work_fini(struct work *w)
{
	for (unsigned i = 0; i < COMPONENTS; i++)
		free(w->samples[i]);
}

/* The samples that a decoder gives for `needs`; *memory is to be freed. */
static struct baseline_plane plane_of(const struct work *w, unsigned i,
				      const struct rect *needs, void **memory)
{
	const struct baseline_component *c = &w->image.component[i];
	uint32_t x = needs->x / c->across, y = needs->y / c->down;
	uint32_t right = divide_up(needs->x + needs->width, c->across);
	uint32_t bottom = divide_up(needs->y + needs->height, c->down);
	struct baseline_plane p = { .x = x - (x >= MARGIN),
				    .y = y - (y >= MARGIN) };

	p.width = (uint32_t)min_u64(right + MARGIN, c->width) - p.x;
	p.height = (uint32_t)min_u64(bottom + MARGIN, c->height) - p.y;
	p.stride = p.width + 2 * BASELINE_SLACK;
	*memory = allocate(p.stride * p.height);
	memset(*memory, 0xa5, p.stride * p.height);
	p.samples = (uint8_t *)*memory + BASELINE_SLACK;
	for (uint32_t row = 0; row < p.height; row++)
		memcpy(p.samples + row * p.stride,
		       w->samples[i] + (size_t)(p.y + row) * c->width + p.x,
		       p.width);
	return p;
}

/* The whole result as three planes, the caller's. */
static uint8_t *run_on(struct planar *p, const struct work *w)
{
	size_t width = w->resize.part.width, height = w->resize.part.height;
	uint8_t *out = allocate(3 * width * height);
	struct baseline_plane planes[COMPONENTS];
	void *memory[COMPONENTS] = { NULL };
	struct planar_rows rows;
	struct rect needs;
	size_t y = 0;

	CHECK(planar_needs(&w->resize, &w->view, &needs));
	for (unsigned i = 0; i < w->image.components; i++)
		planes[i] = plane_of(w, i, &needs, &memory[i]);
	CHECK(!planar_start(p, &w->resize, &w->view, &w->image, planes));
	for (planar_next(p, &rows); rows.rows; planar_next(p, &rows))
		for (uint32_t r = 0; r < rows.rows; r++, y++)
			for (unsigned c = 0; c < 3; c++)
				memcpy(out + (c * height + y) * width,
				       rows.channel[c] + r * rows.stride,
				       width);
	CHECK(y == height);
	for (unsigned i = 0; i < COMPONENTS; i++)
		free(memory[i]);
	return out;
}

static uint8_t *run(const struct work *w, const struct planar_class *class)
{
	struct planar *p;
	uint8_t *out;

	CHECK(!planar_open(&p));
	if (class)
		planar_use(p, class);
	out = run_on(p, w);
	planar_close(p);
	return out;
}

static void all_loops_give_the_bits_of_the_model(void)
{
	const struct planar_class *best = ISA_BEST(planar);
	struct rng rng = { .key = 1 };

	if (best == &planar_plain)
		printf("skip: planar: no AVX2\n");
	for (int i = 0; i < 1500; i++) {
		struct work w = work_make(&rng);
		size_t n =
			3 * (size_t)w.resize.part.width * w.resize.part.height;
		uint8_t *model = run(&w, &planar_model);
		uint8_t *plain = run(&w, &planar_plain);
		uint8_t *fast = run(&w, best);

		CHECK(!memcmp(model, plain, n));
		CHECK(!memcmp(model, fast, n));
		free(model);
		free(plain);
		free(fast);
		work_fini(&w);
	}
}

/* --- the same in real numbers -------------------------------------------- */

/* libjpeg's fancy upsampling along one axis: parts of a sample at a pixel. */
static double upsampled(const struct baseline_component *c, unsigned step,
			bool smooth, uint32_t size, uint32_t pixel,
			uint32_t sample)
{
	uint32_t near = pixel / step, far = near;

	(void)c;
	if (step == 1 || !smooth)
		return sample == near;
	if (pixel % 2)
		far = near + 1 < size ? near + 1 : near;
	else
		far = near ? near - 1 : near;
	return 0.75 * (sample == near) + 0.25 * (sample == far);
}

/* The weight in output i of a pixel that is [begin, begin + length). */
static double pixel_weight(enum filter_kind kind, double from, double to,
			   double i, double begin, double length)
{
	double scale = from / to, end = begin + length, x, f;

	if (kind == FILTER_TRIANGLE) {
		x = __builtin_fabs((begin + end) / 2 - (i + 0.5) * scale) /
		    (scale < length ? length : scale);
		return x < 1 ? 1 - x : 0;
	}
	if (kind == FILTER_AREA) {
		x = (i * scale > begin ? i * scale : begin);
		f = ((i + 1) * scale < end ? (i + 1) * scale : end);
		return f > x ? f - x : 0;
	}
	x = (double)(uint32_t)(i * scale + 1e-9);
	f = i + 1 - (x + 1) / scale;
	f = f > 0 && x + 1 < from ? f : 0;
	return begin == x ? 1 - f : begin == x + 1 ? f : 0;
}

/* Where a pixel begins, seen from the side where the view does. */
static double begin_of(const struct work *w, bool across, uint32_t pixel)
{
	const struct rect *rect = &w->view.rect;
	double by = w->view.reduced, at = pixel * by;

	if (!across)
		return at - rect->y;
	if (w->view.mirror)
		return rect->x + (double)rect->width - at - by;
	return at - rect->x;
}

/* Weights of one axis' samples in output i, into w[size]. */
static void sample_weights(const struct work *w, unsigned component,
			   bool across, uint32_t i, double *weights)
{
	const struct baseline_component *c = &w->image.component[component];
	const struct resize *z = &w->resize;
	uint32_t from = across ? z->from_width : z->from_height;
	uint32_t to = across ? z->to_width : z->to_height;
	uint32_t at = across ? w->view.rect.x : w->view.rect.y;
	uint32_t size = across ? c->width : c->height;
	uint32_t by = w->view.reduced;
	bool smooth = (!across && c->across == 1) || c->width > 2;
	enum filter_kind kind;
	double sum = 0;

	CHECK(filter_kind(z, by, &kind));
	memset(weights, 0, size * sizeof(*weights));
	for (uint32_t k = at / by; k * by < at + from; k++) {
		double share = pixel_weight(kind, from, to, i,
					    begin_of(w, across, k), by);

		sum += share;
		for (uint32_t s = 0; share > 0 && s < size; s++)
			weights[s] += share *
				      upsampled(c, across ? c->across : c->down,
						smooth, size, k, s);
	}
	for (uint32_t s = 0; s < size; s++)
		weights[s] /= sum;
}

static double real_sample(const struct work *w, unsigned component, uint32_t x,
			  uint32_t y)
{
	const struct baseline_component *c = &w->image.component[component];
	double wx[SIDE_MAX], wy[SIDE_MAX], sum = 0;

	sample_weights(w, component, true, x, wx);
	sample_weights(w, component, false, y, wy);
	for (uint32_t sy = 0; sy < c->height; sy++)
		for (uint32_t sx = 0; wy[sy] > 0 && sx < c->width; sx++)
			sum += wx[sx] * wy[sy] *
			       w->samples[component][sy * c->width + sx];
	return sum;
}

static void check_pixel(const struct work *w, const uint8_t *out, uint32_t x,
			uint32_t y)
{
	const struct rect *part = &w->resize.part;
	uint32_t at = w->resize.mirror ? part->width - 1 - x : x;
	double v[3] = { 0, 128, 128 }, rgb[3];

	for (unsigned i = 0; i < w->image.components; i++)
		v[i] = real_sample(w, i, part->x + at, part->y + y);
	rgb[0] = v[0] + 1.402 * (v[2] - 128);
	rgb[1] = v[0] - 0.344136 * (v[1] - 128) - 0.714136 * (v[2] - 128);
	rgb[2] = v[0] + 1.772 * (v[1] - 128);
	for (unsigned c = 0; c < 3; c++) {
		double want = rgb[c] < 0 ? 0 : rgb[c] > 255 ? 255 : rgb[c];
		double got =
			out[((size_t)c * part->height + y) * part->width + x];

		CHECK(__builtin_fabs(got - want) < 0.7);
	}
}

static void results_are_those_of_real_numbers(void)
{
	struct rng rng = { .key = 2 };

	for (int i = 0; i < 200; i++) {
		struct work w = work_make(&rng);
		uint8_t *out = run(&w, NULL);

		for (int k = 0; k < 20; k++)
			check_pixel(&w, out, below(&rng, w.resize.part.width),
				    below(&rng, w.resize.part.height));
		free(out);
		work_fini(&w);
	}
}

/* Also where sums are largest: nothing may wrap around. */
static void one_colour_stays_one_colour(void)
{
	static const uint8_t lumas[] = { 0, 1, 128, 254, 255 };
	struct rng rng = { .key = 3 };

	for (int i = 0; i < 500; i++) {
		struct work w = work_make(&rng);
		size_t n =
			3 * (size_t)w.resize.part.width * w.resize.part.height;
		uint8_t luma = lumas[i % ARRAY_LEN(lumas)], *out;

		for (unsigned k = 0; k < w.image.components; k++)
			memset(w.samples[k], k ? 128 : luma,
			       (size_t)w.image.component[k].width *
				       w.image.component[k].height);
		out = run(&w, NULL);
		for (size_t k = 0; k < n; k++)
			CHECK(out[k] == luma);
		free(out);
		work_fini(&w);
	}
}

static void parts_are_cut_out_of_the_whole(void)
{
	struct rng rng = { .key = 4 };

	for (int i = 0; i < 200; i++) {
		struct work w = work_make(&rng);
		const struct rect part = w.resize.part;
		bool mirror = w.resize.mirror;
		uint8_t *cut = run(&w, NULL), *all;
		size_t width = w.resize.to_width;

		w.resize.part = (struct rect){ 0, 0, w.resize.to_width,
					       w.resize.to_height };
		w.resize.mirror = false;
		all = run(&w, NULL);
		for (size_t k = 0; k < 3 * (size_t)part.width * part.height;
		     k++) {
			size_t x = k % part.width, y = k / part.width;
			size_t c = y / part.height;

			y = c * w.resize.to_height + part.y + y % part.height;
			x = part.x + (mirror ? part.width - 1 - x : x);
			CHECK(cut[k] == all[y * width + x]);
		}
		free(cut);
		free(all);
		work_fini(&w);
	}
}

/* The same resize of views that are cut elsewhere, by one that has a memory. */
static void nothing_is_taken_for_another(void)
{
	struct rng rng = { .key = 6 };
	struct planar *p;

	CHECK(!planar_open(&p));
	for (int i = 0; i < 100; i++) {
		struct work w = work_make(&rng);
		size_t n =
			3 * (size_t)w.resize.part.width * w.resize.part.height;

		for (uint32_t x = w.view.rect.x + 1; x--;) {
			w.view.rect.x = x;

			uint8_t *a = run_on(p, &w), *b = run(&w, NULL);

			CHECK(!memcmp(a, b, n));
			free(a);
			free(b);
		}
		work_fini(&w);
	}
	planar_close(p);
}

/* Every class of loops builds the filter of the model. */
static void check_classes(const struct filter *f, const struct shares *shares,
			  const struct filter_source *source)
{
	const struct planar_class *const classes[] = { &planar_plain,
						       ISA_BEST(planar) };

	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		struct filter other = { 0 };

		CHECK(!filter_build(&other, shares, source,
				    &classes[i]->filter));
		CHECK(other.taps == f->taps);
		CHECK(!memcmp(other.first, f->first,
			      f->count * sizeof(*f->first)));
		CHECK(!memcmp(other.weights, f->weights,
			      (size_t)f->count * f->taps *
				      sizeof(*f->weights)));
		filter_fini(&other);
	}
}

static void check_weights(struct rng *rng)
{
	struct axis_part part = { 1 + below(rng, 400), 1 + below(rng, 300), 0,
				  0, below(rng, 2) };
	struct filter_source source = { .mirror = below(rng, 2),
					.across = 1 + below(rng, 2),
					.smooth = true };
	enum filter_kind kind = below(rng, 3);
	struct filter_grid grid = { .pixel = 1 };
	struct shares shares = { 0 };
	struct filter f = { 0 };

	if (kind != FILTER_LINEAR && part.to <= part.from)
		grid.pixel = 1u << below(rng, 4);
	grid.before = below(rng, grid.pixel);
	part.count = part.to;
	source.samples =
		divide_up(filter_pixels(part.from, &grid), source.across);
	if (part.from / part.to > 25)
		return;
	CHECK(!shares_build(&shares, kind, &part, &grid));
	CHECK(!filter_build(&f, &shares, &source, &planar_model.filter));
	CHECK(f.origin + f.span <= source.samples);
	for (uint32_t i = 0; i < f.count; i++) {
		uint32_t sum = 0;

		CHECK(f.first[i] + f.taps <= f.span);
		for (uint32_t k = 0; k < f.taps; k++) {
			uint32_t weight = f.weights[i * f.taps + k];

			CHECK(weight >> 16 == (weight & 0xffff));
			CHECK((weight & 0xffff) <= INT16_MAX);
			sum += weight & 0xffff;
		}
		CHECK(sum == 1 << 15 || sum == INT16_MAX);
	}
	check_classes(&f, &shares, &source);
	shares_fini(&shares);
	filter_fini(&f);
}

static void weights_add_up_to_one(void)
{
	struct rng rng = { .key = 5 };

	for (int i = 0; i < 1000; i++)
		check_weights(&rng);
}

static void extreme_reductions_are_left_to_others(void)
{
	struct resize z = { .from_width = 3100,
			    .from_height = 10,
			    .to_width = 100,
			    .to_height = 10,
			    .part = { 0, 0, 100, 10 } };
	struct planar_view view = { { 0, 0, 3100, 10 }, false, 1 };
	struct rect needs;

	CHECK(!planar_needs(&z, &view, &needs));
	z.from_width = view.rect.width = 3099;
	CHECK(planar_needs(&z, &view, &needs));
	CHECK(needs.width == 3099 && needs.height == 10);
	view.reduced = 4;
	CHECK(planar_needs(&z, &view, &needs));
	CHECK(needs.width == 775 && needs.height == 3);
}

int main(void)
{
	all_loops_give_the_bits_of_the_model();
	results_are_those_of_real_numbers();
	one_colour_stays_one_colour();
	parts_are_cut_out_of_the_whole();
	nothing_is_taken_for_another();
	weights_add_up_to_one();
	extreme_reductions_are_left_to_others();
	return 0;
}
