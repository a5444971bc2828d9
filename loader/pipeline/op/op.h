/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of operations. Each file in loader/pipeline/ops defines one row. A
 * row contains everything that a pipeline needs: the parameters, the type of
 * the result, the use of random numbers, and the definition of the result.
 *
 * An operation has no access to buffers, rows or threads. A geometry returns
 * the pixels of its input that it needs, their new size, and whether they are
 * mirrored, before the image is decoded. A value operation maps one value, or
 * the three values of a pixel. Its definition is a function in plain C. The
 * code generator copies the source text (OP_CODE) literally, so that a row
 * needs no fast version. An operation that needs more than one pixel (OP_IMAGE)
 * gets the whole image, and works in place or writes another image.
 */
#ifndef LOADER_PIPELINE_OP_OP_H
#define LOADER_PIPELINE_OP_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/batch.h"
#include "loader/image/pixels/warp.h"
#include "loader/image/resize/resample.h"
#include "loader/pipeline/list/move.h"
#include "loader/pipeline/op/crop.h"
#include "loader/pipeline/op/dtype.h"
#include "loader/pipeline/op/shared_params.h"
#include "loader/pipeline/policy/policy.h"
#include "loader/util/image.h"

enum op_kind {
	OP_DECODE,   /* chooses how to decode JPEGs; first in a statement */
	OP_GEOMETRY, /* chooses pixels, before their values change */
	OP_POINT,    /* maps a value of a channel */
	OP_PIXEL,    /* maps the three values of a pixel */
	OP_IMAGE,  /* maps all 8-bit pixels of an image; can change the size */
	OP_ARRAY,  /* maps a scalar or an array */
	OP_LIST,   /* maps the rows of a sample to a list or an array */
	OP_BATCH,  /* mixes two samples of a batch */
	OP_DTYPE,  /* converts to another type */
	OP_LAYOUT, /* changes the order of the axes */
	OP_CACHE,  /* changes nothing: the cache stores images in this state */
	OP_DEVICE, /* changes nothing: later operations run on the GPU */
	OP_SINK,   /* makes no output */
	OP_MASK,   /* changes nothing: the values are classes from here on */
	OP_FRAMES, /* chooses frames */
};

enum op_of_kind {
	OP_OF_NOTHING,
	OP_OF_IMAGE, /* an image, whose moves of pixels the operation needs */
	OP_OF_LIST,  /* a list of boxes or points that moves with an image */
};

enum param_kind {
	PARAM_INTEGERS,
	PARAM_REALS,
	PARAM_CHOICE, /* one of `choices` */
	PARAM_NAME,   /* any string, not empty */
	PARAM_BYTES,  /* a size in bytes, such as 4GiB */
	/* Lists of operations. Several lists are arguments without names.
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
	OP_ROWS_MAX = 1 << 28, /* rows of a list */
	OP_OPERANDS_MAX = 12,
	OP_CACHE_SIZE = 1,	 /* the parameter of OP_CACHE's row */
	OP_FRAMES_STRIDE = 1,	 /* a parameter of OP_FRAMES's row */
	OP_DEVICE_PLACEMENT = 1, /* a parameter of OP_DEVICE's row */
	OP_DEVICE_AUTO = 1,	 /* its choice "auto" */
	OP_DEVICE_MAX = 63,	 /* the largest number of a GPU */
};

struct param {
	const char *name; /* NULL ends a table */
	enum param_kind kind;
	const char *initial; /* default, as written in a pipeline string; NULL:
				required; "": optional, without a value */
	unsigned min_count;  /* count of numbers, separated by commas */
	unsigned max_count;
	double min; /* limits of each number */
	double max;
	const char *choices; /* choices, "one|two"; a parameter of numbers can
			      also have choices */
	const char *help;
};

struct arg {
	bool given;	/* by the pipeline string; false: the default */
	unsigned count; /* of numbers; 0: a choice, or no value */
	double number[OP_NUMBERS_MAX];
	int choice;	  /* index of the choice, or -1 */
	const char *text; /* PARAM_NAME; lives as long as the parse */
};

/* The arguments, in the order of the parameters. */
struct args {
	struct arg arg[OP_PARAMS_MAX];
	void *loaded; /* owned; set by op.load() */
};

