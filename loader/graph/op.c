/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "fs/util/typed.h"
#include "loader/graph/diagnostic.h"
#include "loader/graph/parse.h"
#include "loader/graph/schedule.h"
#include "loader/graph/token.h"

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

/* Of a word or a size; other numbers are reals. */
static struct typed type_of(const struct param *param)
{
	if (param->kind != PARAM_BYTES)
		return (struct typed)TYPED_WORD_OF(param->words);
	return (struct typed)TYPED_SIZE_IN((uint64_t)param->min,
					   (uint64_t)param->max);
}

static int word_index(const struct param *param, const char *word)
{
	const struct typed type = TYPED_WORD_OF(param->words);
	uint64_t i;

	return typed_parse_string(&type, word, &i) ? (int)i : -1;
}

/* What is wrong with a value, told where it stands. */
struct place {
	const struct complaint *complaint;
	struct epochs *epochs;
	const struct op *op;
	const struct param *param;
	const char *value;
	size_t at;
};

static int wrong_value(const struct place *p)
{
	const struct typed type = type_of(p->param);
	char expected[TYPED_EXPECTED_SIZE];

	return complain(p->complaint, p->at, "%s of %s takes %s, not `%s'",
			p->param->name, p->op->name,
			typed_expected(&type, expected), p->value);
}

/* Where a part of a value stands in the text; escapes are not looked at. */
static size_t part_at(const struct place *p, const char *part)
{
	bool quoted = p->complaint->text[p->at] == '"';

	return p->at + (quoted ? 1 + (size_t)(part - p->value) : 0);
}

/* A plain value is quoted whole, of a schedule the numbers of the epoch. */
static int wrong_number(const struct place *p, const struct schedule *s)
{
	const struct param *param = p->param;
	const char *value = s->is_scheduled ? s->numbers : p->value;
	char count[48] = "";

	if (param->max_count > 1 && param->min_count == param->max_count)
		snprintf(count, sizeof(count), "%u of them, as \"0.5,0.5\", ",
			 param->max_count);
	else if (param->max_count > 1)
		snprintf(count, sizeof(count), "%u to %u of them, ",
			 param->min_count, param->max_count);
	return complain(
		p->complaint, s->is_scheduled ? part_at(p, s->numbers) : p->at,
		"%s of %s takes %s from %.9g to %.9g, %snot `%.*s'",
		param->name, p->op->name,
		param->kind == PARAM_INTEGERS ? "whole numbers" : "numbers",
		param->min, param->max, count, (int)(s->end - value), value);
}

static bool number_ok(const struct param *param, double v)
{
	return v >= param->min && v <= param->max &&
	       (param->kind == PARAM_REALS || v == (double)(int64_t)v);
}

/* Numbers separated by commas, blanks around them allowed. */
static int bind_numbers(const struct place *p, const struct schedule *s,
			struct arg *out)
{
	const char *at = s->numbers, *end, *last;
	unsigned n = 0;
	double v;

	for (;; at = end + 1) {
		at += strspn(at, " \t");
		end = at + min_u64(strcspn(at, ","), (size_t)(s->end - at));
		last = end;
		while (last > at && (last[-1] == ' ' || last[-1] == '\t'))
			last--;
		if (n == p->param->max_count || token_number(at, last, &v) ||
		    !number_ok(p->param, v))
			return wrong_number(p, s);
		out->number[n++] = v;
		if (end == s->end)
			break;
	}
	if (n < p->param->min_count)
		return wrong_number(p, s);
	out->count = n;
	return 0;
}

/* The numbers of the epoch; those of the others are looked at too. */
static int bind_schedule(const struct place *p, struct arg *out)
{
	struct schedule s = { .rest = p->value };
	struct arg arg = *out;
	int r = 0;

	while (!r && s.rest) {
		if (schedule_next(&s))
			return complain(p->complaint, part_at(p, s.at),
					"%s of %s: %s", p->param->name,
					p->op->name, s.wrong);
		r = bind_numbers(p, &s, &arg);
		if (!r && epochs_reach(p->epochs, s.epoch))
			*out = arg;
	}
	return r;
}

/* Exact as a double: sizes are below 2^53. */
static int bind_bytes(const struct place *p, struct arg *out)
{
	const struct typed type = type_of(p->param);
	uint64_t v;

	if (!typed_parse_string(&type, p->value, &v))
		return wrong_value(p);
	out->number[0] = (double)v;
	out->count = 1;
	return 0;
}

