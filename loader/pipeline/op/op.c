/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <errno.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/util/exact_math.h"

int op_param(const struct op *op, const char *name)
{
	const struct param *params = op->params;

	for (int i = 0; params && params[i].name; i++) {
		if (!strcmp(params[i].name, name))
			return i;
	}
	return -1;
}

int op_lists(const struct op *op)
{
	for (int i = 0; op->params && op->params[i].name; i++) {
		if (op->params[i].kind == PARAM_OPERATIONS)
			return i;
	}
	return -1;
}

bool op_is_random(const struct op *op)
{
	return op_param(op, "group") >= 0;
}

enum op_of_kind op_refers_to(const struct op *op)
{
	return op->list ? op->list->of : OP_OF_NOTHING;
}

bool op_redraws(const struct op *op)
{
	return op->image && op->image->redraw;
}

struct size op_resized(const struct op *op, const struct args *args,
		       struct size in)
{
	bool resizes = op->image && op->image->resized;

	return resizes ? op->image->resized(args, in) : in;
}

static bool is_picture(const struct type *t)
{
	return t->kind == TYPE_IMAGE || t->kind == TYPE_GRID;
}

const char *op_refuse_image(const struct type *in)
{
	if (is_picture(in))
		return NULL;
	if (in->kind == TYPE_RAGGED && !in->is_array)
		return "works on images only; begin a bytes field "
		       "with decode(rgb), or with mask for classes";
	return in->kind == TYPE_ARRAY
		       ? "works on images only"
		       : "works on images only; boxes and points move with an "
			 "image by follow, sounds and tokens take excerpt, "
			 "truncate and pad_to";
}

const char *op_infer_crop(const struct type *in)
{
	if (!is_picture(in))
		return op_refuse_image(in);
	if (in->device)
		return "runs on the CPU and must stand before cuda";
	if (in->layout != LAYOUT_HWC)
		return "must stand before chw";
	if (in->kind == TYPE_IMAGE && (in->dtype != DTYPE_U1 || in->valued))
		return "works on 8-bit images; it must stand before colors, "
		       "normalize and the types";
	return NULL;
}

bool op_is_list(const struct type *t)
{
	return t->kind == TYPE_LIST || t->kind == TYPE_PADDED ||
	       t->kind == TYPE_PACKED;
}

static const char AFTER_BATCH[] = "must stand before pad_to(batch) and pack";

/* Whether a batch pads or cuts the lists of its samples. */
static bool is_of_batch(const struct type *t)
{
	return op_is_list(t) && t->kind != TYPE_LIST;
}

const char *op_infer_dtype(const struct type *in, enum dtype to,
			   struct type *out)
{
	if (is_of_batch(in))
		return AFTER_BATCH;
	if (in->kind == TYPE_RAGGED && !in->is_array)
		return "does not work on bytes and JSON; begin with "
		       "mask, decode(rgb), json or tokenize";
	if (in->kind == TYPE_RAGGED)
		op_infer_list(in, out);
	if (in->dtype == DTYPE_OTHER)
		return "cannot convert values of this field's type";
	out->dtype = to;
	return NULL;
}

const char *op_infer_list(const struct type *in, struct type *out)
{
	if (in->kind == TYPE_LIST)
		return NULL;
	if (is_of_batch(in))
		return AFTER_BATCH;
	if (in->kind != TYPE_RAGGED && in->fresh && in->ndim)
		return "works on arrays of differing lengths only; "
		       "betonfs.write() stores them for a shape that begins "
		       "with None, as (\"float32\", (None, 4))";
	if (in->kind != TYPE_RAGGED)
		return "works on arrays of differing lengths only";
	if (!in->is_array)
		return "works on arrays of differing lengths, and sample 0 has "
		       "none; betonfs.write() stores them for a field of "
		       "(\"float32\", (None, 4)), for example";
	out->kind = TYPE_LIST;
	out->is_array = false;
	return NULL;
}

const char *op_copy_list(const struct args *args,
			 const struct op_sample *sample, const struct list *in,
			 const struct type *out, void *to, uint64_t *rows)
{
	(void)args;
	(void)sample;
	memcpy(to, in->values, in->rows * op_row_bytes(out));
	*rows = in->rows;
	return NULL;
}

