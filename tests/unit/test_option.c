/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "loader/tools/ui/option.h"
#include "tests/unit/t.h"

struct options {
	bool flag;
	uint64_t number;
	uint64_t size;
	const char *text;
	unsigned choice;
	char parsed;
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
	  "first\nsecond" },
	{ "size", 0, OPTION_SIZE, AT(size), 0, UINT64_MAX, "B", "a size" },
	{ "text", 't', OPTION_TEXT, AT(text), .argument = "T", .help = "text" },
	{ "choice", 0, OPTION_CHOICE, AT(choice), .argument = "red|green|blue",
	  .help = "a colour" },
	{ "parsed", 0, OPTION_PARSED, AT(parsed), .argument = "A-Z",
	  .help = "a letter", .parse = parse_letter },
};

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
	r = option_parse(rows, ARRAY_LEN(rows), argv, o, &log, operands);
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
		"--fla",
		"--flags",
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

static void errors_name_option_value_and_limits(void)
{
	static const char *const table[][2] = {
		{ "--number=10",
		  "--number=10: expected a whole number from 2 to 9" },
		{ "-n 1", "--number=1: expected a whole number from 2 to 9" },
		{ "-n", "--number: expected a whole number from 2 to 9" },
		{ "--size=1kk", "--size=1kk: expected a size, such as 512MiB" },
		{ "--choice reds",
		  "--choice=reds: expected one of red, green, blue" },
		{ "--parsed=q", "--parsed=q: expected A-Z" },
		{ "--text", "--text: expected T" },
		{ "--flag=1", "--flag=1: expected no value" },
		{ "--flags=1",
		  "unknown option --flags: --help lists the options; did you "
		  "mean `--flag'?" },
		{ "--jobs", "unknown option --jobs: --help lists the options" },
		{ "-x1", "unknown option -x1: --help lists the options" },
	};
	struct options o;
	char *argv[12];
	int n = 0;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		CHECK(parse(table[i][0], &o, argv, &n) == -EINVAL);
		CHECK(!strcmp(message, table[i][1]));
	}
}

static void help_and_list_come_from_the_rows(void)
{
	char text[2048] = "";
	FILE *f = fmemopen(text, sizeof(text) - 1, "w");

	CHECK(f);
	option_list(rows, ARRAY_LEN(rows), f);
	option_help(rows, ARRAY_LEN(rows), f);
	fclose(f);
	CHECK(strncmp(text, "flag\nnumber\nsize\n", 17) == 0);
	CHECK(strstr(text, "  -f, --flag              a flag\n"));
	CHECK(strstr(text, "  -n, --number=N          first\n"
			   "                          second\n"));
	CHECK(strstr(text, "  --choice=red|green|blue\n"
			   "                          a colour\n"));
}

int main(void)
{
	every_kind_is_stored();
	absent_options_keep_their_values();
	operands_may_stand_anywhere();
	wrong_usage_is_refused();
	errors_name_option_value_and_limits();
	help_and_list_come_from_the_rows();
	return 0;
}
