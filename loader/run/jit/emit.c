/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/emit.h"

#include <stdio.h>
#include <string.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/rng.h"
#include "loader/pipeline/op/user_op.h"
#include "loader/run/jit/code.h"
#include "loader/run/jit/emit_type.h"
#include "loader/run/jit/emit_value.h"
#include "loader/run/jit/kernel.h"

#define TEXT_OF(...) #__VA_ARGS__
#define EXPANDED_TEXT_OF(...) TEXT_OF(__VA_ARGS__)

struct emit_writer {
	struct emit_value v; /* of a pixel, or of a lane */
	const char *name;
	bool planar; /* result has a plane per channel */
	bool places; /* an operation uses a pixel's position */
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

/* The function that converts the floats of `real`; NULL: there are none. */
static const char *narrowing(const struct emit_writer *w)
{
	const char *many = emit_type_many(chain_type(w->v.chain)->dtype);

	if (many)
		return many;
	return emit_value_has_wholes(w->v.chain) ? "beton_wholes" : NULL;
}

/* Names where the loop leaves its values, channel by channel. */
static void put_stores(const struct emit_writer *w)
{
	bool narrows = narrowing(w);
	char name[32];

	for (unsigned c = 0; c < emit_value_channels(&w->v); c++) {
		emit_value_spell(&w->v, c, name);
		if (w->v.flat)
			code_add(w->v.code, "\t\t%s[i] = %s;\n",
				 narrows ? "real" : "to", name);
		else if (narrows)
			code_add(w->v.code, "\t\treal[%u + i] = %s;\n",
				 c * KERNEL_PIXELS, name);
		else if (w->planar)
			code_add(w->v.code, "\t\tto%u[i] = %s;\n", c, name);
		else
			code_add(w->v.code, "\t\tto[3 * i + %u] = %s;\n", c,
				 name);
	}
}

/* Converts `real`, and stores the result. */
static void put_narrowing(const struct emit_writer *w)
{
	const char *function = narrowing(w);

	if (w->v.flat)
		code_add(w->v.code, "\t%s(to, real, %d);\n", function,
			 KERNEL_LANES);
	for (unsigned c = 0; !w->v.flat && w->planar && c < 3; c++)
		code_add(w->v.code, "\t%s(to%u, real + %u, %d);\n", function, c,
			 c * KERNEL_PIXELS, KERNEL_PIXELS);
	if (w->v.flat || w->planar)
		return;
	if (emit_value_has_wholes(w->v.chain)) {
		code_add(w->v.code,
			 "\tbeton_wholes(whole, real, %d);\n"
			 "\tbeton_pixels(to, whole);\n",
			 KERNEL_LANES);
		return;
	}
	code_add(w->v.code,
		 "\t%s(half, real, %d);\n"
		 "\tfor (int i = 0; i < %d; i++) {\n",
		 function, KERNEL_LANES, KERNEL_PIXELS);
	for (unsigned c = 0; c < 3; c++)
		code_add(w->v.code, "\t\tto[3 * i + %u] = half[%u + i];\n", c,
			 c * KERNEL_PIXELS);
	code_put(w->v.code, "\t}\n");
}

static const char *element(const struct emit_writer *w)
{
	return emit_type_element(chain_type(w->v.chain)->dtype);
}

static void put_chunk_head(const struct emit_writer *w)
{
	const char *type = element(w);

	code_add(w->v.code, "static void %s_chunk(", w->name);
	if (w->v.flat)
		code_put(w->v.code, "const unsigned char *restrict in,");
	else
		code_put(w->v.code, "const unsigned char *restrict in0,\n"
				    "\tconst unsigned char *restrict in1,\n"
				    "\tconst unsigned char *restrict in2,");
	if (w->planar)
		code_add(w->v.code,
			 "\n\t%s *restrict to0, %s *restrict to1, "
			 "%s *restrict to2,",
			 type, type, type);
	else
		code_add(w->v.code, "\n\t%s *restrict to,", type);
	code_put(w->v.code, "\n\tconst float *restrict k");
	if (w->places)
		code_put(w->v.code, ", int x, int y, int width, int height");
	code_put(w->v.code, ")\n{\n");
}

static void put_array(const struct emit_writer *w, const char *type,
		      const char *name)
{
	code_add(w->v.code, "\t%s %s[%d] __attribute__((aligned(32)));\n", type,
		 name, KERNEL_LANES);
}

/* Declares the arrays between loops, and behind the last one. */
static void put_arrays(const struct emit_writer *w)
{
	const struct chain *chain = w->v.chain;
	bool loops = emit_value_has_loops(chain), narrows = narrowing(w);
	bool interleaves = narrows && !w->v.flat && !w->planar;
	bool wholes = interleaves && emit_value_has_wholes(chain);

	if (narrows || loops)
		put_array(w, "float", "real");
	if (wholes || loops)
		put_array(w, "unsigned char", "whole");
	if (interleaves && !wholes)
		put_array(w, "unsigned short", "half");
	if (narrows || loops)
		code_put(w->v.code, "\n");
}

/* Emits the function for KERNEL_PIXELS pixels. */
static void put_chunk(struct emit_writer *w)
{
	put_chunk_head(w);
	put_arrays(w);
	code_add(w->v.code, "\tfor (int i = 0; i < %u; i++) {\n", w->v.loop);
	code_put(w->v.code,
		 w->v.flat ? "\t\tint v0 = in[i];\n"
			   : "\t\tint v0[3] = { in0[i], in1[i], in2[i] "
			     "};\n");
	emit_value_put(&w->v);
	put_stores(w);
	code_put(w->v.code, "\t}\n");
	if (narrowing(w))
		put_narrowing(w);
	code_put(w->v.code, "}\n\n");
}

/* Emits a call of the chunk's function with the given arguments. */
static void put_chunk_call(const struct emit_writer *w, const char *in,
			   const char *out)
{
	code_add(w->v.code, "%s_chunk(", w->name);
	for (unsigned c = 0; c < emit_value_channels(&w->v); c++) {
		code_put(w->v.code, c ? ", " : "");
		code_add(w->v.code, in, c);
	}
	code_put(w->v.code, ",");
	for (unsigned c = 0; c < (w->planar ? 3U : 1U); c++) {
		code_put(w->v.code, "\n\t\t\t");
		code_add(w->v.code, out, c);
		code_put(w->v.code, ",");
	}
	code_put(w->v.code, "\n\t\t\ts->operands");
	if (w->places)
		code_put(w->v.code, ", s->x + n, s->y, s->width, s->height");
	code_put(w->v.code, ");\n");
}

/* Emits the rest of a row that is no multiple of KERNEL_PIXELS. */
static void put_rest(const struct emit_writer *w)
{
	const char *in = w->v.flat ? "3 * " : "",
		   *out = w->planar ? "" : "3 * ";

	code_add(w->v.code,
		 "\tif (n < s->count) {\n"
		 "\t\tunsigned char in[3][%d] = { { 0 } };\n"
		 "\t\t%s out[3][%d];\n"
		 "\t\tunsigned long rest = s->count - n;\n\n",
		 KERNEL_LANES, element(w), KERNEL_LANES);
	for (unsigned c = 0; c < emit_value_channels(&w->v); c++)
		code_add(w->v.code,
			 "\t\t__builtin_memcpy(in[%u], s->in[%u] + %sn, "
			 "%srest);\n",
			 c, c, in, in);
	code_put(w->v.code, "\t\t");
	put_chunk_call(w, "in[%u]", "out[%u]");
	for (unsigned c = 0; c < (w->planar ? 3U : 1U); c++)
		code_add(w->v.code,
			 "\t\t__builtin_memcpy((%s *)s->out[%u] + %sn, "
			 "out[%u], %srest * sizeof(%s));\n",
			 element(w), c, out, c, out, element(w));
	code_put(w->v.code, "\t}\n");
}

static void put_kernel(struct emit_writer *w)
{
	char in[64], out[80];

	put_chunk(w);
	code_add(w->v.code,
		 "void %s(const struct beton_span *s)\n{\n"
		 "\tunsigned n = 0;\n\n"
		 "\tfor (; n + %d <= s->count; n += %d)\n\t\t",
		 w->name, KERNEL_PIXELS, KERNEL_PIXELS);
	snprintf(in, sizeof(in), "s->in[%%u] + %sn", w->v.flat ? "3 * " : "");
	snprintf(out, sizeof(out), "(%s *)s->out[%%u] + %sn", element(w),
		 w->planar ? "" : "3 * ");
	put_chunk_call(w, in, out);
	put_rest(w);
	code_put(w->v.code, "}\n");
}

/* --- texts --- */

/* Emits the kernels alone. */
static char *emit_bodies(const struct chain *const *chains,
			 const char *const *names, size_t count)
{
	struct code c = { 0 };

	for (size_t i = 0; i < count; i++) {
		struct emit_writer w = { .v = { .code = &c,
						.chain = chains[i],
						.flat = emit_is_flat(chains[i]),
						.type = DTYPE_U1 },
					 .name = names[i] };

		w.v.loop = w.v.flat ? KERNEL_LANES : KERNEL_PIXELS;
		w.planar = chain_type(chains[i])->layout == LAYOUT_CHW;
		w.places = emit_value_uses(chains[i], &user_op_op);
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
	emit_value_needs(&c, chains, count, bodies);
	code_put(&c, bodies);
	return code_take(&c);
}

static void add_word(char *name, size_t size, const char *word)
{
	size_t n = strlen(name);

	if (n + 1 < size)
		snprintf(name + n, size - n, "_%s", word);
}

/*
 * The name in profilers: the operations, as far as there is room. Texts for
 * other types or layouts may have the same name.
 */
static void name_of(const struct chain *chain, char *out, size_t size)
{
	snprintf(out, size, "beton_image");
	for (size_t i = 0; i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];

		if (n->custom)
			add_word(out, size, n->custom->function);
		else if (n->op->kind == OP_POINT || n->op->kind == OP_PIXEL)
			add_word(out, size, n->op->name);
	}
}

char *emit_chain(const struct chain *chain)
{
	char name[64];
	const char *const names[] = { name };
	cleanup_free char *text = NULL;
	struct code c = { 0 };

	name_of(chain, name, sizeof(name));
	text = emit_chains(&chain, names, 1);
	if (!text)
		return NULL;
	code_put(&c, EXPANDED_TEXT_OF(KERNEL_SPAN_CODE) "\n\n");
	code_put(&c, text);
	code_add(&c,
		 "\nvoid " KERNEL_NAME "(const struct beton_span *s)\n"
		 "\t__attribute__((alias(\"%s\")));\n",
		 name);
	return code_take(&c);
}

void emit_hash(const char *text, uint64_t out[static 2])
{
	out[0] = rng_key_of_text(text);
	for (out[1] = out[0]; *text; text++)
		out[1] = rng_mix(out[1] + (unsigned char)*text);
}
