/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "fs/base/util/bytes.h"
#include "loader/pipeline/op/op.h"

enum { SIZE, INTERPOLATION, MAX_SIZE, SIDE };
enum { SHORTER, LONGER }; /* the choices of `side` */

static const struct param params[] = {
	[SIZE] = OP_PARAM_SIZE("length of one side, or \"H,W\""),
	[INTERPOLATION] = OP_PARAM_INTERPOLATION,
	[MAX_SIZE] = { .name = "max_size",
		       .kind = PARAM_INTEGERS,
		       .initial = "",
		       .min_count = 1,
		       .max_count = 1,
		       .min = 1,
		       .max = OP_SIZE_MAX,
		       .help = "limit of the longer side (default: none)" },
	[SIDE] = { .name = "side",
		   .kind = PARAM_CHOICE,
		   .initial = "shorter",
		   .choices = "shorter|longer",
		   .help = "side that one number sets" },
	{ 0 },
};

/* Returns the length of side b if side a becomes `size`, rounded down. */
static uint64_t scaled(uint64_t size, uint64_t b, uint64_t a)
{
	return size * b / a;
}

/* Returns a side of the result. */
static uint32_t limited(uint64_t side)
{
	return (uint32_t)min_u64(max_u64(side, 1), OP_SIZE_MAX);
}

struct resize_sides {
	uint32_t shorter;
	uint32_t longer;
};

/* Divides like torchvision. If max_size is set, divides twice. */
static struct resize_sides sides_of(const struct args *args,
				    struct resize_sides in)
{
	uint32_t size = (uint32_t)args->arg[SIZE].number[0];
	const struct arg *most = &args->arg[MAX_SIZE];
	uint64_t longer, limit;

	if (args->arg[SIDE].choice == LONGER)
		return (struct resize_sides){
			limited(scaled(size, in.shorter, in.longer)), size
		};
	longer = scaled(size, in.longer, in.shorter);
	limit = most->count ? (uint64_t)most->number[0] : UINT64_MAX;
	if (longer > limit)
		return (struct resize_sides){
			limited(scaled(limit, size, longer)), (uint32_t)limit
		};
	return (struct resize_sides){ size, limited(longer) };
}

static struct size target(const struct args *args, struct size in)
{
	bool wide = in.width > in.height;
	struct resize_sides sides;

	if (args->arg[SIZE].count == 2)
		return op_size(&args->arg[SIZE]);
	sides = sides_of(args,
			 wide ? (struct resize_sides){ in.height, in.width }
			      : (struct resize_sides){ in.width, in.height });
	return wide ? (struct size){ sides.longer, sides.shorter }
		    : (struct size){ sides.shorter, sides.longer };
}

static const char *check(const struct args *args)
{
	const struct arg *size = &args->arg[SIZE], *most = &args->arg[MAX_SIZE];
	bool longer = args->arg[SIDE].choice == LONGER;

	if (size->count == 2 && (most->count || longer))
		return "\"H,W\" sets both sides: max_size and "
		       "side=longer need one number";
	if (most->count && longer)
		return "side=longer is the most of both sides: leave max_size "
		       "out";
	if (most->count && most->number[0] <= size->number[0])
		return "max_size must be greater than size, which "
		       "is the shorter side; to set the longer "
		       "side, use side=longer";
	return NULL;
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	struct size size = { .width = in->width, .height = in->height };

	if (size.width && size.height)
		size = target(args, size);
	else if (args->arg[SIZE].count == 2)
		size = op_size(&args->arg[SIZE]);
	out->width = size.width;
	out->height = size.height;
	return op_infer_crop(in);
}

static void draw(const struct args *args, struct uniform uniform,
		 struct size in, struct draw *out)
{
	(void)uniform;
	out->from = (struct rect){ .width = in.width, .height = in.height };
	out->to = target(args, in);
	out->how = (enum interpolation)args->arg[INTERPOLATION].choice;
}

const struct op op_resize = {
	.name = "resize",
	.help = "Resize the whole image",
	.kind = OP_GEOMETRY,
	.params = params,
	.check = check,
	.infer = infer,
	.geometry =
		&(const struct op_geometry){
			.draw = draw,
		},
};
