/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/pipeline/graph/args.h"
#include "loader/pipeline/graph/op_table.h"
#include "loader/pipeline/graph/synonym.h"
#include "loader/pipeline/op/op.h"
#include "loader/pipeline/text/parse.h"
#include "loader/pipeline/text/schedule.h"
#include "tests/unit/t.h"

static char error[256];

/* Binds the arguments of a text of one stage as they are in epochs->now. */
static int bind_in(struct epochs *epochs, const char *text, struct args *out)
{
	struct diagnostic c = { text, error, sizeof(error) };
	struct parse p;
	int r;

	error[0] = '\0';
	CHECK(!parse_text(&c, &p));
	CHECK(p.num_stages == 1 && op_table_find(p.stages[0].name));
	r = args_bind(op_table_find(p.stages[0].name), &p, &p.stages[0], epochs,
		      &c, out);
	parse_fini(&p);
	return r;
}

static int bind(const char *text, struct args *out)
{
	struct epochs epochs = { 0, UINT64_MAX };
	int r = bind_in(&epochs, text, out);

	CHECK(epochs.end == UINT64_MAX || strchr(text, '='));
	return r;
}

/* A warp's arguments are found by name, and nothing moves pixels twice. */
static bool is_warp_complete(const struct op *op)
{
	bool has_words = op_param(op, "interpolation") >= 0 &&
			 op_param(op, "fill") >= 0 &&
			 op_param(op, "label") >= 0;

	const struct op_image *image = op->image;

	return (!image->maps || has_words) &&
	       (!image->joins ||
		(image->maps && image->redraw && !image->resized)) &&
	       !(image->maps && (image->move || image->grid));
}

static bool is_image_complete(const struct op *op)
{
	const struct op_image *image = op->image;

	return !image->in_place != !image->redraw &&
	       (!image->resized || image->redraw) && is_warp_complete(op);
}

static bool is_value_complete(const struct op *op)
{
	const struct op_value *value = op->value;

	return !value->point == (op->kind != OP_POINT) &&
	       !value->pixel == (op->kind != OP_PIXEL) && value->operands &&
	       value->num_operands && value->code &&
	       value->num_operands <= OP_OPERANDS_MAX;
}

/* Whether a row has the definition that its kind names, and no other. */
static bool has_definition(const struct op *op)
{
	const bool has[] = { op->geometry, op->frames, op->value, op->image,
			     op->array,	   op->list,   op->batch };
	static const enum op_kind kinds[] = { OP_GEOMETRY, OP_FRAMES, OP_POINT,
					      OP_IMAGE,	   OP_ARRAY,  OP_LIST,
					      OP_BATCH };
	enum op_kind kind = op->kind == OP_PIXEL ? OP_POINT : op->kind;
	bool right = !op->branches == (op_lists(op) < 0);

	for (size_t i = 0; i < ARRAY_LEN(has); i++)
		right &= has[i] == (kinds[i] == kind && !op->branches);
	return right && (!op->branches || kind == OP_IMAGE);
}

static bool is_complete(const struct op *op)
{
	return op->name && op->help && *op->help && op->infer &&
	       !op->load == !op->unload && has_definition(op) &&
	       (!op->geometry || op->geometry->draw) &&
	       (!op->frames || op->frames->first) &&
	       (!op->value || is_value_complete(op)) &&
	       (!op->image || is_image_complete(op)) &&
	       (!op->array || op->array->map) && (!op->list || op->list->map) &&
	       (!op->batch || op->batch->mix) &&
	       (!op->branches || op->branches->pick);
}

static void every_row_is_complete_and_found_by_its_name(void)
{
	size_t n = 0;

	for (; op_table_row(n); n++) {
		CHECK(is_complete(op_table_row(n)));
		CHECK(op_table_find(op_table_row(n)->name) == op_table_row(n));
	}
	CHECK(n >= 22);
	CHECK(!op_table_find("no_such_operation") && !op_table_find(""));
}

