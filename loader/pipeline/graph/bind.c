/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/graph/bind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/base/util/suggest.h"
#include "loader/pipeline/graph/args.h"
#include "loader/pipeline/graph/family.h"
#include "loader/pipeline/graph/op_table.h"
#include "loader/pipeline/graph/synonym.h"
#include "loader/pipeline/op/user_op.h"
#include "loader/pipeline/text/diagnostic.h"
#include "loader/pipeline/text/parse.h"

enum { ADVICE_SIZE = 1024 };

/* File-name forms are unique, names are not: prefer the file-name form. */
int bind_field(const struct builder *b, const char *word)
{
	for (size_t i = 0; i < b->num_fields; i++) {
		if (!strcmp(b->fields[i].stem, word))
			return (int)i;
	}
	for (size_t i = 0; i < b->num_fields; i++) {
		if (!strcmp(b->fields[i].name, word))
			return (int)i;
	}
	return BIND_NOT_FOUND;
}

int bind_unknown_field(const struct builder *b, const struct parse_stage *stage)
{
	struct suggestion s = { .word = stage->name };
	char text[SUGGEST_TEXT_SIZE];

	for (size_t i = 0; i < b->num_fields; i++)
		suggest_try(&s, b->fields[i].stem);
	return complain(b->diagnostic, stage->at,
			"the dataset has no field \"%s\"%s", stage->name,
			suggest_text(&s, text, sizeof(text)));
}

/* Appends ", NAME", or "; BEFORE NAME" for the first one. */
static void list_name(char *out, size_t size, bool first, const char *before,
		      const char *name)
{
	size_t n = strlen(out);

	snprintf(out + n, size - n, "%s%s %s", first ? "; " : ",",
		 first ? before : "", name);
}

/* Writes advice about an identifier that is not an operation. `fields`: it
   could also be a field. `near`: a field has a similar name. */
static const char *advise(const struct builder *b, const struct suggestion *s,
			  bool fields, bool near, char *out, size_t size)
{
	const struct synonym *synonym = near ? NULL : synonym_of(s->word);

	synonym_text(synonym, out, size);
	if (synonym)
		return out;
	if (s->best)
		suggest_text(s, out, size);
	else {
		for (size_t i = 0; fields && i < b->num_fields; i++)
			list_name(out, size, !i, "the fields are",
				  b->fields[i].stem);
		for (size_t i = 0; op_table_row(i); i++)
			list_name(out, size, !i, "the operations are",
				  op_table_row(i)->name);
	}
	return out;
}

/* `first`: the identifier could also be the name of a field. */
static int unknown_op(const struct builder *b, const struct parse_stage *stage,
		      bool first)
{
	struct suggestion s = { .word = stage->name };
	struct suggestion field = { .word = stage->name };
	char text[ADVICE_SIZE];

	if (!first && bind_field(b, stage->name) != BIND_NOT_FOUND)
		return complain(
			b->diagnostic, stage->at,
			"no operation is called `%s', which is a field; "
			"a `;' begins another output",
			stage->name);
	if (strchr(stage->name, '.'))
		return complain(b->diagnostic, stage->at,
				"no operation is called `%s'; write a "
				"function of a C file as \"FILE.c\".FUNCTION",
				stage->name);
	for (size_t i = 0; op_table_row(i); i++)
		suggest_try(&s, op_table_row(i)->name);
	for (size_t i = 0; first && i < b->num_fields; i++) {
		suggest_try(&s, b->fields[i].stem);
		suggest_try(&field, b->fields[i].stem);
	}
	return complain(b->diagnostic, stage->at, "no %s is called `%s'%s",
			first ? "field or operation" : "operation", stage->name,
			advise(b, &s, first, field.best, text, sizeof(text)));
}

/* Finds the field of a statement without a field name: the only image field. */
static int only_image(const struct builder *b, size_t at, uint32_t *out)
{
	size_t found = 0;

	for (size_t i = 0; i < b->num_fields; i++) {
		if (b->fields[i].column != COLUMN_IMAGE)
			continue;
		*out = (uint32_t)i;
		found++;
	}
	if (found == 1)
		return 0;
	return complain(b->diagnostic, at,
			found ? "the dataset has several image fields; name "
				"one: FIELD | ..."
			      : "the dataset has no image field; name another: "
				"FIELD | ...");
}

