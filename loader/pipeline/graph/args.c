/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/graph/args.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/suggest.h"
#include "fs/base/util/typed.h"
#include "loader/pipeline/graph/synonym.h"
#include "loader/pipeline/text/diagnostic.h"
#include "loader/pipeline/text/parse.h"
#include "loader/pipeline/text/schedule.h"
#include "loader/pipeline/text/token.h"

enum { PARAMS_TEXT_SIZE = 240, HINT_SIZE = 160 };

static const double TINY = 1e-5;

/* The type of choices and sizes; other numbers have the type `double`. */
static struct typed type_of(const struct param *param)
{
	if (param->kind != PARAM_BYTES)
		return (struct typed)TYPED_WORD_OF(param->choices);
	return (struct typed)TYPED_SIZE_IN((uint64_t)param->min,
					   (uint64_t)param->max);
}

static int word_index(const struct param *param, const char *word)
{
	const struct typed type = TYPED_WORD_OF(param->choices);
	char american[SYNONYM_AMERICAN_SIZE];
	uint64_t i;

	if (typed_parse_string(&type, word, &i) ||
	    (synonym_american(word, american) &&
	     typed_parse_string(&type, american, &i)))
		return (int)i;
	return -1;
}

/* A value, and its position in the pipeline string for messages. */
struct args_place {
	const struct parse_arg
		*args; /* this argument and all after it; NULL for a default */
	size_t num_args;
	bool follows; /* has no name, and is not the first argument */
	const struct diagnostic *diagnostic;
	struct epochs *epochs;
	const struct op *op;
	const struct param *param;
	const char *value;
	size_t at;
};

static bool number_ok(const struct param *param, double v)
{
	return v >= param->min && v <= param->max &&
	       (param->kind == PARAM_REALS || v == (double)(int64_t)v);
}

/* Whether an argument is one valid number of a parameter. */
static bool is_number_of(const struct param *param, const struct parse_arg *arg)
{
	double v;

	return arg->is_plain &&
	       !token_number(arg->value, arg->value + strlen(arg->value), &v) &&
	       number_ok(param, v);
}

/* If the numbers from `args` on look like one value of a parameter, appends the
   advice '; a list is quoted: "8,8"'. */
static bool quote_list(const struct param *param, const struct parse_arg *args,
		       size_t num_args, char *out, size_t size)
{
	size_t count = 0, n;

	*out = '\0';
	if (param->kind != PARAM_REALS && param->kind != PARAM_INTEGERS)
		return false;
	while (count < num_args && count < param->max_count &&
	       (!count || !args[count].name) &&
	       is_number_of(param, &args[count]))
		count++;
	if (count < 2)
		return false;
	n = (size_t)snprintf(out, size, "; a list is quoted: \"");
	for (size_t i = 0; i < count && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%.20s",
				      i ? "," : "", args[i].value);
	if (n < size)
		snprintf(out + n, size - n, "\"");
	return true;
}

/* The list can begin with the previous argument. */
static const char *list_hint(const struct args_place *p, char *out, size_t size)
{
	*out = '\0';
	if (!p->args ||
	    (p->follows && p->param > p->op->params &&
	     quote_list(p->param - 1, p->args - 1, p->num_args + 1, out, size)))
		return out;
	quote_list(p->param, p->args, p->num_args, out, size);
	return out;
}

/* Appends a suggestion for an unknown choice. */
static const char *word_hint(const struct args_place *p, char *out, size_t size)
{
	const struct synonym *synonym = synonym_of_value(p->value);
	struct suggestion s = { .word = p->value };
	char words[240], *rest = words, *word;

	if (synonym &&
	    (!synonym->ours || word_index(p->param, synonym->ours) >= 0))
		return synonym_text(synonym, out, size);
	snprintf(words, sizeof(words), "%s", p->param->choices);
	while ((word = strsep(&rest, "|")))
		suggest_try(&s, word);
	return suggest_text(&s, out, size);
}