/* The defaults of an alias are those of torchvision. */
static void names_of_torchvision_are_accepted(void)
{
	const struct alias *a;
	struct args args;

	for (size_t i = 0; (a = alias_at(i)); i++) {
		const struct op *op = op_table_find(a->ours);

		CHECK(op && op_table_find(a->theirs) == op);
		CHECK(alias_of(a->theirs) == a);
		CHECK(!a->param == !a->initial);
		CHECK(!a->param || op_param(op, a->param) >= 0);
	}
	CHECK(op_table_find("random_vertical_flip") ==
	      op_table_find("vertical_flip"));
	CHECK(!op_table_find("randomVerticalFlip") &&
	      !op_table_find("random_verticalflip") &&
	      !op_table_find("random_vertical_flip_") &&
	      !op_table_find("RandomVertical") &&
	      !op_table_find("randomverticalflip"));
	CHECK(!bind("random_grayscale", &args) && args.arg[0].number[0] == 0.1);
	CHECK(!bind("RandomGrayscale(0.3)", &args) &&
	      args.arg[0].number[0] == 0.3);
	CHECK(!bind("RandomPosterize(3)", &args) &&
	      args.arg[0].number[0] == 3 && args.arg[1].number[0] == 0.5);
	CHECK(!bind("posterize(3)", &args) && args.arg[1].number[0] == 1);
}

static void british_spelling_is_accepted(void)
{
	static const char *const names[][2] = {
		{ "normalise", "normalize" },
		{ "greyscale", "grayscale" },
		{ "colour_jitter", "color_jitter" },
		{ "centre_crop", "center_crop" },
		{ "solarise", "solarize" },
		{ "posterise", "posterize" },
		{ "equalise", "equalize" },
		{ "tokenise", "tokenize" },
		{ "RandomGreyscale", "grayscale" },
		{ "random_equalise", "equalize" },
	};
	char long_word[200] = "grey";
	struct args args;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK(op_table_find(names[i][0]) ==
			      op_table_find(names[i][1]) &&
		      op_table_find(names[i][0]));
	CHECK(!op_table_find("centr_crop") && !op_table_find("GREYSCALE"));
	memset(long_word + 4, 'y', sizeof(long_word) - 5);
	CHECK(!op_table_find(long_word));
	/* The default is that of the alias, not of the operation. */
	CHECK(!bind("random_greyscale", &args) && args.arg[0].number[0] == 0.1);
	CHECK(!bind("normalise(imagenet)", &args) && args.arg[0].choice == 0);
	CHECK(!bind("excerpt(3, centre)", &args) && args.arg[1].choice == 1);
	CHECK(!bind("decode(grey16)", &args) && args.arg[0].choice == 4);
	CHECK(bind("excerpt(3, centr)", &args));
}

static void check_param(const struct op *op, const struct param *p)
{
	bool numbers = p->kind == PARAM_INTEGERS || p->kind == PARAM_REALS ||
		       p->kind == PARAM_BYTES;

	CHECK(p->help && *p->help);
	CHECK(op_param(op, p->name) == (int)(p - op->params));
	CHECK(!numbers || (p->min_count >= 1 && p->max_count >= p->min_count &&
			   p->max_count <= OP_NUMBERS_MAX && p->min <= p->max));
	CHECK(p->kind != PARAM_CHOICE || p->choices);
}

static void every_parameter_is_described(void)
{
	for (size_t i = 0; op_table_row(i); i++) {
		const struct op *op = op_table_row(i);
		size_t n = 0;

		for (; op->params && op->params[n].name; n++)
			check_param(op, &op->params[n]);
		CHECK(n <= OP_PARAMS_MAX);
	}
}

static const char *fitting(const struct param *p)
{
	static char word[32];

	if (p->kind == PARAM_OPERATIONS)
		return p->max_count > 1 ? "invert, invert" : "invert";
	if (p->choices) {
		snprintf(word, sizeof(word), "%.*s",
			 (int)strcspn(p->choices, "|"), p->choices);
		return word;
	}
	return p->kind == PARAM_BYTES ? "1GiB" : "7";
}

/* "NAME(x, y)" with values that fit the parameters that must be given. */
static void spell(const struct op *op, char *out, size_t size)
{
	const struct param *p = op->params;
	size_t used = (size_t)snprintf(out, size, "%s", op->name);

	for (; p && p->name && !p->initial; p++)
		used += (size_t)snprintf(out + used, size - used, "%s%s",
					 p == op->params ? "(" : ", ",
					 fitting(p));
	if (p != op->params)
		snprintf(out + used, size - used, ")");
}

static void every_row_binds_with_its_defaults(void)
{
	struct args args;
	char text[64];

	for (size_t i = 0; op_table_row(i); i++) {
		spell(op_table_row(i), text, sizeof(text));
		CHECK(!bind(text, &args));
	}
}