/* Whether an operation of an output's image begins a statement. */
static bool names_image(const struct parse_stage *stage)
{
	const struct op *op = stage->file ? NULL : op_table_find(stage->name);

	return op && op_refers_to(op) == OP_OF_IMAGE;
}

/* Finds any image field. The output that the operation names decides later. */
static bool first_image(const struct builder *b, uint32_t *out)
{
	for (size_t i = 0; i < b->num_fields; i++) {
		*out = (uint32_t)i;
		if (b->fields[i].column == COLUMN_IMAGE)
			return true;
	}
	return false;
}

/* Sets chain->field, and *skip to the number of stages that name the field, 0
   or 1. */
int bind_take_field(const struct builder *b, const struct parse_stage *stage,
		    struct chain *chain, size_t *skip)
{
	int field = stage->has_parens || stage->file
			    ? BIND_NOT_FOUND
			    : bind_field(b, stage->name);

	*skip = field != BIND_NOT_FOUND;
	if (stage->quoted && field == BIND_NOT_FOUND)
		return bind_unknown_field(b, stage);
	if (field == BIND_NOT_FOUND && !stage->file &&
	    !op_table_find(stage->name))
		return unknown_op(b, stage, !stage->has_parens);
	if (field == BIND_NOT_FOUND && names_image(stage) &&
	    first_image(b, &chain->field))
		return 0;
	if (field == BIND_NOT_FOUND)
		return only_image(b, stage->at, &chain->field);
	if (!b->fields[field].usable)
		return complain(
			b->diagnostic, stage->at,
			"field \"%s\" has a custom type and cannot be read",
			stage->name);
	chain->field = (uint32_t)field;
	return 0;
}

/* Sets the type of an array's rows, if the field has rows. */
static void set_array(struct type *t, const struct array *array)
{
	if (!array->ndim)
		return;
	t->is_array = true;
	t->dtype = dtype_by_name(array->dtype);
	t->ndim = array->ndim - 1;
	memcpy(t->shape, array->shape + 1, t->ndim * sizeof(*t->shape));
}

struct type bind_source(const struct pipeline_field *f)
{
	struct type t = { .kind = TYPE_ARRAY, .fresh = true };

	t.dtype = dtype_by_name(f->dtype);
	t.unit = family_unit(t.dtype);
	t.ndim = (uint32_t)min_u64(f->ndim, BETON_MAX_NDIM);
	memcpy(t.shape, f->shape, t.ndim * sizeof(*t.shape));
	switch (f->column) {
	case COLUMN_IMAGE:
		t.kind = TYPE_IMAGE;
		t.dtype = DTYPE_U1;
		t.width = f->width;
		t.height = f->height;
		break;
	case COLUMN_RAGGED:
		t.kind = TYPE_RAGGED;
		set_array(&t, &f->array);
		break;
	case COLUMN_SCALAR:
	case COLUMN_ARRAY:
	case COLUMN_RECORD:
		break;
	}
	return t;
}

static bool is_same(const struct mention *a, const struct mention *b)
{
	return !strcmp(a->op->name, b->op->name) &&
	       (!a->function || !strcmp(a->function, b->function));
}

/* Counts the uses of an operation in the pipeline string, up to this use. */
static unsigned mention(struct builder *b, const struct node *n)
{
	struct mention *own = &b->mentions[b->num_mentions++];
	unsigned count = 0;

	*own = (struct mention){ n->op,
				 n->custom ? n->custom->function : NULL };
	for (const struct mention *m = b->mentions; m < own; m++)
		count += is_same(m, own);
	return count;
}

/* The node of the same operation in another chain of the statement, or NULL. */
const struct node *bind_twin(const struct builder *b, const struct node *n)
{
	const struct node *found = NULL;

	for (size_t i = b->first; !found && i < b->out->num_chains; i++)
		found = chain_find(&b->out->chains[i], n->at);
	return found;
}

static int stream_key(struct node *n, unsigned ordinal)
{
	const char *name = n->custom ? n->custom->function : n->op->name;
	const char *group = NULL;
	char *text;
	int r;

	if (!n->custom)
		group = n->args.arg[op_param(n->op, "group")].text;
	r = group ? asprintf(&text, "%s:%s", name, group)
		  : asprintf(&text, "%s:%u", name, ordinal);
	if (r < 0)
		return -ENOMEM;
	n->stream = rng_key_of_text(text);
	free(text);
	return 0;
}