uint64_t op_elements(const struct type *type)
{
	uint64_t count = 1;

	for (uint32_t i = 0; i < type->ndim; i++)
		count *= type->shape[i];
	return count;
}

uint64_t op_row_bytes(const struct type *type)
{
	return op_elements(type) * dtype_size(type->dtype);
}

const char *op_infer_layout(const struct type *in, enum layout to,
			    struct type *out)
{
	if (!is_picture(in))
		return op_refuse_image(in);
	out->layout = to;
	return NULL;
}

const char *op_infer_color(const struct args *args, const struct type *in,
			   struct type *out)
{
	(void)args;
	(void)out;
	if (!is_picture(in))
		return op_refuse_image(in);
	if (in->dtype != DTYPE_U1 && in->dtype != DTYPE_F4)
		return "works on uint8 and float; convert to other "
		       "types after it";
	return NULL;
}

const char *op_infer_values(const struct type *in)
{
	return in->kind == TYPE_GRID ? NULL : op_infer_color(NULL, in, NULL);
}

const char *op_infer_scalar(const struct type *in)
{
	if (in->kind != TYPE_ARRAY || in->ndim)
		return "works on single numbers only; put it before "
		       "mixup, where a label is one";
	if (in->dtype == DTYPE_OTHER)
		return "cannot calculate with values of this field's type";
	if (in->device)
		return "runs on the CPU and must stand before cuda";
	return NULL;
}

const char *op_infer_image(const struct args *args, const struct type *in,
			   struct type *out)
{
	(void)args;
	if (!is_picture(in))
		return op_refuse_image(in);
	if (in->device)
		return "runs on the CPU and must stand before cuda";
	if (in->layout != LAYOUT_HWC)
		return "must stand before chw";
	if (in->kind == TYPE_IMAGE && in->dtype != DTYPE_U1)
		return "works on 8-bit images; it must stand before normalize "
		       "and the types";
	out->valued = false;
	out->placed = false;
	return NULL;
}

const char *op_check_crop(const struct arg *scale, const struct arg *ratio)
{
	if (scale->number[0] > scale->number[1])
		return "the least scale is greater than the greatest";
	return ratio->number[0] > ratio->number[1]
		       ? "the least ratio is greater than the greatest"
		       : NULL;
}

struct rect op_draw_crop(const struct arg *scale, const struct arg *ratio,
			 struct uniform uniform, struct size in)
{
	struct crop_limits limits = {
		{ scale->number[0], scale->number[1] },
		{ ratio->number[0], ratio->number[1] },
	};
	struct rect crop = crop_random(&limits, uniform, in.width, in.height);

	/* If the ratio is extreme and the image is thin, the crop is empty
	   (crop.h). */
	crop.width += !crop.width;
	crop.height += !crop.height;
	return crop;
}

const char *op_infer_views(unsigned views, struct size size, struct size least,
			   const struct type *in, struct type *out)
{
	const char *wrong = op_infer_crop(in);

	if (wrong)
		return wrong;
	if (in->views)
		return "cannot make views of views; write another output";
	if (in->width && (in->width < least.width || in->height < least.height))
		return "needs images as large as its size; resize before it";
	out->views = views;
	out->width = size.width;
	out->height = size.height;
	return NULL;
}

uint32_t op_below(uint32_t n, struct uniform uniform)
{
	return (uint32_t)(n * uniform.next(uniform.arg));
}

void op_shuffle(unsigned n, struct uniform uniform, unsigned *out)
{
	for (unsigned i = 0; i < n; i++)
		out[i] = i;
	for (unsigned i = n; i > 1; i--) {
		unsigned k = op_below(i, uniform), last = out[i - 1];

		out[i - 1] = out[k];
		out[k] = last;
	}
}

const char *op_check_color(const struct arg *arg)
{
	return arg->count == 2 ? "a color has one number, or three" : NULL;
}

void op_color(const struct arg *color, uint8_t rgb[3])
{
	for (unsigned c = 0; c < 3; c++)
		rgb[c] = (uint8_t)color->number[color->count == 1 ? 0 : c];
}

/* Fill the first row by doubling copies, and copy it to all other rows. */
static void fill_row(uint8_t *row, size_t size, const uint8_t rgb[3])
{
	size_t done = 3, n;

	memcpy(row, rgb, 3);
	for (; done < size; done += n) {
		n = min_u64(done, size - done);
		memcpy(row + done, row, n);
	}
}

