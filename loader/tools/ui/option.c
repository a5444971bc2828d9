/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/option.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/suggest.h"
#include "fs/base/util/typed.h"
#include "loader/tools/ui/paragraph.h"

enum { TEXT_SIZE = 768 };

struct option_parser {
	const struct option_set *set;
	struct log *log;
	char **next; /* argument; NULL ends them */
};

/* An option that was found: a row, and the address of its member. */
struct option_found {
	const struct option_row *row;
	char *member;
};

/* --- rows --- */

/* Option `i` of all groups. A row of NULL is past the end. */
static struct option_found option_at(const struct option_set *set, size_t i)
{
	for (size_t g = 0; g < ARRAY_LEN(set->groups); g++) {
		const struct option_group *group = &set->groups[g];

		if (i < group->num_rows)
			return (struct option_found){
				&group->rows[i],
				(char *)group->members + group->rows[i].offset
			};
		i -= group->num_rows;
	}
	return (struct option_found){ NULL, NULL };
}

static bool takes_value(const struct option_row *row)
{
	return row->kind != OPTION_FLAG && row->kind != OPTION_SET;
}

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

/* Describes the values that an option takes. */
static const char *expected_of(const struct option_row *row,
			       char out[TYPED_EXPECTED_SIZE])
{
	const struct typed type = type_of(row);

	return is_typed(row) ? typed_expected(&type, out) : row->argument;
}

static bool is_name(const struct option_row *row, const char *name, size_t n)
{
	return strlen(row->name) == n && !memcmp(row->name, name, n);
}

/* --- messages --- */

int option_refuse(const struct option_set *set, struct log *log,
		  const char *format, ...)
{
	char text[TEXT_SIZE];
	va_list args;
	size_t n;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	n = strlen(text);
	log_error(log, "%s%s See '%s --help'.", text,
		  n && text[n - 1] == '?' ? "" : ".", set->command);
	return -EINVAL;
}

/* NULL: a value is missing. */
static int refuse_value(struct option_parser *p, const struct option_row *row,
			const char *text)
{
	char expected[TYPED_EXPECTED_SIZE];

	if (!takes_value(row))
		return option_refuse(p->set, p->log,
				     "--%s=%s: the option takes no value",
				     row->name, text);
	if (!text)
		return option_refuse(p->set, p->log, "--%s needs a value: %s",
				     row->name, expected_of(row, expected));
	return option_refuse(p->set, p->log, "--%s=%s: expected %s", row->name,
			     text, expected_of(row, expected));
}

/* --- values --- */

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

/* Sets the member of an option. NULL: the value is the next argument. */
static int set_option(struct option_parser *p, struct option_found o,
		      const char *text)
{
	if (!takes_value(o.row) && text)
		return refuse_value(p, o.row, text);
	if (o.row->kind == OPTION_FLAG)
		*(bool *)o.member = true;
	if (o.row->kind == OPTION_SET)
		*(unsigned *)o.member = (unsigned)o.row->min;
	if (!takes_value(o.row))
		return 0;
	if (!text && *p->next)
		text = *p->next++;
	if (!text || !parse_value(o.row, text, o.member))
		return refuse_value(p, o.row, text);
	return 0;
}

/* --- names --- */

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
	{ "--workers", "--jobs" },
	{ "--num-workers", "--jobs" },
	{ "--threads", "--jobs" },
	{ "--nproc", "--jobs" },
	{ "--size", "--max-resolution" },
	{ "--resize", "--max-resolution" },
	{ "--max-size", "--max-resolution" },
	{ "--jpeg-quality", "--quality" },
	{ "--subset", "--limit" },
	{ NULL, NULL },
};

/* Finds an option by its whole name. */
static struct option_found find_name(const struct option_parser *p,
				     const char *name, size_t n)
{
	struct option_found o;

	for (size_t i = 0; (o = option_at(p->set, i)).row; i++) {
		if (is_name(o.row, name, n))
			break;
	}
	return o;
}

static void suggest_option(const struct option_parser *p, struct suggestion *s)
{
	for (const struct other_word *o = other_options; o->theirs; o++) {
		const struct other_word row[] = { *o, { NULL, NULL } };
		const char *name = o->ours + 2;

		if (!s->best && find_name(p, name, strcspn(name, "=")).row)
			suggest_other(s, row);
	}
}

