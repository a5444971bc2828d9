/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/emit.h"

#include <stdio.h>
#include <string.h>

#include "fs/rng.h"
#include "fs/scope.h"
#include "loader/code.h"
#include "loader/emit_type.h"
#include "loader/kernel.h"
#include "loader/own.h"

#define TEXT_OF(...) #__VA_ARGS__
#define EXPANDED_TEXT_OF(...) TEXT_OF(__VA_ARGS__)

/* The value of a pixel, or of a lane, on its way through a chain. */
struct writer {
	struct code *code;
	const struct chain *chain;
	const char *name;
	bool flat;
	bool planar;	 /* the result has a plane per channel */
	bool places;	 /* an operation asks where a pixel lies */
	enum dtype type; /* of the value now */
	unsigned value;	 /* its name is v and this number */
};

bool emit_is_flat(const struct chain *chain)
{
	if (chain_type(chain)->layout == LAYOUT_CHW)
		return false;
	for (size_t i = 0; i < chain->num_nodes; i++) {
		if (chain->nodes[i].op->kind == OP_PIXEL)
			return false;
	}
	return true;
}

/* The channels of a value: one at a time in a flat kernel. */
static unsigned channels(const struct writer *w)
{
	return w->flat ? 1 : 3;
}

/* "v2", or of a pixel "v2[1]". */
static const char *spell(const struct writer *w, unsigned channel,
			 char out[static 32])
{
	if (w->flat)
		snprintf(out, 32, "v%u", w->value);
	else
		snprintf(out, 32, "v%u[%u]", w->value, channel);
	return out;
}

/* "float v3[3] = { " */
static void begin_value(const struct writer *w, const char *type)
{
	code_add(w->code, w->flat ? "\t\t%s v%u = " : "\t\t%s v%u[3] = { ",
		 type, w->value + 1);
}

static void end_value(struct writer *w)
{
	code_put(w->code, w->flat ? ";\n" : " };\n");
	w->value++;
}

/* The next value is `function` of this one; a cast stands before as it is. */
static void put_call(struct writer *w, const char *type, const char *function)
{
	bool is_call = *function && *function != '(';
	char name[32];

	begin_value(w, type);
	for (unsigned c = 0; c < channels(w); c++)
		code_add(w->code, "%s%s%s%s%s", c ? ", " : "", function,
			 is_call ? "(" : "", spell(w, c, name),
			 is_call ? ")" : "");
	end_value(w);
}

static void put_conversion(struct writer *w, enum dtype to)
{
	if ((w->type == DTYPE_F2) != (to == DTYPE_F2) && w->type != DTYPE_F4 &&
	    to != DTYPE_F4)
		put_conversion(w, DTYPE_F4);
	if (to != w->type)
		put_call(w, emit_type_name(to), emit_type_cast(w->type, to));
	w->type = to;
}

/* ", k[7]" for the operands of an operation. */
static void put_operands(const struct writer *w, const struct node *n,
			 unsigned channel)
{
	size_t count = n->op->num_operands;
	size_t first = n->first_operand + channel * count;

	for (size_t i = 0; i < count; i++) {
		if (w->flat)
			code_add(w->code, ", k[%zu + i]",
				 (n->first_operand / 3 + i) * KERNEL_LANES);
		else
			code_add(w->code, ", k[%zu]", first + i);
	}
}

static void put_point(struct writer *w, const struct node *n)
{
	char name[32];

	put_conversion(w, DTYPE_F4);
	begin_value(w, "float");
	for (unsigned c = 0; c < channels(w); c++) {
		code_add(w->code, "%s%s(%s", c ? ", " : "", n->op->name,
			 spell(w, c, name));
		put_operands(w, n, c);
		code_put(w->code, ")");
	}
	end_value(w);
}

