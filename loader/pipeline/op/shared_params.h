/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter rows (struct param) that several operations share. */
#ifndef LOADER_PIPELINE_OP_SHARED_PARAMS_H
#define LOADER_PIPELINE_OP_SHARED_PARAMS_H

#define OP_PARAM_SIZE(text)                                                    \
	{                                                                      \
		.name = "size", .kind = PARAM_INTEGERS, .min_count = 1,        \
		.max_count = 2, .min = 1, .max = OP_SIZE_MAX, .help = text     \
	}
#define OP_PARAM_SCALE(text)                                                   \
	{                                                                      \
		.name = "scale", .kind = PARAM_REALS, .initial = text,         \
		.min_count = 2, .max_count = 2, .min = 0x1p-20, .max = 1,      \
		.help = "least and greatest area of the crop, as "             \
			"fractions of the image's"                             \
	}
#define OP_PARAM_RATIO                                                         \
	{                                                                      \
		.name = "ratio", .kind = PARAM_REALS,                          \
		.initial = "0.75,1.3333333333333333", .min_count = 2,          \
		.max_count = 2, .min = 0x1p-10, .max = 0x1p10,                 \
		.help = "least and greatest width of the crop "                \
			"divided by its height"                                \
	}
/* Keep the choices in the order of enum interpolation. */
#define OP_PARAM_INTERPOLATION                                                 \
	{                                                                      \
		.name = "interpolation", .kind = PARAM_CHOICE,                 \
		.initial = "area",                                             \
		.choices = "area|bilinear|nearest|bicubic|lanczos",            \
		.help = "filter for resizing"                                  \
	}
/* Keep the choices in the order of enum warp_how. */
#define OP_PARAM_WARP_OF(word)                                                 \
	{                                                                      \
		.name = "interpolation", .kind = PARAM_CHOICE,                 \
		.initial = word, .choices = "nearest|bilinear",                \
		.help = "how values between pixels are calculated"             \
	}
#define OP_PARAM_WARP OP_PARAM_WARP_OF("nearest")
#define OP_PARAM_WARP_SMOOTH OP_PARAM_WARP_OF("bilinear")
#define OP_PARAM_MAGNITUDE                                                     \
	{                                                                      \
		.name = "magnitude", .kind = PARAM_REALS, .min_count = 1,      \
		.max_count = 1, .min = 0, .max = 16,                           \
		.help = "greatest difference of the factor from 1"             \
	}
#define OP_PARAM_P(text)                                                       \
	{                                                                      \
		.name = "p", .kind = PARAM_REALS, .initial = text,             \
		.min_count = 1, .max_count = 1, .min = 0, .max = 1,            \
		.help = "probability that the operation changes a sample"      \
	}
#define OP_PARAM_FILL                                                          \
	{                                                                      \
		.name = "fill", .kind = PARAM_INTEGERS, .initial = "0",        \
		.min_count = 1, .max_count = 3, .min = 0, .max = 255,          \
		.help = "color of new pixels, one number or \"R,G,B\""         \
	}
#define OP_PARAM_OPS(text, least, most)                                        \
	{                                                                      \
		.name = "operations", .kind = PARAM_OPERATIONS,                \
		.min_count = (least), .max_count = (most), .help = text        \
	}
#define OP_PARAM_BINS                                                          \
	{                                                                      \
		.name = "bins", .kind = PARAM_INTEGERS, .initial = "31",       \
		.min_count = 1, .max_count = 1, .min = 2, .max = 1024,         \
		.help = "number of magnitudes"                                 \
	}
#define OP_PARAM_LABEL                                                         \
	{                                                                      \
		.name = "label", .kind = PARAM_INTEGERS, .initial = "0",       \
		.min_count = 1, .max_count = 1, .min = 0, .max = 65535,        \
		.help = "class of new pixels of a mask"                        \
	}
#define OP_PARAM_GROUP                                                         \
	{                                                                      \
		.name = "group", .kind = PARAM_NAME, .initial = "",            \
		.help = "operations of one group draw the same random numbers" \
	}

#endif
