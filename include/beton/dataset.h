/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random access to the samples of a dataset FILE, without a loader. The
 * conventions of <beton/beton.h> hold. To decode the image of a sample:
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

/* Zero-initialize the struct, then set `size` and the members you need. 0 is
   the default of every member. */
struct beton_dataset_options {
	size_t size;	   /* sizeof(struct beton_dataset_options) */
	beton_log_fn *log; /* one line per failure; NULL: discard messages */
	void *log_arg;
	char *error; /* receives the reason if opening fails; or NULL */
	size_t error_size;
};

/*
 * Opens a dataset FILE, in constant time whatever its size. Where there is no
 * such file, a path with *, ?, [ or { is a pattern: the files that it names,
 * with the same fields, are one dataset, in the order of betonfs(8).
 */
BETON_API int beton_dataset_open(const char *path,
				 const struct beton_dataset_options *options,
				 struct beton_dataset **out);
BETON_API void beton_dataset_close(struct beton_dataset *ds);

BETON_API uint64_t beton_dataset_samples(const struct beton_dataset *ds);

/* BETON_FINGERPRINT_SIZE bytes, the dataset's: those of dataset.json and of
   batch files. A copy of the dataset has the same. */
BETON_API const uint8_t *
beton_dataset_fingerprint(const struct beton_dataset *ds);

/* One field of the dataset, in the order of the file. Valid until close. */
struct beton_field {
	const char *name; /* in the dataset */
	const char *stem; /* in file names of a mount; the name of outputs */
	const char *kind; /* as in dataset.json: "rgb_image", "int", ... */
	enum beton_type type;
	const char *dtype; /* NumPy's string for scalars and arrays, else "" */
	uint32_t ndim;	   /* arrays only, like shape */
	const uint64_t *shape;
	/* Reason why its values cannot be read, or NULL. */
	const char *unusable;
	/* Names of the classes of an int field, in UTF-8: value i has the i-th
	   of them. NULL: the dataset has none. */
	const char *const *classes;
	uint64_t num_classes;
};

/* -ENOENT past the last field. */
BETON_API int beton_dataset_field(const struct beton_dataset *ds,
				  uint32_t field, struct beton_field *out);

/* One value: a field of a sample. Its place in the file, or a scalar itself. */
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

/* -ENOENT: no such sample or field. -BETON_ECORRUPT: the value points outside
   the file. -EOPNOTSUPP: the field is unusable. */
BETON_API int beton_dataset_value(struct beton_dataset *ds, uint32_t field,
				  uint64_t sample, struct beton_value *out);

/* Reads the v->size bytes of a value as stored: a JPEG, raw pixels, JSON
   without its NUL, an array in C order. */
BETON_API int beton_dataset_read(struct beton_dataset *ds,
				 const struct beton_value *v, void *to);

/* Decodes an image: `height` rows of `width` pixels of red, green, blue, the
   same as `decode(exact)` in beton-transforms(7). -EBADMSG: not a JPEG of that
   size. */
BETON_API int beton_dataset_decode(struct beton_dataset *ds,
				   const struct beton_value *v, void *to);

/* Reads the values of samples [first, first + n) of an int or float field, 8
   bytes each. -EINVAL: a field of another type. -EOPNOTSUPP: the field is
   unusable. */
BETON_API int beton_dataset_column(struct beton_dataset *ds, uint32_t field,
				   uint64_t first, uint64_t n, void *to);

#ifdef __cplusplus
}
#endif

#endif
