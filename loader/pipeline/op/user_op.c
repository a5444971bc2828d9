/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/user_op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/pipeline/text/parse.h"
#include "loader/pipeline/text/schedule.h"
#include "loader/pipeline/text/token.h"
#include "loader/util/read_file.h"

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	out->placed = true;
	return op_infer_color(args, in, out);
}

const struct op user_op_op = {
	.name = "custom",
	.help = "a C function in a file",
	.kind = OP_PIXEL,
	.infer = infer,
	.value = &(const struct op_value){ .num_operands = 0 },
};

static bool is_identifier(const char *word)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

	return (*word < '0' || *word > '9') &&
	       strspn(word, chars) == strlen(word);
}

/* One number, or one for each epoch. */
static int bind_arg(struct user_op *custom, const struct parse_arg *arg,
		    struct epochs *epochs, const struct diagnostic *c)
{
	struct schedule s = { .rest = arg->value };
	double v;

	while (s.rest) {
		if (schedule_next(&s))
			return complain(c, arg->value_at, "%s: %s",
					custom->function, s.wrong);
		if (token_number(s.numbers, s.end, &v))
			return complain(c, arg->value_at,
					"arguments of %s are numbers, not `%s'",
					custom->function, arg->value);
		if (epochs_reach(epochs, s.epoch))
			custom->args[custom->num_args] = (float)v;
	}
	custom->num_args++;
	return 0;
}

static int bind_args(struct user_op *custom, const struct parse *parse,
		     const struct parse_stage *stage, struct epochs *epochs,
		     const struct diagnostic *c)
{
	int r = 0;

	for (size_t i = 0; !r && i < stage->num_args; i++) {
		const struct parse_arg *arg =
			&parse->args[stage->first_arg + i];

		if (i == USER_OP_ARGS_MAX || arg->name || !arg->is_plain)
			return complain(c, arg->value_at,
					"%s takes %d numbers at most, without "
					"names",
					custom->function, USER_OP_ARGS_MAX);
		r = bind_arg(custom, arg, epochs, c);
	}
	return r;
}

int user_op_bind(const struct parse *parse, const struct parse_stage *stage,
		 struct epochs *epochs, const struct diagnostic *c,
		 struct user_op **out)
{
	struct user_op *custom;
	int r;

	if (!is_identifier(stage->name) || !*stage->file ||
	    strpbrk(stage->file, "\"\\"))
		return complain(c, stage->at,
				"write a custom operation as "
				"\"FILE.c\".NAME(NUMBER, ...)");
	custom = calloc(1, sizeof(*custom));
	if (!custom)
		return -ENOMEM;
	custom->at = stage->at;
	custom->file = strdup(stage->file);
	custom->function = strdup(stage->name);
	r = custom->file && custom->function
		    ? bind_args(custom, parse, stage, epochs, c)
		    : -ENOMEM;
	if (r)
		user_op_close(custom);
	else
		*out = custom;
	return r;
}

void user_op_close(struct user_op *custom)
{
	if (!custom)
		return;
	free(custom->file);
	free(custom->function);
	free(custom->text);
	free(custom);
}

size_t user_op_num_operands(const struct user_op *custom)
{
	return custom->num_args + USER_OP_RANDOM;
}

void user_op_operands(const struct user_op *custom, struct uniform uniform,
		      float *out)
{
	memcpy(out, custom->args, custom->num_args * sizeof(*out));
	/* Use 24 bits, because more bits could round up to 1. */
	for (size_t i = 0; i < USER_OP_RANDOM; i++)
		out[custom->num_args + i] =
			(float)(int)(uniform.next(uniform.arg) * 0x1p24) *
			0x1p-24F;
}

/*
 * Finds the first line that includes another file of the user, or returns NULL.
 * The key of compiled code would not depend on such a file.
 */
static const char *find_include(const char *text)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *at = line + strspn(line, " \t");

		if (*at != '#')
			continue;
		at++;
		at += strspn(at, " \t");
		if (strncmp(at, "include", 7) != 0)
			continue;
		at += 7;
		at += strspn(at, " \t");
		if (*at != '<')
			return line;
	}
	return NULL;
}

int user_op_load(struct user_op *custom, const struct diagnostic *c)
{
	const char *line;
	size_t number = 1;
	size_t size;
	int r = read_file(custom->file, USER_OP_FILE_MAX, &custom->text, &size);

	if (r)
		return complain(c, custom->at, "cannot read %s: %s",
				custom->file, strerror(-r));
	line = find_include(custom->text);
	if (!line)
		return 0;
	for (const char *at = custom->text; at < line; at++)
		number += *at == '\n';
	return complain(c, custom->at,
			"%s:%zu: only headers in <> can be included",
			custom->file, number);
}