static void put_own_call(struct writer *w, const struct node *n)
{
	const struct own *own = n->own;
	size_t random = n->first_operand + own->num_args;

	code_add(w->code,
		 "\t\tstruct beton_at at%u = { x + i, y, width, height,\n"
		 "\t\t\t{ k[%zu], k[%zu], k[%zu], k[%zu] } };\n"
		 "\t\t%s(v%u, &at%u",
		 w->value, random, random + 1, random + 2, random + 3,
		 own->function, w->value, w->value);
	for (size_t i = 0; i < own->num_args; i++)
		code_add(w->code, ", k[%zu]", n->first_operand + i);
}

static void put_pixel(struct writer *w, const struct node *n)
{
	put_conversion(w, DTYPE_F4);
	put_call(w, "float", "");
	if (n->own) {
		put_own_call(w, n);
	} else {
		code_add(w->code, "\t\t%s(v%u", n->op->name, w->value);
		put_operands(w, n, 0);
	}
	code_put(w->code, ");\n");
}

static void put_value_op(struct writer *w, const struct node *n)
{
	if (n->op->kind == OP_POINT)
		put_point(w, n);
	else
		put_pixel(w, n);
	w->type = DTYPE_F4;
	if (n->type.dtype == DTYPE_U1) {
		put_call(w, "int", "beton_whole");
		w->type = DTYPE_U1;
	}
}

/* Nodes up to this one; after it values stay as they are. */
static size_t last_change(const struct chain *chain)
{
	size_t i = chain->num_nodes;

	while (i && !node_is_value(&chain->nodes[i - 1]) &&
	       chain->nodes[i - 1].type.dtype == chain_type(chain)->dtype)
		i--;
	return i;
}

/*
 * float16 at the end is made of all floats at once, where the processor may
 * have an instruction for it.
 */
static bool has_halves(const struct chain *chain)
{
	return chain_type(chain)->dtype == DTYPE_F2;
}

static void put_values(struct writer *w)
{
	size_t end = last_change(w->chain);
	enum dtype to = chain_type(w->chain)->dtype;

	for (size_t i = 0; i < end; i++) {
		const struct node *n = &w->chain->nodes[i];

		if (node_is_value(n))
			put_value_op(w, n);
		else
			put_conversion(w, n->type.dtype);
	}
	put_conversion(w, to == DTYPE_F2 ? DTYPE_F4 : to);
}

/* Where the loop leaves its values, channel by channel. */
static void put_stores(const struct writer *w)
{
	bool halves = has_halves(w->chain);
	char name[32];

	for (unsigned c = 0; c < channels(w); c++) {
		spell(w, c, name);
		if (w->flat)
			code_add(w->code, "\t\t%s[i] = %s;\n",
				 halves ? "real" : "to", name);
		else if (halves)
			code_add(w->code, "\t\treal[%u + i] = %s;\n",
				 c * KERNEL_PIXELS, name);
		else if (w->planar)
			code_add(w->code, "\t\tto%u[i] = %s;\n", c, name);
		else
			code_add(w->code, "\t\tto[3 * i + %u] = %s;\n", c,
				 name);
	}
}

/* Floats -> halves, and where they go. */
static void put_halves(const struct writer *w)
{
	if (w->flat)
		code_add(w->code, "\tbeton_halves(to, real, %d);\n",
			 KERNEL_LANES);
	for (unsigned c = 0; !w->flat && w->planar && c < 3; c++)
		code_add(w->code, "\tbeton_halves(to%u, real + %u, %d);\n", c,
			 c * KERNEL_PIXELS, KERNEL_PIXELS);
	if (w->flat || w->planar)
		return;
	code_add(w->code,
		 "\tbeton_halves(half, real, %d);\n"
		 "\tfor (int i = 0; i < %d; i++) {\n",
		 KERNEL_LANES, KERNEL_PIXELS);
	for (unsigned c = 0; c < 3; c++)
		code_add(w->code, "\t\tto[3 * i + %u] = half[%u + i];\n", c,
			 c * KERNEL_PIXELS);
	code_put(w->code, "\t}\n");
}

static const char *element(const struct writer *w)
{
	return emit_type_element(chain_type(w->chain)->dtype);
}

