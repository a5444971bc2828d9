/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/graph/family.h"

enum { RGB = 3, BYTE_UNIT = 255, SHORT_UNIT = 65535 };

float family_unit(enum dtype dtype)
{
	if (dtype == DTYPE_U1)
		return BYTE_UNIT;
	return dtype == DTYPE_U2 ? SHORT_UNIT : 1;
}

static bool is_side(uint64_t n)
{
	return n && n <= OP_SIZE_MAX;
}

/* Axes are rows, columns and channels. If there are four, the first one is
   frames. */
static bool has_grid(const struct type *t)
{
	const uint64_t *sides = t->shape + (t->ndim == 4);

	if (t->kind != TYPE_ARRAY || t->ndim < 2 || t->ndim > 4 ||
	    t->dtype == DTYPE_OTHER || !is_side(sides[0]) || !is_side(sides[1]))
		return false;
	return (t->ndim < 3 || is_side(sides[2])) &&
	       (t->ndim < 4 || is_side(t->shape[0]));
}

static bool is_for_grids(const struct op *op)
{
	switch (op->kind) {
	case OP_GEOMETRY:
	case OP_IMAGE:
	case OP_POINT:
	case OP_PIXEL:
	case OP_LAYOUT:
	case OP_MASK:
	case OP_FRAMES:
		return true;
	default:
		return false;
	}
}

struct type family_grid_of(const struct type *array)
{
	const uint64_t *sides = array->shape + (array->ndim == 4);
	struct type t = *array;

	t.kind = TYPE_GRID;
	t.height = (uint32_t)sides[0];
	t.width = (uint32_t)sides[1];
	t.channels = t.ndim > 2 ? (uint32_t)sides[2] : 0;
	t.frames = t.ndim == 4 ? (uint32_t)t.shape[0] : 0;
	return t;
}

void family_enter(const struct op *op, struct type *type)
{
	if (is_for_grids(op) && has_grid(type))
		*type = family_grid_of(type);
}

static bool is_rgb(const struct type *type)
{
	return type->channels == RGB && type->dtype == DTYPE_U1 && !type->mask;
}

/* Whether averages of a type make sense: other types are labels. */
static bool can_mix(const struct type *type)
{
	switch (type->dtype) {
	case DTYPE_I1:
	case DTYPE_U1:
	case DTYPE_I2:
	case DTYPE_U2:
	case DTYPE_F2:
	case DTYPE_F4:
	case DTYPE_F8:
	case DTYPE_BF2:
		return true;
	default:
		return false;
	}
}

static bool is_nearest(const struct op *op, const struct args *args)
{
	int i = op_param(op, "interpolation");

	return i >= 0 && args->arg[i].choice == INTERPOLATION_NEAREST;
}

static const char refuse_labels[] =
	"does not average labels: put `mask' before "
	"it, or use interpolation=nearest";

static const char *refuse_geometry(const struct op *op, const struct args *args,
				   const struct type *type)
{
	bool resizes = op_param(op, "interpolation") >= 0;

	if (type->kind == TYPE_GRID && resizes && !type->mask &&
	    !can_mix(type) && !is_nearest(op, args))
		return refuse_labels;
	return NULL;
}

static const char *refuse_values(const struct op *op, bool custom,
				 const struct type *type)
{
	if (type->mask)
		return "changes colors, but a mask has classes";
	if (custom)
		return "is a custom operation and works on images only";
	if (op->kind == OP_PIXEL && type->channels != RGB)
		return "works on three channels only";
	if (!op->value->grid_operands && type->unit != BYTE_UNIT)
		return "works on 8-bit values only";
	return NULL;
}

/* A color of three numbers needs three channels. */
static bool fits_fill(const struct op *op, const struct args *args,
		      const struct type *type)
{
	int i = op_param(op, "fill");

	return i < 0 || type->mask || args->arg[i].count == 1 ||
	       type->channels == args->arg[i].count;
}

/* Whether an operation has a definition for grids. A list of operations has one
   if all its operations do. */
static bool takes_grids(const struct op *op, const struct type *type)
{
	const struct op_image *image = op->image;

	if (!image || image->grid || is_rgb(type))
		return true;
	return image->maps && (type->mask || !image->in_place);
}

/* Whether an operation computes a pixel from several pixels. */
static bool blends(const struct op *op, const struct args *args)
{
	int i = op_param(op, "interpolation");

	return i >= 0 && args->arg[i].choice == WARP_BILINEAR;
}

static const char *refuse_image(const struct op *op, const struct args *args,
				const struct type *type)
{
	if (type->mask && op->image && op->image->keeps_places)
		return "changes colors, but a mask has classes";
	if (!takes_grids(op, type))
		return "works on 8-bit RGB images only";
	if (!type->mask && !can_mix(type) && blends(op, args))
		return refuse_labels;
	return fits_fill(op, args, type)
		       ? NULL
		       : "takes one number as fill, or one for each channel";
}

const char *family_refuse(const struct op *op, const struct args *args,
			  bool custom, const struct type *type)
{
	if (op->kind == OP_GEOMETRY)
		return refuse_geometry(op, args, type);
	if (type->kind != TYPE_GRID)
		return NULL;
	if (op->kind == OP_POINT || op->kind == OP_PIXEL)
		return refuse_values(op, custom, type);
	return op->kind == OP_IMAGE ? refuse_image(op, args, type) : NULL;
}

bool family_skips(const struct op *op, const struct type *type)
{
	switch (op->kind) {
	case OP_DECODE:
	case OP_CACHE:
		return type->kind == TYPE_GRID || type->kind == TYPE_ARRAY;
	case OP_POINT:
	case OP_PIXEL:
	case OP_DTYPE:
		return type->mask;
	case OP_IMAGE:
		return type->mask && op->image && op->image->keeps_places;
	default:
		return false;
	}
}

bool family_is_mask(const struct type *type)
{
	if (type->kind == TYPE_RAGGED)
		return !type->is_array;
	return has_grid(type) && type->ndim == 2 &&
	       dtype_is_whole(type->dtype) && type->dtype != DTYPE_U2;
}