struct op;

enum layout {
	LAYOUT_HWC,
	LAYOUT_CHW,
};

/*
 * How to decode JPEGs. Keep the order of decode()'s choices
 * (beton-operations(7)).
 */
enum quality {
	QUALITY_DEFAULT,
	QUALITY_EXACT,
	QUALITY_DRAFT,
	QUALITY_GRAY, /* the first choice that makes a grid */
	QUALITY_GRAY16,
	QUALITY_RGB,
	QUALITY_RGB16,
};

enum type_kind {
	TYPE_IMAGE,
	TYPE_ARRAY,  /* arrays and scalars */
	TYPE_RAGGED, /* bytes and JSON */
	TYPE_LIST, /* rows of one shape; their number differs between samples */
	TYPE_PADDED, /* a list that each batch pads to its longest */
	TYPE_PACKED, /* a list that each batch cuts to a number of rows */
	TYPE_GRID,   /* images other than 8-bit RGB: rows and columns of any
			numbers, with any channels and frames */
};

/* How a batch pads its lists to the longest one. */
struct padding {
	double value;
	uint32_t multiple; /* round the length up to a multiple */
	bool left;	   /* add the new rows before the others */
};

struct type {
	enum type_kind kind;
	bool fresh;  /* no operation has run yet */
	bool valued; /* OP_POINT or OP_PIXEL since the last OP_IMAGE */
	bool placed; /* the result of an operation depends on the position of a
			pixel */
	bool mixed;  /* three numbers: two labels and a weight */
	enum dtype dtype;
	enum layout layout; /* images only, like width and height */
	unsigned device;    /* 0: CPU memory; else 1 + number of the GPU */
	unsigned views;	    /* stacked images of a sample; 0: one image */
	uint32_t width;	    /* in pixels, like height; 0: unknown */
	uint32_t height;
	bool mask; /* grids: values are classes, so never average them */
	uint32_t channels; /* grids; 0: no such axis; like frames */
	uint32_t frames;
	float unit;    /* grids: the value that means 1 */
	uint32_t ndim; /* arrays, and rows of lists */
	uint64_t shape[BETON_MAX_NDIM];
	bool is_array; /* TYPE_RAGGED: the bytes store a list of this dtype and
			  shape (<beton/batch.h>) */
	struct padding padding; /* TYPE_PADDED */
	uint64_t most;		/* TYPE_PACKED: limit of the rows of a batch */
};

struct size {
	uint32_t width;
	uint32_t height;
};

/* The result of a geometry for one image. */
struct draw {
	struct rect from;	/* the required pixels of the input */
	struct size to;		/* the size after resampling */
	enum interpolation how; /* filter; unused if the sizes are equal */
	bool mirror;		/* exchange left and right */
	unsigned view; /* set by the caller: number of the view, from 0 */
};

/* The input of an operation with a parameter `of`: how the output of that name
   changed the same sample. */
struct op_of {
	struct size size;	  /* of the stored image */
	const struct move *moves; /* in the order of the operations */
	size_t num_moves;
	uint8_t *kept; /* for each row: 1 if it remains. OP_OF_IMAGE writes it,
			  OP_OF_LIST reads it */
	uint64_t num_kept;
};

/* The sample of a value. */
struct op_sample {
	uint64_t id;
	struct uniform uniform;
	void *scratch;		 /* scratch() bytes, aligned to 64 bytes */
	const struct rect *seen; /* redraw() may write only this part of the
				    result; NULL: the caller reads all */
	const struct op_of *of;
};

/*
 * The value of a sample, and that of the previous sample of the batch. The last
 * sample precedes the first. If the pointers are equal, there is no other
 * sample, or it failed.
 */
struct op_pair {
	const struct type *type; /* of both values */
	size_t count;		 /* elements of each value */
	const void *own;	 /* aligned for the type, like `other` */
	const void *other;
	struct size image; /* size of the image that shares the random numbers;
			      0,0: no image */
	/* Random numbers of the sample. */
	struct uniform row;
	/* Random numbers of the batch's last sample, equal for all samples. */
	struct uniform batch;
	void *out;
};

