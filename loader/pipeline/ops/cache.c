/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/op.h"

static const struct param params[] = {
	{ .name = "what",
	  .kind = PARAM_CHOICE,
	  .choices = "decoded",
	  .help = "content of the cache" },
	[OP_CACHE_SIZE] = { .name = "size",
			    .kind = PARAM_BYTES,
			    .min_count = 1,
			    .max_count = 1,
			    .min = 1 << 16,
			    .max = 0x1p46,
			    .help = "greatest memory of the cache" },
	{ 0 },
};

static const char *infer(const struct args *args, const struct type *in,
			 struct type *out)
{
	(void)args;
	(void)out;
	return op_infer_crop(in);
}

const struct op op_cache = {
	.name = "cache",
	.help = "Cache images here for later epochs, without "
		"changing a pixel",
	.kind = OP_CACHE,
	.params = params,
	.infer = infer,
};
