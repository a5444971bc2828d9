/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/emit_device.h"

#include "fs/base/util/cleanup.h"
#include "loader/pipeline/op/user_op.h"
#include "loader/run/jit/code.h"
#include "loader/run/jit/emit_type.h"
#include "loader/run/jit/emit_value.h"

/*
 * The prelude for NVRTC, which has no C and no headers of a C library.
 * Everything that is not a kernel is for the device (-default-device).
 */
static const char PRELUDE[] = "#ifdef __CUDACC_RTC__\n"
			      "#define restrict __restrict__\n"
			      "#define __builtin_memcpy memcpy\n"
			      "#define KERNEL extern \"C\" __global__\n"
			      "#endif\n";

/* The address of the value of a channel of pixel p. */
static const char *place(const struct type *type, unsigned channel)
{
	static const char *const planar[] = { "p", "size + p", "2 * size + p" };
	static const char *const mixed[] = { "3 * p", "3 * p + 1",
					     "3 * p + 2" };

	return type->layout == LAYOUT_CHW ? planar[channel] : mixed[channel];
}

static void put_head(struct code *c, const struct chain *chain)
{
	code_add(
		c,
		"KERNEL void " EMIT_DEVICE_NAME "(\n"
		"\tconst %s *restrict in, %s *restrict to,\n"
		"\tconst float *restrict k, unsigned long long stride,\n"
		"\tconst unsigned char *restrict made, unsigned width, unsigned height)\n{\n"
		"\tunsigned p = blockIdx.x * %u + threadIdx.x;\n"
		"\tunsigned long long size = width * height, "
		"row = blockIdx.y;\n\n"
		"\tif (p >= size)\n\t\treturn;\n"
		"\tin += 3 * row * size;\n\tto += 3 * row * size;\n"
		"\tk += row * stride;\n\t{\n",
		emit_type_element(chain->source.dtype),
		emit_type_element(chain_type(chain)->dtype), EMIT_DEVICE_BLOCK);
	/* The names of the arguments of a function from a file. */
	if (emit_value_uses(chain, &user_op_op))
		code_put(c, "\t\tint x = (int)(p % width), "
			    "y = (int)(p / width), i = 0;\n");
}

static void put_body(struct code *c, const struct chain *chain)
{
	struct emit_value v = { .code = c,
				.chain = chain,
				.type = chain->source.dtype };
	enum dtype to = chain_type(chain)->dtype;
	bool halves = emit_value_has_halves(chain);
	char name[32];

	code_add(c, "\t\t%s v0[3] = { ", emit_type_name(v.type));
	for (unsigned channel = 0; channel < 3; channel++)
		code_add(c, "%sin[%s]", channel ? ", " : "",
			 place(&chain->source, channel));
	code_put(c, " };\n");
	emit_value_put(&v);
	for (unsigned channel = 0; channel < 3; channel++)
		code_add(c, "\t\tto[%s] = made[row] ? %s%s%s%s : 0;\n",
			 place(chain_type(chain), channel),
			 halves ? emit_type_cast(DTYPE_F4, to) : "",
			 halves ? "(" : "", emit_value_spell(&v, channel, name),
			 halves ? ")" : "");
	code_put(c, "\t}\n}\n");
}

char *emit_device(const struct chain *chain)
{
	cleanup_free char *kernel = NULL;
	struct code c = { 0 };

	put_head(&c, chain);
	put_body(&c, chain);
	kernel = code_take(&c);
	if (!kernel)
		return NULL;
	code_put(&c, PRELUDE);
	emit_value_needs(&c, &chain, 1, kernel);
	code_put(&c, kernel);
	return code_take(&c);
}
