/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single samples of a dataset FILE, in any order, without a loader. The
 * conventions of <beton/beton.h> hold. The image of a sample:
 *
 *	struct beton_dataset_options o = { .size = sizeof(o) };
 *	struct beton_dataset *ds;
 *	struct beton_value v;
 *	int r = beton_dataset_open("train.beton", &o, &ds);
 *
 *	if (!r)
 *		r = beton_dataset_value(ds, field, sample, &v);
 *	pixels = malloc(3 * (size_t)v.width * v.height);
 *	if (!r)
 *		r = beton_dataset_decode(ds, &v, pixels);
 *
 * Threads: all functions may be called from any thread, at any time before
 * close.
 */
#ifndef BETON_DATASET_H
#define BETON_DATASET_H

#include "beton/batch.h"
#include "beton/beton.h"

#ifdef __cplusplus
extern "C" {
#endif

struct beton_dataset;

/* Zero-initialise, then set size and what differs: 0 is every default. */
struct beton_dataset_options {
	size_t size;	   /* sizeof(struct beton_dataset_options) */
	beton_log_fn *log; /* every failure below, in one line; NULL: silence */
	void *log_arg;
	char *error;	   /* why opening failed is written here, if not */
	size_t error_size; /* NULL */
};

/* Opens a dataset FILE; O(1), whatever its size. */
BETON_API int beton_dataset_open(const char *path,
				 const struct beton_dataset_options *options,
				 struct beton_dataset **out);
BETON_API void beton_dataset_close(struct beton_dataset *ds);

BETON_API uint64_t beton_dataset_samples(const struct beton_dataset *ds);

/* One field, in the order of the file; valid until close. */
struct beton_field {
	const char *name; /* in the dataset */
	const char *stem; /* in file names of a mount, and of outputs */
	const char *kind; /* as in dataset.json: "rgb_image", "int" ... */
	enum beton_type type;
	const char *dtype; /* NumPy's string; scalars and arrays, else "" */
	uint32_t ndim;	   /* arrays, as shape */
	const uint64_t *shape;
	const char *unusable; /* why its values cannot be read, or NULL */
};

/* -ENOENT past the last field. */
BETON_API int beton_dataset_field(const struct beton_dataset *ds,
				  uint32_t field, struct beton_field *out);

/* One field of one sample: where it is, and of a scalar what it is. */
struct beton_value {
	uint64_t sample;
	uint32_t field;
	enum beton_mode mode; /* images, as the next two */
	uint32_t width;
	uint32_t height;
	uint64_t off;	 /* in the file */
	uint64_t size;	 /* bytes as stored there; scalars: 0 */
	int64_t integer; /* of an int field */
	double real;	 /* of a float field */
};

/* -ENOENT: no such sample or field; -BETON_ECORRUPT: it points nowhere. */
BETON_API int beton_dataset_value(struct beton_dataset *ds, uint32_t field,
				  uint64_t sample, struct beton_value *out);

/* The bytes as they are stored, v->size of them: a JPEG, raw pixels, JSON
   without its NUL, an array in C order. */
BETON_API int beton_dataset_read(struct beton_dataset *ds,
				 const struct beton_value *v, void *to);

/*
 * The pixels of an image, height rows of width times red, green, blue: those of
 * `decode(exact)` in beton-transforms(7). -EBADMSG: no JPEG of that size.
 */
BETON_API int beton_dataset_decode(struct beton_dataset *ds,
				   const struct beton_value *v, void *to);

/* Values of samples [first, first + n) of an int or float field, 8 bytes each.
   -EINVAL: another field. */
BETON_API int beton_dataset_column(struct beton_dataset *ds, uint32_t field,
				   uint64_t first, uint64_t n, void *to);

#ifdef __cplusplus
}
#endif

#endif
