/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a dataset sample by sample. FFCV and all of betonfs read it. The
 * conventions of <beton/beton.h> hold.
 *
 *	struct beton_writer_options o = { .size = sizeof(o) };
 *	const struct beton_writer_field fields[] = {
 *		{ .name = "image", .type = BETON_TYPE_IMAGE },
 *		{ .name = "label", .type = BETON_TYPE_INT } };
 *	struct beton_writer *w;
 *	int r = beton_writer_open("x.beton", fields, 2, samples, &o, &w);
 *
 *	for (i = 0; i < samples && !r; i++) {
 *		struct beton_writer_value v[2] = { { .integer = 0 },
 *						   { .integer = label[i] } };
 *
 *		r = beton_writer_encode(&recipe, &image[i], &v[0]);
 *		if (!r)
 *			r = beton_writer_append(w, v);
 *		free((void *)v[0].bytes);
 *	}
 *	if (r)
 *		beton_writer_abort(w);
 *	else
 *		r = beton_writer_finish(w);
 *
 * The file appears under its name only when it is complete.
 *
 * Threads: a writer belongs to one thread at a time; the other functions may be
 * called from any thread.
 */
#ifndef BETON_WRITER_H
#define BETON_WRITER_H

#include "beton/batch.h"
#include "beton/beton.h"

#ifdef __cplusplus
extern "C" {
#endif

struct beton_writer;

/* Zero-initialize the struct, then set `size` and the members you need. 0 is
   the default of every member. */
struct beton_writer_options {
	size_t size;	    /* sizeof(struct beton_writer_options) */
	uint32_t page_size; /* power of two, 2 MiB to 2 GiB; 0: 8 MiB */
	beton_log_fn *log;  /* every failure; NULL: discard messages */
	void *log_arg;
};

struct beton_writer_field {
	const char *name; /* 1 to 16 bytes of ASCII */
	enum beton_type type;
	const char *dtype; /* arrays and tensors: NumPy's string */
	uint32_t ndim;
	const uint64_t *shape;
	/* Names of the classes of an int field: value i has the i-th of them,
	   in UTF-8. They take 1 MiB at most. NULL: none. FFCV ignores them. */
	const char *const *classes;
	size_t num_classes;
};

/* One value. Set the members that the field's type needs, and the rest to 0. */
struct beton_writer_value {
	const void *bytes; /* images, bytes, JSON without NUL, arrays */
	uint64_t size;
	int64_t integer;
	double real;
	enum beton_mode mode; /* images; also width, height */
	uint16_t width;
	uint16_t height;
};

/* Creates a dataset file for at most `samples` samples. */
BETON_API int beton_writer_open(const char *path,
				const struct beton_writer_field *fields,
				size_t num_fields, uint64_t samples,
				const struct beton_writer_options *options,
				struct beton_writer **out);

/* Appends a sample. `values` has one value per field and may be freed after the
   call. -BETON_ETOOLARGE: the values do not fit into a page, and nothing was
   written. Any other error is final: later calls return it as well. */
BETON_API int beton_writer_append(struct beton_writer *w,
				  const struct beton_writer_value *values);

/* Completes the file and gives it its name. If that or an earlier call failed,
   there is no file. Frees w in either case. */
BETON_API int beton_writer_finish(struct beton_writer *w);

/* Frees w and leaves no file. Takes NULL. */
BETON_API void beton_writer_abort(struct beton_writer *w);

/* Pixels of red, green, blue, without gaps, in rows from the top. */
struct beton_writer_image {
	const uint8_t *pixels;
	uint32_t width; /* 1 to 65535, like height */
	uint32_t height;
};

/* How to store images. The results are those of FFCV. */
struct beton_writer_recipe {
	enum beton_mode mode;
	uint32_t quality;	 /* JPEG quality, 1 to 100; 0: 90 */
	uint32_t max_resolution; /* longer side in pixels; 0: no limit */
};

/* Encodes an image. out->bytes is malloc'ed, and the caller frees it. -EINVAL:
   invalid image or recipe. */
BETON_API int beton_writer_encode(const struct beton_writer_recipe *recipe,
				  const struct beton_writer_image *image,
				  struct beton_writer_value *out);

/* Makes a value of a JPEG, without re-encoding it. out->bytes points to
   `bytes`. -EBADMSG: not a JPEG that decodes to RGB. -ENODATA: it is cut off,
   and has no end marker. */
BETON_API int beton_writer_keep(const void *bytes, uint64_t size,
				struct beton_writer_value *out);

#ifdef __cplusplus
}
#endif

#endif