static double any(void *rng)
{
	return rng_uniform(rng);
}

static void check_geometry(const struct op *op, const struct args *args)
{
	struct rng rng = { .key = 5 };

	for (uint32_t i = 0; i < 300; i++) {
		struct size in = { 1 + i % 17 * 31, 1 + i % 13 * 29 };
		struct type from = { .kind = TYPE_IMAGE,
				     .dtype = DTYPE_U1,
				     .width = in.width,
				     .height = in.height };
		struct type to = from;
		struct draw d = { 0 };

		op->geometry->draw(args, (struct uniform){ any, &rng }, in, &d);
		if (!d.to.width) {
			CHECK(op->infer(args, &from, &to));
			continue;
		}
		CHECK(d.from.width && d.from.height);
		CHECK(range_ok(d.from.x, d.from.width, in.width));
		CHECK(range_ok(d.from.y, d.from.height, in.height));
		/* Crops of a fixed size refuse smaller images. */
		if (op->infer(args, &from, &to)) {
			CHECK(in.width < 7 || in.height < 7);
			continue;
		}
		CHECK(to.width == d.to.width && to.height == d.to.height);
	}
}

static void geometry_stays_inside_and_makes_the_size_it_infers(void)
{
	struct args args;
	char text[64];

	for (size_t i = 0; op_table_row(i); i++) {
		if (op_table_row(i)->kind != OP_GEOMETRY)
			continue;
		spell(op_table_row(i), text, sizeof(text));
		CHECK(!bind(text, &args));
		check_geometry(op_table_row(i), &args);
	}
	CHECK(!bind("random_resized_crop(\"3,5\", ratio=\"900,1000\")", &args));
	check_geometry(op_table_find("random_resized_crop"), &args);
	CHECK(!bind("center_crop(3, 0.00001)", &args));
	check_geometry(op_table_find("center_crop"), &args);
}

static void every_row_refuses_other_types(void)
{
	const struct type ragged = { .kind = TYPE_RAGGED, .dtype = DTYPE_U1 };
	struct type out;
	struct args args;
	char text[64];

	for (size_t i = 0; op_table_row(i); i++) {
		if (op_table_row(i)->kind == OP_SINK)
			continue;
		spell(op_table_row(i), text, sizeof(text));
		CHECK(!bind(text, &args));
		CHECK(op_table_row(i)->infer(&args, &ragged, &out));
	}
}

static void arguments_are_positional_or_named(void)
{
	struct args a, b;

	CHECK(!bind("center_crop(\"8, 16\", 0.5, bilinear)", &a));
	CHECK(!bind("center_crop(interpolation=bilinear, ratio=\"0.5\", "
		    "size=\"8,16\")",
		    &b));
	CHECK(a.arg[0].number[1] == b.arg[0].number[1]);
	CHECK(a.arg[1].number[0] == b.arg[1].number[0]);
	CHECK(op_size(&a.arg[0]).height == 8 && op_size(&a.arg[0]).width == 16);
	CHECK(a.arg[1].number[0] == 0.5 && a.arg[2].choice == 1);
	CHECK(!bind("random_resized_crop(9)", &a));
	CHECK(a.arg[1].number[0] == 0.08 && a.arg[1].number[1] == 1);
	CHECK(a.arg[2].number[0] == 0.75 && a.arg[2].number[1] == 4.0 / 3);
	CHECK(a.arg[3].choice == 0 && !a.arg[4].text);
}

/* The arguments of a text in an epoch, and the last epoch they hold for. */
static struct args bound(const char *text, uint64_t epoch, uint64_t end)
{
	struct epochs epochs = { epoch, UINT64_MAX };
	struct args args;

	CHECK(!bind_in(&epochs, text, &args));
	CHECK(epochs.now == epoch && epochs.end == end);
	return args;
}

