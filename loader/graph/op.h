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
 * (OP_IMAGE) and runs as it is, in place or into another image.
 */
#ifndef LOADER_GRAPH_OP_H
#define LOADER_GRAPH_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/batch.h"
#include "loader/graph/crop.h"
#include "loader/graph/dtype.h"
#include "loader/list/move.h"
#include "loader/pixels/warp.h"
#include "loader/policy/policy.h"
#include "loader/resize/resample.h"
#include "loader/util/image.h"

enum op_kind {
	OP_DECODE,   /* how to decode JPEG; first in a statement */
	OP_GEOMETRY, /* chooses pixels, before their values change */
	OP_POINT,    /* a value of a channel -> another */
	OP_PIXEL,    /* the three values of a pixel -> others */
	OP_IMAGE,    /* all 8-bit pixels of an image -> others, of any size */
	OP_ARRAY,    /* a scalar or an array -> another */
	OP_LIST,     /* a list, the rows of a sample -> a list or an array */
	OP_BATCH,    /* two samples of a batch -> one */
	OP_DTYPE,    /* the same value in another type */
	OP_LAYOUT,   /* the order of the axes */
	OP_CACHE,    /* no change: images are cached in this state */
	OP_DEVICE,   /* no change: from here on a GPU has the values */
	OP_SINK,     /* no output */
	OP_MASK,     /* no change: from here on values are classes */
	OP_FRAMES,   /* chooses frames */
};

enum op_of_kind {
	OP_OF_NOTHING,
	OP_OF_IMAGE, /* an image, whose pixels move */
	OP_OF_LIST,  /* a list that follows an image */
};

enum param_kind {
	PARAM_INTEGERS,
	PARAM_REALS,
	PARAM_WORD,  /* a choice, one of `words` */
	PARAM_NAME,  /* any text, not empty */
	PARAM_BYTES, /* a TYPED_SIZE, one number */
	/* Operations; of more than one list each is an argument without a name.
	   arg.count is the number of lists. */
	PARAM_OPERATIONS,
};

enum {
	OP_NUMBERS_MAX = 256,
	OP_PARAMS_MAX = 8,
	OP_BRANCHES_MAX = 16,
	OP_VIEWS_MAX = 64,
	OP_SIZE_MAX = 16384,
	OP_MAPS_MAX = WARP_MAPS_MAX,
	OP_ROWS_MAX = 1 << 28, /* of lists */
	OP_OPERANDS_MAX = 12,
	OP_CACHE_SIZE = 1,	 /* the parameter of OP_CACHE's row */
	OP_FRAMES_STRIDE = 1,	 /* a parameter of OP_FRAMES's row */
	OP_DEVICE_PLACEMENT = 1, /* a parameter of OP_DEVICE's row */
	OP_DEVICE_AUTO = 1,	 /* its word by which the loader chooses */
	OP_DEVICE_MAX = 63,	 /* the largest number of a GPU */
};

struct param {
	const char *name;     /* NULL ends a table */
	const char *old_name; /* accepted, and not described; NULL: none */
	enum param_kind kind;
	const char *initial; /* the default, as in a pipeline string; NULL:
				required, "": optional, without a value */
	unsigned min_count;  /* numbers: how many, separated by commas */
	unsigned max_count;
	double min; /* numbers: each of them */
	double max;
	const char *words; /* "one|two"; with numbers: choices that may replace
			      them */
	const char *help;
};

struct arg {
	bool given;	/* in the pipeline string; false: the default */
	unsigned count; /* numbers; 0: a choice, or no value */
	double number[OP_NUMBERS_MAX];
	int word;	  /* index of the choice in words, or -1 */
	const char *text; /* PARAM_NAME; lives as long as the parse */
};

/* One per parameter, in their order. */
struct args {
	struct arg arg[OP_PARAMS_MAX];
	void *loaded; /* by op.load() */
};

struct op;

enum layout {
	LAYOUT_HWC,
	LAYOUT_CHW,
};

/*
 * How to decode JPEGs, in the order of decode()'s choices
 * (beton-operations(7)).
 */
enum quality {
	QUALITY_DEFAULT,
	QUALITY_EXACT,
	QUALITY_DRAFT,
	QUALITY_GRAY, /* this and all after it make a grid */
	QUALITY_GRAY16,
	QUALITY_RGB,
	QUALITY_RGB16,
};

enum type_kind {
	TYPE_IMAGE,
	TYPE_ARRAY,  /* also scalars */
	TYPE_RAGGED, /* bytes and JSON */
	TYPE_LIST,   /* rows of one shape, their number varies by sample */
	TYPE_PADDED, /* a list that each batch pads to its longest */
	TYPE_PACKED, /* a list that each batch cuts to a number of rows */
	TYPE_GRID,   /* rows and columns of pixels, of any channels, numbers
			and frames; images in the other family are 8-bit RGB */
};

