/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations: one row and one file each in loader/ops, found by name. A row
 * contains all that a pipeline needs: the parameters, the type of the result,
 * the use of random numbers, and the definition of the result.
 *
 * An operation has no access to buffers, rows or threads. A geometry returns
 * the pixels of its input that it needs, their new size, and whether they are
 * mirrored, before the image is decoded. A value operation maps one value, or
 * the three of a pixel. Its definition is a function in plain C, whose text
 * (OP_CODE) the code generator copies literally, so a row needs no fast
 * version. An operation that needs more than one pixel gets the whole image
 * (OP_IMAGE) and runs as it is.
 */
#ifndef LOADER_GRAPH_OP_H
#define LOADER_GRAPH_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/batch.h"
#include "loader/graph/crop.h"
#include "loader/graph/dtype.h"
#include "loader/resize/resample.h"
#include "loader/util/image.h"

enum op_kind {
	OP_DECODE,   /* how to decode JPEG; first in a statement */
	OP_GEOMETRY, /* chooses pixels, before their values change */
	OP_POINT,    /* a value of a channel -> another */
	OP_PIXEL,    /* the three values of a pixel -> others */
	OP_IMAGE,    /* all 8-bit pixels of an image -> others */
	OP_ARRAY,    /* a scalar or an array -> another */
	OP_BATCH,    /* two rows of a batch -> one */
	OP_DTYPE,    /* the same value in another type */
	OP_LAYOUT,   /* the order of the axes */
	OP_CACHE,    /* no change: images are cached in this state */
	OP_DEVICE,   /* no change: from here on a GPU has the values */
	OP_SINK,     /* no output */
};

enum param_kind {
	PARAM_INTEGERS,
	PARAM_REALS,
	PARAM_WORD,  /* one of `words` */
	PARAM_NAME,  /* any text, not empty */
	PARAM_BYTES, /* a TYPED_SIZE, one number */
};

enum {
	OP_NUMBERS_MAX = 3,
	OP_PARAMS_MAX = 6,
	OP_SIZE_MAX = 16384,
	OP_OPERANDS_MAX = 12,
	OP_CACHE_SIZE = 1,   /* the parameter of OP_CACHE's row */
	OP_DEVICE_POINT = 1, /* a parameter of OP_DEVICE's row */
	OP_DEVICE_AUTO = 1,  /* its word by which the loader chooses */
	OP_DEVICE_MAX = 63,  /* the largest number of a GPU */
};

struct param {
	const char *name; /* NULL ends a table */
	enum param_kind kind;
	const char *initial; /* the default, as in a text; NULL: required, "":
				optional, without a value */
	unsigned min_count;  /* numbers: how many, separated by commas */
	unsigned max_count;
	double min; /* numbers: each of them */
	double max;
	const char *words; /* "one|two"; with numbers: words that may stand
			      in their place */
	const char *help;
};

struct arg {
	bool given;	/* in the text; false: the default */
	unsigned count; /* numbers; 0: a word, or no value */
	double number[OP_NUMBERS_MAX];
	int word;	  /* index into words, or -1 */
	const char *text; /* PARAM_NAME; lives as long as the parse */
};

/* One per parameter, in their order. */
struct args {
	struct arg arg[OP_PARAMS_MAX];
	void *loaded; /* by op.load() */
};

enum layout {
	LAYOUT_HWC,
	LAYOUT_CHW,
};

/*
 * How to decode JPEGs, in the order of decode()'s words (beton-transforms(7)).
 */
enum quality {
	QUALITY_DEFAULT,
	QUALITY_EXACT,
	QUALITY_DRAFT,
};

enum type_kind {
	TYPE_IMAGE,
	TYPE_ARRAY,  /* also scalars */
	TYPE_RAGGED, /* bytes and JSON */
};

struct type {
	enum type_kind kind;
	bool fresh;  /* no operation yet */
	bool valued; /* since the last OP_IMAGE there was an OP_POINT or
			OP_PIXEL */
	bool placed; /* one of them depends on the place of a pixel */
	enum dtype dtype;
	enum layout layout; /* of images, like width and height */
	unsigned device;    /* 0: the processor's memory; else 1 + its number */
	uint32_t width;	    /* 0: not known, like height */
	uint32_t height;
	uint32_t ndim; /* arrays */
	uint64_t shape[BETON_MAX_NDIM];
};

struct size {
	uint32_t width;
	uint32_t height;
};

/* The result of a geometry for one image. */
struct draw {
	struct rect from;	/* the pixels of the input that it needs */
	struct size to;		/* the size to which they are resampled */
	enum interpolation how; /* how; equal sizes are not resampled */
	bool mirror;		/* whether left and right are exchanged */
};

/* The sample to which a value belongs. */
struct op_sample {
	uint64_t id;
	struct uniform uniform;
};

/*
 * The value of a row of a batch, and that of the previous row; the first row's
 * previous one is the last. Equal pointers: there is no other, or it failed.
 */
struct op_pair {
	const struct type *type; /* of both */
	size_t count;		 /* of elements, in each */
	const void *own;	 /* aligned for the type, like `other` */
	const void *other;
	/* random numbers of the sample */
	struct uniform row;
	/* of the batch's last sample: the same for all rows */
	struct uniform batch;
	void *out;
};

