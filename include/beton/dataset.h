/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random access to the samples of a dataset FILE, without a loader.
 *
 * A dataset is a file in FFCV's format (.beton) with training samples, such as
 * labeled images. These functions read single samples in any order. The
 * conventions of <beton/beton.h> hold. This program decodes the first image:
 *
 *	#include <beton/dataset.h>
 *	#include <stdio.h>
 *	#include <stdlib.h>
 *
 *	int main(int argc, char **argv)
 *	{
 *		char error[256] = "";
 *		struct beton_dataset_options options = {
 *			.size = sizeof(options),
 *			.error = error,
 *			.error_size = sizeof(error),
 *		};
 *		struct beton_dataset *ds = NULL;
 *		struct beton_value v;
 *		unsigned char *pixels = NULL;
 *		int r;
 *
 *		if (argc != 2) {
 *			fprintf(stderr, "usage: %s FILE\n", argv[0]);
 *			return 2;
 *		}
 *		r = beton_dataset_open(argv[1], &options, &ds);
 *		if (r) {
 *			fprintf(stderr, "%s\n", error);
 *			return 1;
 *		}
 *		r = beton_dataset_value(ds, 0, 0, &v);
 *		if (!r)
 *			pixels = malloc(3 * (size_t)v.width * v.height);
 *		if (!r && pixels)
 *			r = beton_dataset_decode(ds, &v, pixels);
 *		if (!r && pixels)
 *			printf("%u x %u pixels, the first is %u %u %u\n",
 *			       v.width, v.height, pixels[0], pixels[1],
 *			       pixels[2]);
 *		free(pixels);
 *		beton_dataset_close(ds);
 *		return r != 0;
 *	}
 *
 * Threads: you may call all functions from any thread, at any time before
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

/* Zero-initialize the struct, then set `size` and the members you need. 0 is
   the default of every member. */
struct beton_dataset_options {
	size_t size;	   /* sizeof(struct beton_dataset_options) */
	beton_log_fn *log; /* one line per failure; NULL: discard messages */
	void *log_arg;
	char *error; /* receives the reason if opening fails; or NULL */
	size_t error_size;
	/* How a URL is read, as in struct beton_loader_options. */
	const char *storage_options;
};

/*
 * Opens a dataset FILE. The time does not depend on the number of samples.
 *
 *   path      a file, a URL (https://, s3://, gs://, az://), or a pattern with
 *             *, ?, [ or {. All matching files must
 *             have the same fields. They form one dataset, in the order that
 *             betonfs(8) describes.
 *   options   set options->size; NULL is not allowed
 *   out       receives the dataset; close it with beton_dataset_close()
 *
 * Returns 0, or
 *   -BETON_ENOTBETON   the file is not a dataset, or was never finished
 *   -BETON_ECORRUPT    the file contradicts itself
 *
 * and other errors of files, such as -ENOENT. If options->error is set, it
 * receives the reason of any error.
 */
BETON_API int beton_dataset_open(const char *path,
				 const struct beton_dataset_options *options,
				 struct beton_dataset **out);

/* Closes a dataset. Takes NULL. */
BETON_API void beton_dataset_close(struct beton_dataset *ds);

/* Returns the number of samples. */
BETON_API uint64_t beton_dataset_samples(const struct beton_dataset *ds);

/*
 * Returns the fingerprint of the dataset: BETON_FINGERPRINT_SIZE bytes.
 *
 * dataset.json and batch files contain the same bytes, so that you can check if
 * a batch belongs to this dataset. A copy of a dataset has the same
 * fingerprint. The bytes belong to the dataset and are valid until close.
 */
BETON_API const uint8_t *
beton_dataset_fingerprint(const struct beton_dataset *ds);