/* How a batch pads lists to its longest. */
struct padding {
	double value;
	uint32_t multiple; /* lengths are multiples of it */
	bool left;	   /* the new rows come first */
};

struct type {
	enum type_kind kind;
	bool fresh;  /* no operation yet */
	bool valued; /* since the last OP_IMAGE there was an OP_POINT or
			OP_PIXEL */
	bool placed; /* one of them depends on the position of a pixel */
	bool mixed;  /* the three numbers of two labels and a weight */
	enum dtype dtype;
	enum layout layout; /* of images, like width and height */
	unsigned device;    /* 0: the CPU's memory; else 1 + its number */
	unsigned views;	    /* images of a sample, stacked; 0: one */
	uint32_t width;	    /* 0: not known, like height */
	uint32_t height;
	bool mask;	   /* grids: values are classes, never averaged */
	uint32_t channels; /* grids: 0: no axis of channels, like frames */
	uint32_t frames;
	float unit;    /* grids: the value that means 1 */
	uint32_t ndim; /* arrays, and rows of lists */
	uint64_t shape[BETON_MAX_NDIM];
	bool is_array; /* TYPE_RAGGED: its bytes are a list of this dtype and
			  shape (<beton/batch.h>) */
	struct padding padding; /* TYPE_PADDED */
	uint64_t most;		/* TYPE_PACKED: rows of a batch */
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
	unsigned view;		/* input: the number of the view, from 0 */
};

/* For an operation on lists with a parameter `of`: the changes of the same
 * sample in the output of that name. */
struct op_of {
	struct size size;	  /* of the stored image */
	const struct move *moves; /* of its pixels, in their order */
	size_t num_moves;
	uint8_t *kept; /* of each row of the list that follows it, whether it
			  is kept: OP_OF_IMAGE writes, OP_OF_LIST reads */
	uint64_t num_kept;
};

/* The sample to which a value belongs. */
struct op_sample {
	uint64_t id;
	struct uniform uniform;
	void *scratch; /* memory of the size of scratch(), aligned to 64 bytes
			*/
	const struct rect *seen; /* the part of a redrawn image that is read,
				    others may be left; NULL: all */
	const struct op_of *of;
};

/*
 * The value of a sample of a batch, and that of the previous sample; the last
 * one precedes the first. Equal pointers: there is no other sample, or it
 * failed.
 */
struct op_pair {
	const struct type *type; /* of both */
	size_t count;		 /* of elements, in each */
	const void *own;	 /* aligned for the type, like `other` */
	const void *other;
	struct size image; /* that is mixed with the same random numbers; 0,0:
			      none, and the operation needs none */
	/* random numbers of the sample */
	struct uniform row;
	/* of the batch's last sample: the same for all samples */
	struct uniform batch;
	void *out;
};

struct grid;

/* The rows of a sample, in C order and not aligned. */
struct list {
	const struct type *type; /* of a row, unless it is an array's */
	uint64_t rows;
	const void *values;
};

