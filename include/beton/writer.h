/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a dataset sample by sample.
 *
 * The writer makes a file of training samples, such as labeled images, in the
 * format of FFCV (.beton). FFCV and all programs of betonfs can read it. The
 * conventions of <beton/beton.h> hold. This program writes ten images of one
 * color each:
 *
 *	#include <beton/writer.h>
 *	#include <stdio.h>
 *	#include <stdlib.h>
 *	#include <string.h>
 *
 *	int main(int argc, char **argv)
 *	{
 *		static unsigned char pixels[32 * 32 * 3];
 *		const struct beton_writer_recipe recipe = { .quality = 90 };
 *		const struct beton_writer_image image = { pixels, 32, 32 };
 *		const struct beton_writer_field fields[] = {
 *			{ .name = "image", .type = BETON_TYPE_IMAGE },
 *			{ .name = "label", .type = BETON_TYPE_INT },
 *		};
 *		struct beton_writer_options options = {
 *			.size = sizeof(options),
 *		};
 *		struct beton_writer *w = NULL;
 *		int r;
 *
 *		if (argc != 2) {
 *			fprintf(stderr, "usage: %s NEWFILE\n", argv[0]);
 *			return 2;
 *		}
 *		r = beton_writer_open(argv[1], fields, 2, 10, &options, &w);
 *		for (int i = 0; i < 10 && !r; i++) {
 *			struct beton_writer_value v[2] = { { .size = 0 },
 *							   { .integer = i } };
 *
 *			memset(pixels, 25 * i, sizeof(pixels));
 *			r = beton_writer_encode(&recipe, &image, &v[0]);
 *			if (!r)
 *				r = beton_writer_append(w, v);
 *			free((void *)v[0].bytes);
 *		}
 *		if (r)
 *			beton_writer_abort(w);
 *		else
 *			r = beton_writer_finish(w);
 *		if (r)
 *			fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
 *		return r != 0;
 *	}
 *
 * The file gets its name only when it is complete, so that a reader never opens
 * an unfinished one.
 *
 * Threads: use a writer in one thread at a time. You may call
 * beton_writer_encode() and beton_writer_keep() from any thread.
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
	/* 1: add the samples to the end of the dataset at the path. Its fields
	   must be those of the call, in any order. Class names are united: known
	   classes get the numbers of the dataset, and new ones follow. The
	   default of page_size is then that of the dataset. */
	int append;
};