/* One field of the dataset. Valid until close. */
struct beton_field {
	const char *name; /* in the dataset */
	const char *stem; /* the file-name form: in file names of a mount, and
			     the name of outputs */
	const char *kind; /* as in dataset.json: "rgb_image", "int", ... */
	enum beton_type type;
	const char *dtype; /* NumPy's string for scalars and arrays, else "" */
	uint32_t ndim;	   /* arrays only, like shape */
	const uint64_t *shape;
	/* The reason why the field is unreadable, or NULL. */
	const char *unusable;
	/* Class names of an int field, in UTF-8: value i is class i. NULL: the
	   dataset has no names. */
	const char *const *classes;
	uint64_t num_classes;
};

/*
 * Describes a field. For a list of all fields, call it with 0, 1, ... until it
 * returns -ENOENT.
 *
 *   field   index of the field, from 0, in the order of the file
 *   out     receives the description; its pointers are valid until close
 *
 * Returns 0, or
 *   -ENOENT   there is no such field: the index is past the last
 */
BETON_API int beton_dataset_field(const struct beton_dataset *ds,
				  uint32_t field, struct beton_field *out);

/* One field of one sample: the number of a scalar field, or the value's
   position in the file. */
struct beton_value {
	uint64_t sample;
	uint32_t field;
	enum beton_mode mode; /* images; also width, height */
	uint32_t width;
	uint32_t height;
	uint64_t off;	 /* in the file */
	uint64_t size;	 /* bytes as stored there; scalars: 0 */
	int64_t integer; /* of an int field */
	double real;	 /* of a float field */
};

/*
 * Looks up one value.
 *
 * If the field is an int or a float, `out` contains the number. Otherwise pass
 * `out` to beton_dataset_read() or beton_dataset_decode().
 *
 *   field    index of the field, from 0
 *   sample   number of the sample, from 0
 *   out      receives the value, or its position in the file
 *
 * Returns 0, or
 *   -ENOENT           no such sample or field
 *   -BETON_ECORRUPT   the value points outside the file
 *   -EOPNOTSUPP       the field is unusable (beton_field.unusable)
 */
BETON_API int beton_dataset_value(struct beton_dataset *ds, uint32_t field,
				  uint64_t sample, struct beton_value *out);

/*
 * Reads the bytes of a value as stored: a JPEG, raw pixels, JSON without its
 * NUL, or an array in C order.
 *
 *   v    of beton_dataset_value(); you may reduce v->size to read the first
 *        bytes only
 *   to   room for v->size bytes
 *
 * If you need the pixels of a JPEG, call beton_dataset_decode() instead.
 *
 * Returns 0, or
 *   -EIO   the disk failed, or the file became shorter
 */
BETON_API int beton_dataset_read(struct beton_dataset *ds,
				 const struct beton_value *v, void *to);

/*
 * Decodes the image of a value.
 *
 *   v    of beton_dataset_value(), unchanged, of a field of images
 *   to   room for v->height rows of v->width pixels of red, green and blue, 8
 *        bits each, without gaps: 3 * width * height bytes
 *
 * The pixels are those of `decode(exact)`, beton-operations(7).
 *
 * Returns 0, or
 *   -EBADMSG   not a JPEG of that size
 *   -EIO       the disk failed, or the file became shorter
 */
BETON_API int beton_dataset_decode(struct beton_dataset *ds,
				   const struct beton_value *v, void *to);

/*
 * Reads many values of an int or float field.
 *
 * Use it instead of beton_dataset_value() if you need the labels of all
 * samples.
 *
 *   field   index of the field, from 0
 *   first   number of the first sample
 *   n       number of samples
 *   to      room for n values of 8 bytes each: int64_t or double
 *
 * Returns 0, or
 *   -EINVAL       no such field, or one of another type
 *   -ENOENT       no such samples
 *   -EOPNOTSUPP   the field is unusable
 */
BETON_API int beton_dataset_column(struct beton_dataset *ds, uint32_t field,
				   uint64_t first, uint64_t n, void *to);

#ifdef __cplusplus
}
#endif

#endif