struct op {
	const char *name;
	const char *help;
	enum op_kind kind;
	const struct param *params; /* NULL: none */
	/* Returns why the arguments do not fit each other, or NULL. */
	const char *(*check)(const struct args *args);
	/*
	 * Sets the type of the result; `out` starts as a copy of `in`. Returns
	 * why `in` is refused, or NULL.
	 */
	const char *(*infer)(const struct args *args, const struct type *in,
			     struct type *out);
	/* OP_GEOMETRY; `in` is not empty. */
	void (*draw)(const struct args *args, struct uniform uniform,
		     struct size in, struct draw *out);
	/*
	 * The definition of OP_POINT and OP_PIXEL: a function with the row's
	 * name. It gets a value of a channel, or R, G and B, and float32
	 * operands. A result of type uint8 is limited to 0..255 and truncated.
	 */
	unsigned num_operands;
	/*
	 * Computes the operands for a channel (OP_PIXEL: 0) and values of the
	 * type `in`. All channels draw the same random numbers.
	 */
	void (*operands)(const struct args *args, enum dtype in,
			 unsigned channel, struct uniform uniform, float *out);
	float (*point)(float v, const float *operands);
	void (*pixel)(float v[3], const float *operands);
	const char *code; /* the function's text */
	/* The definition of OP_IMAGE: changes the pixels in place. */
	void (*image)(const struct args *args, const struct op_sample *sample,
		      const struct image *image);
	bool is_sized; /* all images must have the size of the type */
	/*
	 * The definition of OP_ARRAY; neither side is aligned. Returns why the
	 * value is refused, or NULL.
	 */
	const char *(*array)(const struct args *args,
			     const struct op_sample *sample,
			     const struct type *in, const void *from, void *to);
	/* The definition of OP_BATCH. Runs when all rows of the batch have got
	   this far. */
	void (*pair)(const struct args *args, const struct op_pair *pair);
	/*
	 * Reads the files that bound arguments name, and sets args->loaded,
	 * which unload() frees. Texts of arguments are gone afterwards.
	 * -EINVAL, with the reason in `why`.
	 */
	int (*load)(struct args *args, char *why, size_t size);
	void (*unload)(void *loaded);
};

/*
 * The definition of a value operation, both as C and as text. Plain C99 with
 * float alone, without comments, and with no branch that a compiler cannot turn
 * into arithmetic.
 */
#define OP_CODE(...)                                                           \
	static inline __VA_ARGS__ static const char code[] =                   \
		"static inline " #__VA_ARGS__ "\n";

/* NULL past the end. */
const struct op *op_row(size_t i);
const struct op *op_by_name(const char *name);

/* The index of a parameter, or -1. */
int op_param(const struct op *op, const char *name);
/* Whether it draws random numbers: then it has a parameter `group'. */
bool op_is_random(const struct op *op);

/* Bodies of infer() that several rows share. */
const char *op_infer_crop(const struct type *in);
const char *op_infer_dtype(const struct type *in, enum dtype to,
			   struct type *out);
const char *op_infer_layout(const struct type *in, enum layout to,
			    struct type *out);

/* The value of a size argument: H,W or one number for both. */
struct size op_size(const struct arg *arg);

/* infer() of value operations on uint8 and float32 that keep the type. */
const char *op_infer_colour(const struct args *args, const struct type *in,
			    struct type *out);

/* Returns why an array is not one number, or NULL. */
const char *op_infer_scalar(const struct type *in);

/* infer() of OP_IMAGE. */
const char *op_infer_image(const struct args *args, const struct type *in,
			   struct type *out);

/* A uniform whole number below n. */
uint32_t op_below(uint32_t n, struct uniform uniform);

/* check() of a color, and filling a part of an image with it. */
const char *op_check_colour(const struct arg *arg);
void op_fill(const struct image *image, const struct rect *part,
	     const struct arg *colour);

/* Limited to 0..255, truncated; NaN is 0. */
uint8_t op_whole(float v);

/* Whether an operation with the probability `p` is applied this time. */
bool op_chance(const struct arg *p, struct uniform uniform);

/*
 * Draws a factor like FFCV. With the probability `p` it is uniform, from
 * 1 - magnitude (at least 0) to 1 + magnitude; else it is 1.
 */
float op_factor(const struct arg *magnitude, const struct arg *p,
		struct uniform uniform);

/* Parameter rows that several operations share. */
#define OP_PARAM_SIZE(text)                                                    \
	{                                                                      \
		.name = "size", .kind = PARAM_INTEGERS, .min_count = 1,        \
		.max_count = 2, .min = 1, .max = OP_SIZE_MAX, .help = text     \
	}
/* The words are in the order of enum interpolation. */
#define OP_PARAM_INTERPOLATION                                                 \
	{                                                                      \
		.name = "interpolation", .kind = PARAM_WORD,                   \
		.initial = "area", .words = "area|bilinear",                   \
		.help = "how pixels are averaged when the size changes"        \
	}
#define OP_PARAM_MAGNITUDE                                                     \
	{                                                                      \
		.name = "magnitude", .kind = PARAM_REALS, .min_count = 1,      \
		.max_count = 1, .min = 0, .max = 16,                           \
		.help = "how far the factor may be from 1"                     \
	}
#define OP_PARAM_P(text)                                                       \
	{                                                                      \
		.name = "p", .kind = PARAM_REALS, .initial = text,             \
		.min_count = 1, .max_count = 1, .min = 0, .max = 1,            \
		.help = "the probability"                                      \
	}
#define OP_PARAM_FILL                                                          \
	{                                                                      \
		.name = "fill", .kind = PARAM_INTEGERS, .initial = "0",        \
		.min_count = 1, .max_count = 3, .min = 0, .max = 255,          \
		.help = "a colour, one number or \"R,G,B\""                    \
	}
#define OP_PARAM_GROUP                                                         \
	{                                                                      \
		.name = "group", .kind = PARAM_NAME, .initial = "",            \
		.help = "operations of one group share their random numbers"   \
	}

#endif
