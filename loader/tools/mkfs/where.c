/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/mkfs/where.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/tools/mkfs/survey.h"

enum comparison { EQUAL, UNEQUAL, BELOW, UP_TO, ABOVE, FROM };

/* Two letters before one, so that "<=" is not read as "<". */
static const struct {
	const char *text;
	enum comparison comparison;
} comparisons[] = {
	{ "==", EQUAL }, { "!=", UNEQUAL }, { "<=", UP_TO }, { ">=", FROM },
	{ "=", EQUAL },	 { "<", BELOW },    { ">", ABOVE },
};

/* A value of the condition, of the type of its field. */
struct operand {
	char *text; /* owned */
	bool quoted;
	int64_t integer;
	double real;
};

/* Holds if the field compares so with one of the operands, or, if negated,
   with none. */
struct clause {
	size_t field;
	enum input_type type;
	enum comparison comparison;
	bool negated;
	struct operand *operands;
	size_t num_operands;
};

struct where {
	struct clause *clauses;
	size_t num_clauses;
};

struct where_parser {
	const struct input *in;
	struct log *log;
	const char *text;
	const char *at;
};

static int refuse(const struct where_parser *p, const char *expected)
{
	log_error(p->log,
		  "--where=%s: expected %s at byte %zu: for example "
		  "'label in 1,5,9' or 'score >= 0.5 and label != cat'",
		  p->text, expected, (size_t)(p->at - p->text));
	return -EINVAL;
}

static void skip_blanks(struct where_parser *p)
{
	p->at += strspn(p->at, " \t\n");
}

/* Takes `word` if it comes next and ends there. */
static bool take_word(struct where_parser *p, const char *word)
{
	size_t n = strlen(word);

	skip_blanks(p);
	if (strncmp(p->at, word, n) || !strchr(" \t\n", p->at[n]))
		return false;
	p->at += n;
	return true;
}

/* Takes a name or value: "quoted", with \ before quotes, or up to a mark. */
static int take_text(struct where_parser *p, const char *marks, char **out,
		     bool *is_quoted)
{
	bool quoted;
	char *to;

	skip_blanks(p);
	quoted = *is_quoted = *p->at == '"';
	to = *out = malloc(strlen(p->at) + 1);
	if (!to)
		return log_no_memory(p->log, NULL);
	p->at += quoted;
	while (*p->at && (quoted ? *p->at != '"' : !strchr(marks, *p->at))) {
		if (quoted && *p->at == '\\' && p->at[1])
			p->at++;
		*to++ = *p->at++;
	}
	*to = '\0';
	if (quoted && *p->at != '"')
		return refuse(p, "a closing quote");
	p->at += quoted;
	return !quoted && to == *out ? refuse(p, "a name or a value") : 0;
}

static int find_field(const struct where_parser *p, const char *name,
		      size_t *out)
{
	char advice[INPUT_ADVICE_SIZE];

	for (size_t i = 0; i < p->in->num_fields; i++) {
		if (!strcmp(p->in->fields[i].name, name)) {
			*out = i;
			return 0;
		}
	}
	log_error(p->log, "--where=%s: the source has no field '%s'%s", p->text,
		  name, input_advice(p->in, name, advice));
	return -EINVAL;
}

static int take_field(struct where_parser *p, struct clause *c)
{
	cleanup_free char *name = NULL;
	bool quoted;
	int r = take_text(p, " \t\n=!<>", &name, &quoted);

	r = r ? r : find_field(p, name, &c->field);
	if (r)
		return r;
	c->type = p->in->fields[c->field].type;
	if (c->type == INPUT_INT || c->type == INPUT_FLOAT ||
	    c->type == INPUT_TEXT)
		return 0;
	log_error(p->log,
		  "--where=%s: field '%s' has neither numbers nor texts",
		  p->text, name);
	return -EINVAL;
}

static int take_comparison(struct where_parser *p, struct clause *c,
			   bool *is_list)
{
	*is_list = true;
	if (take_word(p, "in"))
		return 0;
	if (take_word(p, "not")) {
		c->negated = true;
		return take_word(p, "in") ? 0 : refuse(p, "'in'");
	}
	*is_list = false;
	for (size_t i = 0; i < ARRAY_LEN(comparisons); i++) {
		size_t n = strlen(comparisons[i].text);

		if (strncmp(p->at, comparisons[i].text, n))
			continue;
		p->at += n;
		c->comparison = comparisons[i].comparison;
		return 0;
	}
	return refuse(p, "one of ==, !=, <, <=, >, >=, in, not in");
}

/* Finds the number of a class by its name. */
static bool find_class(const struct input_field *f, const char *name,
		       int64_t *out)
{
	for (size_t i = 0; i < f->num_classes; i++) {
		if (!strcmp(f->classes[i], name)) {
			*out = (int64_t)i;
			return true;
		}
	}
	return false;
}