static void numbers_may_change_with_the_epoch(void)
{
	static const char text[] =
		"random_resized_crop(\"0=160, 128 ,10 = 192,14=7\", "
		"scale=\"0=0.35,1,12=0.08,0.5\", group=a)";
	static const uint64_t epochs[] = {
		0, 9, 10, 11, 12, 13, 14, INT64_MAX
	};
	static const uint64_t ends[] = { 10, 10, 12,	     12,
					 14, 14, UINT64_MAX, UINT64_MAX };
	static const uint32_t widths[] = { 128, 128, 192, 192, 192, 192, 7, 7 };

	for (size_t i = 0; i < ARRAY_LEN(epochs); i++) {
		struct args a = bound(text, epochs[i], ends[i]);
		bool late = epochs[i] >= 12;

		CHECK(a.arg[0].given && a.arg[0].choice == -1);
		CHECK(a.arg[0].count == (i < 2 ? 2 : 1));
		CHECK(op_size(&a.arg[0]).width == widths[i]);
		CHECK(op_size(&a.arg[0]).height == (i < 2 ? 160 : widths[i]));
		CHECK(a.arg[1].number[0] == (late ? 0.08 : 0.35));
		CHECK(a.arg[1].number[1] == (late ? 0.5 : 1));
		CHECK(a.arg[2].number[0] == 0.75);
	}
	CHECK(bound("brightness(magnitude=\"0=0,5=0.4\")", 4, 5)
		      .arg[0]
		      .number[0] == 0);
	CHECK(bound("flip(\"0=1\")", 3, UINT64_MAX).arg[0].number[0] == 1);
	CHECK(bound("flip(\"0=1,9223372036854775807=0\")", 3, INT64_MAX)
		      .arg[0]
		      .number[0] == 1);
}

struct mistake {
	const char *text;
	const char *error;
};

