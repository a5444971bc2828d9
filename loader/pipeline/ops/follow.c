/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

#include <string.h>

#include "loader/pipeline/list/boxes.h"

enum { OF, FORMAT, COORDINATES, MIN_VISIBLE, MIN_SIZE };

static const struct param params[] = {
	[OF] = { .name = "of",
		 .kind = PARAM_NAME,
		 .help = "name of the output of the image" },
	[FORMAT] = { .name = "format",
		     .kind = PARAM_CHOICE,
		     .initial = "xyxy",
		     .choices = "xyxy|xywh|cxcywh|xy", /* enum box_format */
		     .help = "meaning of the first numbers of a row" },
	[COORDINATES] = { .name = "coordinates",
			  .kind = PARAM_CHOICE,
			  .initial = "pixels",
			  .choices = "pixels|shares",
			  .help = "shares: fractions of the image's width and height" },
	[MIN_VISIBLE] = { .name = "min_visible",
			  .kind = PARAM_REALS,
			  .initial = "0",
			  .min_count = 1,
			  .max_count = 1,
			  .min = 0,
			  .max = 1,
			  .help = "least fraction of a box that must remain" },
	[MIN_SIZE] = { .name = "min_size",
		       .kind = PARAM_REALS,
		       .initial = "1",
		       .min_count = 1,
		       .max_count = 1,
		       .min = 0,
		       .max = OP_SIZE_MAX,
		       .help = "least width and height of a box, in pixels" },
	{ 0 },
};

static struct box_rule rule_of(const struct args *args)
{
	return (struct box_rule){
		.format = (enum box_format)args->arg[FORMAT].choice,
		.is_normalized = args->arg[COORDINATES].choice,
		.min_visible = args->arg[MIN_VISIBLE].number[0],
		.min_size = args->arg[MIN_SIZE].number[0],
	};
}

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	const char *wrong = op_infer_list(in, out);
	struct box_rule rule = rule_of(args);

	if (wrong)
		return wrong;
	if (in->ndim == 1 && in->shape[0] >= box_numbers(rule.format))
		return NULL;
	return rule.format == BOX_XY
		       ? "needs rows of two numbers or more, x and y first"
		       : "needs rows of four numbers or more, those of a box "
			 "first; format=xy is for points";
}

/* Copies a row and replaces its box. */
static void write_row(const struct type *type, unsigned count,
		      const double *box, const uint8_t *from, uint8_t *to)
{
	memcpy(to, from, op_row_bytes(type));
	dtype_convert(DTYPE_F8, box, type->dtype, to, count);
}

static const char *list(const struct args *args, const struct op_sample *sample,
			const struct list *in, const struct type *out, void *to,
			uint64_t *rows)
{
	const struct op_of *of = sample->of;
	struct box_rule rule = rule_of(args);
	unsigned count = box_numbers(rule.format);
	size_t size = op_row_bytes(out);
	double box[BOX_NUMBERS];

	*rows = 0;
	for (uint64_t i = 0; i < in->rows; i++) {
		const uint8_t *from = (const uint8_t *)in->values + i * size;

		dtype_convert(out->dtype, from, DTYPE_F8, box, count);
		of->kept[i] = box_follow(&rule, of->size.width, of->size.height,
					 of->moves, of->num_moves, box);
		if (of->kept[i])
			write_row(out, count, box, from,
				  (uint8_t *)to + (*rows)++ * size);
	}
	return NULL;
}

const struct op op_follow = {
	.name = "follow",
	.help = "Move boxes or points with the pixels of an output",
	.kind = OP_LIST,
	.params = params,
	.infer = infer,
	.list =
		&(const struct op_list){
			.map = list,
			.of = OP_OF_IMAGE,
		},
};