static void put_chunk_head(const struct writer *w)
{
	const char *type = element(w);

	code_add(w->code, "static void %s_chunk(", w->name);
	if (w->flat)
		code_put(w->code, "const unsigned char *restrict in,");
	else
		code_put(w->code, "const unsigned char *restrict in0,\n"
				  "\tconst unsigned char *restrict in1,\n"
				  "\tconst unsigned char *restrict in2,");
	if (w->planar)
		code_add(w->code,
			 "\n\t%s *restrict to0, %s *restrict to1, "
			 "%s *restrict to2,",
			 type, type, type);
	else
		code_add(w->code, "\n\t%s *restrict to,", type);
	code_put(w->code, "\n\tconst float *restrict k");
	if (w->places)
		code_put(w->code, ", int x, int y, int width, int height");
	code_put(w->code, ")\n{\n");
}

/* The function for KERNEL_PIXELS of them. */
static void put_chunk(struct writer *w)
{
	put_chunk_head(w);
	if (has_halves(w->chain))
		code_add(w->code,
			 "\tfloat real[%d] __attribute__((aligned(32)));\n",
			 KERNEL_LANES);
	if (has_halves(w->chain) && !w->flat && !w->planar)
		code_add(w->code,
			 "\tunsigned short half[%d] "
			 "__attribute__((aligned(32)));\n",
			 KERNEL_LANES);
	code_add(w->code, "%s\tfor (int i = 0; i < %d; i++) {\n",
		 has_halves(w->chain) ? "\n" : "",
		 w->flat ? KERNEL_LANES : KERNEL_PIXELS);
	code_put(w->code, w->flat ? "\t\tint v0 = in[i];\n"
				  : "\t\tint v0[3] = { in0[i], in1[i], in2[i] "
				    "};\n");
	put_values(w);
	put_stores(w);
	code_put(w->code, "\t}\n");
	if (has_halves(w->chain))
		put_halves(w);
	code_put(w->code, "}\n\n");
}

/* A call of the chunk's function with the given names of its arguments. */
static void put_chunk_call(const struct writer *w, const char *in,
			   const char *out)
{
	code_add(w->code, "%s_chunk(", w->name);
	for (unsigned c = 0; c < channels(w); c++) {
		code_put(w->code, c ? ", " : "");
		code_add(w->code, in, c);
	}
	code_put(w->code, ",");
	for (unsigned c = 0; c < (w->planar ? 3U : 1U); c++) {
		code_put(w->code, "\n\t\t\t");
		code_add(w->code, out, c);
		code_put(w->code, ",");
	}
	code_put(w->code, "\n\t\t\ts->operands");
	if (w->places)
		code_put(w->code, ", s->x + n, s->y, s->width, s->height");
	code_put(w->code, ");\n");
}

/* What is left of a row that is no multiple of KERNEL_PIXELS. */
static void put_rest(const struct writer *w)
{
	const char *in = w->flat ? "3 * " : "", *out = w->planar ? "" : "3 * ";

	code_add(w->code,
		 "\tif (n < s->count) {\n"
		 "\t\tunsigned char in[3][%d] = { { 0 } };\n"
		 "\t\t%s out[3][%d];\n"
		 "\t\tunsigned long rest = s->count - n;\n\n",
		 KERNEL_LANES, element(w), KERNEL_LANES);
	for (unsigned c = 0; c < channels(w); c++)
		code_add(w->code,
			 "\t\t__builtin_memcpy(in[%u], s->in[%u] + %sn, "
			 "%srest);\n",
			 c, c, in, in);
	code_put(w->code, "\t\t");
	put_chunk_call(w, "in[%u]", "out[%u]");
	for (unsigned c = 0; c < (w->planar ? 3U : 1U); c++)
		code_add(w->code,
			 "\t\t__builtin_memcpy((%s *)s->out[%u] + %sn, "
			 "out[%u], %srest * sizeof(%s));\n",
			 element(w), c, out, c, out, element(w));
	code_put(w->code, "\t}\n");
}