static const struct mistake mistakes[] = {
	{ "center_crop", "column 1: center_crop needs `size': " },
	{ "center_crop(0)",
	  "column 13: size of center_crop takes whole numbers "
	  "from 1 to 16384, 1 to 2 of them, not `0'" },
	{ "center_crop(x)", "column 13: size of center_crop takes" },
	{ "center_crop(1.5)", "column 13: size of" },
	{ "center_crop(99999)", "column 13: size of" },
	{ "center_crop(\"1,2,3\")", "column 13: size of" },
	{ "center_crop(\"1,\")", "column 13: size of" },
	{ "center_crop(8, 2)",
	  "column 16: ratio of center_crop takes numbers" },
	{ "center_crop(8, 8)",
	  "column 16: ratio of center_crop takes numbers above 0 and "
	  "up to 1, not `8'; a list is quoted: \"8,8\"" },
	{ "random_resized_crop(48, 0.3, 1)",
	  "column 25: scale of random_resized_crop takes numbers above 0 and up to "
	  "1, 2 of them, as \"0.5,0.5\", not `0.3'; a list is quoted: \"0.3,1\"" },
	{ "rotate(-15, 15)", "column 13: interpolation of rotate takes one of "
			     "nearest, bilinear, not `15'; a list is quoted: "
			     "\"-15,15\"" },
	{ "gain(-6,6,db)", "column 9: unit of gain takes one of factor, db, "
			   "not `6'; a list is quoted: \"-6,6\"" },
	{ "normalize(mean=0.4, 0.5, 0.6, std=1)",
	  "column 21: an argument without a name follows one with a name; a "
	  "list is quoted: \"0.4,0.5,0.6\"" },
	{ "json(long)", "column 6: type of json takes one of float32, "
			"float64, float16, int64, int32, int16, int8, uint8, "
			"not `long', in" },
	{ "follow(a, XYXY)", "column 11: format of follow takes one of xyxy, "
			     "xywh, cxcywh, xy, not `XYXY'; did you mean "
			     "`xyxy'?" },
	{ "random_crop(8, pad_if_needed=True)",
	  "column 30: pad_if_needed of random_crop takes one of false, true, "
	  "not `True'; did you mean `true'?" },
	{ "cache(decoded, 1GB)",
	  "column 16: size of cache takes a size from 64KiB to 64TiB, not "
	  "`1GB'; units are KiB, MiB, GiB and TiB" },
	{ "flip(prob=1)", "column 6: flip has no parameter `prob'; it has p, "
			  "group" },
	{ "chw(x=1)", "column 5: chw has no parameter `x'; it has none" },
	{ "mixup", "column 1: mixup needs `alpha': " },
	{ "follow",
	  "column 1: follow needs `of': name of the output of the image" },
	{ "one_hot", "column 1: one_hot needs `classes': number of classes" },
	{ "cache", "column 1: cache needs an argument: decoded" },
	{ "center_crop(8, ratoi=1)", "column 16: center_crop has no parameter "
				     "`ratoi'; did you mean `ratio'?" },
	{ "center_crop(8, size=8)", "column 21: size of center_crop is given "
				    "twice" },
	{ "center_crop(ratio=1, 8)", "column 22: an argument without a name" },
	{ "chw(1)", "column 5: chw takes 0 arguments at most" },
	{ "decode(good)",
	  "column 8: quality of decode takes one of default, exact, "
	  "draft, gray, gray16, rgb, rgb16, not `good'" },
	{ "decode(quality=1, 2)", "column 16: quality of decode takes one of" },
	{ "flip(1.01)", "column 6: p of flip takes numbers from 0 to 1" },
	{ "flip(nan)", "column 6: p of flip" },
	{ "flip(group=\"\")", "column 12: group of flip is empty" },
	{ "resize(8, interpolation=cubic)",
	  "column 25: interpolation of resize "
	  "takes one of area, bilinear, nearest, bicubic, lanczos, not "
	  "`cubic'; did you mean `bicubic'?" },
	{ "resize(8, INTER_LANCZOS4)",
	  "column 11: interpolation of resize takes one of area, bilinear, "
	  "nearest, bicubic, lanczos, not `INTER_LANCZOS4'; did you mean "
	  "`lanczos'?" },
	{ "resize(8, InterpolationMode.NEAREST)",
	  "column 11: interpolation of resize takes one of area, bilinear, "
	  "nearest, bicubic, lanczos, not `InterpolationMode.NEAREST'; did you "
	  "mean `nearest'?" },
	{ "resize(8, side=longest)",
	  "column 16: side of resize takes one of shorter, longer, not "
	  "`longest'; did you mean `longer'?" },
	{ "resize(\"8,9\", max_size=20)",
	  "column 1: resize: \"H,W\" sets both sides" },
	{ "resize(\"8,9\", side=longer)",
	  "column 1: resize: \"H,W\" sets both sides" },
	{ "resize(8, side=longer, max_size=20)",
	  "column 1: resize: side=longer is the most of both sides" },
	{ "resize(8, max_size=8)",
	  "column 1: resize: max_size must be greater" },
	{ "resize(8, max_size=0)",
	  "column 20: max_size of resize takes whole numbers from 1 to 16384" },
	{ "random_resized_crop(8, scale=\"1,0.5\")", "column 1: random_resized_"
						     "crop: the least scale" },
	{ "random_resized_crop(8, scale=0.5)",
	  "column 30: scale of random_"
	  "resized_crop takes numbers above 0 and up to 1, 2 of them" },
	{ "normalize(0.5)", "column 1: normalize: std is missing" },
	{ "normalize(imagenet, 1)", "column 1: normalize: imagenet sets std" },
	{ "normalize(\"0,0\", \"1,1,1\")",
	  "column 1: normalize: one number, or" },
	{ "normalize(123.675, 58)",
	  "column 11: mean of normalize takes numbers "
	  "from 0 to 1" },
	{ "normalize(imagnet)", "column 11: mean of normalize takes" },
	{ "flip(\"1=0.5\")",
	  "column 7: p of flip: the first epoch is 0, not 1" },
	{ "flip(\"0.5,1=0\")",
	  "column 7: p of flip: `0=' is missing before the first" },
	{ "flip(\"0=1,5=0,5=1\")",
	  "column 15: p of flip: epoch 5 does not come after 5" },
	{ "flip(\"0=1, 5=0,2=1\")",
	  "column 16: p of flip: epoch 2 does not come after 5" },
	{ "flip(\"0=1,x=0\")",
	  "column 11: p of flip: `x' is not the number of an epoch" },
	{ "flip(\"0=1,9223372036854775808=0\")",
	  "column 11: p of flip: `9223372036854775808' is not" },
	{ "flip(\"0=1,=0\")", "column 11: p of flip: `' is not the number" },
	{ "flip(\"0=1=2\")",
	  "column 10: p of flip: a comma is missing before an epoch" },
	{ "flip(\"0=\")", "column 9: p of flip takes numbers from 0 to 1, not "
			  "`'" },
	{ "flip(\"0=1,7=2\")",
	  "column 13: p of flip takes numbers from 0 to 1, not `2'" },
	{ "flip(\"0=1,\")", "column 9: p of flip takes" },
	{ "center_crop(\"0=8,9=1,2,3,12=4\")",
	  "column 20: size of center_crop takes whole numbers from 1 to "
	  "16384, 1 to 2 of them, not `1,2,3'" },
	{ "center_crop(0=8)", "column 13: numbers that change with the epoch" },
	{ "normalize(\"0=imagenet\")", "column 14: mean of normalize takes" },
	{ "decode(\"0=exact\")", "column 8: quality of decode takes one of" },
};

