/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/emit_value.h"

#include <stdio.h>
#include <string.h>

#include "loader/pipeline/graph/op_table.h"
#include "loader/pipeline/op/user_op.h"
#include "loader/run/jit/code.h"
#include "loader/run/jit/emit_type.h"
#include "loader/run/jit/kernel.h"

unsigned emit_value_channels(const struct emit_value *w)
{
	return w->flat ? 1 : 3;
}

const char *emit_value_spell(const struct emit_value *w, unsigned channel,
			     char out[static 32])
{
	if (w->flat)
		snprintf(out, 32, "v%u", w->value);
	else
		snprintf(out, 32, "v%u[%u]", w->value, channel);
	return out;
}

/* "float v3[3] = { " */
static void begin_value(const struct emit_value *w, const char *type)
{
	code_add(w->code, w->flat ? "\t\t%s v%u = " : "\t\t%s v%u[3] = { ",
		 type, w->value + 1);
}

static void end_value(struct emit_value *w)
{
	code_put(w->code, w->flat ? ";\n" : " };\n");
	w->value++;
}

/* Emits the next value: `function` of this one. A cast is text before it. */
static void put_call(struct emit_value *w, const char *type,
		     const char *function)
{
	bool is_call = *function && *function != '(';
	char name[32];

	begin_value(w, type);
	for (unsigned c = 0; c < emit_value_channels(w); c++)
		code_add(w->code, "%s%s%s%s%s", c ? ", " : "", function,
			 is_call ? "(" : "", emit_value_spell(w, c, name),
			 is_call ? ")" : "");
	end_value(w);
}

static void put_conversion(struct emit_value *w, enum dtype to)
{
	if ((dtype_is_short_real(w->type) || dtype_is_short_real(to)) &&
	    w->type != to && w->type != DTYPE_F4 && to != DTYPE_F4)
		put_conversion(w, DTYPE_F4);
	if (to != w->type)
		put_call(w, emit_type_name(to), emit_type_cast(w->type, to));
	w->type = to;
}

/* ", k[7]" for the operands of an operation. */
static void put_operands(const struct emit_value *w, const struct node *n,
			 unsigned channel)
{
	size_t count = n->op->value->num_operands;
	size_t first = n->first_operand + channel * count;

	for (size_t i = 0; i < count; i++) {
		if (w->flat)
			code_add(w->code, ", k[%zu + i]",
				 (n->first_operand / 3 + i) * KERNEL_LANES);
		else
			code_add(w->code, ", k[%zu]", first + i);
	}
}

static void put_point(struct emit_value *w, const struct node *n)
{
	char name[32];

	put_conversion(w, DTYPE_F4);
	begin_value(w, "float");
	for (unsigned c = 0; c < emit_value_channels(w); c++) {
		code_add(w->code, "%s%s(%s", c ? ", " : "", n->op->name,
			 emit_value_spell(w, c, name));
		put_operands(w, n, c);
		code_put(w->code, ")");
	}
	end_value(w);
}

static void put_custom_call(struct emit_value *w, const struct node *n)
{
	const struct user_op *custom = n->custom;
	size_t random = n->first_operand + custom->num_args;

	code_add(w->code,
		 "\t\tstruct beton_at at%u = { x + i, y, width, height,\n"
		 "\t\t\t{ k[%zu], k[%zu], k[%zu], k[%zu] } };\n"
		 "\t\t%s(v%u, &at%u",
		 w->value, random, random + 1, random + 2, random + 3,
		 custom->function, w->value, w->value);
	for (size_t i = 0; i < custom->num_args; i++)
		code_add(w->code, ", k[%zu]", n->first_operand + i);
}

static void put_pixel(struct emit_value *w, const struct node *n)
{
	put_conversion(w, DTYPE_F4);
	put_call(w, "float", "");
	if (n->custom) {
		put_custom_call(w, n);
	} else {
		code_add(w->code, "\t\t%s(v%u", n->op->name, w->value);
		put_operands(w, n, 0);
	}
	code_put(w->code, ");\n");
}

/* Whether the bytes of a value operation are another's values. */
static bool is_inner(const struct chain *chain, size_t i)
{
	if (!node_is_value(&chain->nodes[i]) ||
	    chain->nodes[i].type.dtype != DTYPE_U1)
		return false;
	while (++i < chain->num_nodes) {
		if (node_is_value(&chain->nodes[i]))
			return true;
	}
	return false;
}

bool emit_value_has_loops(const struct chain *chain)
{
	for (size_t i = 0; i < chain->num_nodes; i++) {
		if (is_inner(chain, i))
			return true;
	}
	return false;
}

