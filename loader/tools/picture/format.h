/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the formats and picture.c: the form in which a format
   returns an image. */
#ifndef LOADER_TOOLS_PICTURE_FORMAT_H
#define LOADER_TOOLS_PICTURE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/base/util/library.h"
#include "loader/image/codec/codec.h"
#include "loader/image/jpeg/baseline.h"
#include "loader/image/jpeg/upsample.h"
#include "loader/util/image.h"

enum {
	PICTURE_MESSAGE_SIZE = 160,
	/* A dataset stores width and height in 16 bits. */
	PICTURE_SIDE_MAX = 65535,
};

/* Memory that grows and is reused. */
struct picture_memory {
	uint8_t *bytes;
	size_t size;
};

struct picture_decoder {
	struct codec *codec; /* points to memory of the caller */
	struct baseline *baseline;
	struct upsample *upsample;
	uint64_t pixels_max; /* of an image: PICTURE_PIXELS_MAX, or less for
				tests */
	struct picture_memory decoded;
	struct picture_memory turned;
	struct server *server; /* of pillow.c; NULL: not started */
	char message[PICTURE_MESSAGE_SIZE];
};

/*
 * A format's result. `image` is the caller's of picture.c; the rest is for
 * picture.c.
 */
struct picture_found {
	struct image image;   /* in decoder->decoded */
	unsigned orientation; /* 1..8 of the EXIF tag, 0 if there is none */
	bool plain;	      /* as in struct picture, but for orientation */
};

typedef int picture_decode_fn(struct picture_decoder *d, const uint8_t *bytes,
			      size_t size, struct picture_found *out);

/* picture_probe() of a JPEG. */
int picture_jpeg_probe(struct picture_decoder *d, const uint8_t *bytes,
		       size_t size, uint32_t *width, uint32_t *height);

/* One file format: each file beside this one has one, or two. */
struct picture_format {
	const char *name;	/* "PNG" */
	const char *extensions; /* lower case, a space between them */
	bool (*matches)(const uint8_t *bytes, size_t size);
	picture_decode_fn *decode; /* NULL: built without its library */
	const char *package; /* of Debian, with the headers of its library;
				NULL: no build lacks the format */
};

extern const struct picture_format picture_jpeg, picture_png, picture_webp,
	picture_gif, picture_bmp, picture_tiff, picture_avif, picture_heic,
	picture_jxl;

/* Ends the process of pillow.c. */
void picture_pillow_close(struct picture_decoder *d);

/* Stores the reason why a picture is refused. Returns `error`. */
int picture_refuse(struct picture_decoder *d, int error, const char *format,
		   ...) __attribute__((format(printf, 3, 4)));

/* Makes memory at least `size` bytes large; its contents are lost. */
int picture_grow(struct picture_decoder *d, struct picture_memory *m,
		 size_t size);

/* Checks the size and points image->pixels to memory for it. */
int picture_reserve(struct picture_decoder *d, uint32_t width, uint32_t height,
		    struct image *image);

/*
 * Loads a library that takes long to load and that few files need, at the first
 * file that needs it. It stays loaded. -ELIBACC: it is not installed.
 */
int picture_load(struct picture_decoder *d, const char *library,
		 const struct library_symbol *symbols, size_t n,
		 void *functions);

/*
 * Reads the orientation from a block of EXIF (a TIFF file); 1 if it has no
 * valid one.
 */
unsigned picture_exif_orientation(const uint8_t *tiff, size_t size);

#endif
