/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/graph/edit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/name.h"
#include "loader/pipeline/graph/op_table.h"
#include "loader/pipeline/text/parse.h"

/* An operation, and its index in its statement. */
struct edit_span {
	const struct parse_stage *stage;
	bool is_first,
		is_last; /* index among the operations of its statement */
	bool is_only;	 /* the statement has no other stage */
};

static int parse(const char *text, struct parse *out)
{
	struct diagnostic c = { .text = text };

	return parse_text(&c, out);
}

/* Whether a stage is an operation. Only the first stage of a statement can be a
   field instead. */
static bool is_op(const struct parse_stage *stage)
{
	return stage->file || (!stage->quoted && op_table_find(stage->name));
}

/* Finds operation `i` of the pipeline string. Returns false if it has fewer
   operations. */
static bool find_op(const struct parse *p, size_t i, struct edit_span *out)
{
	for (size_t k = 0; k < p->num_statements; k++) {
		const struct parse_statement *s = &p->statements[k];
		size_t last = s->first_stage + s->num_stages - 1;

		for (size_t n = s->first_stage; n <= last; n++) {
			const struct parse_stage *stage = &p->stages[n];

			if (!is_op(stage) || i--)
				continue;
			*out = (struct edit_span){
				.stage = stage,
				.is_first = n == s->first_stage ||
					    !is_op(stage - 1),
				.is_last = n == last,
				.is_only = s->num_stages == 1,
			};
			return true;
		}
	}
	return false;
}

size_t edit_num_ops(const char *text)
{
	struct parse p;
	struct edit_span s;
	size_t n = 0;

	if (parse(text, &p))
		return 0;
	while (find_op(&p, n, &s))
		n++;
	parse_fini(&p);
	return n;
}

int edit_op(const char *text, size_t i, char **written, char **name)
{
	struct parse p;
	struct edit_span s;
	int r = parse(text, &p);

	if (r)
		return r;
	if (!find_op(&p, i, &s)) {
		parse_fini(&p);
		return -ENOENT;
	}
	*written = strndup(text + s.stage->at, s.stage->end - s.stage->at);
	*name = strdup(s.stage->name);
	parse_fini(&p);
	if (*written && *name)
		return 0;
	free(*written);
	free(*name);
	return -ENOMEM;
}

/* Copies the pipeline string with [from, to) replaced. */
static int replace_span(const char *text, size_t from, size_t to,
			const char *by, char **out)
{
	char *new;

	if (text_print(&new, "%.*s%s%s", (int)from, text, by, text + to))
		return -ENOMEM;
	*out = new;
	return 0;
}

int edit_without(const char *text, size_t i, char **out)
{
	struct parse p;
	struct edit_span s;
	int r = parse(text, &p);

	if (r)
		return r;
	if (!find_op(&p, i, &s) || s.is_only)
		r = -ENOENT;
	else if (s.is_last)
		r = replace_span(text, s.stage[-1].end, s.stage->end, "", out);
	else
		r = replace_span(text, s.stage->at, s.stage[1].at, "", out);
	parse_fini(&p);
	return r;
}

static bool resizes(const char *word)
{
	return !strcmp(word, "random_resized_crop") ||
	       !strcmp(word, "center_crop") || !strcmp(word, "resize");
}

/* Returns the index of the first operation in the n-th statement that
   resizes. */
static bool find_resizing(const struct parse *p, size_t n, size_t *first)
{
	struct edit_span s;
	size_t start = 0;
	bool counted = false;

	for (size_t i = 0; find_op(p, i, &s); i++) {
		if (s.is_first) {
			start = i;
			counted = false;
		}
		if (counted || s.stage->file || !resizes(s.stage->name))
			continue;
		counted = true;
		if (!n--) {
			*first = start;
			return true;
		}
	}
	return false;
}

/* Adds the operation to the n-th statement that resizes. */
static int put_first(const char *text, size_t n, const char *operation,
		     bool after_decode, char **out)
{
	struct parse p;
	struct edit_span s = { 0 };
	char *with = NULL;
	size_t first = 0;
	bool decodes;
	int r = parse(text, &p);

	if (r)
		return r;
	if (!find_resizing(&p, n, &first) || !find_op(&p, first, &s)) {
		parse_fini(&p);
		return -ENOENT;
	}
	decodes = !s.stage->file && !strcmp(s.stage->name, "decode");
	if (!decodes)
		r = text_print(&with, "%s | ", operation);
	else if (after_decode)
		r = text_print(&with, " | %s", operation);
	if (!r && !decodes)
		r = replace_span(text, s.stage->at, s.stage->at, with, out);
	else if (!r && after_decode)
		r = replace_span(text, s.stage->end, s.stage->end, with, out);
	else if (!r)
		r = replace_span(text, s.stage->at, s.stage->end, operation,
				 out);
	free(with);
	parse_fini(&p);
	return r;
}

int edit_with_first(const char *text, const char *operation, bool after_decode,
		    char **out)
{
	char *now = strdup(text), *next;
	size_t n = 0;
	int r = now ? 0 : -ENOMEM;

	while (!r) {
		r = put_first(now, n, operation, after_decode, &next);
		if (r)
			break;
		free(now);
		now = next;
		n++;
	}
	if (r != -ENOENT || !n) {
		free(now);
		return r;
	}
	*out = now;
	return 0;
}

int edit_with_before(const char *text, const char *operation, const char *name,
		     char **out)
{
	char *with = NULL;
	struct parse p;
	struct edit_span s;
	int r = parse(text, &p);

	if (r)
		return r;
	r = -ENOENT;
	for (size_t i = 0; find_op(&p, i, &s); i++) {
		if (s.stage->file || strcmp(s.stage->name, name) != 0)
			continue;
		r = text_print(&with, "%s | ", operation);
		r = r ? r
		      : replace_span(text, s.stage->at, s.stage->at, with, out);
		break;
	}
	free(with);
	parse_fini(&p);
	return r;
}

bool edit_has(const char *text, const char *name)
{
	struct parse p;
	struct edit_span s;
	bool found = false;

	if (parse(text, &p))
		return false;
	for (size_t i = 0; !found && find_op(&p, i, &s); i++)
		found = !s.stage->file && !strcmp(s.stage->name, name);
	parse_fini(&p);
	return found;
}
