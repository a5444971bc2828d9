/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/ui/option.h"
#include "tests/unit/t.h"

struct options {
	bool flag;
	uint64_t number;
	uint64_t size;
	const char *text;
	unsigned choice;
	char parsed;
	unsigned level;
	bool common;
};

/* One upper-case letter. */
static int parse_letter(const char *text, void *member)
{
	if (text[0] < 'A' || text[0] > 'Z' || text[1])
		return -EINVAL;
	*(char *)member = text[0];
	return 0;
}

#define AT(member) .offset = offsetof(struct options, member)

static const struct option_row rows[] = {
	{ "flag", 'f', OPTION_FLAG, AT(flag), .help = "a flag" },
	{ "number", 'n', OPTION_NUMBER, AT(number), 2, 9, "N",
	  .help = "a number" },
	{ "size", 0, OPTION_SIZE, AT(size), 0, UINT64_MAX, "B", "a size" },
	{ "text", 't', OPTION_TEXT, AT(text), .argument = "T", .help = "text" },
	{ "choice", 0, OPTION_CHOICE, AT(choice), .argument = "red|green|blue",
	  .help = "a color" },
	{ "parsed", 0, OPTION_PARSED, AT(parsed), .argument = "A-Z",
	  .help = "a letter", .parse = parse_letter },
};

static const struct option_row common[] = {
	{ "quiet", 'q', OPTION_SET, AT(level), .min = 1, .help = "a level" },
	{ "loud", 'l', OPTION_SET, AT(level), .min = 3, .help = "a level" },
	{ "secret", 0, OPTION_FLAG, AT(common) },
};

/* An option set whose members are in *o. */
#define SET(o)                                                                 \
	{                                                                      \
		"try this",                                                    \
		{                                                              \
			{ rows, ARRAY_LEN(rows), o },                          \
			{                                                      \
				common, ARRAY_LEN(common), o                   \
			}                                                      \
		}                                                              \
	}

static char message[256];

static void keep_message(void *arg, enum beton_log_level level,
			 const char *text)
{
	(void)arg;
	(void)level;
	snprintf(message, sizeof(message), "%s", text);
}

/* The program's name and up to ten arguments, separated by spaces. */
static int parse(const char *line, struct options *o, char *argv[12],
		 int *operands)
{
	static char buf[256];
	struct log log;
	int n = 1, r;

	*o = (struct options){ .number = 5 };
	argv[0] = buf;
	snprintf(buf, sizeof(buf), "%s", line);
	for (char *s = strtok(buf, " "); s && n < 11; s = strtok(NULL, " "))
		argv[n++] = s;
	argv[n] = NULL;
	message[0] = '\0';
	log_init(&log, keep_message, NULL);
	r = option_parse(&(struct option_set)SET(o), argv, &log, operands);
	log_fini(&log);
	return r;
}

static void every_kind_is_stored(void)
{
	struct options o;
	char *argv[12];
	int n = 0;

	CHECK(parse("--flag --number=9 --size 3k --choice blue --parsed=Q", &o,
		    argv, &n) == 0);
	CHECK(o.flag && o.number == 9 && o.size == 3072 && o.choice == 2);
	CHECK(o.parsed == 'Q' && !o.text && n == 0);
	CHECK(parse("-f -n3 -t=x --text a=b", &o, argv, &n) == 0);
	CHECK(o.flag && o.number == 3 && strcmp(o.text, "a=b") == 0);
	CHECK(parse("-n 4", &o, argv, &n) == 0 && o.number == 4);
	CHECK(parse("--size=16777215T", &o, argv, &n) == 0);
	CHECK(o.size == (uint64_t)16777215 << 40);
}

static void absent_options_keep_their_values(void)
{
	struct options o;
	char *argv[12];
	int n = 0;

	CHECK(parse("", &o, argv, &n) == 0 && o.number == 5 && n == 0);
}

static void operands_may_stand_anywhere(void)
{
	struct options o;
	char *argv[12];
	int n = 0;

	CHECK(parse("a --flag - --number 3 b -- --flag", &o, argv, &n) == 0);
	CHECK(n == 4 && o.number == 3);
	CHECK(strcmp(argv[1], "a") == 0 && strcmp(argv[2], "-") == 0);
	CHECK(strcmp(argv[3], "b") == 0 && strcmp(argv[4], "--flag") == 0);
}

static void wrong_usage_is_refused(void)
{
	static const char *const bad[] = {
		"--unknown",
		"-x",
		"--f=1",
		"--flags",
		"--secre",
		"-fx",
		"-fq1",
		"-=",
		"--flag=1",
		"--number",
		"--number=",
		"--number=1",
		"--number=10",
		"--number=-3",
		"--number=+3",
		"--number=3k",
		"--number=0x3",
		"--size=1kk",
		"--size=16777216T",
		"--size=k",
		"--size=18446744073709551616",
		"--choice=re",
		"--choice=reds",
		"--choice=",
		"--choice=red|green",
		"--parsed=q",
		"--parsed=",
	};
	struct options o;
	char *argv[12];
	int n = 0;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(parse(bad[i], &o, argv, &n) == -EINVAL);
}