void bind_forget_texts(struct args *args)
{
	for (size_t i = 0; i < OP_PARAMS_MAX; i++)
		args->arg[i].text = NULL;
}

static int load_node(const struct builder *b, const struct parse_stage *stage,
		     struct node *n)
{
	char why[256];
	int r = n->op->load(&n->args, why, sizeof(why));

	if (r == -EINVAL)
		return complain(b->diagnostic, stage->at, "%s: %s", n->op->name,
				why);
	return r;
}

/* Whether a list of operations in a stage begins with an operation of kind
   OP_BATCH. */
static bool mixes_rows(const struct builder *b, const struct parse_stage *stage)
{
	const struct parse_arg *arg;
	const struct op *op;

	if (!stage->num_args)
		return false;
	arg = &b->parse->args[stage->first_arg];
	op = op_table_find(b->parse->nested[arg->first_stage].name);
	return op && op->kind == OP_BATCH;
}

static const struct op *find_op(const struct builder *b,
				const struct parse_stage *stage)
{
	const struct op *op = stage->quoted ? NULL : op_table_find(stage->name);

	if (op && op->branches && op->branches->of_batches &&
	    mixes_rows(b, stage))
		return op->branches->of_batches;
	return op;
}

/* Binds the arguments of a row of loader/pipeline/ops. */
static int bind_row(const struct builder *b, const struct parse_stage *stage,
		    struct node *n)
{
	const struct op *op;
	int r = args_bind(n->op, b->parse, stage, b->epochs, b->diagnostic,
			  &n->args);

	if (r)
		return r;
	op = n->op->instead ? n->op->instead(&n->args) : NULL;
	n->op = op ? op : n->op;
	return n->op->load ? load_node(b, stage, n) : 0;
}

/* Records the name of an output. Its statement may follow later in the
   string. */
static int note_of(const struct parse_stage *stage, struct node *n)
{
	n->of_at = stage->at;
	n->of_name = strdup(n->args.arg[op_param(n->op, "of")].text);
	return n->of_name ? 0 : -ENOMEM;
}

/* Resolves the operation of a stage and binds its arguments. */
int bind_stage(struct builder *b, const struct parse_stage *stage,
	       struct node *n)
{
	const struct node *twin;
	unsigned ordinal;
	int r;

	n->at = stage->at;
	if (stage->file) {
		n->op = &user_op_op;
		r = user_op_bind(b->parse, stage, b->epochs, b->diagnostic,
				 &n->custom);
	} else {
		n->op = find_op(b, stage);
		if (!n->op)
			return unknown_op(b, stage, false);
		r = bind_row(b, stage, n);
	}
	if (!r && op_refers_to(n->op))
		r = note_of(stage, n);
	if (r)
		return r;
	twin = bind_twin(b, n);
	if (twin) {
		n->stream = twin->stream;
		return 0;
	}
	ordinal = mention(b, n);
	return n->custom || op_is_random(n->op) ? stream_key(n, ordinal) : 0;
}

/* If `wrong` is not NULL, reports it as the error of a node. */
int bind_refuse(const struct builder *b, const struct parse_stage *stage,
		const struct node *n, const char *wrong)
{
	if (!wrong)
		return 0;
	return complain(b->diagnostic, stage->at, "%s %s",
			n->custom ? stage->name : n->op->name, wrong);
}

bool bind_is_skipped(const struct parse_stage *stage, const struct type *type)
{
	const struct op *op = stage->file     ? &user_op_op
			      : stage->quoted ? NULL
					      : op_table_find(stage->name);

	return op && family_skips(op, type);
}

/* --- operations in parentheses --- */

/* Returns the reason why `parent` cannot take the operation in parentheses, or
   NULL. */
static const char *refuse_kind(const struct node *parent, const struct node *n)
{
	enum op_kind kind = n->op->kind;

	if (n->custom)
		return "is a custom operation and cannot stand in "
		       "parentheses";
	if (parent->op->kind == OP_BATCH)
		return kind == OP_BATCH && op_lists(n->op) < 0
			       ? NULL
			       : "cannot stand beside mixup and cutmix";
	if (kind == OP_IMAGE || kind == OP_POINT || kind == OP_PIXEL ||
	    (kind == OP_GEOMETRY && n->op->geometry->mirrors))
		return NULL;
	return "cannot stand in parentheses, where operations keep the size "
	       "and the type of an image";
}

