/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/option.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "fs/util/suggest.h"
#include "fs/util/typed.h"

/* The column where --help's explanations begin. */
enum { HELP_INDENT = 26 };

struct parser {
	const struct option_row *rows;
	size_t num_rows;
	char *members;
	struct log *log;
	char **next; /* argument; NULL ends them */
};

static bool is_typed(const struct option_row *row)
{
	return row->kind == OPTION_NUMBER || row->kind == OPTION_SIZE ||
	       row->kind == OPTION_CHOICE;
}

static struct typed type_of(const struct option_row *row)
{
	if (row->kind == OPTION_CHOICE)
		return (struct typed)TYPED_WORD_OF(row->argument);
	return (struct typed){
		.kind = row->kind == OPTION_SIZE ? TYPED_SIZE : TYPED_NUMBER,
		.min = row->min,
		.max = row->max,
	};
}

static bool parse_typed(const struct option_row *row, const char *text,
			void *member)
{
	const struct typed type = type_of(row);
	uint64_t v;

	if (!typed_parse_string(&type, text, &v))
		return false;
	if (row->kind == OPTION_CHOICE)
		*(unsigned *)member = (unsigned)v;
	else
		*(uint64_t *)member = v;
	return true;
}

static bool parse_value(const struct option_row *row, const char *text,
			void *member)
{
	if (row->kind == OPTION_PARSED)
		return row->parse(text, member) == 0;
	if (is_typed(row))
		return parse_typed(row, text, member);
	*(const char **)member = text;
	return true;
}

static int refuse_value(struct parser *p, const struct option_row *row,
			const char *text)
{
	const struct typed type = type_of(row);
	char expected[TYPED_EXPECTED_SIZE];

	log_error(p->log, "--%s%s%s: expected %s", row->name, text ? "=" : "",
		  text ? text : "",
		  row->kind == OPTION_FLAG ? "no value"
		  : is_typed(row)	   ? typed_expected(&type, expected)
					   : row->argument);
	return -EINVAL;
}

/* Sets the member of a row. NULL: the value is the next argument. */
static int set_option(struct parser *p, const struct option_row *row,
		      const char *text)
{
	char *member = p->members + row->offset;

	if (row->kind == OPTION_FLAG && !text) {
		*(bool *)member = true;
		return 0;
	}
	if (row->kind == OPTION_FLAG)
		return refuse_value(p, row, text);
	if (!text && *p->next)
		text = *p->next++;
	if (!text || !parse_value(row, text, member))
		return refuse_value(p, row, text);
	return 0;
}

/* Options of other programs, and of FFCV's writer. */
static const struct other_word other_options[] = {
	{ "--batch-size", "--spec=batch=N" },
	{ "--batch", "--spec=batch=N" },
	{ "--order", "--spec=order=NAME" },
	{ "--shuffle", "--spec=order=random" },
	{ "--subset", "--spec=subset=A-B" },
	{ "--output", "--out" },
	{ "-o", "--out" },
	{ "--write-mode", "--mode" },
	{ "--num-workers", "--workers" },
	{ "--num-workers", "--jobs" },
	{ "--workers", "--jobs" },
	{ "--threads", "--jobs" },
	{ "--size", "--max-resolution" },
	{ "--resize", "--max-resolution" },
	{ "--max-size", "--max-resolution" },
	{ "--jpeg-quality", "--quality" },
	{ "--subset", "--limit" },
	{ NULL, NULL },
};

/* Whether there is an option, as "--NAME" or "--NAME=VALUE". */
static bool has_option(const struct parser *p, const char *option)
{
	const char *name = option + 2;
	size_t n = strcspn(name, "=");

	for (size_t i = 0; i < p->num_rows; i++) {
		if (!strncmp(p->rows[i].name, name, n) && !p->rows[i].name[n])
			return true;
	}
	return false;
}

static void suggest_option(const struct parser *p, struct suggestion *s)
{
	for (const struct other_word *o = other_options; o->theirs; o++) {
		const struct other_word row[] = { *o, { NULL, NULL } };

		if (!s->best && has_option(p, o->ours))
			suggest_other(s, row);
	}
}

static int refuse_option(struct parser *p, const char *argument, size_t size)
{
	struct suggestion s = { argument, size, NULL, 0 };
	struct suggestion own = { argument + 2, size - 2, NULL, 0 };
	char meant[SUGGEST_TEXT_SIZE], name[SUGGEST_TEXT_SIZE];

	suggest_option(p, &s);
	for (size_t i = 0; size > 3 && i < p->num_rows; i++)
		suggest_try(&own, p->rows[i].name);
	if (!s.best && own.best) {
		snprintf(name, sizeof(name), "--%s", own.best);
		s.best = name;
	}
	log_error(p->log, "unknown option %.*s: --help lists the options%s",
		  (int)size, argument, suggest_text(&s, meant, sizeof(meant)));
	return -EINVAL;
}

static int parse_long(struct parser *p, const char *argument)
{
	const char *name = argument + 2, *end = strchr(name, '=');
	size_t n = end ? (size_t)(end - name) : strlen(name);

	for (size_t i = 0; i < p->num_rows; i++) {
		const struct option_row *row = &p->rows[i];

		if (strlen(row->name) == n && memcmp(row->name, name, n) == 0)
			return set_option(p, row, end ? end + 1 : NULL);
	}
	return refuse_option(p, argument, n + 2);
}

/* "-a" or "-avalue"; "-ab" is not "-a -b". */
static int parse_letter(struct parser *p, const char *argument)
{
	for (size_t i = 0; i < p->num_rows; i++) {
		const struct option_row *row = &p->rows[i];

		if (row->letter && row->letter == argument[1])
			return set_option(p, row,
					  argument[2] ? argument + 2 : NULL);
	}
	return refuse_option(p, argument, strlen(argument));
}

int option_parse(const struct option_row *rows, size_t num_rows, char **argv,
		 void *options, struct log *log, int *operands)
{
	struct parser p = { rows, num_rows, options, log, argv };
	bool only_operands = false;
	int n = 0, r = 0;

	if (*p.next)
		p.next++;
	while (*p.next && !r) {
		char *argument = *p.next++;

		if (only_operands || argument[0] != '-' || !argument[1])
			argv[++n] = argument;
		else if (strcmp(argument, "--") == 0)
			only_operands = true;
		else if (argument[1] == '-')
			r = parse_long(&p, argument);
		else
			r = parse_letter(&p, argument);
	}
	*operands = n;
	return r;
}

void option_help(const struct option_row *rows, size_t num_rows, FILE *out)
{
	for (size_t i = 0; i < num_rows; i++) {
		const struct option_row *row = &rows[i];
		const char *line = row->help, *end;
		int used = row->letter ? fprintf(out, "  -%c, --%s",
						 row->letter, row->name)
				       : fprintf(out, "  --%s", row->name);

		if (row->kind != OPTION_FLAG)
			used += fprintf(out, "=%s", row->argument);
		if (used >= HELP_INDENT - 1) {
			fputc('\n', out);
			used = 0;
		}
		while ((end = strchr(line, '\n'))) {
			fprintf(out, "%*s%.*s\n", HELP_INDENT - used, "",
				(int)(end - line), line);
			line = end + 1;
			used = 0;
		}
		fprintf(out, "%*s%s\n", HELP_INDENT - used, "", line);
	}
}

void option_list(const struct option_row *rows, size_t num_rows, FILE *out)
{
	for (size_t i = 0; i < num_rows; i++)
		fprintf(out, "%s\n", rows[i].name);
}
