/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/picture/format.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/cleanup.h"
#include "loader/image/codec/exif.h"

/* Memory beyond this size is freed after the image that needed it. */
static const size_t KEEP_MEMORY = (size_t)64 << 20;

int picture_refuse(struct picture_decoder *d, int error, const char *format,
		   ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(d->message, sizeof(d->message), format, args);
	va_end(args);
	return error;
}

int picture_grow(struct picture_decoder *d, struct picture_memory *m,
		 size_t size)
{
	if (m->size >= size && m->size <= KEEP_MEMORY)
		return 0;
	free(m->bytes);
	m->size = 0;
	/* Not calloc(): pages that a short file never fills stay untouched. */
	m->bytes = malloc(size);
	/*
	 * A failure to get much memory is the image's fault, not the machine's.
	 */
	if (!m->bytes)
		return picture_refuse(d, size > KEEP_MEMORY ? -EFBIG : -ENOMEM,
				      "no memory for %zu MiB of pixels",
				      size >> 20);
	m->size = size;
	return 0;
}

int picture_reserve(struct picture_decoder *d, uint32_t width, uint32_t height,
		    struct image *image)
{
	int r;

	if (!width || !height)
		return picture_refuse(d, -EBADMSG, "an image without pixels");
	if (width > PICTURE_SIDE_MAX || height > PICTURE_SIDE_MAX)
		return picture_refuse(d, -EFBIG,
				      "%u x %u pixels; a side may have %d",
				      width, height, PICTURE_SIDE_MAX);
	if ((uint64_t)width * height > d->pixels_max)
		return picture_refuse(
			d, -EFBIG, "%u x %u pixels; an image may have %llu",
			width, height, (unsigned long long)d->pixels_max);
	r = picture_grow(d, &d->decoded, (size_t)width * height * 3);
	if (r)
		return r;
	*image = (struct image){
		.pixels = d->decoded.bytes,
		.width = width,
		.height = height,
		.stride = (size_t)width * 3,
	};
	return 0;
}

/* Debian names the package of libx.so.1 libx1. */
static int refuse_without(struct picture_decoder *d, const char *library)
{
	static const char infix[] = ".so.";
	const char *at = strstr(library, infix);
	int n = at ? (int)(at - library) : (int)strlen(library);

	return picture_refuse(
		d, -ELIBACC,
		"install %s, package %.*s%s of Debian and Ubuntu: %.100s",
		library, n, library, at ? at + strlen(infix) : "",
		library_error());
}

int picture_load(struct picture_decoder *d, const char *library,
		 const struct library_symbol *symbols, size_t n,
		 void *functions)
{
	void *loaded = library_open(library, false);
	const char *missing;

	if (!loaded)
		return refuse_without(d, library);
	missing = library_fill(loaded, symbols, n, functions);
	if (missing)
		return picture_refuse(d, -ELIBACC, "%s has no %s", library,
				      missing);
	return 0;
}

unsigned picture_exif_orientation(const uint8_t *tiff, size_t size)
{
	static const char marker[6] = "Exif\0";
	cleanup_free uint8_t *segment = NULL;

	/*
	 * Some writers leave JPEG's marker in front of the block; otherwise it
	 * is added.
	 */
	if (size >= sizeof(marker) && !memcmp(tiff, marker, sizeof(marker)))
		return exif_orientation(tiff, size);
	segment = malloc(sizeof(marker) + size);
	if (!segment)
		return 1;
	memcpy(segment, marker, sizeof(marker));
	memcpy(segment + sizeof(marker), tiff, size);
	return exif_orientation(segment, sizeof(marker) + size);
}
