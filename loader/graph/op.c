/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/util/bytes.h"

/* The listing of loader/ops, written by the Makefile: OP(center_crop) ... */
#define OP(name) extern const struct op op_##name;
#include "ops.inc"
#undef OP

static const struct op *const ops[] = {
#define OP(name) &op_##name,
#include "ops.inc"
#undef OP
};

const struct op *op_row(size_t i)
{
	return i < ARRAY_LEN(ops) ? ops[i] : NULL;
}

const struct op *op_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		if (!strcmp(ops[i]->name, name))
			return ops[i];
	}
	return NULL;
}

int op_param(const struct op *op, const char *name)
{
	const struct param *params = op->params;

	for (int i = 0; params && params[i].name; i++) {
		if (!strcmp(params[i].name, name))
			return i;
	}
	return -1;
}

bool op_is_random(const struct op *op)
{
	return op_param(op, "group") >= 0;
}

const char *op_infer_crop(const struct type *in)
{
	if (in->kind != TYPE_IMAGE)
		return "works on images only";
	if (in->device)
		return "runs on the processor; it must stand before cuda";
	if (in->layout != LAYOUT_HWC)
		return "must stand before chw";
	if (in->dtype != DTYPE_U1 || in->valued)
		return "works on 8-bit images; it must stand before colours, "
		       "normalize and the types";
	return NULL;
}

const char *op_infer_dtype(const struct type *in, enum dtype to,
			   struct type *out)
{
	if (in->kind == TYPE_RAGGED)
		return "has no use for bytes and JSON";
	if (in->dtype == DTYPE_OTHER)
		return "cannot convert values of this field's type";
	out->dtype = to;
	return NULL;
}

const char *op_infer_layout(const struct type *in, enum layout to,
			    struct type *out)
{
	if (in->kind != TYPE_IMAGE)
		return "works on images only";
	out->layout = to;
	return NULL;
}

const char *op_infer_colour(const struct args *args, const struct type *in,
			    struct type *out)
{
	(void)args;
	(void)out;
	if (in->kind != TYPE_IMAGE)
		return "works on images only";
	if (in->dtype != DTYPE_U1 && in->dtype != DTYPE_F4)
		return "works on uint8 and float; other types come after it";
	return NULL;
}

const char *op_infer_scalar(const struct type *in)
{
	if (in->kind != TYPE_ARRAY || in->ndim)
		return "works on single numbers only; before mixup, a label "
		       "is one";
	if (in->dtype == DTYPE_OTHER)
		return "cannot calculate with values of this field's type";
	if (in->device)
		return "runs on the processor; it must stand before cuda";
	return NULL;
}

const char *op_infer_image(const struct args *args, const struct type *in,
			   struct type *out)
{
	(void)args;
	if (in->kind != TYPE_IMAGE)
		return "works on images only";
	if (in->device)
		return "runs on the processor; it must stand before cuda";
	if (in->layout != LAYOUT_HWC)
		return "must stand before chw";
	if (in->dtype != DTYPE_U1)
		return "works on 8-bit images; it must stand before normalize "
		       "and the types";
	out->valued = false;
	out->placed = false;
	return NULL;
}

uint32_t op_below(uint32_t n, struct uniform uniform)
{
	return (uint32_t)(n * uniform.next(uniform.arg));
}

const char *op_check_colour(const struct arg *arg)
{
	return arg->count == 2 ? "one number, or one per channel" : NULL;
}

void op_fill(const struct image *image, const struct rect *part,
	     const struct arg *colour)
{
	uint8_t rgb[3];

	for (unsigned c = 0; c < 3; c++)
		rgb[c] = (uint8_t)colour->number[colour->count == 1 ? 0 : c];
	for (size_t y = part->y; y < part->y + part->height; y++) {
		uint8_t *to =
			image->pixels + y * image->stride + 3 * (size_t)part->x;

		for (size_t x = 0; x < part->width; x++, to += 3)
			memcpy(to, rgb, 3);
	}
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
