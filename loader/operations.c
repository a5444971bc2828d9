/* SPDX-License-Identifier: Apache-2.0 */
/* Describes all operations as JSON text, from rows of loader/pipeline/ops. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "beton/loader.h"
#include "loader/pipeline/graph/op_table.h"
#include "loader/pipeline/graph/synonym.h"
#include "loader/pipeline/op/op.h"

static const char *const param_kinds[] = {
	[PARAM_INTEGERS] = "integers", [PARAM_REALS] = "reals",
	[PARAM_CHOICE] = "choice",     [PARAM_NAME] = "name",
	[PARAM_BYTES] = "bytes",       [PARAM_OPERATIONS] = "operations",
};

/* "one|two" as a list of "one" and "two"; NULL: an empty list. */
static json_t *describe_choices(const char *words)
{
	json_t *list = json_array();

	while (words && *words) {
		const size_t n = strcspn(words, "|");

		json_array_append_new(list, json_stringn(words, n));
		words += n + (words[n] == '|');
	}
	return list;
}

static json_t *describe_param(const struct param *p)
{
	return json_pack("{s:s, s:s, s:s?, s:i, s:i, s:o, s:s}", "name",
			 p->name, "kind", param_kinds[p->kind], "default",
			 p->initial, "min_count", (int)p->min_count,
			 "max_count", (int)p->max_count, "choices",
			 describe_choices(p->choices), "help", p->help);
}

static json_t *describe_synonyms(const struct op *op)
{
	const size_t n = strlen(op->name);
	const struct synonym *s;
	json_t *list = json_array();

	for (size_t i = 0; (s = synonym_at(i)); i++) {
		if (s->ours && !strncmp(s->ours, op->name, n) &&
		    (!s->ours[n] || s->ours[n] == '('))
			json_array_append_new(list, json_string(s->theirs));
	}
	return list;
}

/* The type that an operation converts to, or "". */
static const char *type_of(const struct op *op)
{
	const struct type in = { .kind = TYPE_ARRAY, .dtype = DTYPE_F4 };
	struct type out = in;

	if (op->kind != OP_DTYPE || op->infer(NULL, &in, &out))
		return "";
	return dtype_name(out.dtype);
}

static json_t *describe_op(const struct op *op)
{
	json_t *params = json_array();

	for (const struct param *p = op->params; p && p->name; p++)
		json_array_append_new(params, describe_param(p));
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", op->name, "help",
			 op->help, "dtype", type_of(op), "params", params,
			 "synonyms", describe_synonyms(op));
}

int beton_operations(char **out)
{
	json_t *list = json_array();
	char *text;

	for (size_t i = 0; op_table_row(i); i++)
		json_array_append_new(list, describe_op(op_table_row(i)));
	text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	if (!text)
		return -ENOMEM;
	*out = text;
	return 0;
}
