/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/option.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "fs/util/size.h"

/* The column where --help's explanations begin. */
enum { HELP_INDENT = 26 };

struct parser {
	const struct option_row *rows;
	size_t num_rows;
	char *members;
	struct log *log;
	char **next; /* the argument to look at */
};

/* Of a number no suffix is taken. */
static int parse_number(const char *text, bool suffix, uint64_t *out)
{
	if (!suffix && text[strspn(text, "0123456789")])
		return -EINVAL;
	return size_parse(text, out) ? 0 : -EINVAL;
}

static int parse_choice(const char *choices, const char *text, unsigned *out)
{
	size_t n = strlen(text);
	unsigned i = 0;

	for (const char *c = strchr(text, '|') ? NULL : choices; c; i++) {
		if (strncmp(c, text, n) == 0 && (!c[n] || c[n] == '|')) {
			*out = i;
			return 0;
		}
		c = strchr(c, '|');
		c = c ? c + 1 : NULL;
	}
	return -EINVAL;
}

static int parse_value(const struct option_row *row, const char *text,
		       void *member)
{
	uint64_t v = 0;

	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)member = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)member = text;
		return 0;
	case OPTION_CHOICE:
		return parse_choice(row->argument, text, member);
	case OPTION_PARSED:
		return row->parse(text, member);
	case OPTION_NUMBER:
	case OPTION_SIZE:
		break;
	}
	if (parse_number(text, row->kind == OPTION_SIZE, &v) || v < row->min ||
	    v > row->max)
		return -EINVAL;
	*(uint64_t *)member = v;
	return 0;
}

static int bad_value(struct parser *p, const struct option_row *row,
		     const char *text)
{
	bool is_number = row->kind == OPTION_NUMBER || row->kind == OPTION_SIZE;

	if (!is_number)
		log_error(p->log, "--%s: '%s' is not %s", row->name, text,
			  row->argument);
	else if (row->max == UINT64_MAX)
		log_error(p->log, "--%s: '%s' is no number from %llu on",
			  row->name, text, (unsigned long long)row->min);
	else
		log_error(p->log, "--%s: '%s' is no number from %llu to %llu",
			  row->name, text, (unsigned long long)row->min,
			  (unsigned long long)row->max);
	return -EINVAL;
}

/* Stores a value; `text` NULL: it is the next argument. */
static int take(struct parser *p, const struct option_row *row,
		const char *text)
{
	if (row->kind == OPTION_FLAG && text) {
		log_error(p->log, "--%s takes no value", row->name);
		return -EINVAL;
	}
	if (row->kind != OPTION_FLAG && !text) {
		text = *p->next;
		if (!text) {
			log_error(p->log, "--%s needs a value: %s", row->name,
				  row->argument);
			return -EINVAL;
		}
		p->next++;
	}
	if (parse_value(row, text, p->members + row->offset))
		return bad_value(p, row, text);
	return 0;
}

static int unknown(struct parser *p, const char *argument, size_t size)
{
	log_error(p->log, "unknown option %.*s", (int)size, argument);
	return -EINVAL;
}

static int take_long(struct parser *p, const char *argument)
{
	const char *name = argument + 2, *end = strchr(name, '=');
	size_t n = end ? (size_t)(end - name) : strlen(name);

	for (size_t i = 0; i < p->num_rows; i++) {
		const struct option_row *row = &p->rows[i];

		if (strlen(row->name) == n && memcmp(row->name, name, n) == 0)
			return take(p, row, end ? end + 1 : NULL);
	}
	return unknown(p, argument, n + 2);
}

/* "-a", "-avalue"; letters do not share a dash. */
static int take_letter(struct parser *p, const char *argument)
{
	for (size_t i = 0; i < p->num_rows; i++) {
		const struct option_row *row = &p->rows[i];

		if (row->letter && row->letter == argument[1])
			return take(p, row, argument[2] ? argument + 2 : NULL);
	}
	return unknown(p, argument, strlen(argument));
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
			r = take_long(&p, argument);
		else
			r = take_letter(&p, argument);
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