static void put_kernel(struct writer *w)
{
	char in[64], out[80];

	put_chunk(w);
	code_add(w->code,
		 "void %s(const struct beton_span *s)\n{\n"
		 "\tunsigned n = 0;\n\n"
		 "\tfor (; n + %d <= s->count; n += %d)\n\t\t",
		 w->name, KERNEL_PIXELS, KERNEL_PIXELS);
	snprintf(in, sizeof(in), "s->in[%%u] + %sn", w->flat ? "3 * " : "");
	snprintf(out, sizeof(out), "(%s *)s->out[%%u] + %sn", element(w),
		 w->planar ? "" : "3 * ");
	put_chunk_call(w, in, out);
	put_rest(w);
	code_put(w->code, "}\n");
}

/* --- what kernels need --- */

static bool is_op_used(const struct chain *const *chains, size_t count,
		       const struct op *op)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < chains[i]->num_nodes; k++) {
			if (chains[i]->nodes[k].op == op)
				return true;
		}
	}
	return false;
}

/* Files that several operations name are there once. */
static bool is_first_of_file(const struct chain *chain, const struct node *n)
{
	for (const struct node *at = chain->nodes; at < n; at++) {
		if (at->own && !strcmp(at->own->file, n->own->file))
			return false;
	}
	return true;
}

static void put_files(struct code *c, const struct chain *chain)
{
	bool any = false;

	for (size_t i = 0; i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];

		if (!n->own || !n->own->text || !is_first_of_file(chain, n))
			continue;
		if (!any)
			code_put(c, "struct beton_at { int x, y, width, "
				    "height; float random[4]; };\n");
		any = true;
		code_add(c, "#line 1 \"%s\"\n%s\n", n->own->file, n->own->text);
	}
	if (any)
		code_put(c, "#line 1 \"pipeline\"\n");
}

static void put_ops(struct code *c, const struct chain *const *chains,
		    size_t count)
{
	for (size_t i = 0; op_row(i); i++) {
		if (op_row(i)->code && is_op_used(chains, count, op_row(i)))
			code_put(c, op_row(i)->code);
	}
}

/* The kernels alone. */
static char *emit_bodies(const struct chain *const *chains,
			 const char *const *names, size_t count)
{
	struct code c = { 0 };

	for (size_t i = 0; i < count; i++) {
		struct writer w = { .code = &c,
				    .chain = chains[i],
				    .name = names[i],
				    .flat = emit_is_flat(chains[i]),
				    .type = DTYPE_U1 };

		w.planar = chain_type(chains[i])->layout == LAYOUT_CHW;
		w.places = is_op_used(&chains[i], 1, &own_op);
		code_put(&c, "\n");
		put_kernel(&w);
	}
	return code_take(&c);
}

char *emit_chains(const struct chain *const *chains, const char *const *names,
		  size_t count)
{
	cleanup_free char *bodies = emit_bodies(chains, names, count);
	struct code c = { 0 };

	if (!bodies)
		return NULL;
	emit_type_helpers(&c, bodies);
	put_ops(&c, chains, count);
	for (size_t i = 0; i < count; i++)
		put_files(&c, chains[i]);
	code_put(&c, bodies);
	return code_take(&c);
}

char *emit_chain(const struct chain *chain)
{
	static const char *const name = KERNEL_NAME;
	cleanup_free char *text = emit_chains(&chain, &name, 1);
	struct code c = { 0 };

	if (!text)
		return NULL;
	code_put(&c, EXPANDED_TEXT_OF(KERNEL_SPAN_CODE) "\n\n");
	code_put(&c, text);
	return code_take(&c);
}

void emit_hash(const char *text, uint64_t out[static 2])
{
	out[0] = rng_key_of_text(text);
	for (out[1] = out[0]; *text; text++)
		out[1] = rng_mix(out[1] + (unsigned char)*text);
}