struct grid;

/* The rows of a sample, in C order, unaligned. */
struct list {
	const struct type *type; /* type of a row, or of an array */
	uint64_t rows;
	const void *values;
};

typedef unsigned op_maps_fn(const struct args *args, struct uniform uniform,
			    struct size in, struct warp_map *out);

/* OP_GEOMETRY. */
struct op_geometry {
	/* `in` is not empty. If `in` is too small, the result is empty. */
	void (*draw)(const struct args *args, struct uniform uniform,
		     struct size in, struct draw *out);
	bool mirrors; /* reads all pixels, and at most mirrors them */
};

/* OP_FRAMES. */
struct op_frames {
	/* Returns the first chosen frame. */
	uint32_t (*first)(const struct args *args, struct uniform uniform,
			  uint32_t frames);
};

/*
 * OP_POINT and OP_PIXEL: a function with the row's name. Its arguments are a
 * value of a channel, or R, G and B, and float32 operands. The caller limits a
 * result of type uint8 to 0..255 and truncates it.
 */
struct op_value {
	unsigned num_operands;
	/*
	 * Computes the operands for a channel (0 for OP_PIXEL) and values of
	 * the type `in`. All channels draw the same random numbers.
	 */
	void (*operands)(const struct args *args, enum dtype in,
			 unsigned channel, struct uniform uniform, float *out);
	/* Variant of operands() for grids, which have numbers of any type. */
	void (*grid_operands)(const struct args *args, const struct type *in,
			      unsigned channel, float *out);
	float (*point)(float v, const float *operands);	  /* OP_POINT */
	void (*pixel)(float v[3], const float *operands); /* OP_PIXEL */
	const char *code; /* the function's source text */
};

/* OP_IMAGE without PARAM_OPERATIONS: in_place() or redraw(). */
struct op_image {
	/* Changes the pixels in place. */
	void (*in_place)(const struct args *args,
			 const struct op_sample *sample,
			 const struct image *image);
	/* Writes all pixels of `out` from `in`; they do not overlap. */
	void (*redraw)(const struct args *args, const struct op_sample *sample,
		       const struct image *in, const struct image *out);
	/* The definition for a grid of any numbers. It draws the same random
	   numbers as for an image. `in` contains all frames. NULL: the row
	   works on 8-bit RGB only. */
	void (*grid)(const struct args *args, const struct op_sample *sample,
		     const struct grid *in, const struct grid *out);
	bool keeps_places; /* moves no pixel: masks skip the operation */
	/* Returns the size of the result. NULL: the size of the input. If the
	   input is too small, the result is empty. */
	struct size (*resized)(const struct args *args, struct size in);
	/* Returns the bytes of scratch memory for an image. NULL: 0. */
	uint64_t (*scratch)(const struct args *args, struct size in);
	bool is_sized; /* all images must have the size in the type */
	/* An operation that moves pixels describes this by move() or maps(),
	   with the same random numbers. Without either, boxes cannot follow the
	   image. move() returns one move. */
	void (*move)(const struct args *args, struct uniform uniform,
		     struct size in, struct move *out);
	/*
	 * Writes the maps of consecutive warps, at most OP_MAPS_MAX, and
	 * returns their number. Warps keep the size. The loader also warps
	 * grids by these maps, and masks even if in_place() changes colors. The
	 * row needs the parameters interpolation, fill and label.
	 */
	op_maps_fn *maps;
	bool joins; /* adjacent operations with one map each become one
		       resampling (warp_join()) */
};

/* OP_ARRAY. */
struct op_array {
	/* Both pointers are unaligned. Returns the reason why it refuses the
	   value, or NULL. */
	const char *(*map)(const struct args *args,
			   const struct op_sample *sample,
			   const struct type *in, const void *from, void *to);
};