typedef unsigned op_maps_fn(const struct args *args, struct uniform uniform,
			    struct size in, struct warp_map *out);

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
	/* Returns another row with the same name and parameters, which these
	   arguments need, or NULL. */
	const struct op *(*instead)(const struct args *args);
	/* OP_GEOMETRY; `in` is not empty. An empty result: it is too small. */
	void (*draw)(const struct args *args, struct uniform uniform,
		     struct size in, struct draw *out);
	/* OP_FRAMES: the first of those chosen. */
	uint32_t (*first)(const struct args *args, struct uniform uniform,
			  uint32_t frames);
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
	/* operands() for grids, whose numbers need not be bytes. */
	void (*grid_operands)(const struct args *args, const struct type *in,
			      unsigned channel, float *out);
	float (*point)(float v, const float *operands);
	void (*pixel)(float v[3], const float *operands);
	const char *code; /* the function's text */
	/* The definition of OP_IMAGE, one of three: changes the pixels in
	 * place, or makes all of `out` from `in`, which do not overlap. */
	void (*image)(const struct args *args, const struct op_sample *sample,
		      const struct image *image);
	void (*redraw)(const struct args *args, const struct op_sample *sample,
		       const struct image *in, const struct image *out);
	/* The same for a grid of any numbers, which draws the same numbers;
	   NULL: the row works on 8-bit RGB alone. All frames are one grid. */
	void (*grid)(const struct args *args, const struct op_sample *sample,
		     const struct grid *in, const struct grid *out);
	bool keeps_places; /* no pixel moves, so that masks do without it */
	/* The size of the result; NULL: that of its input. Empty: the input is
	   too small. */
	struct size (*resized)(const struct args *args, struct size in);
	/* Bytes of memory that it needs for an image; NULL: none. */
	uint64_t (*scratch)(const struct args *args, struct size in);
	bool is_sized; /* all images must have the size of the type */
	/* OP_GEOMETRY: needs all pixels, and at most mirrors them. */
	bool mirrors;
	/*
	 * The definition of OP_IMAGE and OP_BATCH with PARAM_OPERATIONS: writes
	 * the indices of the lists that are applied, one after the other, and
	 * returns how many. Each comes at most once.
	 */
	size_t (*pick)(const struct args *args, size_t num_lists,
		       struct uniform uniform, unsigned *out);
	/* The row that replaces this one if the lists have OP_BATCH; NULL: they
	 * cannot have it. */
	const struct op *of_batches;
	/* OP_IMAGE that moves pixels, one of two, by the same draws. Neither:
	   nothing can follow. move() sets where pixels go. */
	void (*move)(const struct args *args, struct uniform uniform,
		     struct size in, struct move *out);
	/*
	 * maps() writes the maps by which the image is warped, one after the
	 * other, and returns how many, OP_MAPS_MAX at most. The size stays.
	 * Grids are warped by them, masks even if image() also changes colors;
	 * the parameters are interpolation, fill and label.
	 */
	op_maps_fn *maps;
	bool joins; /* its one map and those of its neighbors are joined to one
		       resampling (warp_join()) */
	/*
	 * The definition of OP_ARRAY; neither side is aligned. Returns why the
	 * value is refused, or NULL.
	 */
	const char *(*array)(const struct args *args,
			     const struct op_sample *sample,
			     const struct type *in, const void *from, void *to);
	/*
	 * The definition of OP_LIST. Returns why the list is refused, or NULL.
	 * Writes the rows of the result to `to`, which has room for most(),
	 * and their number to *rows, or the whole array.
	 */
	const char *(*list)(const struct args *args,
			    const struct op_sample *sample,
			    const struct list *in, const struct type *out,
			    void *to, uint64_t *rows);
	/* The greatest number of rows of the result for a list of at most
	 * `rows` rows; NULL: `rows`. */
	uint64_t (*most)(const struct args *args, uint64_t rows);
	/* OP_LIST as the first operation: its rows are the bytes of the value.
	 */
	bool takes_bytes;
	/* OP_LIST: the kind of output that the parameter `of` names. */
	enum op_of_kind of;
	/* The definition of OP_BATCH. Runs when all samples of the batch have
	 * reached it. */
	void (*pair)(const struct args *args, const struct op_pair *pair);
	bool needs_image; /* labels are mixed by an image of the same pipeline
			   */
	/*
	 * Reads the files that bound arguments name, and sets args->loaded,
	 * which unload() frees. Texts of arguments are gone afterwards.
	 * -EINVAL, with the reason in `why`.
	 */
	int (*load)(struct args *args, char *why, size_t size);
	void (*unload)(void *loaded);
};

/*
 * The definition of a value operation, both as C and as source text. Plain C99
 * that uses float only, without comments, and without branches that a compiler
 * cannot turn into arithmetic.
 */
#define OP_CODE(...)                                                           \
	static inline __VA_ARGS__ static const char code[] =                   \
		"static inline " #__VA_ARGS__ "\n";

/* NULL past the end. */
const struct op *op_row(size_t i);
/* By its name, its name in British spelling, or an alias (synonym.h); NULL:
   there is none. */
const struct op *op_by_name(const char *name);

/* The index of a parameter, or -1. */
int op_param(const struct op *op, const char *name);
/* The parameter of operations, or -1. */
int op_lists(const struct op *op);
/* Whether it draws random numbers: then it has a parameter `group'. */
/* Whether the type is a list, also one that is padded or packed for a batch. */
bool op_is_list(const struct type *t);
bool op_is_random(const struct op *op);

/* Bodies of infer() that several rows share. */
const char *op_refuse_image(const struct type *in);
const char *op_infer_crop(const struct type *in);
const char *op_infer_dtype(const struct type *in, enum dtype to,
			   struct type *out);
const char *op_infer_layout(const struct type *in, enum layout to,
			    struct type *out);

/* check() and draw() of random crops, by the parameters OP_PARAM_SCALE and
   OP_PARAM_RATIO. */