static int wrong_value(const struct args_place *p)
{
	const struct typed type = type_of(p->param);
	char expected[TYPED_EXPECTED_SIZE], hint[HINT_SIZE];

	if (p->param->kind == PARAM_BYTES)
		snprintf(hint, sizeof(hint),
			 "; units are KiB, MiB, GiB and TiB");
	else if (!*list_hint(p, hint, sizeof(hint)))
		word_hint(p, hint, sizeof(hint));
	return complain(p->diagnostic, p->at, "%s of %s takes %s, not `%s'%s",
			p->param->name, p->op->name,
			typed_expected(&type, expected), p->value, hint);
}

/* The offset of a part of a value in the pipeline string. Ignores escapes. */
static size_t part_at(const struct args_place *p, const char *part)
{
	bool quoted = p->diagnostic->text[p->at] == '"';

	return p->at + (quoted ? 1 + (size_t)(part - p->value) : 0);
}

/* Whether a parameter is a truth value, whose choices are "false|true". */
static bool is_flag(const struct param *param)
{
	return param->kind == PARAM_INTEGERS && param->choices &&
	       strchr(param->choices, '|') && !param->min && param->max == 1;
}

/* Writes "from LEAST to MOST". A tiny least number stands for "above 0". */
static const char *limits_text(const struct param *param, char *out,
			       size_t size)
{
	if (param->min > 0 && param->min < TINY)
		snprintf(out, size, "above 0 and up to %.9g", param->max);
	else
		snprintf(out, size, "from %.9g to %.9g", param->min,
			 param->max);
	return out;
}

/* Quotes a plain value whole, or the current numbers of a schedule. */
static int wrong_number(const struct args_place *p, const struct schedule *s)
{
	const struct param *param = p->param;
	const char *value = s->is_scheduled ? s->numbers : p->value;
	char count[48] = "", hint[HINT_SIZE], words[80] = "", limits[64];

	if (is_flag(param))
		return wrong_value(p);
	if (param->choices)
		snprintf(words, sizeof(words), "or %.70s, ", param->choices);
	if (param->max_count > 1 && param->min_count == param->max_count)
		snprintf(count, sizeof(count), "%u of them, as \"0.5,0.5\", ",
			 param->max_count);
	else if (param->max_count > 1)
		snprintf(count, sizeof(count), "%u to %u of them, ",
			 param->min_count, param->max_count);
	return complain(
		p->diagnostic, s->is_scheduled ? part_at(p, s->numbers) : p->at,
		"%s of %s takes %s %s, %s%snot `%.*s'%s", param->name,
		p->op->name,
		param->kind == PARAM_INTEGERS ? "whole numbers" : "numbers",
		limits_text(param, limits, sizeof(limits)), count, words,
		(int)(s->end - value), value, list_hint(p, hint, sizeof(hint)));
}

/* Parses numbers separated by commas, with optional blanks around them. */
static int bind_numbers(const struct args_place *p, const struct schedule *s,
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

/* Resolves the numbers of the epoch, and checks those of all other epochs. */
static int bind_schedule(const struct args_place *p, struct arg *out)
{
	struct schedule s = { .rest = p->value };
	struct arg arg = *out;
	int r = 0;

	while (!r && s.rest) {
		if (schedule_next(&s))
			return complain(p->diagnostic, part_at(p, s.at),
					"%s of %s: %s", p->param->name,
					p->op->name, s.wrong);
		r = bind_numbers(p, &s, &arg);
		if (!r && epochs_reach(p->epochs, s.epoch))
			*out = arg;
	}
	return r;
}

/* A double stores sizes exactly, because they are below 2^53. */
static int bind_bytes(const struct args_place *p, struct arg *out)
{
	const struct typed type = type_of(p->param);
	uint64_t v;

	if (!typed_parse_string(&type, p->value, &v))
		return wrong_value(p);
	out->number[0] = (double)v;
	out->count = 1;
	return 0;
}

static int bind_value(const struct args_place *p, struct arg *out)
{
	*out = (struct arg){ .choice = word_index(p->param, p->value) };
	if (p->param->kind == PARAM_NAME) {
		out->text = p->value;
		if (*p->value)
			return 0;
		return complain(p->diagnostic, p->at, "%s of %s is empty",
				p->param->name, p->op->name);
	}
	if (out->choice >= 0)
		return 0;
	if (p->param->kind == PARAM_CHOICE)
		return wrong_value(p);
	if (p->param->kind == PARAM_BYTES)
		return bind_bytes(p, out);
	return bind_schedule(p, out);
}

/* Writes "; it has A, B", or "; it has none". */
static const char *list_params(const struct op *op, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, "; it has");

	for (size_t i = 0; op->params && op->params[i].name && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s %s", i ? "," : "",
				      op->params[i].name);
	if (!op->params || !op->params[0].name)
		snprintf(out + n, size - n, " none");
	return out;
}

