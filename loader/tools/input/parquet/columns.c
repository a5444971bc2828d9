/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/parquet/columns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"

#define REMEDY "leave the column out with --fields"

struct walk {
	const struct pq_footer *footer;
	struct input *in;
	struct pq_column *columns;
	size_t node;
	size_t leaf;
};

/* --- adding fields ------------------------------------------------------- */

static int add_field(struct walk *w, const char *name, enum input_type type,
		     struct pq_column **column, struct input_field **field)
{
	struct pq_column *more;

	if (w->in->num_fields == INPUT_FIELDS_MAX) {
		log_error(w->in->log, "more than %d columns", INPUT_FIELDS_MAX);
		return -EFBIG;
	}
	more = reallocarray(w->columns, w->in->num_fields + 1, sizeof(*more));
	if (!more) {
		log_error(w->in->log, "out of memory");
		return -ENOMEM;
	}
	w->columns = more;
	*column = &more[w->in->num_fields];
	**column = (struct pq_column){ .chunk = w->leaf };
	*field = input_add_field(w->in, name, type);
	return *field ? 0 : -EINVAL;
}

static int refuse(struct walk *w, const char *name, const char *what)
{
	struct pq_column *column;
	struct input_field *field;
	int r = add_field(w, name, INPUT_BYTES, &column, &field);

	if (!r)
		snprintf(field->refused, sizeof(field->refused), "%s: " REMEDY,
			 what);
	return r;
}

static void skip_tree(struct walk *w)
{
	uint64_t left = 1;

	while (left--) {
		const struct pq_node *n = &w->footer->nodes[w->node++];

		left += n->num_children;
		w->leaf += n->type != PQ_GROUP;
	}
}

/* --- scalars ------------------------------------------------------------- */

/* Returns why a leaf cannot be a field, or NULL. */
static const char *scalar_type(const struct pq_node *n, enum input_type *type)
{
	if (n->meaning == PQ_NOTHING)
		return "a column of nulls";
	if (n->meaning == PQ_DECIMAL)
		return "decimal numbers";
	switch (n->type) {
	case PQ_BOOL:
	case PQ_INT32:
	case PQ_INT64:
		*type = INPUT_INT;
		return NULL;
	case PQ_FLOAT:
	case PQ_DOUBLE:
		*type = INPUT_FLOAT;
		return NULL;
	case PQ_BYTES:
		*type = n->meaning == PQ_TEXT	? INPUT_TEXT
			: n->meaning == PQ_JSON ? INPUT_JSON
						: INPUT_BYTES;
		return NULL;
	case PQ_FIXED_BYTES:
		if (!n->length || n->length > INT32_MAX)
			return "values without bytes";
		*type = n->meaning == PQ_FLOAT16 ? INPUT_FLOAT : INPUT_BYTES;
		return n->meaning == PQ_FLOAT16 && n->length != 2
			       ? "half floats of another size"
			       : NULL;
	case PQ_INT96:
		return "times in 96 bits";
	default:
		return "nested values";
	}
}

static void set_leaf(struct pq_column *c, const struct pq_node *n)
{
	c->leaf.type = n->type;
	c->leaf.length = n->length;
	c->meaning = n->meaning;
	c->is_unsigned = n->meaning == PQ_INTEGER && !n->is_signed;
}

static int add_scalar(struct walk *w, const char *name, unsigned definitions)
{
	const struct pq_node *n = &w->footer->nodes[w->node];
	enum input_type type = INPUT_BYTES;
	const char *why = scalar_type(n, &type);
	struct input_field *field;
	struct pq_column *c;
	int r;

	if (why)
		return refuse(w, name, why);
	r = add_field(w, name, type, &c, &field);
	if (r)
		return r;
	set_leaf(c, n);
	c->leaf.definitions = definitions + (n->repetition == PQ_OPTIONAL);
	c->may_be_image = type == INPUT_BYTES && n->type == PQ_BYTES;
	return 0;
}

/* --- lists --------------------------------------------------------------- */

/* Returns the dtype of an array of a leaf's values, or NULL. */
static const char *array_dtype(const struct pq_node *n, unsigned *size)
{
	static const char *const ints[2][4] = {
		{ "|i1", "<i2", "<i4", "<i8" },
		{ "|u1", "<u2", "<u4", "<u8" },
	};
	bool is_int = n->type == PQ_INT32 || n->type == PQ_INT64;
	unsigned bits = n->type == PQ_INT64 ? 64 : 32;
	bool is_sized = n->meaning == PQ_INTEGER && n->bits >= 8 &&
			n->bits <= bits && is_power_of_two(n->bits);
	bool is_unsigned = n->meaning == PQ_INTEGER && !n->is_signed;

	if (n->meaning == PQ_DECIMAL)
		return NULL;
	bits = is_sized ? n->bits : bits;
	*size = n->type == PQ_BOOL ? 1 : n->type == PQ_FLOAT ? 4 : 8;
	if (is_int)
		*size = bits / 8;
	if (n->meaning == PQ_FLOAT16 && n->type == PQ_FIXED_BYTES &&
	    n->length == 2) {
		*size = 2;
		return "<f2";
	}
	return is_int		      ? ints[is_unsigned][__builtin_ctz(*size)]
	       : n->type == PQ_BOOL   ? "|b1"
	       : n->type == PQ_FLOAT  ? "<f4"
	       : n->type == PQ_DOUBLE ? "<f8"
				      : NULL;
}