static int bind_value(const struct place *p, struct arg *out)
{
	*out = (struct arg){ .word = word_index(p->param, p->value) };
	if (p->param->kind == PARAM_NAME) {
		out->text = p->value;
		if (*p->value)
			return 0;
		return complain(p->complaint, p->at, "%s of %s is empty",
				p->param->name, p->op->name);
	}
	if (out->word >= 0)
		return 0;
	if (p->param->kind == PARAM_WORD)
		return wrong_value(p);
	if (p->param->kind == PARAM_BYTES)
		return bind_bytes(p, out);
	return bind_schedule(p, out);
}

static int unknown_param(const struct op *op, const struct parse_arg *arg,
			 const struct complaint *c)
{
	struct suggestion s = { .word = arg->name };
	char text[80];

	if (*arg->name >= '0' && *arg->name <= '9')
		return complain(c, arg->name_at,
				"numbers that change with the epoch are "
				"quoted: \"0=160,10=192\"");
	for (size_t i = 0; op->params && op->params[i].name; i++)
		suggest_try(&s, op->params[i].name);
	return complain(c, arg->name_at, "%s has no parameter `%s'%s", op->name,
			arg->name, suggest_text(&s, text, sizeof(text)));
}

/* The index of the parameter that an argument is for, or -EINVAL. */
static int find_param(const struct op *op, const struct parse_arg *arg,
		      size_t position, const struct complaint *c)
{
	int i;

	if (arg->name) {
		i = op_param(op, arg->name);
		return i < 0 ? unknown_param(op, arg, c) : i;
	}
	for (i = 0; op->params && op->params[i].name; i++) {
		if ((size_t)i == position)
			return i;
	}
	return complain(c, arg->value_at, "%s takes %d argument%s at most",
			op->name, i, i == 1 ? "" : "s");
}

static int bind_given(const struct op *op, const struct parse *parse,
		      const struct parse_stage *stage, struct epochs *epochs,
		      const struct complaint *c, struct args *out)
{
	bool named = false;
	int r = 0;

	for (size_t i = 0; !r && i < stage->num_args; i++) {
		const struct parse_arg *arg =
			&parse->args[stage->first_arg + i];
		struct place place = { .complaint = c,
				       .epochs = epochs,
				       .op = op,
				       .value = arg->value,
				       .at = arg->value_at };
		int param;

		if (named && !arg->name)
			return complain(c, arg->value_at,
					"an argument without a name follows "
					"one with a name");
		named = arg->name;
		param = find_param(op, arg, i, c);
		if (param < 0)
			return param;
		if (out->arg[param].given)
			return complain(c, arg->value_at,
					"%s of %s is given twice",
					op->params[param].name, op->name);
		place.param = &op->params[param];
		r = bind_value(&place, &out->arg[param]);
		out->arg[param].given = true;
	}
	return r;
}

int op_bind(const struct op *op, const struct parse *parse,
	    const struct parse_stage *stage, struct epochs *epochs,
	    const struct complaint *c, struct args *out)
{
	const struct param *p;
	const char *wrong;
	int r;

	*out = (struct args){ 0 };
	r = bind_given(op, parse, stage, epochs, c, out);
	for (int i = 0; !r && op->params && op->params[i].name; i++) {
		p = &op->params[i];
		if (out->arg[i].given)
			continue;
		if (!p->initial)
			return complain(c, stage->at, "%s needs a %s", op->name,
					p->name);
		out->arg[i].word = -1;
		if (*p->initial)
			r = bind_value(&(struct place){ .complaint = c,
							.epochs = epochs,
							.op = op,
							.param = p,
							.value = p->initial,
							.at = stage->at },
				       &out->arg[i]);
	}
	wrong = !r && op->check ? op->check(out) : NULL;
	return wrong ? complain(c, stage->at, "%s: %s", op->name, wrong) : r;
}

bool op_args_equal(const struct args *a, const struct args *b)
{
	for (size_t i = 0; i < OP_PARAMS_MAX; i++) {
		const struct arg *x = &a->arg[i], *y = &b->arg[i];

		if (x->count != y->count || x->word != y->word)
			return false;
		for (unsigned k = 0; k < x->count; k++) {
			if (x->number[k] != y->number[k])
				return false;
		}
	}
	return true;
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
		return "works on single numbers only";
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