static void mistakes_are_reported_where_they_are(void)
{
	struct args args;

	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		const struct mistake *m = &mistakes[i];

		CHECK(bind(m->text, &args) == -EINVAL);
		if (strncmp(error, m->error, strlen(m->error)) != 0)
			fprintf(stderr, "%s: %s\n", m->text, error);
		CHECK(!strncmp(error, m->error, strlen(m->error)));
	}
}

static double never(void *unused)
{
	(void)unused;
	exit(1);
}

/* A value of a channel through an operation that draws nothing. */
static float apply(const struct op *op, const struct args *args,
		   unsigned channel, float v)
{
	float operands[OP_OPERANDS_MAX];

	op->value->operands(args, DTYPE_U1, channel,
			    (struct uniform){ never, NULL }, operands);
	return op->value->point(v, operands);
}

static void normalize_is_subtraction_and_one_product_in_float(void)
{
	const struct op *op = op_table_find("normalize");
	struct args args;

	CHECK(!bind("normalize(imagenet)", &args));
	CHECK(apply(op, &args, 0, 7) ==
	      (7 - (float)(255 * 0.485)) * (float)(1 / (255 * 0.229)));
	CHECK(apply(op, &args, 2, 255) ==
	      (255 - (float)(255 * 0.406)) * (float)(1 / (255 * 0.225)));
	CHECK(!bind("normalize(\"0,0.25,1\", 0.5)", &args));
	CHECK(apply(op, &args, 0, 255) == 255 * (float)(1 / 127.5));
	CHECK(apply(op, &args, 2, 255) == 0);
}

/* Draws 0, then 0.75, then 0 again. */
static double zero_and_more(void *position)
{
	return 0.75 * (double)((*(int *)position)++ & 1);
}

/* A pixel through an operation that draws these. */
static void color(const char *text, enum dtype in, float v[3])
{
	struct args args;
	float operands[OP_OPERANDS_MAX];
	char name[32] = "";
	const struct op *op;
	int at = 0;

	memcpy(name, text, strcspn(text, "("));
	op = op_table_find(name);
	CHECK(!bind(text, &args));
	op->value->operands(&args, in, 0,
			    (struct uniform){ zero_and_more, &at }, operands);
	if (op->value->pixel)
		op->value->pixel(v, operands);
	for (int c = 0; op->value->point && c < 3; c++)
		v[c] = op->value->point(v[c], operands);
}

static bool is_color(const char *text, enum dtype in, float r, float g, float b)
{
	float v[3] = { 200, 100, 3 };

	color(text, in, v);
	return v[0] == r && v[1] == g && v[2] == b;
}

static void colors_match_the_manual(void)
{
	float gray = 0.2989F * 200 + 0.587F * 100 + 0.114F * 3;

	/* 1 - 0.5 + 0.75 (1.5 - 0.5) is 1.25. */
	CHECK(is_color("brightness(0.5)", DTYPE_U1, 250, 125, 3.75F));
	CHECK(is_color("brightness(0.5, 0)", DTYPE_U1, 200, 100, 3));
	CHECK(is_color("brightness(3)", DTYPE_U1, 600, 300, 9));
	CHECK(is_color("saturation(0.5)", DTYPE_U1, 250 - 0.25F * 118,
		       125 - 0.25F * 118, 3.75F - 0.25F * 118));
	CHECK(is_color("saturation(0.5)", DTYPE_F4, 250 - 0.25F * gray,
		       125 - 0.25F * gray, 3.75F - 0.25F * gray));
	CHECK(is_color("saturation(0.5, 0)", DTYPE_U1, 200, 100, 3));
	CHECK(is_color("grayscale", DTYPE_U1, gray, gray, gray));
	CHECK(is_color("grayscale(0)", DTYPE_U1, 200, 100, 3));
	CHECK(is_color("invert", DTYPE_U1, 55, 155, 252));
	CHECK(is_color("invert(0)", DTYPE_U1, 200, 100, 3));
	CHECK(is_color("solarize", DTYPE_U1, 55, 100, 3));
	CHECK(is_color("solarize(100)", DTYPE_U1, 55, 155, 3));
	CHECK(is_color("solarize(100, 0)", DTYPE_U1, 200, 100, 3));
	CHECK(is_color("posterize(1)", DTYPE_U1, 128, 0, 0));
	CHECK(is_color("posterize(7)", DTYPE_U1, 200, 100, 2));
	CHECK(is_color("posterize(8)", DTYPE_U1, 200, 100, 3));
	CHECK(is_color("posterize(1, 0)", DTYPE_U1, 200, 100, 3));
}