/* A value in double quotes is a name, if classes have names. */
static int parse_integer(const struct where_parser *p,
			 const struct input_field *f, struct operand *o,
			 bool *found)
{
	int64_t class = -1;
	bool is_class = find_class(f, o->text, &class), is_number;
	char *end;

	errno = 0;
	o->integer = strtoll(o->text, &end, 10);
	is_number = end != o->text && !*end && !errno &&
		    !(o->quoted && f->num_classes);
	*found = is_class || is_number;
	if (is_class && is_number && class != o->integer && o->integer >= 0 &&
	    (uint64_t)o->integer < f->num_classes) {
		log_error(p->log,
			  "--where=%s: in field '%s', '%s' is the name of "
			  "class %lld, and the number of class \"%s\": write "
			  "the name of one of them in double quotes",
			  p->text, f->name, o->text, (long long)class,
			  f->classes[o->integer]);
		return -EINVAL;
	}
	if (is_class)
		o->integer = class;
	return 0;
}

static int parse_operand(const struct where_parser *p, const struct clause *c,
			 struct operand *o)
{
	const struct input_field *f = &p->in->fields[c->field];
	char *end = o->text;
	bool found = false;
	int r;

	if (c->type == INPUT_TEXT)
		return 0;
	if (c->type == INPUT_INT) {
		r = parse_integer(p, f, o, &found);
		if (r || found)
			return r;
	} else {
		o->real = strtod(o->text, &end);
		if (end != o->text && !*end)
			return 0;
	}
	log_error(p->log, "--where=%s: '%s' is %s of field '%s'", p->text,
		  o->text,
		  f->num_classes ? "no number and no class" : "no number",
		  f->name);
	return -EINVAL;
}

static int take_operand(struct where_parser *p, struct clause *c)
{
	struct operand *o;
	void *more = reallocarray(c->operands, c->num_operands + 1,
				  sizeof(*c->operands));
	int r;

	if (!more)
		return log_no_memory(p->log, NULL);
	c->operands = more;
	o = &c->operands[c->num_operands++];
	*o = (struct operand){ 0 };
	r = take_text(p, " \t\n,", &o->text, &o->quoted);
	return r ? r : parse_operand(p, c, o);
}

static int take_clause(struct where_parser *p, struct clause *c)
{
	bool is_list;
	int r = take_field(p, c);

	r = r ? r : take_comparison(p, c, &is_list);
	do {
		r = r ? r : take_operand(p, c);
		skip_blanks(p);
	} while (!r && is_list && *p->at == ',' && p->at++);
	return r;
}

static int take_clauses(struct where_parser *p, struct where *w)
{
	int r;

	do {
		void *more = reallocarray(w->clauses, w->num_clauses + 1,
					  sizeof(*w->clauses));

		if (!more)
			return log_no_memory(p->log, NULL);
		w->clauses = more;
		w->clauses[w->num_clauses] = (struct clause){ 0 };
		r = take_clause(p, &w->clauses[w->num_clauses++]);
	} while (!r && take_word(p, "and"));
	return r || !*p->at ? r : refuse(p, "'and' or the end");
}

int where_parse(const char *text, const struct input *in, struct log *log,
		struct where **out)
{
	struct where_parser p = { in, log, text, text };
	struct where *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return log_no_memory(log, NULL);
	r = take_clauses(&p, w);
	if (r)
		where_free(w);
	else
		*out = w;
	return r;
}

void where_free(struct where *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->num_clauses; i++) {
		for (size_t k = 0; k < w->clauses[i].num_operands; k++)
			free(w->clauses[i].operands[k].text);
		free(w->clauses[i].operands);
	}
	free(w->clauses);
	free(w);
}

void where_mark(const struct where *w, bool *wanted)
{
	for (size_t i = 0; i < w->num_clauses; i++)
		wanted[w->clauses[i].field] = true;
}

/* --- evaluation ---------------------------------------------------------- */

static bool is_in_order(enum comparison c, int order)
{
	switch (c) {
	case EQUAL:
		return order == 0;
	case UNEQUAL:
		return order != 0;
	case BELOW:
		return order < 0;
	case UP_TO:
		return order <= 0;
	case ABOVE:
		return order > 0;
	default:
		return order >= 0;
	}
}

static bool compare(const struct clause *c, const struct input_value *v,
		    const struct operand *o)
{
	int order;

	/* Nothing compares with NaN but by !=. */
	if (c->type == INPUT_FLOAT && v->real != v->real)
		return c->comparison == UNEQUAL;
	if (c->type == INPUT_INT)
		order = (v->integer > o->integer) - (v->integer < o->integer);
	else if (c->type == INPUT_FLOAT)
		order = (v->real > o->real) - (v->real < o->real);
	else
		order = survey_compare_text(v, o->text);
	return is_in_order(c->comparison, order);
}

static bool clause_holds(const struct clause *c,
			 const struct input_value *values)
{
	bool any = false;

	for (size_t i = 0; i < c->num_operands && !any; i++)
		any = compare(c, &values[c->field], &c->operands[i]);
	return any != c->negated;
}

bool where_holds(const struct where *w, const struct input_value *values)
{
	for (size_t i = 0; i < w->num_clauses; i++) {
		if (!clause_holds(&w->clauses[i], values))
			return false;
	}
	return true;
}
