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
 * value. How that is done fast is not a row's business, so reference code,
 * tables, generated code and a GPU can all serve the same rows.
 */
#ifndef LOADER_OP_H
#define LOADER_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/batch.h"
#include "loader/crop.h"
#include "loader/dtype.h"
#include "loader/image.h"
#include "loader/resample.h"

struct complaint;
struct parse;
struct parse_stage;

enum op_kind {
	OP_DECODE,   /* how JPEG is decoded; first in a statement */
	OP_GEOMETRY, /* which pixels, before their values are touched */
	OP_POINT,    /* a value of a channel -> another */
	OP_DTYPE,    /* the same value in another type */
	OP_LAYOUT,   /* the order of the axes */
	OP_SINK,     /* no output */
};

enum param_kind {
	PARAM_INTEGERS,
	PARAM_REALS,
	PARAM_WORD, /* one of `words` */
	PARAM_NAME, /* any text, not empty */
};

enum { OP_NUMBERS_MAX = 3, OP_PARAMS_MAX = 5, OP_SIZE_MAX = 16384 };

struct param {
	const char *name; /* NULL ends a table */
	enum param_kind kind;
	const char *initial; /* as in a text; NULL: must be given, "": may
				be left out and then has no value */
	unsigned min_count;  /* numbers: how many, separated by commas */
	unsigned max_count;
	double min; /* numbers: each of them */
	double max;
	const char *const *words; /* NULL-terminated; with numbers: words that
				     may stand in their place */
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
};

enum layout {
	LAYOUT_HWC,
	LAYOUT_CHW,
};

enum type_kind {
	TYPE_IMAGE,
	TYPE_ARRAY,  /* scalars too */
	TYPE_RAGGED, /* bytes and JSON */
};

struct type {
	enum type_kind kind;
	bool fresh; /* nothing has been applied yet */
	enum dtype dtype;
	enum layout layout; /* images, as the next two */
	uint32_t width;	    /* 0: not known */
	uint32_t height;
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
	/* OP_POINT: the definition, in float32; channels are R, G, B. */
	float (*ref)(const struct args *args, unsigned channel, float v);
};

/* NULL past the end. */
const struct op *op_row(size_t i);
const struct op *op_by_name(const char *name);

/* The index of a parameter, or -1. */
int op_param(const struct op *op, const char *name);
/* Whether it draws random numbers: then it has a parameter `group'. */
bool op_is_random(const struct op *op);

/* The arguments of a stage as `op` understands them. -EINVAL: told. */
int op_bind(const struct op *op, const struct parse *parse,
	    const struct parse_stage *stage, const struct complaint *c,
	    struct args *out);

/* Bodies of infer() that several rows share. */
const char *op_infer_crop(const struct type *in);
const char *op_infer_dtype(const struct type *in, enum dtype to,
			   struct type *out);
const char *op_infer_layout(const struct type *in, enum layout to,
			    struct type *out);

/* A size argument: H,W or one number for both. */
struct size op_size(const struct arg *arg);

/* Parameter rows that several operations share. */
extern const char *const op_interpolations[];

#define OP_PARAM_SIZE(text)                                                    \
	{                                                                      \
		.name = "size", .kind = PARAM_INTEGERS, .min_count = 1,        \
		.max_count = 2, .min = 1, .max = OP_SIZE_MAX, .help = text     \
	}
#define OP_PARAM_INTERPOLATION                                                 \
	{                                                                      \
		.name = "interpolation", .kind = PARAM_WORD,                   \
		.initial = "area", .words = op_interpolations,                 \
		.help = "how pixels are averaged when the size changes"        \
	}
#define OP_PARAM_GROUP                                                         \
	{                                                                      \
		.name = "group", .kind = PARAM_NAME, .initial = "",            \
		.help = "operations of one group share their random numbers"   \
	}

#endif