/* Ends the loop, and begins the next one with the bytes of its value. */
static void put_next_loop(struct emit_value *w)
{
	unsigned channels = emit_value_channels(w);
	char name[32];

	for (unsigned c = 0; c < channels; c++)
		code_add(w->code, "\t\treal[%u + i] = %s;\n", c * w->loop,
			 emit_value_spell(w, c, name));
	code_add(w->code,
		 "\t}\n"
		 "\tbeton_wholes(whole, real, %u);\n"
		 "\tfor (int i = 0; i < %u; i++) {\n",
		 channels * w->loop, w->loop);
	begin_value(w, "int");
	for (unsigned c = 0; c < channels; c++)
		code_add(w->code, "%swhole[%u + i]", c ? ", " : "",
			 c * w->loop);
	end_value(w);
	w->type = DTYPE_U1;
}

/* The last node that changes values. */
static size_t last_change(const struct chain *chain)
{
	size_t i = chain->num_nodes;

	while (i && !node_is_value(&chain->nodes[i - 1]) &&
	       chain->nodes[i - 1].type.dtype == chain_type(chain)->dtype)
		i--;
	return i;
}

bool emit_value_has_halves(const struct chain *chain)
{
	return dtype_is_short_real(chain_type(chain)->dtype);
}

bool emit_value_has_wholes(const struct chain *chain)
{
	size_t end = last_change(chain);

	return chain_type(chain)->dtype == DTYPE_U1 && end &&
	       node_is_value(&chain->nodes[end - 1]) &&
	       chain->nodes[end - 1].type.dtype == DTYPE_U1;
}

/* Emits operation i of the chain. */
static void put_value_op(struct emit_value *w, size_t i, bool is_last)
{
	const struct node *n = &w->chain->nodes[i];

	if (n->op->kind == OP_POINT)
		put_point(w, n);
	else
		put_pixel(w, n);
	w->type = DTYPE_F4;
	if (n->type.dtype != DTYPE_U1)
		return;
	if (w->loop && is_inner(w->chain, i)) {
		put_next_loop(w);
	} else if (!w->loop || !is_last) {
		put_call(w, "int", "beton_whole");
		w->type = DTYPE_U1;
	}
}

void emit_value_put(struct emit_value *w)
{
	size_t end = last_change(w->chain);
	enum dtype to = chain_type(w->chain)->dtype;
	bool wholes = emit_value_has_wholes(w->chain);

	for (size_t i = 0; i < end; i++) {
		const struct node *n = &w->chain->nodes[i];

		if (node_is_value(n))
			put_value_op(w, i, wholes && i + 1 == end);
		else
			put_conversion(w, n->type.dtype);
	}
	if (!w->loop || !wholes)
		put_conversion(w, dtype_is_short_real(to) ? DTYPE_F4 : to);
}

/* --- what it needs --- */

bool emit_value_uses(const struct chain *chain, const struct op *op)
{
	for (size_t i = 0; i < chain->num_nodes; i++) {
		if (chain->nodes[i].op == op)
			return true;
	}
	return false;
}

static bool is_used(const struct chain *const *chains, size_t count,
		    const struct op *op)
{
	for (size_t i = 0; i < count; i++) {
		if (emit_value_uses(chains[i], op))
			return true;
	}
	return false;
}

/* A file that several operations name is emitted once. */
static bool is_first_of_file(const struct chain *chain, const struct node *n)
{
	for (const struct node *at = chain->nodes; at < n; at++) {
		if (at->custom && !strcmp(at->custom->file, n->custom->file))
			return false;
	}
	return true;
}

static void put_files(struct code *c, const struct chain *chain)
{
	bool any = false;

	for (size_t i = 0; i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];

		if (!n->custom || !n->custom->text ||
		    !is_first_of_file(chain, n))
			continue;
		if (!any)
			code_put(c, "struct beton_at { int x, y, width, "
				    "height; float random[4]; };\n");
		any = true;
		code_add(c, "#line 1 \"%s\"\n%s\n", n->custom->file,
			 n->custom->text);
	}
	if (any)
		code_put(c, "#line 1 \"pipeline\"\n");
}

static void put_ops(struct code *c, const struct chain *const *chains,
		    size_t count)
{
	const struct op *op;

	for (size_t i = 0; (op = op_table_row(i)); i++) {
		if (op->value && is_used(chains, count, op))
			code_put(c, op->value->code);
	}
}

void emit_value_needs(struct code *c, const struct chain *const *chains,
		      size_t count, const char *text)
{
	emit_type_helpers(c, text);
	put_ops(c, chains, count);
	for (size_t i = 0; i < count; i++)
		put_files(c, chains[i]);
}