static void letters_of_flags_are_combined(void)
{
	struct options o;
	char *argv[12];
	int n = 0;

	CHECK(parse("-fq", &o, argv, &n) == 0 && o.flag && o.level == 1);
	CHECK(parse("-qfn4 a", &o, argv, &n) == 0 && o.flag && o.number == 4);
	CHECK(n == 1 && o.level == 1);
	CHECK(parse("-fn 7", &o, argv, &n) == 0 && o.flag && o.number == 7);
	CHECK(parse("-tfq", &o, argv, &n) == 0 && !o.flag && !o.level);
	CHECK(!strcmp(o.text, "fq"));
}

static void the_last_option_of_a_member_wins(void)
{
	struct options o;
	char *argv[12];
	int n = 0;

	CHECK(parse("-ql", &o, argv, &n) == 0 && o.level == 3);
	CHECK(parse("--loud --quiet", &o, argv, &n) == 0 && o.level == 1);
}

static void names_may_be_abbreviated(void)
{
	struct options o;
	char *argv[12];
	int n = 0;

	CHECK(parse("--fl --num=9 --te x --l", &o, argv, &n) == 0);
	CHECK(o.flag && o.number == 9 && !strcmp(o.text, "x") && o.level == 3);
	/* A hidden option has only its whole name. */
	CHECK(parse("--secret --s=1", &o, argv, &n) == 0 && o.common);
	CHECK(o.size == 1);
}

/* Every message ends with a pointer to --help. */
#define SEE " See 'try this --help'."

static void errors_name_option_value_and_limits(void)
{
	static const char *const table[][2] = {
		{ "--number=10",
		  "--number=10: expected a whole number from 2 to 9." SEE },
		{ "-n 1",
		  "--number=1: expected a whole number from 2 to 9." SEE },
		{ "-n",
		  "--number needs a value: a whole number from 2 to 9." SEE },
		{ "--size=1kk",
		  "--size=1kk: expected a size, such as 512MiB." SEE },
		{ "--choice reds",
		  "--choice=reds: expected one of red, green, blue." SEE },
		{ "--parsed=q", "--parsed=q: expected A-Z." SEE },
		{ "--text", "--text needs a value: T." SEE },
		{ "--flag=1", "--flag=1: the option takes no value." SEE },
		{ "--flags=1",
		  "unknown option --flags; did you mean `--flag'?" SEE },
		{ "--jobs", "unknown option --jobs." SEE },
		{ "-x1", "unknown option -x." SEE },
		{ "-fx", "unknown option -x." SEE },
		{ "--=1", "unknown option --." SEE },
		{ "--max-size=1", "unknown option --max-size." SEE },
	};
	struct options o;
	char *argv[12];
	int n = 0;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		CHECK(parse(table[i][0], &o, argv, &n) == -EINVAL);
		CHECK(!strcmp(message, table[i][1]));
	}
}

/* Two options begin alike, and other programs have a name for one. */
static void ambiguous_names_list_the_candidates(void)
{
	static const struct option_row alike[] = {
		{ "batches", 0, OPTION_NUMBER, AT(number), 0, 9, "N", "a" },
		{ "spec", 0, OPTION_TEXT, AT(text), .argument = "T",
		  .help = "a" },
		{ "spread", 0, OPTION_FLAG, AT(flag), .help = "a" },
	};
	struct options o = { .number = 5 };
	const struct option_set set = { "c",
					{ { alike, ARRAY_LEN(alike), &o } } };
	char name[] = "c", sp[] = "--sp=1", batch[] = "--batch=4";
	char batche[] = "--batche=4";
	struct log log;
	int n;

	log_init(&log, keep_message, NULL);
	CHECK(option_parse(&set, (char *[]){ name, sp, NULL }, &log, &n) ==
	      -EINVAL);
	CHECK(!strcmp(message, "option --sp is ambiguous: --spec, --spread. "
			       "See 'c --help'."));
	CHECK(option_parse(&set, (char *[]){ name, batch, NULL }, &log, &n) ==
	      -EINVAL);
	CHECK(strstr(message, "did you mean `--spec=batch=N'?"));
	CHECK(option_parse(&set, (char *[]){ name, batche, NULL }, &log, &n) ==
	      0);
	CHECK(o.number == 4);
	log_fini(&log);
}

static void help_and_lists_come_from_the_rows(void)
{
	static const char describes[] = "option\tx\tnumber\tn\tN\ta number\n"
					"option\tx\tsize\t\tB\ta size\n";
	struct options o;
	const struct option_set set = SET(&o);
	char text[4096] = "";
	FILE *f = fmemopen(text, sizeof(text) - 1, "w");

	CHECK(f);
	option_list(&set, f);
	option_help(&set, f);
	option_describe(&set, "x", f);
	fclose(f);
	CHECK(strncmp(text, "flag\nnumber\nsize\n", 17) == 0);
	CHECK(strstr(text, "  -f, --flag              a flag\n"));
	CHECK(strstr(text, "  -n, --number=N          a number\n"));
	CHECK(strstr(text, "  --choice=red|green|blue\n"
			   "                          a color\n"));
	CHECK(strstr(text, describes));
	CHECK(!strstr(text, "secret"));
}

int main(void)
{
	every_kind_is_stored();
	absent_options_keep_their_values();
	operands_may_stand_anywhere();
	wrong_usage_is_refused();
	letters_of_flags_are_combined();
	the_last_option_of_a_member_wins();
	names_may_be_abbreviated();
	errors_name_option_value_and_limits();
	ambiguous_names_list_the_candidates();
	help_and_lists_come_from_the_rows();
	return 0;
}