/* OP_LIST. */
struct op_list {
	/*
	 * Returns the reason why it refuses the list, or NULL. If the result is
	 * a list, writes its rows to `to`, which has room for most() rows, and
	 * their number to *rows. Otherwise writes the whole array.
	 */
	const char *(*map)(const struct args *args,
			   const struct op_sample *sample,
			   const struct list *in, const struct type *out,
			   void *to, uint64_t *rows);
	/* Returns the greatest number of rows that a list of at most `rows`
	   rows can result in. NULL: `rows`. */
	uint64_t (*most)(const struct args *args, uint64_t rows);
	/* If it is the first operation, its input rows are the bytes of the
	   value. */
	bool takes_bytes;
	enum op_of_kind of; /* the output that the parameter `of` names */
};

/* OP_BATCH without PARAM_OPERATIONS. */
struct op_batch {
	/* Runs after the earlier operations of all samples in the batch. */
	void (*mix)(const struct args *args, const struct op_pair *pair);
	bool needs_image; /* to mix labels, the pipeline needs an image */
};

/* OP_IMAGE and OP_BATCH with PARAM_OPERATIONS. */
struct op_branches {
	/* Writes the indices of the lists to apply, in order and without
	   duplicates. Returns their number. */
	size_t (*pick)(const struct args *args, size_t num_lists,
		       struct uniform uniform, unsigned *out);
	/* The row that replaces this one if the lists contain OP_BATCH. NULL:
	   the lists must not contain it. */
	const struct op *of_batches;
};

struct op {
	const char *name;
	const char *help;
	enum op_kind kind;
	const struct param *params; /* NULL: none */
	/* Returns the reason why the arguments contradict each other, or
	   NULL. */
	const char *(*check)(const struct args *args);
	/*
	 * Sets the type of the result. `out` is a copy of `in` at first.
	 * Returns the reason why the operation refuses `in`, or NULL.
	 */
	const char *(*infer)(const struct args *args, const struct type *in,
			     struct type *out);
	/* If these arguments need another row of the same name and parameters,
	   returns that row, otherwise NULL. */
	const struct op *(*instead)(const struct args *args);
	/*
	 * Reads the files that the arguments name, and sets args->loaded, which
	 * unload() frees. The strings of the arguments are invalid after the
	 * call. Returns -EINVAL, with the reason in `why`.
	 */
	int (*load)(struct args *args, char *why, size_t size);
	void (*unload)(void *loaded);
	/* The definition: exactly one of these, which its kind names. Kinds
	   that only change the type have none. */
	const struct op_geometry *geometry;
	const struct op_frames *frames;
	const struct op_value *value;
	const struct op_image *image;
	const struct op_array *array;
	const struct op_list *list;
	const struct op_batch *batch;
	const struct op_branches *branches;
};

/*
 * The definition of a value operation, both as C and as source text. Write
 * plain C99 that uses only float, without comments. A compiler must be able to
 * turn every branch into arithmetic.
 */
#define OP_CODE(...)                                                           \
	static inline __VA_ARGS__ static const char code[] =                   \
		"static inline " #__VA_ARGS__ "\n";

/* Returns the index of a parameter, or -1. */
int op_param(const struct op *op, const char *name);
/* Returns the index of the parameter that takes operations, or -1. */
int op_lists(const struct op *op);
/* Whether an operation draws random numbers, and so has a parameter `group'. */
bool op_is_random(const struct op *op);
/* The kind of output that the operation's parameter `of` names. */
enum op_of_kind op_refers_to(const struct op *op);
/* Whether an OP_IMAGE writes its result beside the image. */
bool op_redraws(const struct op *op);
/* Returns the size of the result of an operation on images. */
struct size op_resized(const struct op *op, const struct args *args,
		       struct size in);
/* Whether a type is a list. Padded and packed lists are lists too. */
bool op_is_list(const struct type *t);

/* Implementations of infer() for several rows. */
const char *op_refuse_image(const struct type *in);
const char *op_infer_crop(const struct type *in);
const char *op_infer_dtype(const struct type *in, enum dtype to,
			   struct type *out);
const char *op_infer_layout(const struct type *in, enum layout to,
			    struct type *out);

/* Implementations of check() and draw() for random crops, with the parameters
   OP_PARAM_SCALE and OP_PARAM_RATIO. */
const char *op_check_crop(const struct arg *scale, const struct arg *ratio);
struct rect op_draw_crop(const struct arg *scale, const struct arg *ratio,
			 struct uniform uniform, struct size in);