static int refuse_option(struct option_parser *p, const char *argument,
			 size_t size)
{
	struct suggestion s = { argument, size, NULL, 0 };
	struct suggestion own = { argument + 2, size - 2, NULL, 0 };
	char meant[SUGGEST_TEXT_SIZE], name[SUGGEST_TEXT_SIZE];
	struct option_found o;

	suggest_option(p, &s);
	for (size_t i = 0; size > 3 && (o = option_at(p->set, i)).row; i++) {
		if (o.row->help)
			suggest_try(&own, o.row->name);
	}
	if (!s.best && own.best) {
		snprintf(name, sizeof(name), "--%s", own.best);
		s.best = name;
	}
	return option_refuse(p->set, p->log, "unknown option %.*s%s", (int)size,
			     argument, suggest_text(&s, meant, sizeof(meant)));
}

/* Returns whether another program has this option. Then the table has a better
   suggestion than an option with the same beginning. */
static bool is_foreign(const struct option_parser *p, const char *argument,
		       size_t n)
{
	struct suggestion s = { argument, n, NULL, 0 };

	suggest_option(p, &s);
	return s.best != NULL;
}

/*
 * Finds the only option that begins with `n` bytes. -ENOENT: there is none.
 * -EINVAL: there are several, which are logged.
 */
static int find_beginning(struct option_parser *p, const char *name, size_t n,
			  struct option_found *out)
{
	char list[TEXT_SIZE / 2] = "";
	size_t used = 0, num = 0;
	struct option_found o;

	for (size_t i = 0; n && (o = option_at(p->set, i)).row; i++) {
		if (!o.row->help || strncmp(o.row->name, name, n) != 0)
			continue;
		*out = o;
		used += (size_t)snprintf(list + used, sizeof(list) - used,
					 "%s--%s", num++ ? ", " : "",
					 o.row->name);
		used = min_u64(used, sizeof(list) - 1);
	}
	if (num > 1)
		return option_refuse(p->set, p->log,
				     "option --%.*s is ambiguous: %s", (int)n,
				     name, list);
	return num ? 0 : -ENOENT;
}

static int parse_long(struct option_parser *p, const char *argument)
{
	const char *name = argument + 2, *end = strchr(name, '=');
	size_t n = end ? (size_t)(end - name) : strlen(name);
	struct option_found o = find_name(p, name, n);
	int r = -ENOENT;

	if (o.row)
		r = 0;
	else if (!is_foreign(p, argument, n + 2))
		r = find_beginning(p, name, n, &o);
	if (r == -ENOENT)
		return refuse_option(p, argument, n + 2);
	return r ? r : set_option(p, o, end ? end + 1 : NULL);
}

static struct option_found find_letter(const struct option_parser *p,
				       char letter)
{
	struct option_found o;

	for (size_t i = 0; (o = option_at(p->set, i)).row; i++) {
		if (o.row->letter == letter)
			break;
	}
	return o;
}

/* "-a", "-avalue", or "-ab" where a is a flag. */
static int parse_letters(struct option_parser *p, const char *argument)
{
	for (const char *at = argument + 1; *at; at++) {
		const char letter[] = { '-', *at, '\0' };
		struct option_found o = find_letter(p, *at);
		int r;

		if (!o.row)
			return refuse_option(p, letter, 2);
		if (takes_value(o.row))
			return set_option(p, o, at[1] ? at + 1 : NULL);
		r = set_option(p, o, NULL);
		if (r)
			return r;
	}
	return 0;
}

int option_parse(const struct option_set *set, char **argv, struct log *log,
		 int *operands)
{
	struct option_parser p = { set, log, argv };
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
			r = parse_letters(&p, argument);
	}
	*operands = n;
	return r;
}

/* --- lists --- */

void option_help(const struct option_set *set, FILE *out)
{
	struct option_found o;

	for (size_t i = 0; (o = option_at(set, i)).row; i++) {
		const struct option_row *row = o.row;
		char left[128], letter[] = { '-', row->letter, ',', ' ', '\0' };

		if (!row->help)
			continue;
		snprintf(left, sizeof(left), "  %s--%s%s%s",
			 row->letter ? letter : "", row->name,
			 takes_value(row) ? "=" : "",
			 takes_value(row) ? row->argument : "");
		paragraph_print(out, left, row->help);
	}
}

void option_list(const struct option_set *set, FILE *out)
{
	struct option_found o;

	for (size_t i = 0; (o = option_at(set, i)).row; i++) {
		if (o.row->help)
			fprintf(out, "%s\n", o.row->name);
	}
}

void option_describe(const struct option_set *set, const char *command,
		     FILE *out)
{
	struct option_found o;

	for (size_t i = 0; (o = option_at(set, i)).row; i++) {
		const struct option_row *row = o.row;
		const char letter[] = { row->letter, '\0' };

		if (row->help)
			fprintf(out, "option\t%s\t%s\t%s\t%s\t%s\n", command,
				row->name, letter,
				takes_value(row) ? row->argument : "",
				row->help);
	}
}
