/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <locale.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/pipeline/text/parse.h"
#include "loader/pipeline/text/token.h"
#include "tests/unit/t.h"

static char error[256];

static int parse(const char *text, struct parse *out)
{
	struct diagnostic c = { text, error, sizeof(error) };

	error[0] = '\0';
	return parse_text(&c, out);
}

static void a_statement_has_a_name_stages_and_arguments(void)
{
	struct parse p;

	CHECK(!parse("small = image | random_resized_crop(96, "
		     "scale=\"0.08,1\") | flip",
		     &p));
	CHECK(p.num_statements == 1 && p.num_stages == 3 && p.num_args == 2);
	CHECK(!strcmp(p.statements[0].name, "small"));
	CHECK(p.statements[0].at == 0);
	CHECK(!strcmp(p.stages[0].name, "image") && !p.stages[0].has_parens);
	CHECK(p.stages[0].at == 8);
	CHECK(!strcmp(p.stages[1].name, "random_resized_crop"));
	CHECK(p.stages[1].has_parens && p.stages[1].num_args == 2);
	CHECK(!p.args[0].name && !strcmp(p.args[0].value, "96"));
	CHECK(!strcmp(p.args[1].name, "scale"));
	CHECK(!strcmp(p.args[1].value, "0.08,1") && p.args[1].value_at == 46);
	CHECK(!p.stages[2].has_parens && p.stages[2].num_args == 0);
	parse_fini(&p);
}

static void empty_statements_and_comments_are_nothing(void)
{
	static const char *const texts[] = {
		"", " ", ";;\n;", "# all of it", "#a;b\n;# \"c\n", "\r\n\t;",
	};
	struct parse p;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CHECK(!parse(texts[i], &p));
		CHECK(p.num_statements == 0);
		parse_fini(&p);
	}
}

static void newlines_end_statements_except_after_a_bar_and_in_parens(void)
{
	struct parse p;

	CHECK(!parse("a | # first\n  b(1,\n 2)\nc; d()\n", &p));
	CHECK(p.num_statements == 3 && p.num_stages == 4);
	CHECK(p.statements[0].num_stages == 2 && p.stages[1].num_args == 2);
	CHECK(p.stages[3].has_parens && p.stages[3].num_args == 0);
	parse_fini(&p);
}

static void quotes_hold_anything_but_a_newline(void)
{
	struct parse p;

	CHECK(!parse("\"odd \\\"na\\\\me; #|\"|drop", &p));
	CHECK(!strcmp(p.stages[0].name, "odd \"na\\me; #|"));
	CHECK(p.stages[0].quoted && !p.stages[1].quoted);
	parse_fini(&p);
	CHECK(parse("\"a\"\"b\"", &p) == -EINVAL);
}

static void arguments_hold_operations(void)
{
	const struct parse_stage *stage;
	const struct parse_arg *arg;
	struct parse p;

	CHECK(!parse("image | random_apply(jitter(0.4, hue=0.1)\n | blur(5) | "
		     "\"f.c\".g, p=0.8) | pick(invert, \"x\", a=b(c(1)))",
		     &p));
	CHECK(p.num_stages == 3 && p.num_args == 10 && p.num_nested == 12);
	CHECK(p.stages[1].num_args == 2 && p.stages[2].num_args == 3);
	arg = &p.args[p.stages[1].first_arg];
	CHECK(!arg->name && arg->num_stages == 3 && !arg->is_plain);
	CHECK(!strcmp(arg->value, "jitter") && arg->value_at == 21);
	stage = &p.nested[arg->first_stage];
	CHECK(!strcmp(stage[0].name, "jitter") && stage[0].num_args == 2);
	CHECK(!strcmp(p.args[stage[0].first_arg].value, "0.4"));
	CHECK(!strcmp(p.args[stage[0].first_arg + 1].name, "hue"));
	CHECK(!strcmp(stage[1].name, "blur") && stage[1].at == 45);
	CHECK(!strcmp(stage[2].file, "f.c") && !strcmp(stage[2].name, "g"));
	CHECK(!strcmp(arg[1].name, "p") && arg[1].is_plain);
	arg = &p.args[p.stages[2].first_arg];
	CHECK(arg[0].is_plain && arg[0].num_stages == 1);
	CHECK(arg[1].is_plain && p.nested[arg[1].first_stage].quoted);
	CHECK(!strcmp(arg[2].name, "a") && !arg[2].is_plain);
	parse_fini(&p);
	CHECK(!parse("a(b(c(d(e()))))", &p));
	parse_fini(&p);
}

struct mistake {
	const char *text;
	const char *line;
};