/*
 * Implementation of infer() for an operation that makes several images of size
 * `size` from one image. Refuses an image smaller than `least`.
 */
const char *op_infer_views(unsigned views, struct size size, struct size least,
			   const struct type *in, struct type *out);

/* Returns the value of a size argument: H,W or one number for both. */
struct size op_size(const struct arg *arg);

/* Sets `out` to the list type of `in`. Returns the reason why `in` is not a
   list, or NULL. */
const char *op_infer_list(const struct type *in, struct type *out);
/* Implementation of list() that copies all rows unchanged. */
const char *op_copy_list(const struct args *args,
			 const struct op_sample *sample, const struct list *in,
			 const struct type *out, void *to, uint64_t *rows);

/* Return the number of elements and of bytes in a row of a list, or in an
   array. */
uint64_t op_elements(const struct type *type);
uint64_t op_row_bytes(const struct type *type);

/* Implementation of infer() for value operations on uint8 and float32 that keep
   the type. */
const char *op_infer_color(const struct args *args, const struct type *in,
			   struct type *out);

/* Implementation of infer() for value operations on grids of any numbers. */
const char *op_infer_values(const struct type *in);

/* Returns the reason why an array is not a single number, or NULL. */
const char *op_infer_scalar(const struct type *in);

/* Implementation of infer() for OP_IMAGE. */
const char *op_infer_image(const struct args *args, const struct type *in,
			   struct type *out);

/* Draws a uniform integer below n. */
uint32_t op_below(uint32_t n, struct uniform uniform);

/* Writes 0 to n - 1 in a random order, with n - 1 draws. */
void op_shuffle(unsigned n, struct uniform uniform, unsigned *out);

/* Check a color, and fill a part of an image with it. */
const char *op_check_color(const struct arg *arg);
void op_fill(const struct image *image, const struct rect *part,
	     const struct arg *color);

/* Implementation of scratch() for an operation on a canvas, and the canvas
   itself. */
uint64_t op_canvas_scratch(const struct args *args, struct size in);
struct canvas op_canvas(const struct arg *how, const struct arg *color,
			const struct op_sample *sample,
			const struct image *image);
/* An operation of an augmentation policy with magnitude `bin` of `bins`. `u`,
   from 0 to 1, determines the sign. */
struct augmentation {
	const struct policy_row *row;
	unsigned bin;
	unsigned bins;
	double u;
};

/* Applies `count` augmentations in order. */
void op_augment(struct canvas *c, const struct augmentation *steps,
		unsigned count);
/* Implementation of maps() for augmentations. */
unsigned op_augment_maps(const struct augmentation *steps, unsigned count,
			 struct size in, struct warp_map *out);

/* Implementation of check() for an argument LEAST,MOST. */
const char *op_check_range(const struct arg *arg);
/* Draws a number from LEAST to MOST. Returns a single number unchanged. */
double op_within(const struct arg *arg, struct uniform uniform);
/* Draws a number from LEAST to MOST. A single N means -N to N. */
double op_about(const struct arg *arg, struct uniform uniform);
/* Rounds to the nearest integer, halves to even. */
double op_round(double v);

/* Implementation of check() for an operation that turns an image by random
   degrees. */
const char *op_check_warp(const struct arg *degrees, const struct arg *color);
/* Sets `rgb` to the color of an argument. */
void op_color(const struct arg *color, uint8_t rgb[3]);
/* Implementation of redraw() for a row whose maps() writes one map. `how` and
   `fill` are indices of its parameters. */
void op_warp(op_maps_fn *maps, const struct args *args, unsigned how,
	     unsigned fill, const struct op_sample *sample,
	     const struct image *in, const struct image *out);

/* Limits a value to 0..255 and truncates it. NaN becomes 0. */
uint8_t op_whole(float v);

/* Draws whether to apply an operation with the probability `p`. */
bool op_chance(const struct arg *p, struct uniform uniform);

/*
 * Draws a factor like FFCV. It is uniform from 1 - magnitude (at least 0) to 1
 * + magnitude with the probability `p`; otherwise it is 1.
 */
float op_factor(const struct arg *magnitude, const struct arg *p,
		struct uniform uniform);

#endif
