/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/graph/op.h"

static const struct param params[] = {
	{ .name = "what",
	  .kind = PARAM_WORD,
	  .words = "decoded",
	  .help = "what is kept of an image" },
	[OP_CACHE_SIZE] = { .name = "size",
			    .kind = PARAM_BYTES,
			    .min_count = 1,
			    .max_count = 1,
			    .min = 1 << 16,
			    .max = 0x1p46,
			    .help = "the most memory that is taken for it" },
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
	.help = "images are kept here for later epochs; changes no pixel",
	.kind = OP_CACHE,
	.params = params,
	.infer = infer,
};