static bool is_kept(const struct type *in, const struct type *out)
{
	return out->dtype == in->dtype && out->layout == in->layout &&
	       out->width == in->width && out->height == in->height;
}

static bool changes_size(const struct node *n, const struct type *in)
{
	struct size size = { in->width, in->height };

	if (!in->width)
		return false;
	size = op_resized(n->op, &n->args, size);
	return size.width != in->width || size.height != in->height;
}

/* Returns the reason why an operation with the input `in` is not allowed in
   parentheses, or NULL. Sets the type of its result to that of `in`. */
static const char *infer_nested(const struct node *parent, struct node *n,
				const struct type *in)
{
	const char *wrong = refuse_kind(parent, n);

	n->type = *in;
	if (!wrong)
		wrong = n->op->infer(&n->args, in, &n->type);
	if (!wrong)
		wrong = family_refuse(n->op, &n->args, n->custom, in);
	if (wrong || parent->op->kind == OP_BATCH)
		return wrong;
	if (!is_kept(in, &n->type) || changes_size(n, in))
		return "changes the size or the type of the image, and cannot "
		       "stand in parentheses";
	n->type.fresh = n->type.valued = n->type.placed = false;
	return NULL;
}

/* The operands of adjacent value operations are contiguous. */
static void place_nested(struct chain *branch, struct node *n)
{
	if (!node_is_value(n)) {
		branch->num_operands = 0;
		return;
	}
	n->first_operand = branch->num_operands;
	branch->num_operands += node_num_operands(n);
}

static int add_nested(struct builder *b, const struct node *parent,
		      const struct parse_stage *stage, struct chain *branch)
{
	struct node n = { 0 };
	int r;

	if (b->is_several && bind_is_skipped(stage, chain_type(branch)))
		return 0;
	r = bind_stage(b, stage, &n);
	if (!r)
		r = bind_refuse(b, stage, &n,
				infer_nested(parent, &n, chain_type(branch)));
	if (!r)
		r = bind_branches(b, stage, &n, chain_type(branch));
	if (r) {
		node_close(&n);
		return r;
	}
	bind_forget_texts(&n.args);
	n.is_viewed = n.type.views;
	place_nested(branch, &n);
	branch->nodes[branch->num_nodes++] = n;
	return 0;
}

static int add_branch(struct builder *b, const struct node *parent,
		      const struct parse_arg *arg, struct chain *branch)
{
	const struct parse_stage *stages = &b->parse->nested[arg->first_stage];
	int r = 0;

	branch->nodes = calloc(arg->num_stages, sizeof(*branch->nodes));
	if (!branch->nodes)
		return -ENOMEM;
	if (parent->op->kind == OP_BATCH && arg->num_stages > 1)
		return complain(
			b->diagnostic, stages[1].at,
			"mixup and cutmix must be alone in their lists");
	for (size_t i = 0; !r && i < arg->num_stages; i++)
		r = add_nested(b, parent, &stages[i], branch);
	return r;
}

/* All alternatives of a random choice must have the same type. */
static int take_type(const struct builder *b, const struct parse_stage *stage,
		     struct node *n)
{
	const struct type *first = chain_type(&n->branches[0]);

	for (size_t i = 1; i < n->num_branches; i++) {
		const struct type *type = chain_type(&n->branches[i]);

		if (type->dtype != first->dtype || type->ndim != first->ndim)
			return bind_refuse(b, stage, n,
					   "has lists of different types");
	}
	n->type = *first;
	return 0;
}

/* Resolves the lists of operations of a stage. Their input has the type
   `in`. */
int bind_branches(struct builder *b, const struct parse_stage *stage,
		  struct node *n, const struct type *in)
{
	int lists = n->custom ? -1 : op_lists(n->op), r = 0;

	if (lists < 0)
		return 0;
	n->branches = calloc(n->args.arg[lists].count, sizeof(*n->branches));
	if (!n->branches)
		return -ENOMEM;
	for (size_t i = 0; !r && i < stage->num_args; i++) {
		const struct parse_arg *arg =
			&b->parse->args[stage->first_arg + i];
		struct chain *branch = &n->branches[n->num_branches];

		if (args_param(n->op, arg, i) != lists)
			continue;
		n->num_branches++;
		branch->source = *in;
		branch->source.valued = branch->source.placed = false;
		r = add_branch(b, n, arg, branch);
	}
	if (!r && n->op->kind == OP_BATCH)
		r = take_type(b, stage, n);
	return r;
}