static int unknown_param(const struct op *op, const struct parse_arg *arg,
			 const struct diagnostic *c)
{
	struct suggestion s = { .word = arg->name };
	char text[PARAMS_TEXT_SIZE];

	if (*arg->name >= '0' && *arg->name <= '9')
		return complain(c, arg->name_at,
				"numbers that change with the epoch are "
				"quoted: \"0=160,10=192\"");
	for (size_t i = 0; op->params && op->params[i].name; i++)
		suggest_try(&s, op->params[i].name);
	return complain(c, arg->name_at, "%s has no parameter `%s'%s", op->name,
			arg->name,
			s.best ? suggest_text(&s, text, sizeof(text))
			       : list_params(op, text, sizeof(text)));
}

/* A parameter of several lists takes all arguments without a name. */
static int at_position(const struct op *op, size_t position)
{
	int i = op_lists(op);

	if (i >= 0 && op->params[i].max_count > 1)
		return i;
	for (i = 0; op->params && op->params[i].name; i++) {
		if ((size_t)i == position)
			return i;
	}
	return -1;
}

int args_param(const struct op *op, const struct parse_arg *arg,
	       size_t position)
{
	return arg->name ? op_param(op, arg->name) : at_position(op, position);
}

/* Returns the index of an argument's parameter, or -EINVAL. */
static int find_param(const struct op *op, const struct parse_arg *arg,
		      size_t position, const struct diagnostic *c)
{
	int i = args_param(op, arg, position), most = 0;

	if (i >= 0)
		return i;
	if (arg->name)
		return unknown_param(op, arg, c);
	while (op->params && op->params[most].name)
		most++;
	if (op_lists(op) >= 0 && !arg->is_plain)
		return complain(c, arg->value_at,
				"%s takes one list of operations; join them by "
				"`|'",
				op->name);
	return complain(c, arg->value_at, "%s takes %d argument%s at most",
			op->name, most, most == 1 ? "" : "s");
}

/* Counts a list of operations. The caller resolves it. */
static int bind_list(const struct args_place *p, const struct parse_arg *arg,
		     struct arg *out)
{
	if (out->given && p->param->max_count == 1)
		return complain(p->diagnostic, p->at, "%s of %s is given twice",
				p->param->name, p->op->name);
	if (out->count == p->param->max_count)
		return complain(p->diagnostic, p->at,
				"%s takes %u lists of operations at most",
				p->op->name, p->param->max_count);
	if (arg->name && p->param->max_count > 1)
		return complain(p->diagnostic, arg->name_at,
				"%s of %s have no name: list them first",
				p->param->name, p->op->name);
	*out = (struct arg){ .count = out->count + 1, .choice = -1 };
	return 0;
}

/* Binds a value, or counts a list of operations. */
static int bind_arg(const struct args_place *p, const struct parse_arg *arg,
		    struct arg *out)
{
	if (p->param->kind == PARAM_OPERATIONS)
		return bind_list(p, arg, out);
	if (out->given)
		return complain(p->diagnostic, p->at, "%s of %s is given twice",
				p->param->name, p->op->name);
	if (arg->is_plain)
		return bind_value(p, out);
	return complain(p->diagnostic, p->at,
			"%s of %s is a value, and takes no operations",
			p->param->name, p->op->name);
}

/* Complains of `arg`, which has no name, behind an argument with a name. */
static int unnamed(const struct op *op, const struct parse_arg *arg,
		   size_t num_args, const struct diagnostic *c)
{
	int before = op_param(op, arg[-1].name);
	char hint[HINT_SIZE] = "";

	if (before >= 0)
		quote_list(&op->params[before], arg - 1, num_args + 1, hint,
			   sizeof(hint));
	return complain(c, arg->value_at,
			"an argument without a name follows one with a name%s",
			hint);
}