void op_fill(const struct image *image, const struct rect *part,
	     const struct arg *color)
{
	uint8_t *row =
		image->pixels + part->y * image->stride + 3 * (size_t)part->x;
	size_t size = 3 * (size_t)part->width;
	uint8_t rgb[3];

	if (!part->width || !part->height)
		return;
	op_color(color, rgb);
	fill_row(row, size, rgb);
	for (uint32_t y = 1; y < part->height; y++)
		memcpy(row + y * image->stride, row, size);
}

uint64_t op_canvas_scratch(const struct args *args, struct size in)
{
	(void)args;
	return canvas_scratch(in.width, in.height);
}

struct canvas op_canvas(const struct arg *how, const struct arg *color,
			const struct op_sample *sample,
			const struct image *image)
{
	struct canvas c = { .how = (enum warp_how)how->choice };

	op_color(color, c.fill);
	canvas_start(&c, image, sample->scratch);
	return c;
}

static double magnitude_of(const struct augmentation *a, struct size size)
{
	double magnitude = policy_magnitude(a->row, a->bin, a->bins, size.width,
					    size.height);

	return a->row->is_signed && a->u <= 0.5 ? -magnitude : magnitude;
}

void op_augment(struct canvas *c, const struct augmentation *steps,
		unsigned count)
{
	const struct size size = { c->now.width, c->now.height };

	for (unsigned i = 0; i < count; i++)
		canvas_apply(c, steps[i].row->kind,
			     magnitude_of(&steps[i], size));
}

unsigned op_augment_maps(const struct augmentation *steps, unsigned count,
			 struct size in, struct warp_map *out)
{
	unsigned maps = 0;
	struct affine map;

	for (unsigned i = 0; i < count; i++) {
		if (policy_map(steps[i].row->kind, magnitude_of(&steps[i], in),
			       in.width, in.height, &map))
			out[maps++] = warp_map_of(&map);
	}
	return maps;
}

const char *op_check_range(const struct arg *arg)
{
	return arg->count >= 2 && arg->number[0] > arg->number[1]
		       ? "LEAST is greater than MOST"
		       : NULL;
}

double op_within(const struct arg *arg, struct uniform uniform)
{
	double u = uniform.next(uniform.arg), least = arg->number[0];

	return arg->count == 1 ? least : least + u * (arg->number[1] - least);
}

double op_about(const struct arg *arg, struct uniform uniform)
{
	double u = uniform.next(uniform.arg), least = arg->number[0];

	if (arg->count == 1)
		return (2 * u - 1) * least;
	return least + u * (arg->number[1] - least);
}

double op_round(double v)
{
	return exact_round(v);
}

const char *op_check_warp(const struct arg *degrees, const struct arg *color)
{
	const char *wrong = op_check_range(degrees);

	return wrong ? wrong : op_check_color(color);
}

void op_warp(op_maps_fn *maps, const struct args *args, unsigned how,
	     unsigned fill, const struct op_sample *sample,
	     const struct image *in, const struct image *out)
{
	const struct size size = { in->width, in->height };
	struct warp_map map;
	uint8_t color[3];

	op_color(&args->arg[fill], color);
	maps(args, sample->uniform, size, &map);
	warp_image(&map, (enum warp_how)args->arg[how].choice, color, in, out,
		   sample->seen);
}

uint8_t op_whole(float v)
{
	v = v > 0 ? v : 0;
	return (uint8_t)(v < 255 ? v : 255);
}

bool op_chance(const struct arg *p, struct uniform uniform)
{
	return uniform.next(uniform.arg) < p->number[0];
}

float op_factor(const struct arg *magnitude, const struct arg *p,
		struct uniform uniform)
{
	double m = magnitude->number[0], low = m < 1 ? 1 - m : 0;

	if (!op_chance(p, uniform))
		return 1;
	return (float)(low + (1 + m - low) * uniform.next(uniform.arg));
}

struct size op_size(const struct arg *arg)
{
	return (struct size){
		.height = (uint32_t)arg->number[0],
		.width = (uint32_t)arg->number[arg->count - 1],
	};
}
