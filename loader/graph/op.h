/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations: one row each, one file each in loader/ops, found by name. A row
 * says everything that a pipeline has to know: parameters, what type comes out
 * of what type, where random numbers go, and, as the definition, what becomes
 * of pixels.
 *
 * An operation never sees buffers, rows or threads. Geometry answers which
 * pixels of its input it takes, of what size they become, mirrored or not, and
 * it answers before anything is decoded; the rest says what becomes of a single
 * value, or of the three of a pixel. How that is done fast is not a row's
 * business: the definition of a value operation is a function in plain C, whose
 * text (OP_CODE) generated code repeats word by word. What has to see more than
 * a pixel is given all pixels at once (OP_IMAGE), and runs as it stands.
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

struct complaint;
struct epochs;
struct parse;
struct parse_stage;

enum op_kind {
	OP_DECODE,   /* how JPEG is decoded; first in a statement */
	OP_GEOMETRY, /* which pixels, before their values are touched */
	OP_POINT,    /* a value of a channel -> another */
	OP_PIXEL,    /* the three values of a pixel -> others */
	OP_IMAGE,    /* all 8-bit pixels of an image -> others */
	OP_ARRAY,    /* a scalar or an array -> another */
	OP_BATCH,    /* two rows of a batch -> one */
	OP_DTYPE,    /* the same value in another type */
	OP_LAYOUT,   /* the order of the axes */
	OP_CACHE,    /* nothing: images are kept as they are here */
	OP_DEVICE,   /* from here on a GPU has the values */
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
	OP_DEVICE_POINT = 1, /* that of OP_DEVICE's row, */
	OP_DEVICE_AUTO = 1,  /* and its word where either side will do */
};

struct param {
	const char *name; /* NULL ends a table */
	enum param_kind kind;
	const char *initial; /* as in a text; NULL: must be given, "": may
				be left out and then has no value */
	unsigned min_count;  /* numbers: how many, separated by commas */
	unsigned max_count;
	double min; /* numbers: each of them */
	double max;
	const char *words; /* "one|two"; with numbers: words that may stand
			      in their place */
	const char *help;
};