const char *op_check_crop(const struct arg *scale, const struct arg *ratio);
struct rect op_draw_crop(const struct arg *scale, const struct arg *ratio,
			 struct uniform uniform, struct size in);

/*
 * infer() of an operation that makes several images of one, all of `size`. The
 * image must be at least as large as `least`.
 */
const char *op_infer_views(unsigned views, struct size size, struct size least,
			   const struct type *in, struct type *out);

/* The value of a size argument: H,W or one number for both. */
struct size op_size(const struct arg *arg);

/* Makes `out` the list that `in` is. Returns why it is none, or NULL. */
const char *op_infer_list(const struct type *in, struct type *out);
/* list() that copies all rows unchanged. */
const char *op_copy_list(const struct args *args,
			 const struct op_sample *sample, const struct list *in,
			 const struct type *out, void *to, uint64_t *rows);

/* Elements and bytes of a row of a list, or of an array. */
uint64_t op_elements(const struct type *type);
uint64_t op_row_bytes(const struct type *type);

/* infer() of value operations on uint8 and float32 that keep the type. */
const char *op_infer_color(const struct args *args, const struct type *in,
			   struct type *out);

/* The same for operations that take any numbers of a grid. */
const char *op_infer_values(const struct type *in);

/* Returns why an array is not one number, or NULL. */
const char *op_infer_scalar(const struct type *in);

/* infer() of OP_IMAGE. */
const char *op_infer_image(const struct args *args, const struct type *in,
			   struct type *out);

/* A uniform whole number below n. */
uint32_t op_below(uint32_t n, struct uniform uniform);

/* Writes 0 to n - 1 in a random order, with n - 1 draws. */
void op_shuffle(unsigned n, struct uniform uniform, unsigned *out);

/* check() of a color, and filling a part of an image with it. */
const char *op_check_color(const struct arg *arg);
void op_fill(const struct image *image, const struct rect *part,
	     const struct arg *color);

/* scratch() and the start of an operation on a canvas. */
uint64_t op_canvas_scratch(const struct args *args, struct size in);
struct canvas op_canvas(const struct arg *how, const struct arg *color,
			const struct op_sample *sample,
			const struct image *image);
/* A row of a space, with magnitude `bin` of `bins` and the sign that `u` gives
   it. */
struct augmentation {
	const struct policy_row *row;
	unsigned bin;
	unsigned bins;
	double u;
};

/* Applies some, one after the other. */
void op_augment(struct canvas *c, const struct augmentation *steps,
		unsigned count);
/* maps() of them. */
unsigned op_augment_maps(const struct augmentation *steps, unsigned count,
			 struct size in, struct warp_map *out);

/* check() of LEAST,MOST. */
const char *op_check_range(const struct arg *arg);
/* Draws a number from LEAST to MOST; if there is one number, that is it. */
double op_within(const struct arg *arg, struct uniform uniform);
/* As op_within(), but one number is the most in both directions. */
double op_about(const struct arg *arg, struct uniform uniform);
/* To the nearest whole number, halves to the even one. */
double op_round(double v);

/* check() of an operation that moves pixels by random degrees. */
const char *op_check_warp(const struct arg *degrees, const struct arg *color);
/* The color of an argument, for each channel. */
void op_color(const struct arg *color, uint8_t rgb[3]);
/* redraw() of a row whose maps() makes one map; `how` and `fill` are the
   numbers of its parameters. */
void op_warp(op_maps_fn *maps, const struct args *args, unsigned how,
	     unsigned fill, const struct op_sample *sample,
	     const struct image *in, const struct image *out);

/* Limited to 0..255, truncated; NaN is 0. */
uint8_t op_whole(float v);

/* Whether an operation with the probability `p` is applied this time. */
bool op_chance(const struct arg *p, struct uniform uniform);

/*
 * Draws a factor like FFCV. It is uniform from 1 - magnitude (at least 0) to
 * 1 + magnitude with the probability `p`; else it is 1.
 */
float op_factor(const struct arg *magnitude, const struct arg *p,
		struct uniform uniform);

/* Parameter rows that several operations share. */
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
/* The choices are in the order of enum interpolation. */
#define OP_PARAM_INTERPOLATION                                                 \
	{                                                                      \
		.name = "interpolation", .kind = PARAM_WORD,                   \
		.initial = "area",                                             \
		.words = "area|bilinear|nearest|bicubic|lanczos",              \
		.help = "filter for resizing"                                  \
	}
/* The choices are in the order of enum warp_how. */
#define OP_PARAM_WARP_OF(word)                                                 \
	{                                                                      \
		.name = "interpolation", .kind = PARAM_WORD, .initial = word,  \
		.words = "nearest|bilinear",                                   \
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