/* Follows groups of one child to the leaf. Returns NULL if there are others. */
static const struct pq_node *find_element(const struct walk *w,
					  struct pq_leaf *leaf)
{
	const struct pq_node *n = &w->footer->nodes[w->node];

	for (;; n++) {
		leaf->definitions += n->repetition != PQ_REQUIRED;
		leaf->repetitions += n->repetition == PQ_REPEATED;
		if (n->type != PQ_GROUP)
			return n;
		if (n->num_children != 1 || n->meaning == PQ_MAP)
			return NULL;
	}
}

static int add_list(struct walk *w, const char *name)
{
	struct pq_leaf leaf = { 0 };
	const struct pq_node *n = find_element(w, &leaf);
	struct input_field *field;
	struct pq_column *c;
	const char *dtype;
	unsigned element;
	int r;

	if (!n)
		return refuse(w, name, "nested values");
	dtype = array_dtype(n, &element);
	if (!dtype || leaf.repetitions > BETON_ARRAY_MAX_NDIM)
		return refuse(w, name, "lists of other values than numbers");
	r = add_field(w, name, INPUT_ARRAY, &c, &field);
	if (r)
		return r;
	leaf.type = n->type;
	leaf.length = n->length;
	c->leaf = leaf;
	c->meaning = n->meaning;
	c->element = element;
	memcpy(field->dtype, dtype, strlen(dtype) + 1);
	field->ndim = leaf.repetitions;
	return 0;
}

/* --- groups -------------------------------------------------------------- */

static bool has_name(const struct pq_node *n, const char *name)
{
	return n->name_size == strlen(name) &&
	       !memcmp(n->name, name, n->name_size);
}

static bool is_flat_leaf(const struct pq_node *n)
{
	return n->type != PQ_GROUP && n->repetition != PQ_REPEATED;
}

/* A file's bytes with its name, as Hugging Face writes images. */
static bool is_file(const struct pq_node *group)
{
	const struct pq_node *a = group + 1, *b = group + 2;

	return group->num_children == 2 && is_flat_leaf(a) && is_flat_leaf(b) &&
	       a->type == PQ_BYTES && b->type == PQ_BYTES &&
	       ((has_name(a, "bytes") && has_name(b, "path")) ||
		(has_name(b, "bytes") && has_name(a, "path")));
}

static int add_child(struct walk *w, const char *group, bool is_of_file,
		     unsigned definitions)
{
	const struct pq_node *n = &w->footer->nodes[w->node];
	char name[2 * INPUT_NAME_SIZE];

	if (is_of_file)
		return has_name(n, "bytes") ? add_scalar(w, group, definitions)
					    : 0;
	snprintf(name, sizeof(name), "%s.%.*s", group, (int)n->name_size,
		 n->name);
	return is_flat_leaf(n) ? add_scalar(w, name, definitions)
			       : refuse(w, name, "nested values");
}

static int add_group(struct walk *w, const char *name)
{
	const struct pq_node *group = &w->footer->nodes[w->node];
	unsigned definitions = group->repetition == PQ_OPTIONAL;
	bool is_of_file = is_file(group);
	int r = 0;

	w->node++;
	for (uint32_t i = 0; i < group->num_children && !r; i++) {
		r = add_child(w, name, is_of_file, definitions);
		skip_tree(w);
	}
	return r;
}

/* --- the schema ---------------------------------------------------------- */

static int add_column(struct walk *w)
{
	const struct pq_node *n = &w->footer->nodes[w->node];
	char name[INPUT_NAME_SIZE];
	size_t node = w->node, leaf = w->leaf;
	int r;

	if (!n->name_size || n->name_size >= sizeof(name) ||
	    memchr(n->name, '\0', n->name_size)) {
		log_error(w->in->log,
			  "a column whose name has %zu bytes; it may have 1 to "
			  "%zu, and no NUL",
			  n->name_size, sizeof(name) - 1);
		return -EINVAL;
	}
	memcpy(name, n->name, n->name_size);
	name[n->name_size] = '\0';
	if (is_flat_leaf(n))
		r = add_scalar(w, name, 0);
	else if (n->repetition == PQ_REPEATED || n->meaning == PQ_LIST)
		r = add_list(w, name);
	else if (n->meaning == PQ_MAP)
		r = refuse(w, name, "maps");
	else
		r = add_group(w, name);
	w->node = node;
	w->leaf = leaf;
	skip_tree(w);
	return r;
}

int pq_columns_find(const struct pq_footer *footer, struct input *in,
		    struct pq_column **out)
{
	struct walk w = { .footer = footer, .in = in, .node = 1 };
	int r = 0;

	while (w.node < footer->num_nodes && !r)
		r = add_column(&w);
	if (r) {
		free(w.columns);
		return r;
	}
	*out = w.columns;
	return 0;
}