static const struct mistake mistakes[] = {
	{ "| | |", "column 1: an operation expected, not `|', in `| | |'" },
	{ "a |", "column 4: an operation expected, the text ends, in `a |'" },
	{ "a | ;", "column 5: an operation expected, the statement ends" },
	{ "center_crop(", "column 13: an argument expected, the text ends" },
	{ "a(1,)", "column 5: an argument expected, not `)'" },
	{ "a(1 2)", "column 5: `,' or `)' expected, not `2'" },
	{ "a(b=)", "column 5: a value expected, not `)'" },
	{ "a(b=(1, .5))", "column 5: lists are quoted: \"1, .5\"" },
	{ "a((1,2))", "column 3: lists are quoted: \"1,2\"" },
	{ "a((1", "column 3: lists are quoted: \"0.08,1\"" },
	{ "a((b | c), d)", "column 3: operations have no brackets" },
	{ "a(b |)", "column 6: an operation expected, not `)'" },
	{ "a(b | c", "column 8: `,' or `)' expected, the text ends" },
	{ "a(b | c d)", "column 9: `,' or `)' expected, not `d'" },
	{ "a(b | c=1)", "column 8: `,' or `)' expected, not `='" },
	{ "a(b(1)=1)", "column 7: `,' or `)' expected, not `='" },
	{ "a(b(c(d(e(f())))))", "column 12: parentheses nest at most" },
	{ "a b", "column 3: `|' or `;' expected, not `b'" },
	{ "a = b = c", "column 7: `|' or `;' expected, not `='" },
	{ "\"a\" = b",
	  "column 1: the name of an output is an unquoted identifier" },
	{ "a() = b",
	  "column 1: the name of an output is an unquoted identifier" },
	{ "a\nb | \"c\nd", "line 2, column 5: this quote is not closed" },
	{ "a; b(c='d')", "column 8: quotes are \", not ', in `a; b(c='d')'" },
	{ "a | b{", "column 6: `{' is not part of the grammar" },
	{ "\x01", "column 1: this byte is allowed inside quotes only, in `?'" },
	{ ")", "column 1: an operation expected, not `)'" },
};

static void mistakes_name_the_column_and_quote_the_line(void)
{
	struct parse p;

	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		const struct mistake *m = &mistakes[i];

		CHECK(parse(m->text, &p) == -EINVAL);
		if (strncmp(error, m->line, strlen(m->line)) != 0)
			fprintf(stderr, "%s: %s\n", m->text, error);
		CHECK(!strncmp(error, m->line, strlen(m->line)));
	}
}

static void long_lines_are_quoted_in_part(void)
{
	char text[400];
	struct parse p;

	memset(text, 'x', sizeof(text));
	memcpy(text + 300, " here ", 6);
	text[399] = '\0';
	CHECK(parse(text, &p) == -EINVAL);
	CHECK(strstr(error, "column 302: ") && strstr(error, " here "));
	CHECK(strlen(strstr(error, "in `")) == 4 + 60 + 1);
}

static void a_complaint_needs_no_room(void)
{
	struct diagnostic nowhere = { "|", NULL, 0 };
	struct parse p;
	char one = 'x';

	CHECK(parse_text(&nowhere, &p) == -EINVAL);
	nowhere.out = &one;
	nowhere.size = 1;
	CHECK(parse_text(&nowhere, &p) == -EINVAL && one == '\0');
}

static void texts_have_a_greatest_length(void)
{
	static char text[70000];
	struct parse p;

	memset(text, ' ', sizeof(text) - 1);
	CHECK(parse(text, &p) == -EINVAL);
	CHECK(strstr(error, "longer than 65536 bytes"));
}

static int number(const char *text, double *out)
{
	return token_number(text, text + strlen(text), out);
}

static void numbers_do_not_depend_on_the_locale(void)
{
	static const char *const bad[] = { "",	  "x",	   "1x",  "0x10", "inf",
					   "nan", "1e999", "1,5", "--1",  "." };
	double v = 0;

	/* Where it is not installed this checks nothing, and costs nothing. */
	setlocale(LC_ALL, "de_DE.UTF-8");
	CHECK(!number("0.5", &v) && v == 0.5);
	CHECK(!number("1.3333333333333333", &v) && v == 4.0 / 3);
	CHECK(!number("-1e-3", &v) && v == -0.001);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(number(bad[i], &v) == -EINVAL);
	setlocale(LC_ALL, "C");
}

int main(void)
{
	a_statement_has_a_name_stages_and_arguments();
	empty_statements_and_comments_are_nothing();
	newlines_end_statements_except_after_a_bar_and_in_parens();
	quotes_hold_anything_but_a_newline();
	arguments_hold_operations();
	mistakes_name_the_column_and_quote_the_line();
	long_lines_are_quoted_in_part();
	a_complaint_needs_no_room();
	texts_have_a_greatest_length();
	numbers_do_not_depend_on_the_locale();
	return 0;
}