struct beton_writer_field {
	const char *name; /* 1 to 16 bytes of ASCII */
	enum beton_type type;
	const char *dtype; /* arrays and tensors: NumPy's string */
	uint32_t ndim;
	const uint64_t *shape;
	/* Class names of an int field, in UTF-8, 1 MiB at most: value i is
	   class i. NULL: no names. FFCV ignores them. */
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

/*
 * Creates a dataset file.
 *
 *   path         name of the file, or URL of the object; an existing one is
 *                replaced on finish, also if options->append is set: a new file
 *                has the samples of both, so a failure leaves the old file whole
 *   fields       `num_fields` fields, at least 1, copied by the call
 *   samples      the most samples that you append
 *   options      NULL is not allowed
 *   out          receives the writer; end it with beton_writer_finish() or
 *                beton_writer_abort()
 *
 * Returns 0, or
 *   -EINVAL   a field, the number of samples or an option is invalid; with
 *             options->append, the fields differ from those of the dataset
 *
 * and errors of files, such as -EACCES and -ENOSPC. If options->append is set,
 * the call copies the samples of the dataset, and may also return the errors of
 * beton_dataset_open().
 */
BETON_API int beton_writer_open(const char *path,
				const struct beton_writer_field *fields,
				size_t num_fields, uint64_t samples,
				const struct beton_writer_options *options,
				struct beton_writer **out);

/*
 * Appends a sample.
 *
 *   values   one value per field, in the order of the fields; you may free them
 *            after the call
 *
 * Returns 0, or
 *   -BETON_ETOOLARGE   the values do not fit into a page; the call wrote
 *                      nothing, and you may append other samples. If you need
 *                      this one, write a file with a larger page_size.
 *
 * Any other error is final: later calls return it as well.
 */
BETON_API int beton_writer_append(struct beton_writer *w,
				  const struct beton_writer_value *values);

/*
 * Completes the file, gives it its name, and frees the writer.
 *
 * Returns 0, or the error of this or of an earlier call. After an error there
 * is no new file. -ESTALE: options->append was set, and another program replaced
 * the dataset meanwhile. The call frees w in either case.
 */
BETON_API int beton_writer_finish(struct beton_writer *w);

/* Frees a writer and leaves no file. Takes NULL. If a file of that name existed
   before, it stays unchanged. */
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

/*
 * Encodes an image as a value of a field of images.
 *
 *   recipe   how to store it
 *   image    its pixels, which stay yours
 *   out      receives the value; the caller frees out->bytes with free()
 *
 * Returns 0, or
 *   -EINVAL   invalid image or recipe
 *   -ENOMEM   there is not enough memory
 */
BETON_API int beton_writer_encode(const struct beton_writer_recipe *recipe,
				  const struct beton_writer_image *image,
				  struct beton_writer_value *out);

/*
 * Makes a value of a JPEG without re-encoding it.
 *
 * If your images are JPEGs, prefer this call to beton_writer_encode(), because
 * encoding again costs time and quality.
 *
 *   bytes   `size` bytes of a JPEG, which stay yours
 *   out     receives the value; out->bytes points to `bytes`
 *
 * Returns 0, or
 *   -EBADMSG   not a JPEG that decodes to RGB
 *   -ENODATA   the JPEG is cut off, and has no end marker
 */
BETON_API int beton_writer_keep(const void *bytes, uint64_t size,
				struct beton_writer_value *out);

/* Zero-initialize the struct, then set `size` and the members you need. 0 is
   the default of every member. */
struct beton_merge_options {
	size_t size;	    /* sizeof(struct beton_merge_options) */
	uint32_t page_size; /* power of two, 2 MiB to 2 GiB; 0: the largest
			       page size of the files, at least 2 MiB */
	/* 1: keep integers as they are, and take the class names of the first
	   file that has any. 0: renumber classes by name. */
	int32_t keep_numbers;
	beton_log_fn *log; /* every failure; NULL: discard messages */
	void *log_arg;
	/* Called now and then, in your thread, with the number of samples so
	   far. Return 0 to continue. If you return a negative errno value,
	   beton_merge() ends with it. NULL: not called. */
	int (*progress)(void *arg, uint64_t done, uint64_t total);
	void *progress_arg;
};

/*
 * Makes one dataset of several files without re-encoding anything.
 *
 * The samples follow each other in the order of the files. The first file
 * determines the fields, and the others need the same ones, by name and type,
 * in any order. Classes are united by name as in beton-merge(1).
 *
 *   paths       `num_paths` files or patterns, such as "part-*.beton"
 *   path        name of the new file; an existing one is replaced when the new
 *               file is complete. To append to a dataset, give its name here
 *               and in paths[0].
 *   options     NULL is not allowed
 *   samples     receives the number of samples; NULL: not needed
 *
 * Returns 0, or
 *   -EINVAL            the fields or class names of the files do not match,
 *                      an option is invalid, or `path` is also a file of
 *                      `paths` after the first one
 *   -EOPNOTSUPP        a field of your own type cannot be copied
 *   -ESTALE            another program changed the file to append to
 *   -BETON_ECORRUPT    a sample is damaged
 *   -BETON_ETOOLARGE   a sample does not fit into a page of options->page_size
 *   -BETON_ENOTBETON   a file is not a dataset
 *
 * and errors of files, such as -ENOENT and -ENOSPC. After an error, an existing
 * file is unchanged.
 */
BETON_API int beton_merge(const char *const *paths, size_t num_paths,
			  const char *path,
			  const struct beton_merge_options *options,
			  uint64_t *samples);

#ifdef __cplusplus
}
#endif

#endif