static void resize_of_one_number_keeps_the_aspect_as_torchvision(void)
{
	const struct op *op = op_table_find("resize");
	struct uniform none = { 0 };
	struct args args;
	struct draw d;

	CHECK(!bind("resize(256)", &args));
	op->geometry->draw(&args, none, (struct size){ 500, 375 }, &d);
	CHECK(d.to.width == 341 && d.to.height == 256);
	op->geometry->draw(&args, none, (struct size){ 375, 500 }, &d);
	CHECK(d.to.width == 256 && d.to.height == 341);
	op->geometry->draw(&args, none, (struct size){ 1, 65535 }, &d);
	CHECK(d.to.width == 256 && d.to.height == 16384);
	CHECK(!bind("resize(\"30,40\")", &args));
	op->geometry->draw(&args, none, (struct size){ 500, 375 }, &d);
	CHECK(d.to.width == 40 && d.to.height == 30);
}

/* Whether the text is found before another one that begins an entry. */
static bool is_before(const char *at, const char *text, const char *end)
{
	const char *found = strstr(at, text);
	const char *limit = strstr(at, end);

	return found && (!limit || found < limit);
}

/*
 * Whether the manual's list has an entry of the operation with a parameter, in
 * the line of the entry with its default, or in the text of the entry. An
 * operation may have several entries, and `param` may be NULL.
 */
static bool is_documented(const char *manual, const struct op *op,
			  const struct param *param)
{
	const char *at = manual, *value;
	char entry[64], name[64], own[64];

	snprintf(entry, sizeof(entry), "\n.It Cm %s", op->name);
	snprintf(name, sizeof(name), " %s", param ? param->name : "");
	snprintf(own, sizeof(own), "\n.Ar %s", param ? param->name : "");
	while ((at = strstr(at, entry))) {
		at += strlen(entry);
		if (!strchr("\n ", *at))
			continue;
		if (!param || is_before(at, own, "\n.It Cm"))
			return true;
		if (!is_before(at, name, "\n"))
			continue;
		if (!param->initial || !*param->initial)
			return true;
		value = strstr(at, name) + strlen(name);
		if (strncmp(value, " Ns = Ns ", 9))
			continue;
		value += 9;
		value += strncmp(value, "Cm ", 3) ? 0 : 3;
		value += strncmp(value, "\\(dq", 4) ? 0 : 4;
		if (!strncmp(value, param->initial, strlen(param->initial)) &&
		    strchr(" \\\n", value[strlen(param->initial)]))
			return true;
	}
	return false;
}

static void the_manual_has_every_operation_and_parameter(void)
{
	static char manual[1 << 17];
	FILE *f = fopen("loader/pipeline/ops/beton-operations.7", "r");

	if (!f) {
		printf("skip: no loader/pipeline/ops/beton-operations.7 here\n");
		return;
	}
	CHECK(fread(manual, 1, sizeof(manual) - 1, f) > 0);
	fclose(f);
	for (size_t i = 0; op_table_row(i); i++) {
		const struct param *p = op_table_row(i)->params;

		CHECK(is_documented(manual, op_table_row(i), NULL));
		for (; p && p->name; p++)
			CHECK(is_documented(manual, op_table_row(i), p));
	}
}

int main(void)
{
	every_row_is_complete_and_found_by_its_name();
	names_of_torchvision_are_accepted();
	british_spelling_is_accepted();
	every_parameter_is_described();
	every_row_binds_with_its_defaults();
	geometry_stays_inside_and_makes_the_size_it_infers();
	every_row_refuses_other_types();
	arguments_are_positional_or_named();
	numbers_may_change_with_the_epoch();
	mistakes_are_reported_where_they_are();
	normalize_is_subtraction_and_one_product_in_float();
	colors_match_the_manual();
	resize_of_one_number_keeps_the_aspect_as_torchvision();
	the_manual_has_every_operation_and_parameter();
	return 0;
}