static int bind_given(const struct op *op, const struct parse *parse,
		      const struct parse_stage *stage, struct epochs *epochs,
		      const struct diagnostic *c, struct args *out)
{
	bool named = false;
	int r = 0;

	for (size_t i = 0; !r && i < stage->num_args; i++) {
		const struct parse_arg *arg =
			&parse->args[stage->first_arg + i];
		struct args_place place = { .diagnostic = c,
					    .epochs = epochs,
					    .op = op,
					    .args = arg,
					    .num_args = stage->num_args - i,
					    .follows = i && !arg->name,
					    .value = arg->value,
					    .at = arg->value_at };
		int param;

		if (named && !arg->name)
			return unnamed(op, arg, stage->num_args - i, c);
		named = arg->name;
		param = find_param(op, arg, i, c);
		if (param < 0)
			return param;
		place.param = &op->params[param];
		r = bind_arg(&place, arg, &out->arg[param]);
		out->arg[param].given = true;
	}
	return r;
}

static int missing_argument(const struct op *op, const struct param *p,
			    const struct parse_stage *stage,
			    const struct diagnostic *c)
{
	const struct typed type = type_of(p);
	char expected[TYPED_EXPECTED_SIZE];

	if (p->kind == PARAM_CHOICE)
		return complain(c, stage->at, "%s needs an argument: %s",
				op->name, typed_expected(&type, expected));
	if (p->kind == PARAM_OPERATIONS)
		return complain(c, stage->at,
				"%s needs operations in parentheses: %s(%s)",
				op->name, op->name,
				p->max_count > 1 ? "invert, grayscale"
						 : "invert");
	return complain(c, stage->at, "%s needs `%s': %s", op->name, p->name,
			p->help);
}

/* Several lists are alternatives. The author of one list may have meant
   several. */
static int check_lists(const struct op *op, const struct parse_stage *stage,
		       const struct diagnostic *c, const struct args *args)
{
	int i = op_lists(op);

	if (i < 0 || args->arg[i].count >= op->params[i].min_count)
		return 0;
	return complain(c, stage->at,
			"%s needs %u lists of operations or more; a comma "
			"separates them, and `|' joins those of one list",
			op->name, op->params[i].min_count);
}

/* The default of a parameter. An alias in the stage can replace it. */
static const char *initial_of(const struct parse_stage *stage,
			      const struct op *op, const struct param *param)
{
	const struct alias *a =
		strcmp(stage->name, op->name) ? alias_of(stage->name) : NULL;

	return a && a->param && !strcmp(a->param, param->name) ? a->initial
							       : param->initial;
}

int args_bind(const struct op *op, const struct parse *parse,
	      const struct parse_stage *stage, struct epochs *epochs,
	      const struct diagnostic *c, struct args *out)
{
	const char *wrong, *initial;
	const struct param *p;
	int r;

	*out = (struct args){ 0 };
	r = bind_given(op, parse, stage, epochs, c, out);
	for (int i = 0; !r && op->params && op->params[i].name; i++) {
		p = &op->params[i];
		if (out->arg[i].given)
			continue;
		initial = initial_of(stage, op, p);
		if (!initial)
			return missing_argument(op, p, stage, c);
		out->arg[i].choice = -1;
		if (*initial)
			r = bind_value(&(struct args_place){ .diagnostic = c,
							     .epochs = epochs,
							     .op = op,
							     .param = p,
							     .value = initial,
							     .at = stage->at },
				       &out->arg[i]);
	}
	if (!r)
		r = check_lists(op, stage, c, out);
	wrong = !r && op->check ? op->check(out) : NULL;
	return wrong ? complain(c, stage->at, "%s: %s", op->name, wrong) : r;
}

bool args_equal(const struct args *a, const struct args *b)
{
	for (size_t i = 0; i < OP_PARAMS_MAX; i++) {
		const struct arg *x = &a->arg[i], *y = &b->arg[i];

		if (x->count != y->count || x->choice != y->choice)
			return false;
		for (unsigned k = 0; k < x->count; k++) {
			if (x->number[k] != y->number[k])
				return false;
		}
	}
	return true;
}