struct arg {
	bool given;	/* in the text, not by default */
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
 * How JPEGs are decoded, in the order of decode()'s words; beton-transforms(7)
 * says what each gives.
 */
enum quality {
	QUALITY_DEFAULT,
	QUALITY_EXACT,
	QUALITY_DRAFT,
};

enum type_kind {
	TYPE_IMAGE,
	TYPE_ARRAY,  /* scalars too */
	TYPE_RAGGED, /* bytes and JSON */
};

struct type {
	enum type_kind kind;
	bool fresh;  /* nothing has been applied yet */
	bool valued; /* OP_POINT or OP_PIXEL has been applied, and no OP_IMAGE
			since; */
	bool placed; /* one that asks where a pixel lies */
	enum dtype dtype;
	enum layout layout; /* images, as the next two */
	unsigned device;    /* 0: the processor's memory; else 1 + its number */
	uint32_t width;	    /* images; 0: not known */
	uint32_t height;
	uint32_t ndim; /* arrays */
	uint64_t shape[BETON_MAX_NDIM];
};

struct size {
	uint32_t width;
	uint32_t height;
};

/* What a geometry does to one image. */
struct draw {
	struct rect from;	/* the pixels of the input that it needs */
	struct size to;		/* the size they are resampled to, */
	enum interpolation how; /* this way; equal sizes: not at all */
	bool mirror;		/* and whether left and right are exchanged */
};

/* The sample that a value is of. */
struct op_sample {
	uint64_t id;
	struct uniform uniform;
};

/*
 * The value of a row of a batch, and that of the row before it; of the first
 * the last. Equal pointers: it has no other, or that could not be made.
 */
struct op_pair {
	const struct type *type; /* of both */
	size_t count;		 /* of elements, in each */
	const void *own;	 /* aligned as the type, as all */
	const void *other;
	struct uniform row;   /* of the sample, */
	struct uniform batch; /* of the batch's last one: the same for all */
	void *out;
};

struct op {
	const char *name;
	const char *help;
	enum op_kind kind;
	const struct param *params; /* NULL: none */
	/* Whether the arguments fit each other; what is wrong, or NULL. */
	const char *(*check)(const struct args *args);
	/*
	 * The type that comes out; `out` starts as a copy of `in`. Returns what
	 * is wrong with `in`, or NULL.
	 */
	const char *(*infer)(const struct args *args, const struct type *in,
			     struct type *out);
	/* OP_GEOMETRY; `in` is not empty. */
	void (*draw)(const struct args *args, struct uniform uniform,
		     struct size in, struct draw *out);
	/*
	 * OP_POINT and OP_PIXEL, the definition: a function of the row's name
	 * and of float32 operands, applied to a value of a channel, or to R, G
	 * and B. A result that is uint8 is limited to 0..255 and truncated.
	 */
	unsigned num_operands;
	/*
	 * What they are for a channel (OP_PIXEL: 0), for values of the type
	 * `in`. Where random numbers are drawn, all channels draw the same.
	 */
	void (*operands)(const struct args *args, enum dtype in,
			 unsigned channel, struct uniform uniform, float *out);
	float (*point)(float v, const float *operands);
	void (*pixel)(float v[3], const float *operands);
	const char *code; /* the function's text */
	/* OP_IMAGE, the definition: changes the pixels in place. */
	void (*image)(const struct args *args, const struct op_sample *sample,
		      const struct image *image);
	bool is_sized; /* all images must have the size of the type */
	/*
	 * OP_ARRAY, the definition; neither side is aligned. What is wrong with
	 * the value, or NULL.
	 */
	const char *(*array)(const struct args *args,
			     const struct op_sample *sample,
			     const struct type *in, const void *from, void *to);
	/* OP_BATCH, the definition. Done once all rows are made up to it. */
	void (*pair)(const struct args *args, const struct op_pair *pair);
	/*
	 * Reads the files that texts of the arguments name, once these are
	 * bound, and keeps what it needs of both as args->loaded, which
	 * unload() frees. -EINVAL: `why` tells.
	 */
	int (*load)(struct args *args, char *why, size_t size);
	void (*unload)(void *loaded);
};

/*
 * The definition of a value operation, once as C and once as text: plain C99,
 * float only, without branches that a compiler cannot turn into arithmetic, and
 * without comments.
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

/*
 * The arguments of a stage as `op` understands them, and numbers that change
 * with the epoch as they are in epochs->now: the only place that knows of that.
 * -EINVAL: told.
 */
int op_bind(const struct op *op, const struct parse *parse,
	    const struct parse_stage *stage, struct epochs *epochs,
	    const struct complaint *c, struct args *out);

/* Whether both say the same, but for texts. */
bool op_args_equal(const struct args *a, const struct args *b);

/* Bodies of infer() that several rows share. */
const char *op_infer_crop(const struct type *in);
const char *op_infer_dtype(const struct type *in, enum dtype to,
			   struct type *out);
const char *op_infer_layout(const struct type *in, enum layout to,
			    struct type *out);

/* A size argument: H,W or one number for both. */
struct size op_size(const struct arg *arg);

/* infer() of value operations on uint8 and float32 that keep the type. */
const char *op_infer_colour(const struct args *args, const struct type *in,
			    struct type *out);

/* What is wrong with an array that is to be one number, or NULL. */
const char *op_infer_scalar(const struct type *in);

/* infer() of OP_IMAGE. */
const char *op_infer_image(const struct args *args, const struct type *in,
			   struct type *out);

/* A uniform whole number below n. */
uint32_t op_below(uint32_t n, struct uniform uniform);

/* check() of a colour, and a part of an image that becomes it. */
const char *op_check_colour(const struct arg *arg);
void op_fill(const struct image *image, const struct rect *part,
	     const struct arg *colour);

/* Limited to 0..255, truncated; NaN is 0. */
uint8_t op_whole(float v);

/* Whether an operation with the probability `p` is applied this time. */
bool op_chance(const struct arg *p, struct uniform uniform);

/*
 * FFCV's: with the probability `p` uniform between 1 - magnitude, at least 0,
 * and 1 + magnitude, else 1.
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
